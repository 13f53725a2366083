//! The access patterns of documents.

use item_model::prelude::*;

use crate::pattern::Consistency;

patterns! {
    CREATE {
        id: "documents.create",
        purpose: "Create a document with its first version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC, VERSION#<1> and SECTION#<name>#<1>; PK = CUSTOMER#<caller>, \
            SK = DOCUMENT#<id>#owner and PROFILE (check); PK = ORG#<organization>, SK = \
            MEMBER#<caller> or ORG (check); PK = QUOTA#<hash of the caller>, SK = DAY#<day>",
        requires: "the document does not exist; its creator exists and is a member of the \
            organization; a customer created fewer documents on the day than the quota; ADD \
            documents",
        callers: "owner",
    }
    GET {
        id: "documents.get",
        purpose: "Read a document's head",
        request: GetItem,
        key: "PK = DOC#<id>, SK = DOC",
        returns: "the head, with the current manifest",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    TEXTS {
        id: "documents.texts",
        purpose: "Read the texts of a version",
        request: BatchGetItem,
        key: "PK = DOC#<id>, SK = SECTION#<name>#<version>, for each; PK = ORG#<organization>, SK \
            = MEMBER#<caller>",
        returns: "the texts of a version; the caller's membership if access depends on it",
        consistency: Consistency::Strong("a text in the manifest must be found, and an ended \
            membership must not"),
        callers: "owner",
    }
    VERSION {
        id: "documents.version",
        purpose: "Read one version and the head",
        request: BatchGetItem,
        key: "PK = DOC#<id>, SK = DOC and VERSION#<number>",
        returns: "the head, one version",
        consistency: Consistency::Strong("a restore is conditional on the head that was read with \
            the version"),
        callers: "owner",
    }
    VERSIONS {
        id: "documents.versions",
        purpose: "List the versions of a document",
        request: Query,
        key: "PK = DOC#<id>, SK under VERSION#, backward",
        returns: "versions, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    EDIT {
        id: "documents.edit",
        purpose: "Read a document's head before a change",
        request: GetItem,
        key: "PK = DOC#<id>, SK = DOC",
        returns: "the head",
        consistency: Consistency::Strong("the next manifest is computed from it, and the change is \
            conditional on it"),
        callers: "owner",
    }
    STANDING {
        id: "documents.standing",
        purpose: "Read the membership that gives access to a document",
        request: GetItem,
        key: "PK = ORG#<organization>, SK = MEMBER#<caller>",
        returns: "the caller's own membership",
        consistency: Consistency::Strong("an ended membership must give no access"),
        callers: "owner",
    }
    PUT_SECTION {
        id: "documents.put-section",
        purpose: "Set a section's text, in the draft or as a new version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC, SECTION#<name>#<next> and, without a draft, VERSION#<next>; \
            PK = ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE \
            (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor and still a \
            member, or an admin with a profile",
        callers: "owner",
    }
    BEGIN_DRAFT {
        id: "documents.begin-draft",
        purpose: "Begin a draft of the next version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor and still a \
            member, or an admin with a profile",
        callers: "owner",
    }
    DISCARD_DRAFT {
        id: "documents.discard-draft",
        purpose: "Discard the draft and its texts",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC and SECTION#<name>#<next>, for each; PK = \
            ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE \
            (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor and still a \
            member, or an admin with a profile",
        callers: "owner",
    }
    PUBLISH {
        id: "documents.publish",
        purpose: "Make the draft current",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC and VERSION#<next>; PK = ORG#<organization>, SK = \
            MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor and still a \
            member, or an admin with a profile",
        callers: "owner",
    }
    RESTORE {
        id: "documents.restore",
        purpose: "Publish an old version again as a new one",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC and VERSION#<next>; PK = ORG#<organization>, SK = \
            MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor and still a \
            member, or an admin with a profile",
        callers: "owner",
    }
    ADD_EDITOR {
        id: "documents.add-editor",
        purpose: "Add an editor",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#editor and \
            PROFILE (check); PK = ORG#<organization>, SK = MEMBER#<caller> and MEMBER#<customer>, \
            PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "the caller is the owner and still a member, or an admin with a profile; the set \
            has room or has the customer; the customer exists and is a member; ADD editors",
        callers: "owner",
    }
    REMOVE_EDITOR {
        id: "documents.remove-editor",
        purpose: "Remove an editor",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#editor; PK = \
            ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE \
            (checks)",
        requires: "the caller is the owner or this editor and still a member, or an admin with a \
            profile; DELETE editors",
        callers: "owner",
    }
    RETIRE {
        id: "documents.retire",
        purpose: "Hide a document before its texts are removed",
        request: UpdateItem,
        key: "PK = DOC#<id>, SK = DOC",
        requires: "version = the If-Match; the caller is staff, or the owner and there is no \
            organization",
        callers: "owner",
    }
    RETIRE_SHARED {
        id: "documents.retire-shared",
        purpose: "Hide an organization's document before its texts are removed",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner and still a member, or an admin \
            with a profile",
        callers: "owner",
    }
    HISTORY {
        id: "documents.history",
        purpose: "List the versions of a deleted document",
        request: Query,
        key: "PK = DOC#<id>, SK under VERSION#",
        returns: "versions, oldest first",
        consistency: Consistency::Strong("a missed version would outlive the document"),
        callers: "owner",
    }
    SWEEP {
        id: "documents.sweep",
        purpose: "Remove the texts and versions of a deleted document",
        request: BatchWriteItem,
        key: "PK = DOC#<id>, SK = SECTION#<name>#<version> or VERSION#<number>, for each",
        requires: "no condition",
        callers: "owner",
    }
    DELETE {
        id: "documents.delete",
        purpose: "Free the id of a deleted document",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#<owner or \
            editor>, for each",
        requires: "the document is being deleted",
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "documents.of-customer",
        purpose: "Find the documents of an erased customer",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK under DOCUMENT#",
        returns: "the customer's role items, as owner or editor",
        consistency: Consistency::Strong("a missed document would outlive its owner"),
        callers: "owner",
    }
    RELEASE {
        id: "documents.release",
        purpose: "Remove an erased customer from a document that stays",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#<owner or \
            editor>",
        requires: "the head is unchanged; REMOVE owner_id or DELETE editors",
        callers: "owner",
    }
    FORGET {
        id: "documents.forget",
        purpose: "Remove an erased customer's role item that leads to no document",
        request: DeleteItem,
        key: "PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#<owner or editor>",
        requires: "the role item is the one that was read",
        callers: "owner",
    }
}
