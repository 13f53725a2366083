use item_model::prelude::*;

use crate::index::GSI1;
use crate::pattern::Consistency;

patterns! {
    CREATE {
        id: "organizations.create",
        purpose: "Create an organization with its first admin",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = ORG and MEMBER#<customer>; PK = CUSTOMER#<customer>, SK = \
            PROFILE (check); PK = QUOTA#<hash of the customer>, SK = DAY#<day>",
        requires: "the organization does not exist; the customer exists and has created fewer \
            organizations on the day than the quota; ADD 1 to the quota's counter",
        callers: "owner",
    }
    GET {
        id: "organizations.get",
        purpose: "Read an organization with its teams",
        request: Query,
        key: "PK = ORG#<id>, SK between ORG and TEAM$",
        returns: "the organization, then all its teams",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    RENAMED {
        id: "organizations.renamed",
        purpose: "Read an organization after its change",
        request: Query,
        key: "PK = ORG#<id>, SK between ORG and TEAM$",
        returns: "the organization, then all its teams",
        consistency: Consistency::Strong("the response shows the change that was just made"),
        callers: "owner",
    }
    RENAME {
        id: "organizations.rename",
        purpose: "Rename an organization",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = ORG; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE \
            (checks)",
        requires: "version = the If-Match; the caller is an admin with a profile",
        callers: "owner",
    }
    CREATE_TEAM {
        id: "teams.create",
        purpose: "Add a team",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = TEAM#<team> and ORG; SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "the team does not exist; the organization has room for another team; the caller \
            is an admin with a profile; ADD teams",
        callers: "owner",
    }
    CHANGE_TEAM {
        id: "teams.change",
        purpose: "Rename a team",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = TEAM#<team>; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = \
            PROFILE (checks)",
        requires: "version = the If-Match; the caller is an admin with a profile",
        callers: "owner",
    }
    DELETE_TEAM {
        id: "teams.delete",
        purpose: "Delete a team",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = TEAM#<team> and ORG; SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the team has no members; the caller is an admin with a \
            profile; ADD teams",
        callers: "owner",
    }
    MEMBER {
        id: "members.get",
        purpose: "Read the caller's membership",
        request: GetItem,
        key: "PK = ORG#<id>, SK = MEMBER#<caller>",
        returns: "the caller's own membership",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    PREPARE {
        id: "members.prepare",
        purpose: "Read a membership before its change",
        request: BatchGetItem,
        key: "PK = ORG#<id>, SK = ORG, MEMBER#<customer> and MEMBER#<caller>",
        returns: "the organization and both memberships",
        consistency: Consistency::Strong("the counts change by the difference to the stored \
            membership"),
        callers: "owner",
    }
    PUT_MEMBER {
        id: "members.put",
        purpose: "Create a membership, or change its role or team",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>; SK = MEMBER#<caller>, PK \
            = CUSTOMER#<caller> and CUSTOMER#<customer>, SK = PROFILE (checks); by staff also SK = \
            INVITATION#<customer>, PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        requires: "the membership is unchanged; a new member has no invitation left; the caller is \
            an admin with a profile; the customer and the team exist; an admin remains; ADD to the \
            counts",
        callers: "owner",
    }
    REMOVE_MEMBER {
        id: "members.remove",
        purpose: "End a membership",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>; SK = MEMBER#<caller>, PK \
            = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "the membership is unchanged; the caller is this member, or an admin with a \
            profile; an admin remains; ADD to the counts",
        callers: "owner",
    }
    REMOVE_GHOST {
        id: "members.remove-ghost",
        purpose: "End the membership of a last admin who was erased",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>; PK = \
            CUSTOMER#<customer>, SK = PROFILE (check)",
        requires: "the membership is unchanged; the customer does not exist or is being erased; \
            ADD to the counts",
        callers: "staff",
    }
    ERASABLE {
        id: "members.erasable",
        purpose: "Read a membership of an erased customer",
        request: GetItem,
        key: "PK = ORG#<id>, SK = MEMBER#<customer>",
        returns: "the membership",
        consistency: Consistency::Strong("the role and team of the stored membership decide which \
            counts change"),
        callers: "owner",
    }
    ERASE_MEMBER {
        id: "members.erase",
        purpose: "End a membership of an erased customer",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>",
        requires: "the membership is unchanged (another admin need not remain); ADD to the counts",
        callers: "owner",
    }
    HEAD_ONLY {
        id: "organizations.head",
        purpose: "Check that an organization exists, if its list of members or invitations is \
            empty",
        request: GetItem,
        key: "PK = ORG#<id>, SK = ORG",
        returns: "the organization",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    MEMBERS {
        id: "members.list",
        purpose: "List the members of an organization",
        request: Query,
        key: "PK = ORG#<id>, SK under MEMBER#",
        returns: "members by customer id",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "members.of-customer",
        purpose: "List a customer's memberships",
        request: Query on GSI1,
        key: "GSI1PK = MEMBEROF#<customer>, GSI1SK = <created_at>#<id>",
        returns: "memberships, oldest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
}
