//! A catalogue of its own for each test.

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Store};
use key_schema::item::{Entity, Item};
use serde_json::{Value, json};

pub struct Shop {
    pub store: Store,
    pub routes: Routes<Store>,
    test: TestTable,
}

impl Shop {
    /// An empty catalogue.
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        Self { store: test.store(), routes: catalog::routes(), test }
    }

    /// Sends a request.
    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.store).await
    }

    /// Sends a request as staff.
    pub async fn staff(&self, call: Call) -> Answered {
        self.send(call.staff("s1")).await
    }

    /// Creates a product and expects that to succeed.
    pub async fn stock_up(&self, id: &str, stock: u64) -> Answered {
        let answer = self.staff(Call::new("POST /v1/products").json(&product(id, stock))).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer
    }

    /// What anybody sees of a product.
    pub async fn product(&self, id: &str) -> Answered {
        self.send(Call::new("GET /v1/products/{id}").path("id", id)).await
    }

    /// Writes items, past every rule.
    pub async fn put_all(&self, items: Vec<Item>) {
        for some in items.chunks(25) {
            let put = |item: &Item| PutRequest::builder().set_item(Some(item.clone().into())).build().unwrap();
            let writes = some.iter().map(|item| WriteRequest::builder().put_request(put(item)).build()).collect();
            let request = self.test.client().batch_write_item().request_items(self.test.name(), writes);
            let left = request.send().await.unwrap().unprocessed_items.unwrap_or_default();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    /// Removes an item, past every rule.
    pub async fn take_away(&self, entity: &impl Entity) {
        let (key, text) = (entity.key().unwrap(), AttributeValue::S);
        let delete = self.test.client().delete_item().table_name(self.test.name());
        delete.key("PK", text(key.pk.into_string())).key("SK", text(key.sk.into_string())).send().await.unwrap();
    }

    /// Lets things go wrong from now on.
    pub fn break_with(&self, kind: FaultKind, rate: f64, count: Option<u32>, seed: u64) {
        self.test.faults().add(Fault { kind, rate, count, seed }).unwrap();
    }

    /// How often things went wrong; from now on they do not.
    pub fn mend(&self) -> u64 {
        let fired = self.test.faults().counts().iter().map(|count| count.fired).sum();
        self.test.faults().clear();
        fired
    }
}

/// A product's body.
pub fn product(id: &str, stock: u64) -> Value {
    json!({
        "id": id, "name": format!("Product {id}"), "brand": "National", "package_size": "22 LB",
        "category_path": ["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"],
        "price": {"amount": 129, "currency": "USD"}, "summary": "Cold.", "stock": stock,
    })
}

/// The same with one member changed.
pub fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// The values of one member of a list's items.
pub fn each<'a>(answer: &'a Answered, member: &str) -> Vec<&'a str> {
    answer.body["items"].as_array().unwrap().iter().map(|item| item[member].as_str().unwrap()).collect()
}
