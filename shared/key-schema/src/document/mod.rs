//! Documents: sections that are versioned apart, versions that are manifests of them, and a head that says which version is current.
//!
//! # Layout
//!
//! The partition `DOC#<document>` holds
//!
//! - `DOC`, the head: owner, organization, editors, the number of the current version with its manifest, and the draft of the next one if there is one;
//! - `SECTION#<name>#<version>`, the text that a section has since that version;
//! - `VERSION#<number>`, one a version: its manifest, which says for each section since which version it has its text; by whom, when, and why.
//!
//! Beside it, whoever owns or edits a document has `DOCUMENT#<document>#<role>` in their own partition, written by the transactions that make them its owner or editor,
//! and removed by those that end it: what an erasure finds them by, strongly.
//!
//! A change of one section is one new item of that section. The others are not touched: the manifest of the next version names them as the one before did.
//! Which version is current is in one place, so a draft of many sections becomes current in one conditional write, and readers see all of it or nothing.
//!
//! # Why the newest texts have no place of their own
//!
//! With a copy of each section's newest text beside the head, the current document would be one Query. It is a GetItem and a BatchGetItem instead,
//! because each publication would then write every text that it changes a second time, up to fifty of 100 KB, where now it writes two small items; and
//! because that many texts are more than the 1 MB of one Query.
//!
//! # Who may write
//!
//! The owner and the editors are on the head, so the condition of each change is that its author is one of them ([`Right::Own`]). For a document of an
//! organization it may be that its author is an admin there, which a condition on another item of the same transaction says ([`Right::Admin`]).
//!
//! Owners and editors have a profile when they become that. When it goes, so do their places on the heads, and with them their right: a change by an owner or editor
//! need not look for the profile again. A membership may outlast the profile by accident ([`crate::organization`]), so a change by an admin checks both.
//!
//! # What is left of an erased customer
//!
//! A document of the customer's own goes as a whole, whoever else edits it. A document of an organization stays without an owner: staff decide about its editors and
//! its end. Who wrote which version is history, which nothing rewrites: there the id stays, and leads to nobody.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::change::entity;
use crate::customer;
use crate::entity::AnyEntity;
use crate::id::{CustomerId, DocumentId, OrganizationId, SectionName};
use crate::instant::Instant;
use crate::item::{Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::organization;
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Get, Query, Range};
pub use write::{
    Edit, Right, add_editor, begin_draft, create, delete, discard_draft, forget, publish, put_section, release,
    remove_editor, restore, retire, sweep_texts, sweep_versions,
};

/// How many sections a document may have. A change of all of them is one transaction, and reading them one BatchGetItem.
pub const MAX_SECTIONS: usize = 50;
/// How many customers may edit a document beside its owner: they are a set on the head, rewritten with every change of it.
pub const MAX_EDITORS: usize = 100;
/// The longest text of a section, in bytes of UTF-8: what else its item has keeps it far below DynamoDB's 400 KB.
pub const MAX_TEXT: usize = 100 * 1024;

/// Since which version each section has its text.
pub type Manifest = BTreeMap<SectionName, u64>;

/// The next version of a document, not published yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Its sections: those of the version that it began with, and what was put since.
    pub sections: Manifest,
    /// Who began it.
    pub by: CustomerId,
    /// When it was begun.
    pub at: Instant,
}

entity! {
    /// A document's head. Its `version` counts all changes and is the ETag; `current` counts what was published.
    Document = "Document" {
        keyed {
            /// Which.
            id: DocumentId,
            /// Who created it: nobody, once that customer is erased.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            owner_id: Option<CustomerId>,
            /// Whose it is besides: members may read it, admins edit it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            organization_id: Option<OrganizationId>,
            /// Who may edit it besides. DynamoDB has no empty set: without any, the attribute is absent.
            #[serde(skip_serializing_if = "BTreeSet::is_empty", default, with = "serde_dynamo::string_set")]
            editors: BTreeSet<CustomerId>,
            /// Whether it is deleted, and its texts and versions are on their way out.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            deleting: bool,
        }
        free {
            /// What it is called.
            title: String,
            /// The number of the current version, from 1.
            current: u64,
            /// The manifest of the current version.
            sections: Manifest,
            /// The next version, if somebody is at it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            draft: Option<Draft>,
        }
    }
}

impl Document {
    /// The number of the version that the next publication makes.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.current + 1
    }

    /// Whether it is a customer's.
    #[must_use]
    pub fn is_owner(&self, customer: &CustomerId) -> bool {
        self.owner_id.as_ref() == Some(customer)
    }

    /// Whether a customer may edit it without an organization's help.
    #[must_use]
    pub fn is_editor(&self, customer: &CustomerId) -> bool {
        self.is_owner(customer) || self.editors.contains(customer)
    }
}

impl Entity for Document {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

entity! {
    /// The text of a section since a version. What is published never changes; a draft's is written again with each change.
    DocumentSection = "DocumentSection" {
        keyed {
            /// Of which document.
            id: DocumentId,
            /// Which section.
            name: SectionName,
            /// Since which version.
            number: u64,
            /// The text, in whatever markup the client uses.
            text: String,
            /// Who wrote it.
            by: CustomerId,
            /// When.
            at: Instant,
        }
        free {}
    }
}

impl Entity for DocumentSection {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        section_key(&self.id, &self.name, self.number)
    }
}

entity! {
    /// A version of a document. Nothing ever changes it.
    DocumentVersion = "DocumentVersion" {
        keyed {
            /// Of which document.
            id: DocumentId,
            /// Its number, from 1 and without gaps.
            number: u64,
            /// Its manifest.
            sections: Manifest,
            /// Who published it.
            by: CustomerId,
            /// When.
            at: Instant,
            /// What was said about it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            note: Option<String>,
            /// Which version it has the texts of, if it brought one back.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            restored_from: Option<u64>,
        }
        free {}
    }
}

impl Entity for DocumentVersion {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        version_key(&self.id, self.number)
    }
}

/// What a customer is to a document by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// Its owner.
    Owner,
    /// One of its editors.
    Editor,
}

impl Tie {
    /// The name in keys and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Editor => "editor",
        }
    }
}

entity! {
    /// That a customer owns or edits a document, in the customer's own partition.
    CustomerDocument = "CustomerDocument" {
        keyed {
            /// Who.
            customer_id: CustomerId,
            /// What.
            document_id: DocumentId,
            /// As what. An owner may be an editor besides, which are two items.
            tie: Tie,
        }
        free {}
    }
}

impl Entity for CustomerDocument {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        tie_key(&self.customer_id, &self.document_id, self.tie)
    }
}

fn tie_key(customer: &CustomerId, document: &DocumentId, tie: Tie) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of("DOCUMENT", &[document, &tie.as_str()])? })
}

fn partition(id: &DocumentId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("DOC", &[id])
}

fn key(id: &DocumentId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("DOC")? })
}

fn section_key(id: &DocumentId, name: &SectionName, number: u64) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::of("SECTION", &[name, &number])? })
}

fn version_key(id: &DocumentId, number: u64) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::of("VERSION", &[&number])? })
}

/// Which part of a transaction was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The head: not there, at another version, or not the author's to write.
    Document,
    /// The author is no admin of the organization.
    Admin,
    /// The author has no profile any more.
    Author,
    /// There is no such organization, or its creator is no member of it.
    Organization,
    /// There is no such customer.
    Customer,
    /// A version that is there already, which the head's own condition precludes.
    Version,
    /// A text, which no condition guards.
    Section,
    /// What somebody's own partition has of it, which no condition guards.
    Tie,
}

patterns! {
    CREATE = "documents.create": TransactWriteItems, "PK = DOC#<id>, SK = DOC, VERSION#<1> and SECTION#<name>#<1>; PK = CUSTOMER#<caller>, SK = DOCUMENT#<id>#owner and PROFILE (check); PK = ORG#<organization>, SK = MEMBER#<caller> or ORG (check)" => "there is no such document; its creator is there and a member of the organization", Consistency::Write, "owner", "Create a document with its first version", ["POST /v1/documents"];
    GET = "documents.get": GetItem, "PK = DOC#<id>, SK = DOC" => "the head, with the current manifest", Consistency::Eventual, "owner", "Read a document's head", ["GET /v1/documents/{id}", "GET /v1/documents/{id}/sections/{name}", "GET /v1/documents/{id}/versions"];
    TEXTS = "documents.texts": BatchGetItem, "PK = DOC#<id>, SK = SECTION#<name>#<version>, for each; PK = ORG#<organization>, SK = MEMBER#<caller>" => "the texts of a version; the caller's membership where that decides", Consistency::Strong("what a manifest names must be found, and an ended membership not"), "owner", "Read the texts of a version", ["GET /v1/documents/{id}", "GET /v1/documents/{id}/sections/{name}", "GET /v1/documents/{id}/versions/{n}"];
    VERSION = "documents.version": BatchGetItem, "PK = DOC#<id>, SK = DOC and VERSION#<number>" => "the head, one version", Consistency::Strong("a version is restored onto the head that was read with it"), "owner", "Read one version beside the head", ["GET /v1/documents/{id}/versions/{n}", "POST /v1/documents/{id}/restore"];
    VERSIONS = "documents.versions": Query, "PK = DOC#<id>, SK under VERSION#, backward" => "versions, newest first", Consistency::Eventual, "owner", "List the versions of a document", ["GET /v1/documents/{id}/versions"];
    EDIT = "documents.edit": GetItem, "PK = DOC#<id>, SK = DOC" => "the head", Consistency::Strong("the next manifest is computed from it, and the change is conditional on it"), "owner", "Read a document's head before a change", ["PUT /v1/documents/{id}/sections/{name}", "POST /v1/documents/{id}/drafts", "DELETE /v1/documents/{id}/drafts", "POST /v1/documents/{id}/publish", "DELETE /v1/customers/{id}"];
    PUT_SECTION = "documents.put-section": TransactWriteItems, "PK = DOC#<id>, SK = DOC, SECTION#<name>#<next> and, without a draft, VERSION#<next>; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is owner, editor, or an admin who is there", Consistency::Write, "owner", "Give a section another text, in the draft or as a new version", ["PUT /v1/documents/{id}/sections/{name}"];
    BEGIN_DRAFT = "documents.begin-draft": TransactWriteItems, "PK = DOC#<id>, SK = DOC; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is owner, editor, or an admin who is there", Consistency::Write, "owner", "Begin the next version", ["POST /v1/documents/{id}/drafts"];
    DISCARD_DRAFT = "documents.discard-draft": TransactWriteItems, "PK = DOC#<id>, SK = DOC and SECTION#<name>#<next>, for each; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is owner, editor, or an admin who is there", Consistency::Write, "owner", "Give the next version up, with its texts", ["DELETE /v1/documents/{id}/drafts"];
    PUBLISH = "documents.publish": TransactWriteItems, "PK = DOC#<id>, SK = DOC and VERSION#<next>; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is owner, editor, or an admin who is there", Consistency::Write, "owner", "Make the draft current", ["POST /v1/documents/{id}/publish"];
    RESTORE = "documents.restore": TransactWriteItems, "PK = DOC#<id>, SK = DOC and VERSION#<next>; PK = ORG#<organization>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is owner, editor, or an admin who is there", Consistency::Write, "owner", "Make an old version current as a new one", ["POST /v1/documents/{id}/restore"];
    ADD_EDITOR = "documents.add-editor": TransactWriteItems, "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#editor and PROFILE (check)" => "the caller is the owner; there is room in the set, or the customer is in it; the customer is there; ADD editors", Consistency::Write, "owner", "Let somebody edit", ["PUT /v1/documents/{id}/editors/{customer}"];
    REMOVE_EDITOR = "documents.remove-editor": TransactWriteItems, "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#editor" => "the caller is the owner, or the editor who leaves; DELETE editors", Consistency::Write, "owner", "Let somebody edit no more", ["DELETE /v1/documents/{id}/editors/{customer}"];
    RETIRE = "documents.retire": UpdateItem, "PK = DOC#<id>, SK = DOC" => "version = the If-Match; the caller is the owner", Consistency::Write, "owner", "Hide a document before its texts are removed", ["DELETE /v1/documents/{id}", "DELETE /v1/customers/{id}"];
    HISTORY = "documents.history": Query, "PK = DOC#<id>, SK under VERSION#" => "versions, oldest first", Consistency::Strong("one that is not seen would outlive the document"), "owner", "Find what a deleted document leaves", ["DELETE /v1/documents/{id}", "DELETE /v1/customers/{id}"];
    SWEEP = "documents.sweep": BatchWriteItem, "PK = DOC#<id>, SK = SECTION#<name>#<version> or VERSION#<number>, for each" => "removed", Consistency::Write, "owner", "Remove what a deleted document leaves", ["DELETE /v1/documents/{id}", "DELETE /v1/customers/{id}"];
    DELETE = "documents.delete": TransactWriteItems, "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#<owner or editor>, for each" => "is being deleted", Consistency::Write, "owner", "Free the id of a deleted document", ["DELETE /v1/documents/{id}", "DELETE /v1/customers/{id}"];
    OF_CUSTOMER = "documents.of-customer": Query, "PK = CUSTOMER#<customer>, SK under DOCUMENT#" => "what the customer owns or edits", Consistency::Strong("one that is not seen would outlive its owner"), "owner", "Find the documents of an erased customer", ["DELETE /v1/customers/{id}"];
    RELEASE = "documents.release": TransactWriteItems, "PK = DOC#<id>, SK = DOC; PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#<owner or editor>" => "is as it was read; REMOVE owner_id or DELETE editors", Consistency::Write, "owner", "Take an erased customer out of a document that stays", ["DELETE /v1/customers/{id}"];
    FORGET = "documents.forget": DeleteItem, "PK = CUSTOMER#<customer>, SK = DOCUMENT#<id>#<owner or editor>" => "is what was read", Consistency::Write, "owner", "Remove what leads an erased customer to no document", ["DELETE /v1/customers/{id}"];
}

/// A document's head.
///
/// # Errors
/// [`KeyError`].
pub fn get(id: &DocumentId) -> Result<Get<Stored<Document>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// A document's head, strongly.
///
/// # Errors
/// [`KeyError`].
pub fn edit(id: &DocumentId) -> Result<Get<Stored<Document>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// The texts that a manifest names, in its order, then a membership if one is asked for.
///
/// # Errors
/// [`KeyError`].
pub fn texts(
    id: &DocumentId,
    sections: &Manifest,
    member: Option<(&OrganizationId, &CustomerId)>,
) -> Result<BatchGet<AnyEntity>, KeyError> {
    let mut keys: Vec<Key> =
        sections.iter().map(|(name, number)| section_key(id, name, *number)).collect::<Result<_, _>>()?;
    if let Some((organization, customer)) = member {
        keys.push(organization::member_key(organization, customer)?);
    }
    Ok(BatchGet::new(&TEXTS, keys))
}

/// The head and one version.
///
/// # Errors
/// [`KeyError`].
pub fn version(id: &DocumentId, number: u64) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&VERSION, vec![key(id)?, version_key(id, number)?]))
}

/// The versions of a document, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn versions(id: &DocumentId) -> Result<Query<Stored<DocumentVersion>>, KeyError> {
    Ok(Query::new(&VERSIONS, partition(id)?, Range::under("VERSION")).descending())
}

/// What a customer owns or edits, strongly.
///
/// # Errors
/// [`KeyError`].
pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<CustomerDocument>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under("DOCUMENT")))
}

/// The versions of a document that is deleted, a hundred at a time.
///
/// # Errors
/// [`KeyError`].
pub fn history(id: &DocumentId) -> Result<Query<Stored<DocumentVersion>>, KeyError> {
    Ok(Query::new(&HISTORY, partition(id)?, Range::under("VERSION")))
}
