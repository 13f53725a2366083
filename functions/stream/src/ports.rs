//! The ports of the sinks: table, search engine, event bus and object store.
//!
//! Each port is a trait with the calls that sinks make. The real client implements it. The model
//! test (`tests/model`) has a second implementation in memory. The test runs the sinks' own code
//! through every schedule of a small model.

use std::future::Future;

use bus::{Event, EventBus, Outcome};
use futures::future::BoxFuture;
use key_schema::item::FromItem;
use key_schema::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Query, Single, Transaction};
use search_index::{BulkOperation, BulkOutcome, SearchClient, SearchError};
use storage::objects::{Class, ObjectError, ObjectStore, Put};
use table::{Page, Refusal, Refusals, Table, TableError};

/// The table.
pub trait Items: Send + Sync + 'static {
    fn get<T: FromItem + Send>(&self, get: &Get<T>) -> impl Future<Output = Result<Option<T>, TableError>> + Send;

    fn batch_get<T: FromItem + Clone + Send>(
        &self,
        batch: &BatchGet<T>,
    ) -> impl Future<Output = Result<Vec<Option<T>>, TableError>> + Send;

    fn query<T: FromItem + Send>(&self, query: &Query<T>) -> impl Future<Output = Result<Page<T>, TableError>> + Send;

    fn write(&self, write: &Single<()>) -> impl Future<Output = Result<Result<(), Refusal>, TableError>> + Send;

    fn transact<A: Clone + Send + Sync>(
        &self,
        transaction: &Transaction<A>,
    ) -> impl Future<Output = Result<Result<(), Refusals<A>>, TableError>> + Send;

    fn batch_write(&self, batch: &BatchWrite)
    -> impl Future<Output = Result<Vec<BatchWriteAction>, TableError>> + Send;
}

impl Items for Table {
    async fn get<T: FromItem + Send>(&self, get: &Get<T>) -> Result<Option<T>, TableError> {
        Self::get(self, get).await
    }

    async fn batch_get<T: FromItem + Clone + Send>(&self, batch: &BatchGet<T>) -> Result<Vec<Option<T>>, TableError> {
        Self::batch_get(self, batch).await
    }

    async fn query<T: FromItem + Send>(&self, query: &Query<T>) -> Result<Page<T>, TableError> {
        Self::query(self, query).await
    }

    async fn write(&self, write: &Single<()>) -> Result<Result<(), Refusal>, TableError> {
        Self::write(self, write).await
    }

    async fn transact<A: Clone + Send + Sync>(
        &self,
        transaction: &Transaction<A>,
    ) -> Result<Result<(), Refusals<A>>, TableError> {
        Self::transact(self, transaction).await
    }

    async fn batch_write(&self, batch: &BatchWrite) -> Result<Vec<BatchWriteAction>, TableError> {
        Self::batch_write(self, batch).await
    }
}

/// The search engine.
pub trait Index: Send + Sync + 'static {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>>;

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>>;
}

impl Index for SearchClient {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        Box::pin(self.ensure_indices())
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        Box::pin(Self::bulk(self, operations))
    }
}

/// The event bus.
pub trait Publisher: Send + Sync + 'static {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>>;
}

impl Publisher for EventBus {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(Self::publish(self, events))
    }
}

/// The object store.
pub trait Objects: Send + Sync + 'static {
    fn put_new<'a>(&'a self, name: &'a str, body: Vec<u8>, class: Class) -> BoxFuture<'a, Result<Put, ObjectError>>;
}

impl Objects for ObjectStore {
    fn put_new<'a>(&'a self, name: &'a str, body: Vec<u8>, class: Class) -> BoxFuture<'a, Result<Put, ObjectError>> {
        Box::pin(Self::put_new(self, name, body, class))
    }
}
