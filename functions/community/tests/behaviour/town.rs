//! Customers and products, in a separate table for each test.

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use community::App;
use emulators::table::{Fault, FaultKind};
use fixture::{TestIssuer, TestTable};
use futures::future::try_join_all;
use http_api::Routes;
use http_api::sample::{Answered, Call};
use key_schema::customer::{self, Customer, Place};
use key_schema::id::{Born, CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Item, Stored};
use key_schema::money::{Currency, Money};
use key_schema::product::{self, CategoryPath, Copied, Product};
use serde_json::Value;

pub struct Town {
    pub test: TestTable,
    pub app: App,
    /// The issuer of the tokens.
    pub issuer: TestIssuer,
    routes: Routes<App>,
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
pub fn taste(route: &'static str, id: &str, product: &str) -> Call {
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
    // The email address is random, because not every id fits into one.
    let email = format!("{:x}@example.com", fastrand::u128(..));
    let profile = Customer {
        place: place.map(|(country, city)| Place { country: country.to_owned(), city: city.to_owned() }),
        ..Customer::new(
            CustomerId::new(id).unwrap(),
            email.parse().unwrap(),
            format!("{:x}", fastrand::u128(..)).parse().unwrap(),
            "Somebody".to_owned(),
        )
    };
    Stored::new(profile, born(), at(0))
}

pub fn born() -> Born {
    Born::new("born").unwrap()
}

impl Town {
    /// Creates a table with these customers and products.
    pub async fn open(customers: &[&str], products: &[&str]) -> Self {
        let test = TestTable::create().await;
        let issuer = TestIssuer::start().await;
        let app = App { services: test.services(), issuer: issuer.known() };
        let town = Self { app, test, issuer, routes: community::routes() };
        for id in customers {
            let create = customer::create(&profile(id, None)).unwrap();
            town.app.services.table.transact(&create).await.unwrap().unwrap();
        }
        for id in products {
            town.sell(id).await;
        }
        let _ = town.app.services.table.meter().take();
        town
    }

    async fn sell(&self, id: &str) {
        let product = Product {
            copied: Copied::of_new(5),
            ..Product::new(
                ProductId::new(id).unwrap(),
                "Ice".to_owned(),
                "Brand".to_owned(),
                Money::new(100, Currency::USD),
                CategoryPath::new(vec!["GROCERY".to_owned()]).unwrap(),
            )
        };
        let create = product::create(&Stored::new(product, born(), at(0)), 5, &[]).unwrap();
        self.app.services.table.transact(&create).await.unwrap().unwrap();
    }

    /// Retires a product.
    pub async fn retire(&self, id: &str) {
        let retire = product::retire(&ProductId::new(id).unwrap(), 1, at(1)).unwrap();
        self.app.services.table.transact(&retire).await.unwrap().unwrap();
    }

    /// Deletes the profile of a customer and its claims, but no other item of the customer.
    pub async fn leave(&self, id: &str) {
        let id = CustomerId::new(id).unwrap();
        let profile = self.app.services.table.get(&customer::read_for_update(&id).unwrap()).await.unwrap().unwrap();
        self.app.services.table.transact(&customer::delete(&profile, Instant::now()).unwrap()).await.unwrap().unwrap();
    }

    /// Writes items directly into the table, in batches.
    pub async fn put_all<T: Entity>(&self, items: impl IntoIterator<Item = Stored<T>>) {
        let items: Vec<Item> = items.into_iter().map(|item| item.to_item().unwrap()).collect();
        let put = |item: Item| {
            let put = PutRequest::builder().set_item(Some(item.into())).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        };
        let batches: Vec<Vec<WriteRequest>> =
            items.chunks(25).map(|items| items.iter().cloned().map(put).collect()).collect();
        let client = self.test.client();
        let writes =
            batches.into_iter().map(|batch| client.batch_write_item().request_items(self.test.name(), batch).send());
        for answer in try_join_all(writes).await.unwrap() {
            assert!(answer.unprocessed_items().is_none_or(|left| left.is_empty()));
        }
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.app).await
    }

    /// Sends a request that must succeed.
    pub async fn ok(&self, call: Call) -> Answered {
        let answer = self.send(call).await;
        assert!((200..300).contains(&answer.status), "{}", answer.body);
        answer
    }

    pub async fn follow(&self, id: &str, other: &str) -> Answered {
        self.ok(edge(FOLLOW, id, other).customer(id)).await
    }

    pub async fn like(&self, id: &str, product: &str) -> Answered {
        self.ok(taste(LIKE, id, product).customer(id)).await
    }

    /// Returns the number of likes, read without a token.
    pub async fn count(&self, product: &str) -> u64 {
        self.ok(count_of(product)).await.body["count"].as_u64().unwrap()
    }

    /// Reads a list to its end in pages of `limit`. Checks that every page costs the same number of
    /// requests, apart from rare second requests to a shard.
    pub async fn list(&self, call: &Call, limit: usize) -> Vec<Value> {
        let (mut found, mut cursor, mut requests) = (Vec::new(), None::<String>, Vec::new());
        loop {
            let page = cursor.iter().fold(call.clone(), |call, cursor| call.query("cursor", cursor));
            let _ = self.app.services.table.meter().take();
            let answer = self.ok(page.query("limit", &limit.to_string())).await;
            requests.push(self.app.services.table.meter().take().iter().map(|cost| cost.requests).sum::<u32>());
            let items = answer.body["items"].as_array().unwrap();
            assert!(items.len() <= limit);
            found.extend(items.iter().cloned());
            match answer.body["next_cursor"].as_str() {
                Some(next) => {
                    assert!(items.len() == limit && answer.header("link").is_some());
                    cursor = Some(next.to_owned());
                }
                None => {
                    let least = requests.iter().min().unwrap();
                    let further: u32 = requests.iter().map(|requests| requests - least).sum();
                    assert!(usize::try_from(further).unwrap() <= 2 + requests.len() / 20, "{requests:?}");
                    return found;
                }
            }
        }
    }

    /// Makes the table fail from now on.
    pub fn break_with(&self, kind: FaultKind, rate: f64, count: Option<u32>, seed: u64) {
        self.test.faults().add(Fault { kind, rate, count, seed }).unwrap();
    }

    /// Ends the table's faults. Returns how many faults occurred.
    pub fn clear_faults(&self) -> u64 {
        let fired = self.test.faults().counts().iter().map(|count| count.fired).sum();
        self.test.faults().clear();
        fired
    }
}
