//! The ports of the sinks, on the world in memory.

use bus::{Event, Outcome};
use futures::future::BoxFuture;
use key_schema::item::{FromItem, Item};
use key_schema::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Single, Transaction};
use objects::{Class, ObjectError, Put};
use search_index::{BulkOperation, BulkOutcome, SearchError};
use stream::ledger::Reason;
use stream::ports::{Index, Items, Objects, Publisher};
use stream::quarantine::{Entry, Quarantine};
use table::{Page, Refusal, TableError, TransactError, WriteError};

use crate::memory::Refused;
use crate::process::{Process, digest};
use crate::world::{World, digest_item};

impl Items for Process {
    async fn get<T: FromItem + Send>(&self, get: &Get<T>) -> Result<Option<T>, TableError> {
        let found = self.call("get", |world| world.table.get(get.key()).cloned(), digest_optional).await;
        Ok(found.map(T::from_item).transpose()?)
    }

    async fn batch_get<T: FromItem + Clone + Send>(&self, batch: &BatchGet<T>) -> Result<Vec<Option<T>>, TableError> {
        let read = |world: &mut World| -> Vec<Option<Item>> {
            batch.keys().iter().map(|key| world.table.get(key).cloned()).collect()
        };
        let found = self.call("batch_get", read, |found| digest_all(found.iter().map(Option::as_ref))).await;
        found.into_iter().map(|item| Ok(item.map(T::from_item).transpose()?)).collect()
    }

    async fn query<T: FromItem + Send>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        let read = |world: &mut World| world.table.query(query);
        let (items, next) = self.call("query", read, |(items, _)| digest_all(items.iter().map(Some))).await;
        Ok(Page { items: items.into_iter().map(T::from_item).collect::<Result<_, _>>()?, next })
    }

    async fn write(&self, write: &Single<()>) -> Result<(), WriteError> {
        let guarded = [write.guarded()];
        let done = self.call("write", |world| world.transact(&guarded), digest_refusals).await;
        done.map_err(|refused| WriteError::Refused(refused.into_iter().next().and_then(|(_, item)| item).map(Box::new)))
    }

    async fn transact<L: Clone + Send + Sync>(&self, transaction: &Transaction<L>) -> Result<(), TransactError<L>> {
        let writes: Vec<&Guarded> = transaction.actions().iter().map(|(_, guarded)| guarded).collect();
        let done = self.call("transact", |world| world.transact(&writes), digest_refusals).await;
        done.map_err(|refused| {
            let refusal = |(position, item): (usize, Option<Item>)| Refusal {
                label: transaction.actions()[position].0.clone(),
                item: item.map(Box::new),
            };
            TransactError::Refused(refused.into_iter().map(refusal).collect())
        })
    }

    async fn batch_write(&self, batch: &BatchWrite) -> Result<Vec<BatchWriteAction>, TableError> {
        let write = |world: &mut World| batch.writes().iter().for_each(|action| world.table.batch(action));
        self.call("batch_write", write, |()| 0).await;
        Ok(Vec::new())
    }
}

fn digest_refusals(done: &Refused) -> u64 {
    match done {
        Ok(()) => 0,
        Err(refused) => digest_all(refused.iter().map(|(_, item)| item.as_ref())).wrapping_add(1),
    }
}

#[allow(clippy::ref_option)] // The signature that `Process::call` asks for.
fn digest_optional(item: &Option<Item>) -> u64 {
    item.as_ref().map_or(0, digest_item)
}

fn digest_all<'a>(items: impl Iterator<Item = Option<&'a Item>>) -> u64 {
    digest(&items.map(|item| item.map(digest_item)).collect::<Vec<_>>())
}

impl Index for Process {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        // Creating what is there already is no step of this model.
        Box::pin(std::future::ready(Ok(())))
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        Box::pin(async move {
            let write = |world: &mut World| -> Vec<BulkOutcome> {
                operations.iter().map(|operation| world.index(operation)).collect()
            };
            Ok(self.call("bulk", write, digest).await)
        })
    }
}

impl Publisher for Process {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            let publish = |world: &mut World| world.bus.extend(events.iter().map(|event| event.id.to_string()));
            self.call("publish", publish, |()| 0).await;
            vec![Outcome::Published; events.len()]
        })
    }
}

impl Quarantine for Process {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        panic!("nothing in this world is to be set aside: {}", entry.reason)
    }
}

impl Objects for Process {
    fn put_new<'a>(&'a self, name: &'a str, body: Vec<u8>, _: Class) -> BoxFuture<'a, Result<Put, ObjectError>> {
        Box::pin(async move {
            let put = |world: &mut World| {
                if world.archive.contains_key(name) {
                    return Put::AlreadyThere;
                }
                world.archive.insert(name.to_owned(), body);
                Put::Created
            };
            Ok(self.call("put_new", put, digest).await)
        })
    }
}
