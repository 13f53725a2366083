//! Provides the engine of a test: the in-process engine, or the OpenSearch at `SEARCH_ENDPOINT` if
//! that variable is set. Each test has its own indices.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use emulators::search::SearchServer;
use search_index::{
    BulkOperation, BulkOutcome, Collection, Limits, ProductDocument, ProductQuery, SearchClient, SearchConfig,
    SearchPage, SearchText, document_id,
};
use serde_json::Value;

const DELETED_AT: &str = "2017-01-02T00:00:00.000Z";

pub struct Engine {
    pub client: SearchClient,
    pub endpoint: String,
    pub prefix: String,
    _server: Option<SearchServer>,
}

impl Engine {
    pub async fn start() -> Self {
        let engine = Self::without_indices().await;
        engine.client.ensure_indices().await.unwrap();
        engine
    }

    pub async fn without_indices() -> Self {
        let (endpoint, server) = match std::env::var("SEARCH_ENDPOINT") {
            Ok(endpoint) => (endpoint, None),
            Err(_) => {
                let server = SearchServer::start(None).await.unwrap();
                (server.url().to_owned(), Some(server))
            }
        };
        // The limits are long, because a real engine may be slow.
        let limits = Limits { attempt: Duration::from_secs(30), total: Duration::from_secs(60), ..Limits::default() };
        let prefix = unique_prefix();
        let config = SearchConfig::new(&endpoint, &prefix).unwrap().with_limits(limits);
        Self { client: SearchClient::new(&config), endpoint, prefix, _server: server }
    }

    pub async fn with_products(products: &[ProductDocument]) -> Self {
        let engine = Self::start().await;
        engine.write(&products.iter().map(|product| write(product, 1)).collect::<Vec<_>>()).await;
        engine
    }

    /// Executes operations that must succeed, and makes their results visible to searches.
    pub async fn write(&self, operations: &[BulkOperation]) {
        let outcomes = self.client.bulk(operations).await.unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == BulkOutcome::Applied), "{outcomes:?}");
        self.client.refresh().await.unwrap();
    }

    pub async fn products(&self, query: &ProductQuery) -> SearchPage<ProductDocument> {
        self.client.search_products(query).await.unwrap()
    }

    /// Sends a request without [`SearchClient`]. Returns the status and the response.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let request = reqwest::Client::new().request(method.parse().unwrap(), format!("{}{path}", self.endpoint));
        let answer = request.json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub async fn send_lines(&self, lines: String) -> Value {
        let request = reqwest::Client::new().post(format!("{}/_bulk", self.endpoint));
        let answer = request.header("content-type", "application/x-ndjson").body(lines).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }

    /// Returns the ids of the products with these words, best first.
    pub async fn ids(&self, words: &str) -> Vec<String> {
        ids(&self.products(&search_for(words)).await)
    }
}

fn unique_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("test-{now:x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn product(id: &str, name: &str, brand: &str, path: &[&str], price: i64) -> ProductDocument {
    let category_path: Vec<_> = path.iter().map(ToString::to_string).collect();
    ProductDocument {
        id: id.to_owned(),
        name: name.to_owned(),
        brand: brand.to_owned(),
        package_size: None,
        thumbnail: None,
        category: categories(path),
        category_path,
        price_amount: price,
        price_currency: "USD".to_owned(),
        compare_at_amount: None,
        summary: String::new(),
        in_stock: true,
        rating_sum: 9,
        rating_count: 2,
        created_at: "2017-01-01T11:53:26.000Z".to_owned(),
        parent: None,
        options: Vec::new(),
        group: id.into(),
        has_variants: false,
        version: 1,
        deleted: false,
    }
}

pub fn shop() -> Vec<ProductDocument> {
    vec![
        product("ice", "ICE - CRUSHED/CUBED 22 LB", "Private", &["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"], 199),
        product("rice", "WILD RICE 14 OZ", "National", &["GROCERY", "RICE"], 349),
        product("milk", "FLUID MILK WHITE ONLY 1 GA", "Private", &["GROCERY", "MILK"], 259),
        product("chocolate", "Chocolate Bars", "National", &["GROCERY", "CANDY"], 99),
        product("soap", "Crème Soap for the hands", "Tom & Sons", &["DRUG GM", "SOAP"], 499),
    ]
}

pub fn write(product: &ProductDocument, rev: u64) -> BulkOperation {
    BulkOperation::index(key(&product.id), rev, product).unwrap()
}

pub fn remove(id: &str, rev: u64) -> BulkOperation {
    BulkOperation::tombstone(Collection::Products, key(id), rev, DELETED_AT).unwrap()
}

pub fn key(id: &str) -> String {
    document_id(&format!("PRODUCT#{id}"), "PRODUCT")
}

pub fn search_for(words: &str) -> ProductQuery {
    ProductQuery { text: SearchText::parse(words).unwrap(), size: 20, ..ProductQuery::default() }
}

pub fn ids(page: &SearchPage<ProductDocument>) -> Vec<String> {
    page.hits.iter().map(|hit| hit.document.id.clone()).collect()
}

/// Returns a category and its parents, in the form of their URLs.
pub fn categories(path: &[&str]) -> Vec<String> {
    let names: Vec<_> = path.iter().map(|name| name.replace('/', "_2F").replace(' ', "_20")).collect();
    (1..=names.len()).map(|depth| names[..depth].join("~")).collect()
}
