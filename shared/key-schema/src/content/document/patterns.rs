use item_model::prelude::*;

use crate::index::GSI1;
use crate::pattern::Consistency;

patterns! {
    CREATE {
        id: "documents.create",
        purpose: "Create a document with its first version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC, VERSION#<1> and SECTION#<name>#<1>; PK = CUSTOMER#<caller>, \
            SK = DOCUMENT#<id>#owner and PROFILE (check); PK = ORG#<organization>, SK = \
            MEMBER#<caller> or ORG (check); PK = QUOTA#<hash of the caller>, SK = DAY#<day>",
        requires: "the document does not exist; a customer who creates it exists, is a member of \
            the organization and has created fewer documents on the day than the quota; ADD 1 to \
            the quota's counter",
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
            membership must give no access"),
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
        requires: "version = the If-Match; the caller is the owner or an editor (and still a \
            member), or an admin with a profile",
        callers: "owner",
    }
    BEGIN_DRAFT {
        id: "documents.begin-draft",
        purpose: "Begin a draft of the next version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor (and still a \
            member), or an admin with a profile",
        callers: "owner",
    }
    DISCARD_DRAFT {
        id: "documents.discard-draft",
        purpose: "Discard the draft, before its texts are removed",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor (and still a \
            member), or an admin with a profile",
        callers: "owner",
    }
    DISCARD_TEXTS {
        id: "documents.discard-texts",
        purpose: "Remove some texts of a discarded draft",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC and SECTION#<name>#<next>, for each",
        requires: "the head is unchanged; SET or REMOVE discarded",
        callers: "owner",
    }
    PUBLISH {
        id: "documents.publish",
        purpose: "Publish the draft as the current version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC and VERSION#<next>; PK = ORG#<organization>, SK = \
            MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor (and still a \
            member), or an admin with a profile",
        callers: "owner",
    }
    RESTORE {
        id: "documents.restore",
        purpose: "Publish an old version again as a new version",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC and VERSION#<next>; PK = ORG#<organization>, SK = \
            MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner or an editor (and still a \
            member), or an admin with a profile",
        callers: "owner",
    }
    ADD_EDITOR {
        id: "documents.add-editor",
        purpose: "Add an editor",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#editor and \
            PROFILE (check); PK = ORG#<organization>, SK = MEMBER#<caller> and MEMBER#<customer>, \
            PK = CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "the caller is the owner (and still a member), or an admin with a profile; the \
            document has room for another editor or has this editor already; the customer exists \
            and is a member; ADD editors",
        callers: "owner",
    }
    REMOVE_EDITOR {
        id: "documents.remove-editor",
        purpose: "Remove an editor",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#editor; PK = \
            ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE \
            (checks)",
        requires: "the caller is this editor, or the owner (and still a member), or an admin with \
            a profile; DELETE editors",
        callers: "owner",
    }
    RETIRE {
        id: "documents.retire",
        purpose: "Hide a document before its texts are removed",
        request: UpdateItem,
        key: "PK = DOC#<id>, SK = DOC",
        requires: "version = the If-Match; the caller is staff, or the owner of a document without \
            an organization",
        callers: "owner",
    }
    RETIRE_SHARED {
        id: "documents.retire-shared",
        purpose: "Hide an organization's document before its texts are removed",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = \
            CUSTOMER#<caller>, SK = PROFILE (checks)",
        requires: "version = the If-Match; the caller is the owner (and still a member), or an \
            admin with a profile",
        callers: "owner",
    }
    HISTORY {
        id: "documents.history",
        purpose: "List the versions of a document, for its deletion or a copy of the data",
        request: Query,
        key: "PK = DOC#<id>, SK under VERSION#",
        returns: "versions, oldest first",
        consistency: Consistency::Strong("a missed version would outlive the document"),
        callers: "owner",
    }
    SWEEP {
        id: "documents.sweep",
        purpose: "Remove the texts and versions of a deleted document",
        request: TransactWriteItems,
        key: "PK = DOC#<id>, SK = DOC (check), SECTION#<name>#<version> or VERSION#<number>",
        requires: "the document is being deleted, and its born is unchanged",
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
    REMOVALS {
        id: "documents.removals",
        purpose: "Find the documents with unfinished removals",
        request: ShardedQuery on GSI1,
        key: "GSI1PK = REMOVALS#<shard>, GSI1SK up to <since>",
        returns: "ids, the oldest removal first",
        consistency: Consistency::Eventual,
        callers: "system",
    }
    OF_CUSTOMER {
        id: "documents.of-customer",
        purpose: "Find the documents of a customer, for an erasure or a copy of the data",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK under DOCUMENT#",
        returns: "the items of the customer's roles as owner or editor",
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
        requires: "the role item is unchanged",
        callers: "owner",
    }
}
