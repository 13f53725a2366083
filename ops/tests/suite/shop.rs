//! A shop for tests: a table, a search engine, and the stream's consumer between them. The consumer
//! processes only records that a test delivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use aws::{Credentials, SharedCredentialsProvider};
use bytes::Bytes;
use emulators::objects::ObjectServer;
use emulators::search::SearchServer;
use fixture::TestTable;
use futures::future::BoxFuture;
use key_schema::item::{Entity, Stored};
use key_schema::product::Product;
use ops::Items;
use reqwest::Method;
use search_index::{Collection, Limits, SearchClient, SearchConfig, StoredSource, document_id};
use serde_json::{Value, json};
use storage::objects::ObjectStore;
use stream::batch::Event;
use stream::consumer::Consumer;
use stream::quarantine::{Entry, Quarantine};
use stream::search::Search;
use stream::sink::Sink;
use stream::verdict::Reason;
use tokio::time::Instant;

use crate::things;

/// The shop of one test.
pub struct Shop {
    pub table: TestTable,
    pub items: Items,
    pub search: SearchClient,
    pub endpoint: String,
    pub prefix: String,
    consumer: Consumer,
    sequence: AtomicU64,
    _server: Option<SearchServer>,
}

impl Shop {
    /// Opens an empty shop with the current indices.
    pub async fn open() -> Self {
        Self::over(None).await
    }

    /// Opens an empty shop whose product index has this definition.
    pub async fn with_index(products: &Value) -> Self {
        Self::over(Some(products)).await
    }

    async fn over(products: Option<&Value>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (endpoint, server) = match std::env::var("SEARCH_ENDPOINT") {
            Ok(endpoint) => (endpoint, None),
            Err(_) => {
                let server = SearchServer::start(None).await.unwrap();
                (server.url().to_owned(), Some(server))
            }
        };
        let prefix = format!("ops-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        if let Some(definition) = products {
            let mut definition = definition.clone();
            definition["aliases"] =
                json!({format!("{prefix}-products"): {}, format!("{prefix}-products-write-v1"): {}});
            call(&endpoint, Method::PUT, &format!("{prefix}-products-v1"), Some(&definition)).await;
        }
        // The timeouts are long, so that a slow engine does not fail a test.
        let limits = Limits { attempt: Duration::from_secs(30), total: Duration::from_secs(60), ..Limits::default() };
        let search = SearchClient::new(&SearchConfig::new(&endpoint, &prefix).unwrap().with_limits(limits));
        search.ensure_indices().await.unwrap();
        let table = TestTable::create().await;
        let items = Items::new(table.client(), table.name().to_owned());
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(Search::open(search.clone()).await)];
        let consumer = Consumer::new(sinks, Box::new(PanickingQuarantine), stream::Settings::default());
        Self { table, items, search, endpoint, prefix, consumer, sequence: AtomicU64::new(1), _server: server }
    }

    /// Writes or replaces an item, and returns the stream record of the change.
    pub async fn put<T: Entity>(&self, item: &Stored<T>) -> Value {
        self.table.put(item).await;
        things::modify(self.sequence.fetch_add(1, Ordering::Relaxed), item)
    }

    /// Writes an item from a stream image.
    pub async fn put_image(&self, image: &Value) {
        self.table.put_item(serde_json::from_value(image.clone()).unwrap()).await;
    }

    /// Removes an item and returns the record of the removal.
    pub async fn remove<T: Entity>(&self, item: &Stored<T>) -> Value {
        self.table.delete(&item.data.key().unwrap()).await;
        things::remove(self.sequence.fetch_add(1, Ordering::Relaxed), item)
    }

    /// Passes records to the consumer, as the stream does.
    pub async fn deliver(&self, records: &[Value]) {
        deliver_to(&self.consumer, records).await;
    }

    /// Writes an item and delivers the record.
    pub async fn put_and_deliver<T: Entity>(&self, item: &Stored<T>) {
        let record = self.put(item).await;
        self.deliver(&[record]).await;
    }

    /// Returns the stored document of an item from the index that searches read. It may be a
    /// tombstone.
    pub async fn stored<T: Entity>(&self, collection: Collection, item: &Stored<T>) -> Option<StoredSource> {
        let id = id_of(item);
        self.search.stored(collection, &[id]).await.unwrap().pop().unwrap()
    }

    /// Returns id and rev of every document that searches find, in ascending order.
    pub async fn found(&self, collection: Collection) -> Vec<(String, u64)> {
        self.search.refresh().await.unwrap();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.search.list(collection, 1_000, after.as_ref()).await.unwrap();
            found.extend(page.items.into_iter().map(|document| (document.id, document.rev)));
            let Some(next) = page.next else { return found };
            after = Some(next);
        }
    }

    /// Writes an item without one of its required attributes, and returns the record of the change.
    pub async fn put_broken<T: Entity>(&self, item: &Stored<T>, attribute: &str) -> Value {
        let mut broken = item.to_item().unwrap();
        broken.inner_mut().remove(attribute).unwrap();
        let mut record = things::modify(self.sequence.fetch_add(1, Ordering::Relaxed), item);
        record["dynamodb"]["NewImage"] = serde_json::to_value(&broken).unwrap();
        self.table.put_item(broken).await;
        record
    }

    /// Deletes the document of a product by hand. The engine remembers its version for a minute.
    pub async fn delete_document(&self, item: &Stored<Product>) {
        let index = self.search.indices(Collection::Products).await.unwrap().remove(0).name;
        let body = format!("{}\n", json!({"delete": {"_index": index, "_id": id_of(item)}}));
        let call = reqwest::Client::new().post(format!("{}/_bulk", self.endpoint));
        let call = call.header("content-type", "application/x-ndjson").body(body);
        let answer: Value = call.send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["items"][0]["delete"]["status"], 200, "{answer}");
    }

    /// Creates an index by hand.
    pub async fn make_index(&self, name: &str, definition: &Value) {
        call(&self.endpoint, Method::PUT, &format!("{}-{name}", self.prefix), Some(definition)).await;
    }

    /// Removes the alias through which products are written.
    pub async fn lose_write_alias(&self) {
        let (index, alias) = (format!("{}-products-v1", self.prefix), format!("{}-products-write-v1", self.prefix));
        let remove = json!({"actions": [{"remove": {"index": index, "alias": alias}}]});
        call(&self.endpoint, Method::POST, "_aliases", Some(&remove)).await;
    }

    /// Sends a request directly to the engine and returns the response.
    pub async fn ask(&self, path: &str) -> Value {
        call(&self.endpoint, Method::GET, path, None).await
    }
}

async fn call(endpoint: &str, method: Method, path: &str, body: Option<&Value>) -> Value {
    let mut call = reqwest::Client::new().request(method, format!("{endpoint}/{path}"));
    if let Some(body) = body {
        call = call.json(body);
    }
    let answer = call.send().await.unwrap();
    let status = answer.status();
    let answer: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{path}: {status} {answer}");
    answer
}

/// Passes records to a consumer and asserts that it processed all of them.
pub async fn deliver_to(consumer: &Consumer, records: &[Value]) {
    let event: Event = serde_json::from_str(&json!({ "Records": records }).to_string()).unwrap();
    let taken = consumer.take(&event, Instant::now() + Duration::from_secs(120)).await.unwrap();
    assert_eq!(taken.answer.earliest(), None, "{:?}", taken.report);
}

/// Returns the id of an item's document.
pub fn id_of<T: Entity>(item: &Stored<T>) -> String {
    let key = item.data.key().unwrap();
    document_id(key.pk.as_str(), key.sk.as_str())
}

/// A quarantine that fails the test if a record is set aside.
pub struct PanickingQuarantine;

impl Quarantine for PanickingQuarantine {
    fn put<'a>(&'a self, entry: Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        panic!("set aside: {:?}", entry.reason)
    }
}

const NAME: &str = "bucket";

/// An empty bucket.
pub struct Bucket {
    server: Arc<ObjectServer>,
    name: &'static str,
    pub store: ObjectStore,
}

impl Bucket {
    pub async fn open() -> Self {
        let server = ObjectServer::start(None, &[NAME.to_owned()]).await.unwrap();
        Self::of(&Arc::new(server), NAME)
    }

    /// Opens one of several buckets of a server.
    pub fn of(server: &Arc<ObjectServer>, name: &'static str) -> Self {
        let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
        let bucket = aws::s3::Bucket::new(name, "us-east-1", Some(server.url()), credentials).unwrap();
        let store = ObjectStore::new(bucket);
        Self { server: Arc::clone(server), name, store }
    }

    /// Writes an object, or replaces an existing object.
    pub fn put(&self, name: &str, body: &str) {
        self.server.put(self.name, name, Bytes::from(body.to_owned())).unwrap();
    }

    /// Returns the names of all objects.
    pub async fn names(&self) -> Vec<String> {
        self.store.list("", None, 1_000).await.unwrap().items.into_iter().map(|object| object.name).collect()
    }
}
