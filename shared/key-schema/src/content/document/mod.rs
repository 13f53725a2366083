//! Documents with separately versioned sections, a history of versions, and drafts.
//!
//! Each version has a manifest. For each section, the manifest has the number of the version in
//! which the section's text was written. The document's head says which version is current.
//!
//! # Layout
//!
//! The partition `DOC#<document>` holds:
//!
//! - `DOC`, the head: owner, organization, editors, the number and manifest of the current version,
//!   and the draft of the next version if there is one;
//! - `SECTION#<name>#<version>`, the section's text from that version on, until a later version
//!   replaces it;
//! - `VERSION#<number>`, one item per version: its manifest, author, time and note.
//!
//! The owner and each editor also have an item `DOCUMENT#<document>#<role>` in their own partition.
//! The transaction that gives a customer the role also writes this item. The transaction that ends
//! the role removes it. An erasure finds a customer's documents through these items, with a
//! strong read.
//!
//! A change of one section writes one new item of that section. The other sections stay untouched,
//! because the next manifest repeats their numbers. Only the head says which version is current. So
//! one conditional write publishes a draft of many sections, and readers see all of it or nothing.
//!
//! One conditional write also discards a draft. The texts of the draft can be too large for one
//! transaction to remove. So the head keeps the names of their sections, and several transactions
//! remove the texts ([`discard_texts`]). A sparse index lists the documents that still have such
//! texts, and the documents that are being deleted ([`removals`]). The janitor finishes a failed
//! removal that no client repeats.
//!
//! # Why the newest texts have no second copy
//!
//! If each section's newest text had a copy next to the head, one Query would read the current
//! document. Without copies, this takes a GetItem and a BatchGetItem. There are two reasons to have
//! no copies:
//!
//! - With copies, each publication would write every changed text a second time, up to fifty texts
//!   of 100 KB. Without copies it writes only the head and the new version, which are small.
//! - Fifty such texts exceed the 1 MB of one Query.
//!
//! # Who may write
//!
//! The head names the owner and the editors, so the condition of each change is that its author is
//! one of them ([`Right::Own`]). In an organization's document, only a member has the rights of
//! these roles. A condition on the membership, in the same transaction, checks that
//! ([`Right::Member`]). An admin of the organization may do everything. Another condition on the
//! membership checks this ([`Right::Admin`]).
//!
//! So the end of a membership ends the customer's rights in all documents of the organization at
//! once, without a write to any document. Only one right remains: an editor can give up the role.
//! The heads keep the roles. A customer who becomes a member again has the same roles, except those
//! that were removed meanwhile.
//!
//! A customer needs a profile to become owner or editor. A member of staff may create a document
//! without having a profile. An erasure removes the customer from all heads, which also ends the
//! right to write. So a change by an owner or editor need not check the profile again. A membership
//! can remain after an erasure ([`crate::organization`]), so a change by an admin checks membership
//! and profile.
//!
//! # What remains of an erased customer
//!
//! An erasure deletes the customer's own documents as a whole, even those with other editors. An
//! organization's document stays, without an owner. Admins decide about its editors and its
//! deletion. The history is never rewritten, so versions keep the id of an erased author. That id
//! leads to no profile.

mod patterns;
mod removal;
mod roles;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::customer;
use crate::id::{CustomerId, DocumentId, OrganizationId, SectionName};
use crate::instant::Instant;
use crate::item::{Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::organization::{self, Member};
use crate::request::{BatchGet, Get, Query, Range};

pub use patterns::*;
pub use removal::{
    REMOVAL_SHARDS, REMOVED_AT_ONCE, Removal, RemovalIndexKey, delete, discard_texts, removals, retire, retire_shared,
    sweep_texts, sweep_versions,
};
pub use roles::{CustomerDocument, Tie, add_editor, forget, release, remove_editor};
pub use write::{Edit, Right, begin_draft, create, discard_draft, publish, put_section, restore};

/// The maximum number of sections of a document. One transaction can change all of them, and one
/// BatchGetItem reads them.
pub const MAX_SECTIONS: usize = 50;
/// The maximum number of editors besides the owner. The head stores them, so every change of the
/// head writes all of them.
pub const MAX_EDITORS: usize = 100;
/// The maximum length of a section's text, in bytes of UTF-8. With its other attributes the item
/// stays far below DynamoDB's 400 KB.
pub const MAX_TEXT: usize = 100 * 1024;

/// For each section, the number of the version in which its text was written.
pub type Manifest = BTreeMap<SectionName, u64>;

/// The next version of a document, not published yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The manifest of the version from which the draft began, with the draft's changes.
    pub sections: Manifest,
    pub by: CustomerId,
    pub at: Instant,
}

entity! {
    /// A document's head. Its `version` counts all changes and is the ETag. Its `current` counts
    /// the published versions.
    Document = "Document" {
        fixed {
            id: DocumentId,
            /// The creator. Absent after an erasure of the creator.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            owner_id: Option<CustomerId>,
            /// The organization of the document. Its members may read the document, and its admins
            /// may do everything. Owner and editors must be members to have their rights.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            organization_id: Option<OrganizationId>,
            /// The customers who may edit the document besides its owner. DynamoDB has no empty
            /// set, so without editors the attribute is absent.
            #[serde(skip_serializing_if = "BTreeSet::is_empty", default, with = "serde_dynamo::string_set")]
            editors: BTreeSet<CustomerId>,
            /// Whether the document is deleted. Its texts and versions are then being removed.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            deleting: bool,
            /// The sections of a discarded draft whose texts are still being removed. Until the
            /// texts are removed, DynamoDB refuses every change of the content.
            #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
            discarded: BTreeSet<SectionName>,
            /// When the removal of the document or of the draft's texts began. It is part of the
            /// index key in [`removals`]. It is absent if no removal is in progress.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            removing_since: Option<Instant>,
        }
        mutable by DocumentChanges {
            title: String,
            /// The number of the current version, from 1.
            current: u64,
            sections: Manifest,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            draft: Option<Draft>,
        }
    }
}

impl Document {
    /// Returns the number of the version that the next publication creates.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.current + 1
    }

    #[must_use]
    pub fn is_owner(&self, customer: &CustomerId) -> bool {
        self.owner_id.as_ref() == Some(customer)
    }

    /// Returns whether the head names a customer as owner or editor. In an organization's document
    /// the role gives rights only together with a membership.
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

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        self.removing_since.iter().map(|since| RemovalIndexKey { since: *since, id: &self.id }.key()).collect()
    }
}

entity! {
    /// The text of a section from a version on. A published text never changes. A change of the
    /// section in a draft overwrites the section's text in that draft.
    DocumentSection = "DocumentSection" {
        fixed {
            id: DocumentId,
            name: SectionName,
            /// The version in which the text was written.
            number: u64,
            /// The text, in any markup that the client uses.
            text: String,
            by: CustomerId,
            at: Instant,
        }
        mutable {}
    }
}

impl Entity for DocumentSection {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        section_key(&self.id, &self.name, self.number)
    }
}

entity! {
    /// A published version of a document. It never changes.
    DocumentVersion = "DocumentVersion" {
        fixed {
            id: DocumentId,
            /// Its number, from 1 and without gaps.
            number: u64,
            sections: Manifest,
            by: CustomerId,
            at: Instant,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            note: Option<String>,
            /// The number of the old version, if this version restored the texts of an old version.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            restored_from: Option<u64>,
        }
        mutable {}
    }
}

impl Entity for DocumentVersion {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        version_key(&self.id, self.number)
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

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentAction {
    /// The head is missing, or at another version than the author has read, or the author may not
    /// write it.
    Document,
    /// The author is not a member of the organization.
    Member,
    /// The author is not an admin of the organization.
    Admin,
    /// The author has no profile.
    Author,
    /// The author has used up the day's quota of documents.
    Quota,
    /// The organization does not exist, or the creator is not a member of it.
    Organization,
    /// The customer does not exist.
    Customer,
    /// The customer to become an editor is not a member of the organization.
    Editor,
    /// The version already exists. The head's condition prevents that.
    Version,
    /// A text. Its write has no condition, so it is never refused.
    Section,
    /// The role item in a customer's partition. Its write has no condition, so it is never refused.
    Tie,
}

pub fn get(id: &DocumentId) -> Result<Get<Stored<Document>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Reads a document's head with strong consistency.
pub fn read_for_update(id: &DocumentId) -> Result<Get<Stored<Document>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Reads a customer's membership with strong consistency. The membership decides about access to
/// the organization's document.
pub fn standing(organization: &OrganizationId, customer: &CustomerId) -> Result<Get<Stored<Member>>, KeyError> {
    Ok(Get::new(&STANDING, organization::member_key(organization, customer)?))
}

one_of! {
    pub enum TextItem { DocumentSection Member }
}

/// Reads the texts that a manifest names, in the manifest's order, and then a membership if one is
/// given.
pub fn texts(
    id: &DocumentId,
    sections: &Manifest,
    member: Option<(&OrganizationId, &CustomerId)>,
) -> Result<BatchGet<TextItem>, KeyError> {
    let mut keys: Vec<Key> =
        sections.iter().map(|(name, number)| section_key(id, name, *number)).collect::<Result<_, _>>()?;
    if let Some((organization, customer)) = member {
        keys.push(organization::member_key(organization, customer)?);
    }
    Ok(BatchGet::new(&TEXTS, keys))
}

one_of! {
    pub enum VersionItem { Document DocumentVersion }
}

pub fn version(id: &DocumentId, number: u64) -> Result<BatchGet<VersionItem>, KeyError> {
    Ok(BatchGet::new(&VERSION, vec![key(id)?, version_key(id, number)?]))
}

/// Lists the versions of a document, newest first.
pub fn versions(id: &DocumentId) -> Result<Query<Stored<DocumentVersion>>, KeyError> {
    Ok(Query::new(&VERSIONS, partition(id)?, Range::under("VERSION")).descending())
}

/// Lists the documents that a customer owns or edits, with strong consistency.
pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<CustomerDocument>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under("DOCUMENT")))
}

/// Lists the versions of a deleted document, oldest first, a hundred per page by default.
pub fn history(id: &DocumentId) -> Result<Query<Stored<DocumentVersion>>, KeyError> {
    Ok(Query::new(&HISTORY, partition(id)?, Range::under("VERSION")))
}
