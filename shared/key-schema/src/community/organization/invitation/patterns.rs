use item_model::prelude::*;

use crate::index::GSI1;
use crate::pattern::Consistency;

patterns! {
    INVITE {
        id: "invitations.put",
        purpose: "Invite a customer to an organization, or renew the invitation",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = INVITATION#<customer> and ORG; SK = MEMBER#<customer>, \
            MEMBER#<caller> and TEAM#<team>, PK = CUSTOMER#<caller> and CUSTOMER#<customer>, SK = \
            PROFILE (checks); PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        requires: "the invitation and the customer's invitations are unchanged; the customer is no \
            member; no other customer was invited since the count; the caller is an admin with a \
            profile; the customer and the team exist; ADD 1 to invited",
        callers: "owner",
    }
    OPEN {
        id: "invitations.open",
        purpose: "Count the open invitations of an organization",
        request: Query,
        key: "PK = ORG#<id>, SK under INVITATION#",
        returns: "the organization's invitations",
        consistency: Consistency::Strong("with a missed invitation, the organization could exceed its limit"),
        callers: "owner",
    }
    INVITERS {
        id: "invitations.inviters",
        purpose: "Find the void invitations, which do not count",
        request: BatchGetItem,
        key: "PK = ORG#<id>, SK = MEMBER#<inviter>, for each inviter",
        returns: "the inviters' memberships",
        consistency: Consistency::Strong("the invitations of a former admin must not count"),
        callers: "owner",
    }
    ACCEPT {
        id: "invitations.accept",
        purpose: "Accept an invitation",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = INVITATION#<customer>, MEMBER#<customer>, ORG, TEAM#<team> and \
            MEMBER#<inviter> (check); PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS and \
            PROFILE (check)",
        requires: "the invitation is unchanged and has not expired; its inviter is still an admin; the \
            customer exists and is no member; the organization and the team exist; ADD to the \
            counts",
        callers: "owner",
    }
    PREPARE {
        id: "invitations.prepare",
        purpose: "Read an invitation before its change",
        request: BatchGetItem,
        key: "PK = ORG#<id>, SK = INVITATION#<customer> and MEMBER#<caller>; PK = \
            CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS; PK = ORG#<id>, SK = ORG",
        returns: "the organization, the invitation, the customer's invitations and the caller's \
            membership",
        consistency: Consistency::Strong("an invitation ends together with its entry in the list \
            of the customer's invitations"),
        callers: "owner",
    }
    WITHDRAW {
        id: "invitations.delete",
        purpose: "Decline or withdraw an invitation",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = INVITATION#<customer>; PK = CUSTOMER#<customer>, SK = \
            CUSTOMER#INVITATIONS; PK = ORG#<id>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK \
            = PROFILE (checks)",
        requires: "the invitation and the customer's invitations are unchanged; the caller is this \
            customer, or an admin with a profile",
        callers: "owner",
    }
    OF_ORGANIZATION {
        id: "invitations.list",
        purpose: "List the open invitations of an organization",
        request: Query,
        key: "PK = ORG#<id>, SK under INVITATION#",
        returns: "invitations by customer id",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "invitations.of-customer",
        purpose: "List a customer's open invitations",
        request: Query on GSI1,
        key: "GSI1PK = INVITED#<customer>, GSI1SK between the millisecond after <now> and the end",
        returns: "open invitations, in the order of expiry",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    ROSTER {
        id: "invitations.erasable",
        purpose: "Find the invitations of an erased customer",
        request: GetItem,
        key: "PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        returns: "the customer's invitations",
        consistency: Consistency::Strong("a missed invitation would outlive its customer"),
        callers: "owner",
    }
    ERASE {
        id: "invitations.erase",
        purpose: "Remove the invitations of an erased customer",
        request: BatchWriteItem,
        key: "PK = ORG#<id>, SK = INVITATION#<customer>, for each organization",
        requires: "no condition",
        callers: "owner",
    }
    FORGET {
        id: "invitations.forget",
        purpose: "Remove the list of an erased customer's invitations",
        request: DeleteItem,
        key: "PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        requires: "the item is unchanged",
        callers: "owner",
    }
}
