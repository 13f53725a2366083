//! A shop for one test: a fresh table, the function's routes, and items that other functions write.

use std::collections::BTreeMap;

use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Store};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::customer::{self, Customer, Tier};
use key_schema::id::{Born, CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::money::{Currency, Money};
use key_schema::product::{self, CategoryPath, Copied, Product};
use serde_json::{Value, json};

pub struct Shop {
    store: Store,
    routes: Routes<Store>,
    test: TestTable,
}

impl Shop {
    /// Opens a shop with the customer ann.
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        let shop = Self { store: test.store(), routes: orders::routes(), test };
        let ann = Customer {
            id: CustomerId::new("ann").unwrap(),
            email: "ann@example.com".parse().unwrap(),
            username: "ann".parse().unwrap(),
            tier: Tier::Bronze,
            name: "Ann".to_owned(),
            place: None,
            addresses: BTreeMap::new(),
        };
        shop.store.table.transact(&customer::create(&stored(ann)).unwrap()).await.unwrap();
        shop
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.store).await
    }

    /// Creates a product that costs one dollar.
    pub async fn product(&self, id: &str, stock: u64) {
        let product = product_at(id, money(100));
        self.store.table.transact(&product::create(&product, stock, &[]).unwrap()).await.unwrap();
    }

    /// Changes the price of a product.
    pub async fn reprice(&self, id: &str, price: Money) {
        self.put(&product_at(id, price)).await;
    }

    pub async fn retire(&self, id: &str) {
        let retire = product::retire(&product_id(id), 1, Instant::now()).unwrap();
        self.store.table.transact(&retire).await.unwrap();
    }

    pub async fn stock(&self, id: &str) -> u64 {
        self.store.table.get(&product::stock(&product_id(id)).unwrap()).await.unwrap().unwrap().available
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
        self.store.table.write(&cart::create(&stored(cart), now).unwrap()).await.unwrap();
    }

    /// Checks out the cart of ann.
    pub async fn check_out(&self, body: &Value) -> Answered {
        self.send(checkout().json(body)).await
    }

    pub async fn has_cart(&self) -> bool {
        self.store.table.get(&cart::get(&CustomerId::new("ann").unwrap()).unwrap()).await.unwrap().is_some()
    }

    async fn put<T: Entity>(&self, item: &Stored<T>) {
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

/// What each entry of `errors` says: pointer, product and detail.
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
        id: product_id(id),
        category_path: CategoryPath::new(vec!["GROCERY".to_owned()]).unwrap(),
        retired: false,
        copied: Copied::of_new(1),
        name: format!("Product {id}"),
        brand: "Brand".to_owned(),
        package_size: None,
        price,
        summary: None,
    })
}

fn product_id(id: &str) -> ProductId {
    ProductId::new(id).unwrap()
}

fn stored<T: Entity>(data: T) -> Stored<T> {
    Stored::new(data, Born::new("born").unwrap(), Instant::now())
}
