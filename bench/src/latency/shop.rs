//! The measured shop. It is filled through its API, and its content is checked at the end.

use std::sync::atomic::{AtomicU64, Ordering};

use local::System;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::Plan;
use super::routes::{LINES, Server};
use crate::BenchError;

/// Words of product names. Each product has one of them.
pub(crate) const WORDS: [&str; 8] = ["ice", "milk", "bread", "apples", "coffee", "rice", "soap", "candles"];
/// Initial stock of each product, more than all orders together need.
const STOCK: u64 = 1_000_000_000;
/// A product with an initial stock of 1. Only [`super::check`] orders it.
pub(crate) const SCARCE: &str = "scarce";
/// The longest wait for the stream's consumer, in seconds.
const DRAIN_SECONDS: u64 = 300;

pub(crate) struct Customer {
    pub id: String,
    pub token: String,
}

/// The API of a running system, and counts of the orders placed through it.
pub(crate) struct Shop {
    base: String,
    http: Client,
    staff: String,
    customers: Vec<Customer>,
    products: usize,
    /// The orders in the index and the records in the quarantine before the shop was filled.
    before: Drained,
    number: AtomicU64,
    /// The number of placed orders. `pieces` is the sum of the quantities in their lines, without
    /// the cancelled orders.
    placed: AtomicU64,
    pieces: AtomicU64,
}

/// The numbers of orders in the index and of records in the quarantine, after the consumer has
/// processed every write.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Drained {
    orders: u64,
    quarantined: u64,
}

impl Shop {
    /// Creates products, customers and their orders, one request after the other. So each function
    /// needs only one process.
    pub async fn fill(system: &System, plan: &Plan) -> Result<Self, BenchError> {
        let customer = |n| {
            let id = format!("latency-{n:03}");
            Customer { token: system.token(&id, &[]), id }
        };
        let mut shop = Self {
            base: system.url(),
            http: Client::builder().no_proxy().build()?,
            staff: system.token("bench", &["staff".to_owned()]),
            customers: (0..plan.customers.max(1)).map(customer).collect(),
            products: plan.products.max(LINES),
            before: Drained::default(),
            number: AtomicU64::new(0),
            placed: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
        };
        shop.before = shop.drain().await?;
        for n in 0..shop.products {
            shop.create_product(&shop.product(n), n, STOCK).await?;
        }
        shop.create_product(SCARCE, 0, 1).await?;
        for Customer { id, .. } in &shop.customers {
            let email = format!("{id}@example.com");
            let body = json!({"id": id, "email": email, "username": id, "name": "Somebody"});
            shop.create(shop.post(Server::Bodega, "/customers", &body).bearer_auth(&shop.staff)).await?;
            for first in 0..plan.orders {
                let lines: Vec<Value> =
                    (first..first + LINES).map(|n| json!({"product_id": shop.product(n), "quantity": 1})).collect();
                let order = shop.post(Server::Bodega, "/orders", &json!({"customer_id": id, "lines": lines}));
                // A staff token has no limit of unpaid orders.
                shop.create(order.bearer_auth(&shop.staff).header("idempotency-key", shop.number().to_string()))
                    .await?;
                shop.placed(LINES as u64);
            }
        }
        shop.drain().await?;
        Ok(shop)
    }

    /// Creates a product. `n` determines its word and its price.
    pub async fn create_product(&self, id: &str, n: usize, stock: u64) -> Result<(), BenchError> {
        let word = WORDS.get(n % WORDS.len()).copied().unwrap_or_default();
        let price = json!({"amount": 100 + n, "currency": "USD"});
        let body = json!({
            "id": id, "name": format!("Finest {word}, number {n}"), "brand": "Private", "package_size": "22 LB",
            "category_path": ["GROCERY", word], "price": price, "summary": "Good for every day.", "stock": stock,
        });
        self.create(self.post(Server::Bodega, "/products", &body).bearer_auth(&self.staff)).await
    }

    async fn create(&self, request: RequestBuilder) -> Result<(), BenchError> {
        self.json(request, StatusCode::CREATED).await.map(drop)
    }

    /// Returns the response's body. The response must have this status.
    pub async fn json(&self, request: RequestBuilder, expected: StatusCode) -> Result<Value, BenchError> {
        let answer = request.send().await?;
        let (status, url) = (answer.status(), answer.url().path().to_owned());
        let body: Value = answer.json().await?;
        if status == expected { Ok(body) } else { Err(wrong!("the response to {url} is {status}: {body}")) }
    }

    pub fn staff(&self) -> &str {
        &self.staff
    }

    pub const fn http(&self) -> &Client {
        &self.http
    }

    pub fn get(&self, server: Server, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{}{path}", self.base, server.prefix()))
    }

    pub fn post(&self, server: Server, path: &str, body: &Value) -> RequestBuilder {
        self.http.post(format!("{}{}{path}", self.base, server.prefix())).json(body)
    }

    pub const fn products(&self) -> usize {
        self.products
    }

    /// Returns the id of the n-th product. After the last product the first follows again.
    pub fn product(&self, n: usize) -> String {
        format!("product-{:04}", n % self.products)
    }

    /// Returns the customer of the n-th client.
    #[expect(clippy::indexing_slicing, reason = "a remainder, and there is at least one")]
    pub fn customer(&self, client: usize) -> &Customer {
        &self.customers[client % self.customers.len()]
    }

    pub fn number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a placed order. `pieces` is the sum of the quantities in its lines.
    pub fn placed(&self, pieces: u64) {
        self.placed.fetch_add(1, Ordering::Relaxed);
        self.pieces.fetch_add(pieces, Ordering::Relaxed);
    }

    pub fn returned(&self, pieces: u64) {
        self.pieces.fetch_sub(pieces, Ordering::Relaxed);
    }

    pub fn put(&self, path: &str, body: &Value) -> RequestBuilder {
        self.http.put(format!("{}{}{path}", self.base, Server::Bodega.prefix())).json(body)
    }

    pub async fn create_named(&self, word: &str) -> Result<(), BenchError> {
        let price = json!({"amount": 100, "currency": "USD"});
        let body = json!({
            "id": word, "name": word, "brand": "Private", "category_path": ["PROBES"], "price": price, "stock": 1,
        });
        self.create(self.post(Server::Bodega, "/products", &body).bearer_auth(&self.staff)).await
    }

    pub async fn finds(&self, word: &str) -> Result<bool, BenchError> {
        let found = self.get(Server::Bodega, &format!("/search/products?q={word}"));
        let found = self.json(found, StatusCode::OK).await?;
        let items = found.get("items").and_then(Value::as_array);
        Ok(items.into_iter().flatten().any(|item| item.get("id").and_then(Value::as_str) == Some(word)))
    }

    /// Waits until the consumers have processed every write, and the bus's subscribers every event.
    pub async fn drain(&self) -> Result<Drained, BenchError> {
        let request = self.http.post(format!("{}/_local/drain?timeout_s={DRAIN_SECONDS}", self.base));
        let answer = self.json(request, StatusCode::OK).await?;
        let number = |pointer| answer.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        Ok(Drained { orders: number("/index/orders"), quarantined: number("/quarantined") })
    }

    pub async fn stock(&self, product: &str) -> Result<u64, BenchError> {
        let product = self.get(Server::Bodega, &format!("/products/{product}/numbers")).bearer_auth(&self.staff);
        let product = self.json(product, StatusCode::OK).await?;
        let stock = product.get("stock").and_then(Value::as_u64);
        stock.ok_or_else(|| wrong!("a product without stock: {product}"))
    }

    /// Checks that every order reduced the stock once and is in the index, and that the quarantine
    /// has no new record. Orders through peers are included.
    pub async fn settled(&self) -> Result<(), BenchError> {
        let after = self.drain().await?;
        let mut taken = 0;
        for n in 0..self.products {
            taken += STOCK.saturating_sub(self.stock(&self.product(n)).await?);
        }
        let (placed, pieces) = (self.placed.load(Ordering::Relaxed), self.pieces.load(Ordering::Relaxed));
        let indexed = after.orders.saturating_sub(self.before.orders);
        let quarantined = after.quarantined.saturating_sub(self.before.quarantined);
        if (taken, indexed, quarantined) == (pieces, placed, 0) {
            return Ok(());
        }
        Err(wrong!(
            "{placed} orders have {pieces} pieces, and {taken} left the stock. The index has {indexed} of the orders, \
            and the quarantine has {quarantined} new records"
        ))
    }
}
