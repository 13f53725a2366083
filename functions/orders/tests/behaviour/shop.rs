//! A shop for one test: a fresh table, the function's routes, and items that other functions write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, SettingsCache};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::customer::{self, Customer};
use key_schema::id::{Born, CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::open::{self, OpenOrder};
use key_schema::order::{self, Order};
use key_schema::product::{self, CategoryPath, Copied, Product};
use key_schema::settings;
use key_schema::wallet::{self, Wallet};
use orders::App;
use serde_json::{Value, json};

pub struct Shop {
    app: App,
    routes: Routes<App>,
    clock: Arc<AtomicI64>,
    test: TestTable,
}

impl Shop {
    /// Opens a shop with the customer ann.
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        let clock = Arc::new(AtomicI64::new(0));
        let ahead = Arc::clone(&clock);
        let settings = SettingsCache::new(move || Instant::now().plus_seconds(ahead.load(Ordering::Relaxed)));
        let app = App { settings, ..App::new(test.services()) };
        let shop = Self { app, routes: orders::routes(), clock, test };
        shop.sign_up("ann").await;
        shop
    }

    /// Makes somebody a customer.
    pub async fn sign_up(&self, id: &str) {
        let customer = Customer::new(
            CustomerId::new(id).unwrap(),
            format!("{}@example.com", id.replace('#', "-")).parse().unwrap(),
            id.parse().unwrap(),
            "Somebody".to_owned(),
        );
        self.app.services.table.transact(&customer::create(&stored(customer)).unwrap()).await.unwrap().unwrap();
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.app).await
    }

    /// Returns the number of requests per pattern since the last call.
    pub fn requests(&self) -> BTreeMap<&'static str, u32> {
        self.app.services.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect()
    }

    /// Creates a product that costs one dollar.
    pub async fn product(&self, id: &str, stock: u64) {
        let product = product_at(id, money(100));
        self.app.services.table.transact(&product::create(&product, stock, &[]).unwrap()).await.unwrap().unwrap();
    }

    /// Changes the price of a product.
    pub async fn reprice(&self, id: &str, price: Money) {
        self.put(&product_at(id, price)).await;
    }

    pub async fn retire(&self, id: &str) {
        let retire = product::retire(&product_id(id), 1, Instant::now()).unwrap();
        self.app.services.table.transact(&retire).await.unwrap().unwrap();
    }

    /// Retires a product, and revives it with another stock.
    pub async fn revive(&self, id: &str, stock: u64) {
        self.retire(id).await;
        let services = &self.app.services;
        let retired = services.table.get(&product::read_for_update(&product_id(id)).unwrap()).await.unwrap().unwrap();
        let next = Stored::new(product_at(id, money(200)).data, Born::new("next").unwrap(), Instant::now());
        services.table.transact(&product::revive(&retired, &next, stock, &[]).unwrap()).await.unwrap().unwrap();
    }

    pub async fn stock(&self, id: &str) -> u64 {
        self.app.services.table.get(&product::stock(&product_id(id)).unwrap()).await.unwrap().unwrap().available
    }

    /// Fills the cart of ann, the first product first.
    pub async fn fill_cart(&self, lines: &[(&str, u64)]) {
        let now = Instant::now();
        let line = |(at, (product, quantity)): (i64, &(&str, u64))| {
            (product_id(product), CartLine { quantity: *quantity, added_at: now.plus_seconds(at) })
        };
        let cart = Cart {
            customer_id: CustomerId::new("ann").unwrap(),
            expires_at: now.plus_seconds(3_600),
            lines: (0_i64..).zip(lines).map(line).collect(),
        };
        self.app.services.table.write(&cart::create(&stored(cart), now).unwrap()).await.unwrap().unwrap();
    }

    /// Checks out the cart of ann.
    pub async fn check_out(&self, body: &Value) -> Answered {
        self.send(checkout().json(body)).await
    }

    pub async fn has_cart(&self) -> bool {
        self.app.services.table.get(&cart::get(&CustomerId::new("ann").unwrap()).unwrap()).await.unwrap().is_some()
    }

    /// Sets the limits of open orders.
    pub async fn limit(&self, orders: &Value) {
        let values = json!({ "orders": orders }).to_string();
        let create = settings::create(&values, &"{}".to_owned(), &Born::new("born").unwrap(), Instant::now()).unwrap();
        self.app.services.table.transact(&create).await.unwrap().unwrap();
    }

    /// Moves the clock of the settings' cache.
    pub fn wait(&self, seconds: i64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Returns ann's open orders with their largest lines.
    pub async fn open_orders(&self) -> BTreeMap<OrderId, OpenOrder> {
        let open = self.app.services.table.get(&open::get(&CustomerId::new("ann").unwrap()).unwrap()).await.unwrap();
        open.map(|open| open.data.entries).unwrap_or_default()
    }

    pub async fn head(&self, order: &Value) -> Stored<Order> {
        let id = order["id"].as_str().unwrap().parse().unwrap();
        self.app.services.table.get(&order::head(&id).unwrap()).await.unwrap().unwrap()
    }

    /// Returns the number of orders that lapse until an instant.
    pub async fn lapsing(&self, until: Instant) -> usize {
        self.app.services.table.query(&open::lapsing(until).unwrap()).await.unwrap().items.len()
    }

    /// Creates a product with this price.
    pub async fn priced_product(&self, id: &str, price: Money) {
        let product = product_at(id, price);
        self.app.services.table.transact(&product::create(&product, 10, &[]).unwrap()).await.unwrap().unwrap();
    }

    /// Stores the wallet of ann: the balance of `amount`, then the others.
    pub async fn store_wallet(&self, balance: Money, others: &[Money]) {
        let others = others.iter().map(|money| (money.currency, money.amount)).collect();
        let Money { amount, currency } = balance;
        self.put(&stored(Wallet { customer_id: CustomerId::new("ann").unwrap(), currency, amount, others })).await;
    }

    /// Returns the balances in the wallet of ann.
    pub async fn balances(&self) -> Vec<Money> {
        let edit = wallet::read_for_update(&CustomerId::new("ann").unwrap()).unwrap();
        self.app.services.table.get(&edit).await.unwrap().unwrap().balances()
    }

    /// Returns the rest of a cancelled order's stock, as the janitor does, with another client.
    pub async fn give_back(&self, order: &Value) {
        let id = order["id"].as_str().unwrap().parse().unwrap();
        staging::give_back(&self.test.table(), &id).await.unwrap();
    }

    /// Puts an item unchanged.
    pub async fn put<T: Entity>(&self, item: &Stored<T>) {
        let put = self.test.client().put_item().table_name(self.test.name());
        put.set_item(Some(item.to_item().unwrap().into())).send().await.unwrap();
    }
}

/// The checkout of ann's cart, without a body.
pub fn checkout() -> Call {
    Call::new("POST /v1/customers/{id}/cart/checkout").path("id", "ann").customer("ann")
}

/// An order of ann, with an idempotency key of its own.
pub fn order(lines: &[(&str, u64)], key: &str) -> Call {
    let line = |(product, quantity): &(&str, u64)| json!({ "product_id": product, "quantity": quantity });
    let lines: Vec<Value> = lines.iter().map(line).collect();
    let body = json!({ "customer_id": "ann", "lines": lines });
    Call::new("POST /v1/orders").customer("ann").header("idempotency-key", key).json(&body)
}

/// The same order, placed by staff with these further fields.
pub fn staff_order(lines: &[(&str, u64)], key: &str, more: &Value) -> Call {
    let line = |(product, quantity): &(&str, u64)| json!({ "product_id": product, "quantity": quantity });
    let lines: Vec<Value> = lines.iter().map(line).collect();
    let mut body = json!({ "customer_id": "ann", "lines": lines });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Call::new("POST /v1/orders").staff("sam").header("idempotency-key", key).json(&body)
}

/// The order that was answered, moved to this status by staff.
pub fn moved(order: &Value, to: &str) -> Call {
    let version = format!("\"{}\"", order["version"]);
    let call = Call::new("POST /v1/orders/{id}/status").path("id", order["id"].as_str().unwrap()).staff("sam");
    call.header("if-match", &version).json(&json!({ "to": to }))
}

/// Returns the pointer, product and detail of each entry of `errors`.
pub fn errors<'a>(answer: &'a Answered) -> Vec<(&'a str, &'a str, &'a str)> {
    let entries = answer.body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = |error: &'a Value, field: &str| -> &'a str { error[field].as_str().unwrap_or_default() };
    entries.iter().map(|error| (shown(error, "pointer"), shown(error, "product_id"), shown(error, "detail"))).collect()
}

pub fn money(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

fn product_at(id: &str, price: Money) -> Stored<Product> {
    stored(Product {
        copied: Copied::of_new(1),
        ..Product::new(
            product_id(id),
            format!("Product {id}"),
            "Brand".to_owned(),
            price,
            CategoryPath::new(vec!["GROCERY".to_owned()]).unwrap(),
        )
    })
}

fn product_id(id: &str) -> ProductId {
    ProductId::new(id).unwrap()
}

pub fn stored<T: Entity>(data: T) -> Stored<T> {
    Stored::new(data, Born::new("born").unwrap(), Instant::now())
}
