//! Requests that give customers roles in documents, and requests that remove these roles.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::write::{is, is_editor, is_owner};
use super::{ADD_EDITOR, Document, DocumentAction, FORGET, MAX_EDITORS, RELEASE, REMOVE_EDITOR, Right, key, tie_key};
use crate::change::Change;
use crate::customer;
use crate::expression::{Condition, number, value};
use crate::id::{Born, CustomerId, DocumentId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError};
use crate::organization;
use crate::request::{Guarded, Single, Transaction};

/// A customer's role in a document, as its head records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    Owner,
    Editor,
}

impl Tie {
    /// Returns the name in keys and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Editor => "editor",
        }
    }
}

entity! {
    /// A customer's role in a document, as an item in the customer's own partition.
    CustomerDocument = "CustomerDocument" {
        fixed {
            customer_id: CustomerId,
            document_id: DocumentId,
            /// The role. An owner who is also an editor has two items.
            tie: Tie,
        }
        mutable {}
    }
}

impl Entity for CustomerDocument {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        tie_key(&self.customer_id, &self.document_id, self.tie)
    }
}

pub(super) fn tied(
    customer: &CustomerId,
    document: &DocumentId,
    tie: Tie,
    born: &Born,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    let data = CustomerDocument { customer_id: customer.clone(), document_id: document.clone(), tie };
    Guarded::overwrite(&Stored::new(data, born.clone(), at))
}

pub(super) fn untied(customer: &CustomerId, document: &DocumentId, tie: Tie) -> Result<Guarded, KeyError> {
    Ok(Guarded::remove(tie_key(customer, document, tie)?))
}

fn is_there() -> Condition {
    Condition::Exists.and(Condition::Lacks("deleting"))
}

/// Makes a customer an editor of a document that was read. A caller who is neither staff nor an
/// admin must be the owner. A repetition for an existing editor has no visible effect. The editor
/// of an organization's document must be a member.
pub fn add_editor(
    head: &Stored<Document>,
    editor: &CustomerId,
    right: Right<'_>,
    born: &Born,
    at: Instant,
) -> Result<Transaction<DocumentAction>, EncodeError> {
    let room = Condition::Lacks("editors")
        .or(Condition::FewerEntries("editors", MAX_EDITORS))
        .or(Condition::Contains("editors", value(editor)?));
    let condition = right.on_head(is_there().and(is(head)?).and(room), is_owner)?;
    let change = Change::<Document>::copied().include("editors", editor.as_str());
    let mut transaction = Transaction::new(&ADD_EDITOR)
        .action(DocumentAction::Document, Guarded::update(key(&head.id)?, change, condition))
        .action(DocumentAction::Tie, tied(editor, &head.id, Tie::Editor, born, at)?);
    transaction = right.checked(transaction)?;
    // A transaction has at most one action per item. If the caller becomes the editor, the checks
    // of the caller's right already cover the caller's items.
    if !(right.is(editor) && matches!(right, Right::Admin(..))) {
        transaction = transaction.action(DocumentAction::Customer, customer::check(editor)?);
    }
    Ok(match &head.organization_id {
        Some(organization) if !right.is(editor) => {
            transaction.action(DocumentAction::Editor, organization::member_check(organization, editor)?)
        }
        _ => transaction,
    })
}

/// Removes an editor from a document that was read. A caller who is neither staff nor an admin must
/// be the owner or that editor. The editor needs no membership, so former members can leave too.
pub fn remove_editor(
    head: &Stored<Document>,
    editor: &CustomerId,
    right: Right<'_>,
) -> Result<Transaction<DocumentAction>, EncodeError> {
    let role = if right.is(editor) { is_editor } else { is_owner };
    let condition = right.on_head(is_there().and(is(head)?), role)?;
    let change = Change::<Document>::copied().exclude("editors", editor.as_str());
    let remove = Transaction::new(&REMOVE_EDITOR)
        .action(DocumentAction::Document, Guarded::update(key(&head.id)?, change, condition))
        .action(DocumentAction::Tie, untied(editor, &head.id, Tie::Editor)?);
    let leaves = matches!(right, Right::Member(..)) && right.is(editor) && head.editors.contains(editor);
    if leaves { Ok(remove) } else { right.checked(remove) }
}

/// Removes an erased customer, as owner or as editor, from a document that was read and that stays.
pub fn release(
    head: &Stored<Document>,
    customer: &CustomerId,
    tie: Tie,
) -> Result<Transaction<DocumentAction>, EncodeError> {
    let change = Change::<Document>::copied();
    let change = match tie {
        Tie::Owner => change.set("owner_id", None::<CustomerId>)?,
        Tie::Editor => change.exclude("editors", customer.as_str()),
    };
    let unchanged = is(head)?.and(Condition::Is("rev", number(head.meta.rev)));
    Ok(Transaction::new(&RELEASE)
        .action(DocumentAction::Document, Guarded::update(key(&head.id)?, change, unchanged))
        .action(DocumentAction::Tie, untied(customer, &head.id, tie)?))
}

/// Removes an erased customer's role item whose document does not exist. DynamoDB refuses the
/// deletion if the item was created again after the read.
pub fn forget(tie: &Stored<CustomerDocument>) -> Result<Single<()>, EncodeError> {
    let same = Condition::Is("born", value(&tie.meta.born)?);
    Ok(Single::new(&FORGET, Guarded::delete(tie_key(&tie.customer_id, &tie.document_id, tie.tie)?, same)))
}
