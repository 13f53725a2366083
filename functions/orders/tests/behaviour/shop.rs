//! A shop for one test: a fresh table, the function's routes, and items that other functions write.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fixture::{Harness, TestTable, seed};
use http_api::sample::{Answered, Call};
use http_api::{Services, SettingsCache};
use key_schema::cart;
use key_schema::id::{Born, CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::{self, Order};
use key_schema::product;
use key_schema::settings;
use key_schema::wallet::{self, Wallet};
use orders::App;
use payments::Account;
use serde_json::{Value, json};
use workflows::staging;

pub use fixture::seed::{stored, usd as money};

pub struct Shop {
    harness: Harness<App>,
    clock: Arc<AtomicI64>,
}

impl Deref for Shop {
    type Target = Harness<App>;

    fn deref(&self) -> &Self::Target {
        &self.harness
    }
}

impl Shop {
    /// Opens a shop with the customer ann.
    pub async fn open() -> Self {
        Self::open_with(Account::with(None)).await
    }

    /// Opens a shop with the customer ann and an account at a payment provider.
    pub async fn open_with(account: Account) -> Self {
        let clock = Arc::new(AtomicI64::new(0));
        let ahead = Arc::clone(&clock);
        let settings = SettingsCache::new(move || Instant::now().plus_seconds(ahead.load(Ordering::Relaxed)));
        let app = |test: &TestTable| App { account, ..App::new(Services { settings, ..test.services() }) };
        let shop = Self { harness: Harness::start(orders::routes(), app).await, clock };
        shop.sign_up("ann").await;
        shop
    }

    /// Creates a product that costs one dollar.
    pub async fn product(&self, id: &str, stock: u64) {
        self.sell(seed::product(id, money(100)), stock).await;
    }

    /// Creates a product with this price.
    pub async fn priced_product(&self, id: &str, price: Money) {
        self.sell(seed::product(id, price), 10).await;
    }

    /// Changes the price of a product.
    pub async fn reprice(&self, id: &str, price: Money) {
        self.put(&stored(seed::product(id, price))).await;
    }

    /// Retires a product, and revives it with this stock.
    pub async fn revive(&self, id: &str, stock: u64) {
        self.retire(id).await;
        let read = product::read_for_update(&ProductId::new(id).unwrap()).unwrap();
        let retired = self.own().get(&read).await.unwrap().unwrap();
        let next = Stored::new(seed::product(id, money(200)), Born::new("next").unwrap(), Instant::now());
        self.transact(&product::revive(&retired, &next, stock, &[]).unwrap()).await;
    }

    pub async fn set_stock(&self, id: &str, pieces: u64) {
        self.put(&stored(seed::stock(ProductId::new(id).unwrap(), pieces))).await;
    }

    pub async fn stock(&self, id: &str) -> u64 {
        self.own().get(&product::stock(&ProductId::new(id).unwrap()).unwrap()).await.unwrap().unwrap().available
    }

    /// Fills the cart of ann with these lines, in this sequence.
    pub async fn fill_cart(&self, lines: &[(&str, u64)]) {
        let cart = stored(seed::cart("ann", lines, 3_600));
        self.own().write(&cart::create(&cart, Instant::now()).unwrap()).await.unwrap().unwrap();
    }

    /// Stores a cart of ann with these lines in place of the cart that she has.
    pub async fn replace_cart(&self, lines: &[(&str, u64)]) {
        self.put(&stored(seed::cart("ann", lines, 3_600))).await;
    }

    /// Checks out the cart of ann.
    pub async fn check_out(&self, body: &Value) -> Answered {
        self.send(checkout().json(body)).await
    }

    pub async fn has_cart(&self) -> bool {
        self.own().get(&cart::get(&ann()).unwrap()).await.unwrap().is_some()
    }

    /// Sets the limits of open orders in the shop's settings.
    pub async fn limit(&self, orders: &Value) {
        self.set_values(&json!({ "orders": orders })).await;
    }

    /// Creates the shop's settings with these public values.
    pub async fn set_values(&self, values: &Value) {
        let values = values.to_string();
        let create = settings::create(&values, &"{}".to_owned(), &Born::new("born").unwrap(), Instant::now()).unwrap();
        self.transact(&create).await;
    }

    /// Advances the clock of the settings' cache.
    pub fn wait(&self, seconds: i64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Returns ann's list of open orders.
    pub async fn open_orders(&self) -> BTreeMap<OrderId, OpenOrder> {
        let open = self.own().get(&open::get(&ann()).unwrap()).await.unwrap();
        open.map(|open| open.data.entries).unwrap_or_default()
    }

    pub async fn head(&self, order: &Value) -> Stored<Order> {
        let id = order["id"].as_str().unwrap().parse().unwrap();
        self.own().get(&order::head(&id).unwrap()).await.unwrap().unwrap()
    }

    /// Returns the number of orders that must be paid before an instant.
    pub async fn lapsing(&self, until: Instant) -> usize {
        self.own().query(&open::lapsing(until).unwrap()).await.unwrap().items.len()
    }

    /// Stores the wallet of ann.
    pub async fn store_wallet(&self, balances: &[Money]) {
        let balances = balances.iter().map(|money| (money.currency, money.amount)).collect();
        self.put(&stored(Wallet { customer_id: ann(), balances })).await;
    }

    /// Returns the balances in the wallet of ann.
    pub async fn balances(&self) -> Vec<Money> {
        self.own().get(&wallet::read_for_update(&ann()).unwrap()).await.unwrap().unwrap().balances()
    }

    /// Puts the remaining pieces of a cancelled order back into stock, as the janitor does.
    pub async fn give_back(&self, order: &Value) {
        let id = order["id"].as_str().unwrap().parse().unwrap();
        staging::give_back(self.own(), &id).await.unwrap();
    }
}

fn ann() -> CustomerId {
    CustomerId::new("ann").unwrap()
}

/// Builds the request that checks out ann's cart, without a body.
pub fn checkout() -> Call {
    Call::new("POST /v1/customers/{id}/cart/checkout").path("id", "ann").customer("ann")
}

fn ordered(lines: &[(&str, u64)]) -> Value {
    let line = |(product, quantity): &(&str, u64)| json!({ "product_id": product, "quantity": quantity });
    json!({ "customer_id": "ann", "lines": lines.iter().map(line).collect::<Vec<_>>() })
}

/// Builds an order of ann with this idempotency key.
pub fn order(lines: &[(&str, u64)], key: &str) -> Call {
    Call::new("POST /v1/orders").customer("ann").header("idempotency-key", key).json(&ordered(lines))
}

/// Builds an order for ann that staff place, with this idempotency key and these further fields.
pub fn staff_order(lines: &[(&str, u64)], key: &str, more: &Value) -> Call {
    let mut body = ordered(lines);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Call::new("POST /v1/orders").staff("sam").header("idempotency-key", key).json(&body)
}

/// Builds staff's request that moves the order of a response to this status.
pub fn moved(order: &Value, to: &str) -> Call {
    let version = format!("\"{}\"", order["version"]);
    let call = Call::new("POST /v1/orders/{id}/status").path("id", order["id"].as_str().unwrap()).staff("sam");
    call.header("if-match", &version).json(&json!({ "to": to }))
}

/// Returns the reason of each entry of `errors`.
pub fn reasons(answer: &Answered) -> Vec<&str> {
    let entries = answer.body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().map(|error| error["reason"].as_str().unwrap_or_default()).collect()
}

/// Returns the pointer, product and detail of each entry of `errors`.
pub fn errors<'a>(answer: &'a Answered) -> Vec<(&'a str, &'a str, &'a str)> {
    let entries = answer.body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = |error: &'a Value, field: &str| -> &'a str { error[field].as_str().unwrap_or_default() };
    entries.iter().map(|error| (shown(error, "pointer"), shown(error, "product_id"), shown(error, "detail"))).collect()
}
