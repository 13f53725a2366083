//! The ports of the sinks, implemented on a [`World`] in memory.

use bus::{Event, Outcome};
use futures::future::BoxFuture;
use key_schema::item::{FromItem, Item, key_of};
use key_schema::key::Key;
use key_schema::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Single, Transaction};
use search_index::{BulkOperation, BulkOutcome, SearchError};
use storage::objects::{Class, ObjectError, Put};
use stream::ports::{Index, Items, Objects, Publisher};
use stream::quarantine::{Entry, Quarantine};
use stream::verdict::Reason;
use table::{Page, Refusal, Refusals, TableError};

use crate::memory::{Refused, target};
use crate::process::{CallOutcome, Process, digest};
use crate::territory::Footprint;
use crate::world::{World, digest_item};

impl Items for Process {
    async fn get<T: FromItem + Send>(&self, get: &Get<T>) -> Result<Option<T>, TableError> {
        let footprint = Footprint::keys([get.key().clone()]);
        let read = |world: &mut World, outcome| answered(outcome, || world.table.get(get.key()).cloned());
        let found = self.call("get", footprint, read, |found| digest_answer(found, digest_optional)).await?;
        Ok(found.map(T::from_item).transpose()?)
    }

    async fn batch_get<T: FromItem + Clone + Send>(&self, batch: &BatchGet<T>) -> Result<Vec<Option<T>>, TableError> {
        let footprint = Footprint::keys(batch.keys().iter().cloned());
        let read = |world: &mut World, outcome| {
            let find = || batch.keys().iter().map(|key| world.table.get(key).cloned()).collect::<Vec<Option<Item>>>();
            answered(outcome, find)
        };
        let digest = |found: &Result<Vec<Option<Item>>, TableError>| {
            digest_answer(found, |found| digest_all(found.iter().map(Option::as_ref)))
        };
        let found = self.call("batch_get", footprint, read, digest).await?;
        found.into_iter().map(|item| Ok(item.map(T::from_item).transpose()?)).collect()
    }

    async fn query<T: FromItem + Send>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        let read = |world: &mut World, outcome| answered(outcome, || world.table.query(query));
        let digest = |found: &Result<(Vec<Item>, Option<String>), TableError>| {
            digest_answer(found, |(items, _)| digest_all(items.iter().map(Some)))
        };
        let (items, next) = self.call("query", Footprint::query(query), read, digest).await?;
        let read = items.into_iter().map(|item| Ok((String::new(), T::from_item(item)?)));
        Ok(Page::new(read.collect::<Result<Vec<_>, TableError>>()?, next))
    }

    async fn write(&self, write: &Single<()>) -> Result<Result<(), Refusal>, TableError> {
        let guarded = [write.guarded()];
        let footprint = Footprint::keys([target(&guarded[0].write)]);
        let act = |world: &mut World, outcome| answered(outcome, || world.transact(&guarded));
        let done = self.call("write", footprint, act, |done| digest_answer(done, digest_refusals)).await?;
        Ok(done.map_err(|refused| Refusal { action: (), item: refused.into_iter().next().and_then(|(_, item)| item) }))
    }

    async fn transact<A: Clone + Send + Sync>(
        &self,
        transaction: &Transaction<A>,
    ) -> Result<Result<(), Refusals<A>>, TableError> {
        let writes: Vec<&Guarded> = transaction.actions().iter().map(|(_, guarded)| guarded).collect();
        let footprint = Footprint::keys(writes.iter().map(|guarded| target(&guarded.write)));
        let act = |world: &mut World, outcome| answered(outcome, || world.transact(&writes));
        let done = self.call("transact", footprint, act, |done| digest_answer(done, digest_refusals)).await?;
        Ok(done.map_err(|refused| {
            let action = |position: usize| transaction.actions()[position].0.clone();
            refused.into_iter().map(|(position, item)| Refusal { action: action(position), item }).collect()
        }))
    }

    async fn batch_write(&self, batch: &BatchWrite) -> Result<Vec<BatchWriteAction>, TableError> {
        let footprint = Footprint::keys(batch.writes().iter().map(key_of_action));
        let write = |world: &mut World, outcome| {
            let done = part(batch.writes(), outcome);
            done.iter().for_each(|action| world.table.batch(action));
            batch.writes()[done.len()..].to_vec()
        };
        Ok(self.call("batch_write", footprint, write, |left| u64::try_from(left.len()).unwrap()).await)
    }
}

/// Returns the parts that a call completes. A call that fails does not complete its last part.
fn part<T>(parts: &[T], outcome: CallOutcome) -> &[T] {
    match outcome {
        CallOutcome::Done => parts,
        CallOutcome::Fails => parts.split_last().map_or(parts, |(_, done)| done),
    }
}

/// Returns the response of a call that succeeds or fails completely.
fn answered<T>(outcome: CallOutcome, act: impl FnOnce() -> T) -> Result<T, TableError> {
    match outcome {
        CallOutcome::Done => Ok(act()),
        CallOutcome::Fails => Err(TableError::Throttled),
    }
}

fn digest_answer<T>(answer: &Result<T, TableError>, digest: impl FnOnce(&T) -> u64) -> u64 {
    answer.as_ref().map_or(u64::MAX, digest)
}

fn key_of_action(action: &BatchWriteAction) -> Key {
    match action {
        BatchWriteAction::Put(item) => key_of(item).unwrap(),
        BatchWriteAction::Delete(key) => key.clone(),
    }
}

fn digest_refusals(done: &Refused) -> u64 {
    match done {
        Ok(()) => 0,
        Err(refused) => digest_all(refused.iter().map(|(_, item)| item.as_ref())).wrapping_add(1),
    }
}

#[allow(clippy::ref_option)] // `Process::call` requires this signature.
fn digest_optional(item: &Option<Item>) -> u64 {
    item.as_ref().map_or(0, digest_item)
}

fn digest_all<'a>(items: impl Iterator<Item = Option<&'a Item>>) -> u64 {
    digest(&items.map(|item| item.map(digest_item)).collect::<Vec<_>>())
}

impl Index for Process {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        // This model makes no call to create indices, because they exist.
        Box::pin(std::future::ready(Ok(())))
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        Box::pin(async move {
            let footprint = Footprint::others(operations.iter().map(|operation| operation.document_id().to_owned()));
            let write = |world: &mut World, outcome| -> Vec<BulkOutcome> {
                let done = part(operations, outcome);
                let mut outcomes: Vec<BulkOutcome> = done.iter().map(|operation| world.index(operation)).collect();
                outcomes.resize(operations.len(), BulkOutcome::Retryable { reason: "injected".into() });
                outcomes
            };
            Ok(self.call("bulk", footprint, write, digest).await)
        })
    }
}

impl Publisher for Process {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            let publish = |world: &mut World, outcome| {
                let done = part(events, outcome);
                done.iter().for_each(|event| world.publish(event));
                let mut outcomes = vec![Outcome::Published; done.len()];
                outcomes.resize(events.len(), Outcome::Retryable { reason: "injected".into() });
                outcomes
            };
            self.call("publish", Footprint::others(["bus".to_owned()]), publish, digest).await
        })
    }
}

impl Quarantine for Process {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        panic!("a record was quarantined: {}", entry.reason)
    }
}

impl Objects for Process {
    fn put_new<'a>(&'a self, name: &'a str, body: Vec<u8>, _: Class) -> BoxFuture<'a, Result<Put, ObjectError>> {
        Box::pin(async move {
            let put = |world: &mut World, outcome| match outcome {
                CallOutcome::Done => Ok(world.archive(name, body)),
                CallOutcome::Fails => Err(ObjectError::Throttled),
            };
            self.call("put_new", Footprint::others([name.to_owned()]), put, digest).await
        })
    }
}
