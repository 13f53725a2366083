//! An index with test documents.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use emulators::search::SearchServer;
use fixture::CURSOR_KEYS;
use http_api::sample::{Answered, Call};
use http_api::{Keys, Services};
use key_schema::cursor::Cursors;
use key_schema::order::OrderNumber;
use key_schema::product::CategoryPath;
use search::{App, routes};
use search_index::{
    BulkOperation, BulkOutcome, Collection, Limits, OrderDocument, ProductDocument, SearchClient, SearchConfig,
    document_id,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

pub struct Shop {
    pub app: App,
    pub server: Option<SearchServer>,
}

impl Shop {
    /// Opens a shop whose engine has no index.
    pub async fn empty() -> Self {
        match std::env::var("SEARCH_ENDPOINT") {
            Ok(endpoint) => Self { app: app(&endpoint, limits()), server: None },
            Err(_) => Self::embedded().await,
        }
    }

    /// Starts the embedded engine, which can be made to fail.
    pub async fn embedded() -> Self {
        let server = SearchServer::start(None).await.unwrap();
        Self { app: app(server.url(), limits()), server: Some(server) }
    }

    /// Opens a shop whose client stops waiting before a timeout fault of the engine ends.
    pub async fn impatient() -> Self {
        let server = SearchServer::start(None).await.unwrap();
        let limits = Limits { attempt: Duration::from_secs(1), ..limits() };
        Self { app: app(server.url(), limits), server: Some(server) }
    }

    /// Opens a shop whose engine gives this response to every request.
    pub async fn refusing(status: u16, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 8192]).await;
                let head = format!("HTTP/1.1 {status} Refused\r\ncontent-length: {}\r\n", body.len());
                let answer = format!("{head}content-type: application/json\r\nconnection: close\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { app: app(&endpoint, limits()), server: None }
    }

    pub async fn with(products: &[ProductDocument], orders: &[OrderDocument]) -> Self {
        let shop = Self::empty().await;
        shop.app.client.ensure_indices().await.unwrap();
        let products =
            products.iter().map(|product| BulkOperation::index(document_id(&product.id, "P"), 1, product).unwrap());
        let orders = orders.iter().map(|order| BulkOperation::index(document_id(&order.id, "O"), 1, order).unwrap());
        let outcomes = shop.app.client.bulk(&products.chain(orders).collect::<Vec<_>>()).await.unwrap();
        assert!(outcomes.iter().all(BulkOutcome::is_durable), "{outcomes:?}");
        shop.app.client.refresh().await.unwrap();
        shop
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&routes(), &self.app).await
    }

    /// Removes a product's document.
    pub async fn remove(&self, id: &str) {
        let gone = BulkOperation::tombstone(Collection::Products, document_id(id, "P"), 2, "2017-01-02T00:00:00.000Z");
        let outcomes = self.app.client.bulk(&[gone.unwrap()]).await.unwrap();
        assert!(outcomes.iter().all(BulkOutcome::is_durable), "{outcomes:?}");
        self.app.client.refresh().await.unwrap();
    }

    /// Searches products without a login.
    pub async fn products(&self, query: &[(&str, &str)]) -> Answered {
        let call =
            query.iter().fold(Call::new("GET /v1/search/products"), |call, (name, value)| call.query(name, value));
        self.send(call).await
    }

    /// Returns the ids of the products that are found, in order.
    pub async fn ids(&self, query: &[(&str, &str)]) -> Vec<String> {
        ids(&self.products(query).await)
    }
}

/// Returns the ids on a page.
pub fn ids(answer: &Answered) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().iter().map(id).collect()
}

pub fn id(item: &Value) -> String {
    item["id"].as_str().unwrap().to_owned()
}

fn limits() -> Limits {
    let mut limits = Limits { attempts: 2, backoff: Duration::from_millis(1), ..Limits::default() };
    if std::env::var_os("SEARCH_ENDPOINT").is_some() {
        // A real engine may be slow on the test machine.
        (limits.attempt, limits.total) = (Duration::from_secs(30), Duration::from_secs(60));
    }
    limits
}

fn app(endpoint: &str, limits: Limits) -> App {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("search-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let config = SearchConfig::new(endpoint, &prefix).unwrap().with_limits(limits);
    App {
        client: SearchClient::new(&config),
        services: Services::new(fixture::no_table(), Keys::known(Cursors::new(CURSOR_KEYS).unwrap())),
    }
}

pub fn product(id: &str, name: &str, brand: &str, path: &[&str], price: i64) -> ProductDocument {
    let category_path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
    let category = CategoryPath::new(category_path.clone()).unwrap();
    ProductDocument {
        id: id.into(),
        name: name.into(),
        brand: brand.into(),
        package_size: None,
        category: category.lineage().map(|category| category.to_segment()).collect(),
        category_path,
        price_amount: price,
        price_currency: "USD".into(),
        compare_at_amount: None,
        summary: String::new(),
        thumbnail: None,
        in_stock: false,
        rating_sum: 0,
        rating_count: 0,
        created_at: format!("2017-01-01T00:00:{:02}.000Z", price % 60),
        parent: None,
        options: Vec::new(),
        group: id.into(),
        has_variants: false,
        version: 1,
        deleted: false,
    }
}

pub fn order(id: &str, customer: &str, status: &str, second: u32) -> OrderDocument {
    OrderDocument {
        id: id.into(),
        number: OrderNumber::of(&id.parse().unwrap()).to_string(),
        reference: Some(format!("R-{id}")),
        customer_id: customer.into(),
        store_id: None,
        destination_country: None,
        destination_city: None,
        status: status.into(),
        total_amount: 2580,
        total_currency: "USD".into(),
        placed_at: format!("2017-01-01T00:00:{second:02}.000Z"),
        line_count: 2,
        version: 1,
        deleted: false,
    }
}
