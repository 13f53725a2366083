//! A shop for one test: a fresh table, the function's routes over it, and items that other
//! functions write.

use std::collections::BTreeMap;

use emulators::table::Faults;
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::cart::{self, Cart, CartLine};
use key_schema::customer::Tier;
use key_schema::follow::{self, Follow};
use key_schema::id::{Born, CustomerId, OrderId, ProductId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored, key_of};
use key_schema::like::{self, Like};
use key_schema::money::{Currency, Money};
use key_schema::order::{self, Order, OrderLine, Placement};
use key_schema::product::{self, CategoryPath, Copied, Product};
use key_schema::session::Session;
use serde_json::{Value, json};

pub struct Shop {
    pub services: Services,
    pub routes: Routes<Services>,
    pub test: TestTable,
}

impl Shop {
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        Self { services: test.services(), routes: customers::routes(), test }
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.services).await
    }

    /// Returns the faults between the function and the table.
    pub fn faults(&self) -> &Faults {
        self.test.faults()
    }

    /// Returns the key of every item in the table, by a scan.
    pub async fn keys(&self) -> Vec<(String, String)> {
        let mut keys = Vec::new();
        let mut pages = self.test.client().scan().table_name(self.test.name()).into_paginator().items().send();
        while let Some(item) = pages.next().await {
            let key = key_of(&item.unwrap().into()).unwrap();
            keys.push((key.pk.into_string(), key.sk.into_string()));
        }
        keys.sort();
        keys
    }

    /// Deletes all items whose partition key has this prefix, as if they had expired.
    pub async fn delete_partitions(&self, prefix: &str) {
        let (client, table) = (self.test.client(), self.test.name());
        let mut pages = client.scan().table_name(table).into_paginator().items().send();
        while let Some(item) = pages.next().await {
            let item = item.unwrap();
            if item["PK"].as_s().unwrap().starts_with(prefix) {
                let delete = client.delete_item().table_name(table);
                delete.key("PK", item["PK"].clone()).key("SK", item["SK"].clone()).send().await.unwrap();
            }
        }
    }

    /// Writes an item directly into the table, without any check.
    pub async fn seed<T: Entity>(&self, item: &Stored<T>) {
        let put = self.test.client().put_item().table_name(self.test.name());
        put.set_item(Some(item.to_item().unwrap().into())).send().await.unwrap();
    }

    /// Signs up a customer with the names `<id>@example.com` and `<id>`.
    pub async fn customer(&self, id: &str) -> Value {
        let answer = self.send(sign_up(id, &format!("{id}@example.com"), id)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body
    }

    pub async fn read(&self, id: &str) -> Answered {
        self.send(Call::new("GET /v1/customers/{id}").path("id", id).staff("s")).await
    }

    pub async fn find(&self, email: &str) -> Vec<Value> {
        let answer = self.send(Call::new("GET /v1/customers").query("email", email).staff("s")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["items"].as_array().unwrap().clone()
    }

    pub async fn move_to(&self, id: &str, tier: Tier) {
        let version = self.read(id).await.version().unwrap();
        let call =
            Call::new("PATCH /v1/customers/{id}").path("id", id).staff("s").json(&json!({ "tier": tier.as_str() }));
        assert_eq!(self.send(if_match(call, version)).await.status, 200);
    }

    pub async fn product(&self, id: &str) {
        let product = product_at(id, money(100));
        self.services.table.transact(&product::create(&product, 1_000_000, &[]).unwrap()).await.unwrap().unwrap();
    }

    /// Changes the price of a product.
    pub async fn reprice(&self, id: &str, price: Money) {
        self.seed(&product_at(id, price)).await;
    }

    /// Makes a customer like a product.
    pub async fn like(&self, customer: &str, product: &str) {
        let like = Like { customer_id: customer.parse().unwrap(), product_id: product.parse().unwrap() };
        let like = Stored::new(like, born(), Instant::now());
        self.services.table.transact(&like::put(&like).unwrap()).await.unwrap().unwrap();
    }

    /// Makes a customer follow another.
    pub async fn follow(&self, customer: &str, other: &str) {
        let edge = Follow { customer_id: customer.parse().unwrap(), followed_id: other.parse().unwrap() };
        let edge = Stored::new(edge, born(), Instant::now());
        self.services.table.transact(&follow::put(&edge).unwrap()).await.unwrap().unwrap();
    }

    pub async fn retire(&self, product: &str) {
        let retire = product::retire(&ProductId::new(product).unwrap(), 1, Instant::now()).unwrap();
        self.services.table.transact(&retire).await.unwrap().unwrap();
    }

    /// Places an order of one piece of an existing product, `minute` minutes after the shop opened.
    pub async fn order(&self, customer: &str, product: &str, minute: i64) -> String {
        let at = Instant::EPOCH.plus_seconds(1_700_000_000 + 60 * minute);
        let order = Order::new(OrderId::generate(at, [7; 10]), CustomerId::new(customer).unwrap(), at, money(100), 1);
        let line = OrderLine {
            order_id: order.id.clone(),
            line: 1,
            product_id: ProductId::new(product).unwrap(),
            product_born: None,
            name: product.to_owned(),
            quantity: 1,
            unit_price: money(100),
            total: money(100),
            expires_at: None,
        };
        let (order, line) = (Stored::new(order, born(), at), Stored::new(line, born(), at));
        let placement = Placement { order: &order, lines: &[line], by: customer, claim: None, open: None, cart: None };
        self.services.table.transact(&order::place(placement).unwrap()).await.unwrap().unwrap();
        order.id.to_string()
    }

    /// Creates a session that ends in `seconds`. A negative number creates an expired one.
    pub async fn session(&self, customer: &str, id: &str, seconds: i64) {
        let now = Instant::now();
        let session = Session {
            sign_in: None,
            id: SessionId::new(id).unwrap(),
            customer_id: CustomerId::new(customer).unwrap(),
            expires_at: now.plus_seconds(seconds),
            device: "phone".to_owned(),
        };
        self.seed(&Stored::new(session, born(), now)).await;
    }

    /// Creates a cart of the products `p0`, `p1` … that expires in `seconds`. A negative number
    /// creates an expired one.
    pub async fn cart(&self, customer: &str, lines: usize, seconds: i64) {
        let now = Instant::now();
        let line = |n| (ProductId::new(format!("p{n}")).unwrap(), CartLine { quantity: 1, added_at: now });
        let cart = Cart {
            customer_id: CustomerId::new(customer).unwrap(),
            expires_at: now.plus_seconds(seconds),
            lines: (0..lines).map(line).collect::<BTreeMap<_, _>>(),
        };
        self.services.table.write(&cart::create(&Stored::new(cart, born(), now), now).unwrap()).await.unwrap().unwrap();
    }
}

/// Signs up with a token that proves the address.
pub fn sign_up(id: &str, email: &str, username: &str) -> Call {
    sign_up_unproven(id, email, username).customer_with_email(id, email)
}

/// Signs up with a token without an address.
pub fn sign_up_unproven(id: &str, email: &str, username: &str) -> Call {
    let body = json!({ "email": email, "username": username, "name": "Ann" });
    Call::new("POST /v1/customers").customer(id).json(&body)
}

pub fn if_match(call: Call, version: u64) -> Call {
    call.header("if-match", &format!("\"{version}\""))
}

pub fn ids(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

fn product_at(id: &str, price: Money) -> Stored<Product> {
    let product = Product {
        copied: Copied::of_new(1_000_000),
        ..Product::new(
            ProductId::new(id).unwrap(),
            id.to_owned(),
            "Brand".to_owned(),
            price,
            CategoryPath::new(vec!["GROCERY".to_owned()]).unwrap(),
        )
    };
    Stored::new(product, born(), Instant::now())
}

pub fn money(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

fn born() -> Born {
    Born::new("born").unwrap()
}
