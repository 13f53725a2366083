//! A shop for one test: a fresh table, the function's routes, and items that other functions write.

use std::ops::Deref;

use fixture::seed::{self, stored};
use fixture::{Harness, TestTable};
use http_api::Services;
use http_api::sample::{Answered, Call};
use key_schema::cart;
use key_schema::customer::Tier;
use key_schema::follow::{self, Follow};
use key_schema::id::{CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::invoice::{self, Invoice};
use key_schema::item::Stored;
use key_schema::like::{self, Like};
use key_schema::money::Money;
use key_schema::order::{self, Order, PlacedOrder};
use key_schema::review::Review;
use serde_json::{Value, json};

pub use fixture::seed::usd as money;

pub struct Shop {
    pub harness: Harness<Services>,
}

impl Deref for Shop {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.harness
    }
}

impl Shop {
    pub async fn open() -> Self {
        Self { harness: Harness::start(customers::routes(), TestTable::services).await }
    }

    /// Deletes all items whose partition key has this prefix, as if they had expired.
    pub async fn delete_partitions(&self, prefix: &str) {
        for (pk, sk) in self.keys(prefix).await {
            self.delete_at(&pk, &sk).await;
        }
    }

    /// Signs up a customer with the names `<id>@example.com` and `<id>`.
    pub async fn customer(&self, id: &str) -> Value {
        self.expect(201, sign_up(id, &format!("{id}@example.com"), id)).await
    }

    pub async fn read(&self, id: &str) -> Answered {
        self.send(Call::new("GET /v1/customers/{id}").path("id", id).staff("s")).await
    }

    pub async fn find(&self, email: &str) -> Vec<Value> {
        let page = self.expect(200, Call::new("GET /v1/customers").query("email", email).staff("s")).await;
        page["items"].as_array().unwrap().clone()
    }

    pub async fn move_to(&self, id: &str, tier: Tier) {
        let version = self.read(id).await.version().unwrap();
        let call =
            Call::new("PATCH /v1/customers/{id}").path("id", id).staff("s").json(&json!({ "tier": tier.as_str() }));
        self.expect(200, if_match(call, version)).await;
    }

    pub async fn product(&self, id: &str) {
        self.sell(seed::product(id, money(100)), 1_000_000).await;
    }

    /// Changes the price of a product.
    pub async fn reprice(&self, id: &str, price: Money) {
        self.put(&stored(seed::product(id, price))).await;
    }

    /// Makes a customer like a product.
    pub async fn like(&self, customer: &str, product: &str) {
        let like = Like { customer_id: customer.parse().unwrap(), product_id: product.parse().unwrap() };
        self.transact(&like::put(&stored(like)).unwrap()).await;
    }

    /// Makes a customer follow another customer.
    pub async fn follow(&self, customer: &str, other: &str) {
        let edge = Follow { customer_id: customer.parse().unwrap(), followed_id: other.parse().unwrap() };
        self.transact(&follow::put(&stored(edge)).unwrap()).await;
    }

    /// Places an order of one piece of an existing product, `minute` minutes after a fixed instant.
    pub async fn order(&self, customer: &str, product: &str, minute: i64) -> String {
        let at = Instant::EPOCH.plus_seconds(1_700_000_000 + 60 * minute);
        let order = Order::new(OrderId::generate(at, [7; 10]), CustomerId::new(customer).unwrap(), at, money(100), 1);
        let line = seed::line(&order.id, 1, ProductId::new(product).unwrap());
        let (order, line) = (Stored::new(order, seed::born(), at), Stored::new(line, seed::born(), at));
        let order = PlacedOrder::new(order, vec![line], customer);
        self.transact(&order::place(&order, &[]).unwrap()).await;
        order.head.id.to_string()
    }

    /// Places an order of one piece of an existing product, with invoice 1.
    pub async fn invoiced_order(&self, customer: &str, product: &str) -> String {
        let id = self.order(customer, product, 0).await;
        let head = self.own().get(&order::head(&id.parse().unwrap()).unwrap()).await.unwrap().unwrap();
        let invoice = Invoice {
            number: 1,
            order_id: head.id.clone(),
            customer_id: head.customer_id.clone(),
            total: head.total,
            issued_at: head.placed_at,
        };
        self.transact(&invoice::issue(&stored(invoice), &head, None).unwrap()).await;
        id
    }

    pub async fn review(&self, customer: &str, product: &str) {
        let review = Review {
            product_id: product.parse().unwrap(),
            customer_id: CustomerId::new(customer).unwrap(),
            rating: 5,
            display_name: Some(format!("{customer} from Ulm")),
            title: "Good".to_owned(),
            text: "Very good".to_owned(),
        };
        self.put(&stored(review)).await;
    }

    /// Creates a session that ends in `seconds`. A negative number creates an expired session.
    pub async fn session(&self, customer: &str, id: &str, seconds: i64) {
        let expires_at = Instant::now().plus_seconds(seconds);
        self.put(&stored(seed::session(id, customer, expires_at))).await;
    }

    /// Creates a cart of the products `p0`, `p1` … that expires in `seconds`. A negative number
    /// creates an expired cart.
    pub async fn cart(&self, customer: &str, lines: usize, seconds: i64) {
        let products: Vec<String> = (0..lines).map(|n| format!("p{n}")).collect();
        let lines: Vec<(&str, u64)> = products.iter().map(|product| (product.as_str(), 1)).collect();
        let cart = stored(seed::cart(customer, &lines, seconds));
        self.own().write(&cart::create(&cart, Instant::now()).unwrap()).await.unwrap().unwrap();
    }

    /// Stores a cart with these lines in place of the customer's cart.
    pub async fn cart_of(&self, customer: &str, lines: &[(&str, u64)]) {
        self.put(&stored(seed::cart(customer, lines, 3_600))).await;
    }
}

/// Builds a sign-up with a token that contains the address as verified.
pub fn sign_up(id: &str, email: &str, username: &str) -> Call {
    sign_up_unproven(id, email, username).customer_with_email(id, email)
}

/// Builds a sign-up with a token that contains no address.
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
