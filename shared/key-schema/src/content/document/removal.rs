//! Requests that remove a document. The first request hides the document, and the others delete its
//! items.

use item_model::prelude::*;

use super::roles::untied;
use super::write::{is, is_owner, since};
use super::{
    DELETE, Document, DocumentAction, DocumentVersion, RETIRE, RETIRE_SHARED, Right, SWEEP, Tie, key, section_key,
    version_key,
};
use crate::change::Change;
use crate::expression::{Condition, value};
use crate::id::{CustomerId, DocumentId};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::KeyError;
use crate::request::{BatchWrite, BatchWriteAction, Guarded, MAX_TRANSACTION_ACTIONS, Single, Transaction};

/// Marks a document that is at `version` as being deleted, so that no reader sees it any more. The
/// caller is staff, or the owner of a document without an organization. Returns the head.
///
/// # Errors
/// [`EncodeError`].
pub fn retire(
    id: &DocumentId,
    version: u64,
    owner: Option<&CustomerId>,
    at: Instant,
) -> Result<Single<Stored<Document>>, EncodeError> {
    let mut condition = Condition::version(version);
    if let Some(owner) = owner {
        condition = Right::Own(owner).on_head(condition, is_owner)?;
    }
    let change = Change::<Document>::visible(at).set("deleting", true)?;
    Ok(Single::new(&RETIRE, Guarded::update(key(id)?, change, condition)))
}

/// Marks an organization's document as being deleted. The caller is its owner or an admin. `head`
/// is the head that was read.
///
/// # Errors
/// [`EncodeError`].
pub fn retire_shared(
    head: &Stored<Document>,
    right: Right<'_>,
    at: Instant,
) -> Result<Transaction<DocumentAction>, EncodeError> {
    let condition = right.on_head(Condition::version(head.meta.version).and(is(head)?), is_owner)?;
    let change = Change::<Document>::visible(at).set("deleting", true)?;
    let update = Guarded::update(key(&head.id)?, change, condition);
    right.checked(Transaction::new(&RETIRE_SHARED).action(DocumentAction::Document, update))
}

/// Removes the texts that were written in these versions of a deleted document, or in its draft.
/// The texts must be removed before the versions, because the versions name them.
///
/// # Errors
/// [`KeyError`].
pub fn sweep_texts(document: &Document, versions: &[Stored<DocumentVersion>]) -> Result<BatchWrite, KeyError> {
    let id = &document.id;
    let mut writes = Vec::new();
    let manifests = versions.iter().map(|version| (&version.sections, version.number));
    let draft = document.draft.iter().map(|draft| (&draft.sections, document.next()));
    for (sections, number) in manifests.chain(draft) {
        for name in since(sections, number) {
            writes.push(BatchWriteAction::Delete(section_key(id, name, number)?));
        }
    }
    Ok(BatchWrite::new(&SWEEP, writes))
}

/// Removes versions of a deleted document.
///
/// # Errors
/// [`KeyError`].
pub fn sweep_versions(versions: &[Stored<DocumentVersion>]) -> Result<BatchWrite, KeyError> {
    let delete =
        |version: &Stored<DocumentVersion>| Ok(BatchWriteAction::Delete(version_key(&version.id, version.number)?));
    Ok(BatchWrite::new(&SWEEP, versions.iter().map(delete).collect::<Result<_, KeyError>>()?))
}

/// Removes the head of a deleted document, and so frees its id. The role items of its owner and
/// editors are removed too.
///
/// With the maximum number of editors, one transaction cannot hold all role items. Then the first
/// transaction removes some role items, and the last transaction removes the other role items and
/// the head.
///
/// # Errors
/// [`EncodeError`].
pub fn delete(head: &Stored<Document>) -> Result<Vec<Transaction<DocumentAction>>, EncodeError> {
    let deleted = is(head)?.and(Condition::Is("deleting", value(true)?));
    let owner = head.owner_id.iter().map(|owner| (owner, Tie::Owner));
    let ties: Vec<_> = owner.chain(head.editors.iter().map(|editor| (editor, Tie::Editor))).collect();
    let (first, last) = ties.split_at(ties.len().saturating_sub(MAX_TRANSACTION_ACTIONS - 1));
    let marked = Guarded::update(key(&head.id)?, Change::<Document>::copied(), deleted.clone());
    let removed = Guarded::delete(key(&head.id)?, deleted);
    let with = |on_head, ties: &[(&CustomerId, Tie)]| {
        let transaction = Transaction::new(&DELETE).action(DocumentAction::Document, on_head);
        ties.iter().try_fold(transaction, |transaction, (customer, tie)| {
            Ok::<_, EncodeError>(transaction.action(DocumentAction::Tie, untied(customer, &head.id, *tie)?))
        })
    };
    let last = with(removed, last)?;
    Ok(if first.is_empty() { vec![last] } else { vec![with(marked, first)?, last] })
}
