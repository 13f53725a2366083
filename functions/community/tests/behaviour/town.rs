//! Customers and products, in a separate table for each test.

use std::ops::Deref;

use fixture::{Harness, TestTable, seed};
use http_api::Services;
use http_api::sample::{Answered, Call};
use key_schema::customer::{self, Customer, Location};
use key_schema::id::Born;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde_json::Value;

pub struct Town {
    harness: Harness<Services>,
}

impl Deref for Town {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.harness
    }
}

pub const FOLLOW: &str = "PUT /v1/customers/{id}/following/{other}";
pub const UNFOLLOW: &str = "DELETE /v1/customers/{id}/following/{other}";
pub const FOLLOWS: &str = "GET /v1/customers/{id}/following/{other}";
pub const LIKE: &str = "PUT /v1/customers/{id}/likes/{product}";
pub const UNLIKE: &str = "DELETE /v1/customers/{id}/likes/{product}";
pub const LIKES: &str = "GET /v1/customers/{id}/likes/{product}";

/// Builds a request about two customers, without a caller.
pub fn edge(route: &'static str, id: &str, other: &str) -> Call {
    Call::new(route).path("id", id).path("other", other)
}

/// Builds a request about a customer and a product, without a caller.
pub fn like_call(route: &'static str, id: &str, product: &str) -> Call {
    Call::new(route).path("id", id).path("product", product)
}

pub fn following(id: &str) -> Call {
    Call::new("GET /v1/customers/{id}/following").path("id", id).staff("s")
}

pub fn followers(id: &str) -> Call {
    Call::new("GET /v1/customers/{id}/followers").path("id", id).staff("s")
}

pub fn liked(id: &str) -> Call {
    Call::new("GET /v1/customers/{id}/likes").path("id", id).staff("s")
}

pub fn likers(product: &str) -> Call {
    Call::new("GET /v1/products/{id}/likers").path("id", product).staff("s")
}

pub fn edges(node: &str, kind: &str) -> Call {
    Call::new("GET /v1/graph/{node}/edges").path("node", node).query("kind", kind).staff("s")
}

pub fn residents(path: &str) -> Call {
    Call::new("GET /v1/places/{path}/customers").path("path", path).staff("s")
}

pub fn count_of(product: &str) -> Call {
    Call::new("GET /v1/products/{id}/likes").path("id", product)
}

/// Returns the values of one member of a list's items.
pub fn each(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

pub fn at(second: i64) -> Instant {
    Instant::EPOCH.plus_seconds(1_700_000_000 + second)
}

pub fn profile(id: &str, place: Option<(&str, &str)>) -> Stored<Customer> {
    let place = place.map(|(country, city)| Location { country: country.to_owned(), city: city.to_owned() });
    Stored::new(Customer { place, ..seed::customer(id) }, born(), at(0))
}

pub fn born() -> Born {
    Born::new("born").unwrap()
}

impl Town {
    /// Creates a table with these customers and products.
    pub async fn open(customers: &[&str], products: &[&str]) -> Self {
        let town = Self { harness: Harness::start(community::routes(), TestTable::services).await };
        for id in customers {
            town.transact(&customer::create(&profile(id, None)).unwrap()).await;
        }
        for id in products {
            town.sell(seed::product(id, seed::usd(100)), 5).await;
        }
        town
    }

    pub async fn follow(&self, id: &str, other: &str) -> Answered {
        self.ok(edge(FOLLOW, id, other).customer(id)).await
    }

    pub async fn like(&self, id: &str, product: &str) -> Answered {
        self.ok(like_call(LIKE, id, product).customer(id)).await
    }

    /// Returns the number of likes, read without a token.
    pub async fn count(&self, product: &str) -> u64 {
        self.ok(count_of(product)).await.body["count"].as_u64().unwrap()
    }

    /// Reads a list to its end in pages of `limit`. Checks that every page costs the same number of
    /// requests, apart from rare second requests to a shard.
    pub async fn list(&self, call: &Call, limit: usize) -> Vec<Value> {
        let (found, requests) = self.all(call, limit).await;
        let least = requests.iter().min().unwrap();
        let further: u32 = requests.iter().map(|requests| requests - least).sum();
        assert!(usize::try_from(further).unwrap() <= 2 + requests.len() / 20, "{requests:?}");
        found
    }
}
