//! Requests that remove a document, or the texts of a discarded draft. The first request hides the
//! document or the draft. The other requests delete items.

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
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Single, Transaction};
use crate::shard::Shards;

pub const REMOVAL_SHARDS: Shards = Shards(4);
/// The maximum number of texts or versions that one transaction removes. Ten texts have 1 MB at
/// most. DynamoDB refuses a transaction of more than 4 MB.
pub const REMOVED_AT_ONCE: usize = 10;

/// The key of a document in the list of unfinished removals, which begins with the oldest removal.
#[derive(Debug, Clone, Copy)]
pub struct RemovalIndexKey<'a> {
    pub since: Instant,
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

/// A document with an unfinished removal, as [`removals`] returns it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Removal {
    pub id: DocumentId,
}

view!(Removal of Document);

/// Lists the documents with an unfinished removal that began at `before` or earlier. The removal is
/// of the document itself or of a discarded draft.
pub fn removals(before: Instant) -> Result<Query<Removal>, KeyError> {
    let shards = REMOVAL_SHARDS.all().map(shard).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&REMOVALS, shards, Range::Between(Instant::MIN.to_string(), format!("{before}$"))))
}

/// Removes the next texts of a discarded draft, and their names from the head. `head` is the head
/// that was read. A refusal means that another request, for example a request of another worker,
/// has changed the head.
pub fn discard_texts(head: &Stored<Document>) -> Result<Transaction<DocumentAction>, EncodeError> {
    let rest: Vec<&SectionName> = head.discarded.iter().skip(REMOVED_AT_ONCE).collect();
    let change = Change::<Document>::copied();
    let change = if rest.is_empty() {
        change.leave(GSI1).set("discarded", None::<SectionName>)?.set("removing_since", None::<Instant>)?
    } else {
        change.set("discarded", &rest)?
    };
    let unchanged = is(head)?.and(Condition::Is("rev", number(head.meta.rev)));
    let mut transaction = Transaction::new(&DISCARD_TEXTS)
        .action(DocumentAction::Document, Guarded::update(key(&head.id)?, change, unchanged));
    for name in head.discarded.iter().take(REMOVED_AT_ONCE) {
        let delete = Guarded::remove(section_key(&head.id, name, head.next())?);
        transaction = transaction.action(DocumentAction::Section, delete);
    }
    Ok(transaction)
}

/// Marks a document as being deleted if it is at `version`, so that no reader sees it any more. The
/// caller is staff, or the owner of a document without an organization. Returns the head.
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
/// them. A refusal means that the deletion is complete, and the id may be in use again.
pub fn sweep_texts(
    head: &Stored<Document>,
    versions: &[Stored<DocumentVersion>],
) -> Result<Vec<Transaction<DocumentAction>>, EncodeError> {
    let manifests = versions.iter().map(|version| (&version.sections, version.number));
    let draft = head.draft.iter().map(|draft| (&draft.sections, head.next()));
    let written =
        manifests.chain(draft).flat_map(|(sections, number)| since(sections, number).map(move |name| (name, number)));
    let discarded = head.discarded.iter().map(|name| (name, head.next()));
    let texts = written.chain(discarded).map(|(name, number)| section_key(&head.id, name, number));
    sweep(head, texts.collect::<Result<_, _>>()?)
}

/// Removes versions of a deleted document. A refusal means the same as in [`sweep_texts`].
pub fn sweep_versions(
    head: &Stored<Document>,
    versions: &[Stored<DocumentVersion>],
) -> Result<Vec<Transaction<DocumentAction>>, EncodeError> {
    sweep(head, versions.iter().map(|version| version_key(&head.id, version.number)).collect::<Result<_, _>>()?)
}

/// Removes items of a deleted document, on the condition that its head still exists. Without this
/// condition, a slow worker could remove items of the next document under the same id.
fn sweep(head: &Stored<Document>, keys: Vec<Key>) -> Result<Vec<Transaction<DocumentAction>>, EncodeError> {
    let transaction = |keys: &[Key]| {
        let check = Guarded::check(key(&head.id)?, deleted(head)?);
        let transaction = Transaction::new(&SWEEP).action(DocumentAction::Document, check);
        Ok(keys.iter().fold(transaction, |transaction, key| {
            transaction.action(DocumentAction::Section, Guarded::remove(key.clone()))
        }))
    };
    keys.chunks(REMOVED_AT_ONCE).map(transaction).collect()
}

fn deleted(head: &Stored<Document>) -> Result<Condition, EncodeError> {
    Ok(is(head)?.and(Condition::Is("deleting", value(true)?)))
}

/// Removes the head of a deleted document, and so frees its id. The role items of its owner and
/// editors are removed too.
///
/// One transaction can remove at most 99 role items with the head. If the document has more, the
/// first transaction removes some role items, and the last transaction removes the other role items
/// and the head.
pub fn delete(head: &Stored<Document>) -> Result<Vec<Transaction<DocumentAction>>, EncodeError> {
    let deleted = deleted(head)?;
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
