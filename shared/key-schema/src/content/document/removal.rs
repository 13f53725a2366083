//! Requests that remove a document, or the texts of a discarded draft. The first request hides the
//! document or the draft, the others delete items.

use item_model::prelude::*;
use serde::Deserialize;
use serde_dynamo::AttributeValue;

use super::roles::untied;
use super::write::{is, is_owner, since};
use super::{
    DELETE, DISCARD_TEXTS, Document, DocumentAction, DocumentVersion, REMOVALS, RETIRE, RETIRE_SHARED, Right, SWEEP,
    Tie, key, section_key, version_key,
};
use crate::change::{Change, IndexEntry};
use crate::encoding::join;
use crate::expression::{Condition, number, value};
use crate::id::{CustomerId, DocumentId, SectionName};
use crate::index::GSI1;
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::{IndexKey, KeyError, PartitionKey, SortKey};
use crate::request::{
    BatchWrite, BatchWriteAction, Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Single, Transaction,
};
use crate::shard::Shards;

/// The shards of the list of unfinished removals.
pub const REMOVAL_SHARDS: Shards = Shards(4);
/// The texts of a discarded draft that one transaction removes, 1 MB at most. DynamoDB refuses more
/// than 4 MB.
pub const DISCARDED_AT_ONCE: usize = 10;

/// The key of a document in the list of unfinished removals, the longest unfinished first.
#[derive(Debug, Clone, Copy)]
pub struct RemovalIndexKey<'a> {
    /// When the removal began.
    pub since: Instant,
    /// The document's id.
    pub id: &'a DocumentId,
}

impl RemovalIndexKey<'_> {
    pub(super) fn key(&self) -> Result<IndexKey, KeyError> {
        Ok(IndexKey {
            index: GSI1,
            partition: shard(REMOVAL_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&self.since.to_string(), &[self.id]))?,
        })
    }
}

impl IndexEntry for RemovalIndexKey<'_> {
    type Entity = Document;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("removing_since", value(self.since)?)])
    }
}

fn shard(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("REMOVALS", &[&shard])
}

/// A document with an unfinished removal, as the janitor's list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Removal {
    /// The document's id.
    pub id: DocumentId,
}

view!(Removal of Document);

/// Lists the documents whose removal, or whose draft's removal, began up to `before` and is not
/// finished.
///
/// # Errors
/// [`KeyError`].
pub fn removals(before: Instant) -> Result<Query<Removal>, KeyError> {
    let shards = REMOVAL_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&REMOVALS, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}

/// Removes the next texts of a discarded draft, and their names from the head. `head` is the head
/// that was read. A refusal means that another request changed it, such as another worker.
///
/// # Errors
/// [`EncodeError`].
pub fn discard_texts(head: &Stored<Document>) -> Result<Transaction<DocumentAction>, EncodeError> {
    let rest: Vec<&SectionName> = head.discarded.iter().skip(DISCARDED_AT_ONCE).collect();
    let change = Change::<Document>::copied();
    let change = if rest.is_empty() {
        change.leave(GSI1).set("discarded", None::<SectionName>)?.set("removing_since", None::<Instant>)?
    } else {
        change.set("discarded", &rest)?
    };
    let unchanged = is(head)?.and(Condition::Is("rev", number(head.meta.rev)));
    let mut transaction = Transaction::new(&DISCARD_TEXTS)
        .action(DocumentAction::Document, Guarded::update(key(&head.id)?, change, unchanged));
    for name in head.discarded.iter().take(DISCARDED_AT_ONCE) {
        let delete = Guarded::remove(section_key(&head.id, name, head.next())?);
        transaction = transaction.action(DocumentAction::Section, delete);
    }
    Ok(transaction)
}

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
    let change = Change::<Document>::visible(at).set("deleting", true)?.enter(&RemovalIndexKey { since: at, id })?;
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
    let entry = RemovalIndexKey { since: at, id: &head.id };
    let change = Change::<Document>::visible(at).set("deleting", true)?.enter(&entry)?;
    let update = Guarded::update(key(&head.id)?, change, condition);
    right.checked(Transaction::new(&RETIRE_SHARED).action(DocumentAction::Document, update))
}

/// Removes the texts that were written in these versions of a deleted document, or in its draft or
/// a discarded draft. The texts must be removed before the versions, because the versions name
/// them.
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
    for name in &document.discarded {
        writes.push(BatchWriteAction::Delete(section_key(id, name, document.next())?));
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
