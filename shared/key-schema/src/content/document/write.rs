//! The right to write a document, and the requests that change its content. Each of these requests
//! is conditional on the head that was read and on the author's right.

use item_model::prelude::*;

use super::roles::tied;
use super::{
    BEGIN_DRAFT, CREATE, DISCARD_DRAFT, Document, DocumentAction, DocumentChanges as _, DocumentSection,
    DocumentVersion, Draft, Manifest, PUBLISH, PUT_SECTION, RESTORE, RemovalIndexKey, Tie, key,
};
use crate::change::Change;
use crate::customer;
use crate::expression::{Condition, value};
use crate::id::{Born, CustomerId, OrganizationId, SectionName};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::organization;
use crate::quota::{self, Quota};
use crate::request::{Guarded, Transaction};

#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// Staff may write every document.
    Staff,
    /// A customer who must be the owner or an editor of a document without an organization. The
    /// condition on the head checks that.
    Own(&'a CustomerId),
    /// A customer who must be the owner or an editor, and a member of the document's organization.
    /// Conditions on the head and on the membership check that.
    Member(&'a OrganizationId, &'a CustomerId),
    /// A customer who must be an admin of the document's organization. Conditions on the membership
    /// and on the profile check that.
    Admin(&'a OrganizationId, &'a CustomerId),
}

impl Right<'_> {
    /// Adds the conditions on the head. `role` is the role that a customer who is not an admin must
    /// have in the head.
    pub(super) fn on_head(
        self,
        condition: Condition,
        role: fn(&CustomerId) -> Result<Condition, EncodeError>,
    ) -> Result<Condition, EncodeError> {
        Ok(match self {
            Self::Own(customer) => condition.and(role(customer)?).and(Condition::Lacks("organization_id")),
            Self::Member(_, customer) => condition.and(role(customer)?),
            Self::Staff | Self::Admin(..) => condition,
        })
    }

    pub(super) fn checked(
        self,
        transaction: Transaction<DocumentAction>,
    ) -> Result<Transaction<DocumentAction>, EncodeError> {
        Ok(match self {
            Self::Member(organization, customer) => {
                transaction.action(DocumentAction::Member, organization::member_check(organization, customer)?)
            }
            Self::Admin(organization, customer) => transaction
                .action(DocumentAction::Admin, organization::admin_check(organization, customer)?)
                .action(DocumentAction::Author, customer::check(customer)?),
            Self::Staff | Self::Own(_) => transaction,
        })
    }

    pub(super) fn is(self, customer: &CustomerId) -> bool {
        match self {
            Self::Own(caller) | Self::Member(_, caller) | Self::Admin(_, caller) => caller == customer,
            Self::Staff => false,
        }
    }
}

/// A change of a document that was read.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The document that was read. It is at the version that the client has read.
    pub old: &'a Stored<Document>,
    pub right: Right<'a>,
    pub by: &'a CustomerId,
    pub at: Instant,
    /// The `born` of the items that the change creates.
    pub born: &'a Born,
}

impl Edit<'_> {
    /// Begins the change's transaction with the update of the head and the checks of the author's
    /// right.
    fn head(
        &self,
        pattern: &'static crate::pattern::Pattern,
        new: &Document,
    ) -> Result<Transaction<DocumentAction>, EncodeError> {
        let change =
            Change::<Document>::visible(self.at).current(&new.current)?.sections(&new.sections)?.draft(&new.draft)?;
        self.head_with(pattern, change)
    }

    fn head_with(
        &self,
        pattern: &'static crate::pattern::Pattern,
        change: Change<Document>,
    ) -> Result<Transaction<DocumentAction>, EncodeError> {
        // The head must list no discarded texts: a new text could have the key of a discarded text
        // that is not removed yet.
        let condition = Condition::version(self.old.meta.version).and(is(self.old)?).and(Condition::Lacks("discarded"));
        let condition = self.right.on_head(condition, is_editor)?;
        let transaction = Transaction::new(pattern)
            .action(DocumentAction::Document, Guarded::update(key(&self.old.id)?, change, condition));
        self.right.checked(transaction)
    }

    fn after(&self, data: Document) -> Stored<Document> {
        let mut meta = self.old.meta.clone();
        meta.version += 1;
        meta.rev += 1;
        meta.updated_at = self.at;
        Stored { meta, data }
    }

    fn version(
        &self,
        new: &Document,
        note: Option<String>,
        restored_from: Option<u64>,
    ) -> Result<Guarded, EncodeError> {
        let version = DocumentVersion {
            id: new.id.clone(),
            number: new.current,
            sections: new.sections.clone(),
            by: self.by.clone(),
            at: self.at,
            note,
            restored_from,
        };
        Guarded::put(&Stored::new(version, self.born.clone(), self.at), Condition::NotExists)
    }
}

/// Returns the condition that the document was not deleted and created again since the read. A new
/// document starts with `version` 1 again, so a condition on `version` is not enough.
pub(super) fn is(head: &Stored<Document>) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("born", value(&head.meta.born)?))
}

pub(super) fn is_editor(customer: &CustomerId) -> Result<Condition, EncodeError> {
    Ok(is_owner(customer)?.or(Condition::Contains("editors", value(customer)?)))
}

pub(super) fn is_owner(customer: &CustomerId) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("owner_id", value(customer)?))
}

/// Writes a text without a condition of its own. The head's condition, in the same transaction,
/// guards it.
fn text(section: &Stored<DocumentSection>) -> Result<Guarded, EncodeError> {
    Guarded::overwrite(section)
}

/// Creates a document of `owner` with its texts as version 1.
///
/// A customer must have a profile and be a member of the document's organization. Staff need
/// neither, but the organization must exist.
pub fn create(
    head: &Stored<Document>,
    texts: &[Stored<DocumentSection>],
    owner: &CustomerId,
    is_staff: bool,
) -> Result<Transaction<DocumentAction>, EncodeError> {
    let (born, at) = (&head.meta.born, head.meta.created_at);
    let edit = Edit { old: head, right: Right::Staff, by: owner, at, born };
    let mut transaction = Transaction::new(&CREATE)
        .action(DocumentAction::Document, Guarded::put(head, Condition::NotExists)?)
        .action(DocumentAction::Version, edit.version(head, None, None)?)
        .action(DocumentAction::Tie, tied(owner, &head.id, Tie::Owner, born, at)?);
    for section in texts {
        transaction = transaction.action(DocumentAction::Section, text(section)?);
    }
    let member = (!is_staff).then_some(owner);
    if let Some(customer) = member {
        transaction = transaction
            .action(DocumentAction::Author, customer::check(customer)?)
            .action(DocumentAction::Quota, quota::count(customer, Quota::Documents, at)?);
    }
    Ok(match (&head.organization_id, member) {
        (Some(organization), Some(member)) => {
            transaction.action(DocumentAction::Organization, organization::member_check(organization, member)?)
        }
        (Some(organization), None) => transaction
            .action(DocumentAction::Organization, Guarded::check(organization::key(organization)?, Condition::Exists)),
        (None, _) => transaction,
    })
}

/// Sets a section's text in the draft. Without a draft, publishes the text as a new version. Also
/// returns the head after the change.
pub fn put_section(
    edit: Edit<'_>,
    name: &SectionName,
    content: String,
) -> Result<(Transaction<DocumentAction>, Stored<Document>), EncodeError> {
    let (mut new, next) = (edit.old.data.clone(), edit.old.next());
    let section = DocumentSection {
        id: new.id.clone(),
        name: name.clone(),
        number: next,
        text: content,
        by: edit.by.clone(),
        at: edit.at,
    };
    let section = text(&Stored::new(section, edit.born.clone(), edit.at))?;
    if let Some(draft) = &mut new.draft {
        draft.sections.insert(name.clone(), next);
        return Ok((edit.head(&PUT_SECTION, &new)?.action(DocumentAction::Section, section), edit.after(new)));
    }
    new.sections.insert(name.clone(), next);
    new.current = next;
    let transaction = edit
        .head(&PUT_SECTION, &new)?
        .action(DocumentAction::Section, section)
        .action(DocumentAction::Version, edit.version(&new, None, None)?);
    Ok((transaction, edit.after(new)))
}

/// Begins a draft that has the texts of the current version.
pub fn begin_draft(edit: Edit<'_>) -> Result<(Transaction<DocumentAction>, Stored<Document>), EncodeError> {
    let mut new = edit.old.data.clone();
    new.draft = Some(Draft { sections: new.sections.clone(), by: edit.by.clone(), at: edit.at });
    Ok((edit.head(&BEGIN_DRAFT, &new)?, edit.after(new)))
}

/// Discards a draft, so that no caller sees it any more. [`super::discard_texts`] removes the texts
/// that only the draft had. Also returns the head after the change.
pub fn discard_draft(
    edit: Edit<'_>,
    draft: &Draft,
) -> Result<(Transaction<DocumentAction>, Stored<Document>), EncodeError> {
    let mut new = edit.old.data.clone();
    (new.draft, new.discarded) = (None, since(&draft.sections, new.next()).cloned().collect());
    let mut change = Change::<Document>::visible(edit.at).draft(&new.draft)?;
    if !new.discarded.is_empty() {
        new.removing_since = Some(edit.at);
        let entry = RemovalIndexKey { since: edit.at, id: &new.id };
        change = change.set("discarded", &new.discarded)?.enter(&entry)?;
    }
    Ok((edit.head_with(&DISCARD_DRAFT, change)?, edit.after(new)))
}

/// Returns the sections whose text was written in this version.
pub(super) fn since(sections: &Manifest, number: u64) -> impl Iterator<Item = &SectionName> {
    sections.iter().filter(move |(_, since)| **since == number).map(|(name, _)| name)
}

/// Publishes the draft as the current version.
pub fn publish(
    edit: Edit<'_>,
    draft: &Draft,
    note: Option<String>,
) -> Result<(Transaction<DocumentAction>, Stored<Document>), EncodeError> {
    let mut new = edit.old.data.clone();
    (new.draft, new.current, new.sections) = (None, new.next(), draft.sections.clone());
    let version = edit.version(&new, note, None)?;
    Ok((edit.head(&PUBLISH, &new)?.action(DocumentAction::Version, version), edit.after(new)))
}

/// Publishes the texts of an old version as a new version. The history is never rewritten.
pub fn restore(
    edit: Edit<'_>,
    version: &DocumentVersion,
    note: Option<String>,
) -> Result<(Transaction<DocumentAction>, Stored<Document>), EncodeError> {
    let mut new = edit.old.data.clone();
    (new.current, new.sections) = (new.next(), version.sections.clone());
    let item = edit.version(&new, note, Some(version.number))?;
    Ok((edit.head(&RESTORE, &new)?.action(DocumentAction::Version, item), edit.after(new)))
}
