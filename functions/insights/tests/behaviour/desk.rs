//! Requests of staff and other callers about metrics and counters, in a separate table for each
//! test.

use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::instant::Instant;
use serde_json::{Value, json};

pub struct Desk {
    pub test: TestTable,
    pub services: Services,
    routes: Routes<Services>,
}

/// Valid ids with unusual characters.
pub const NAMES: [&str; 9] = ["a#b", "50$", "_23", "till:3", "a b", "Länge", "商品數量", "product:1", "$"];

/// Returns the instant that is `seconds` from now.
pub fn in_seconds(seconds: i64) -> Instant {
    Instant::now().plus_seconds(seconds)
}

/// Builds a point with an id.
pub fn point(name: &str, value: i64, at: Instant, id: &str) -> Value {
    json!({ "name": name, "value": value, "at": at, "id": id })
}

pub fn store(points: &[Value]) -> Call {
    Call::new("POST /v1/metrics").json(&json!({ "points": points })).staff("s1")
}

pub fn list(name: &str) -> Call {
    Call::new("GET /v1/metrics/{name}").path("name", name).staff("s1")
}

/// Builds an addition without a caller.
pub fn add(name: &str, amount: u64) -> Call {
    Call::new("POST /v1/counters/{name}").path("name", name).json(&json!({ "add": amount }))
}

pub fn read(name: &str) -> Call {
    Call::new("GET /v1/counters/{name}").path("name", name).staff("s1")
}

pub fn split(name: &str) -> Call {
    Call::new("POST /v1/counters/{name}/split").path("name", name).staff("s1")
}

impl Desk {
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        Self { services: test.services(), test, routes: insights::routes() }
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.services).await
    }

    /// Sends a request that must succeed.
    pub async fn done(&self, call: Call) -> Answered {
        let answer = self.send(call).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
    }

    /// Returns the text of a response.
    pub async fn text(&self, call: &Call) -> String {
        let answer = self.routes.answer(&self.services, serde_json::from_value(call.event()).unwrap()).await;
        String::from_utf8(answer.body.unwrap().to_vec()).unwrap()
    }

    /// Reads a list to its end in pages of `limit`. Also returns the maximum number of requests to
    /// the table that a page took.
    pub async fn all(&self, call: &Call, limit: usize) -> (Vec<Value>, u32) {
        let (mut found, mut most, mut cursor) = (Vec::new(), 0, None::<String>);
        loop {
            let page = cursor.iter().fold(call.clone(), |call, cursor| call.query("cursor", cursor));
            let _ = self.services.table.meter().take();
            let answer = self.done(page.query("limit", &limit.to_string())).await;
            most = most.max(self.services.table.meter().take().iter().map(|measured| measured.requests).sum());
            let items = answer.body["items"].as_array().unwrap();
            found.extend(items.iter().cloned());
            match answer.body["next_cursor"].as_str() {
                Some(next) => {
                    assert_eq!(items.len(), limit, "a page with one behind it is full");
                    cursor = Some(next.to_owned());
                }
                None => return (found, most),
            }
        }
    }

    /// Returns the ids of a metric's points, in list order.
    pub async fn ids(&self, call: &Call) -> Vec<String> {
        let (found, _) = self.all(call, 100).await;
        found.iter().map(|point| point["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the value of a counter and its number of shards.
    pub async fn count(&self, name: &str) -> (u64, u64) {
        let answer = self.done(read(name)).await;
        (answer.body["value"].as_u64().unwrap(), answer.body["shards"].as_u64().unwrap())
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
