//! Requests about metrics and counters, in a separate table for each test.

use std::ops::Deref;

use fixture::{Harness, TestTable};
use http_api::Services;
use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use serde_json::{Value, json};
use table::Periods;

pub struct Desk(Harness<Services>);

impl Deref for Desk {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
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

pub fn read_point(name: &str, id: &str, at: Instant) -> Call {
    let call = Call::new("GET /v1/metrics/{name}/points/{id}").path("name", name).path("id", id);
    call.query("at", &at.to_string()).staff("s1")
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
        Self(Harness::start(insights::routes(), TestTable::services).await)
    }

    /// Opens a function on the same main table. It uses a separate table for each month of metrics,
    /// if that table exists.
    pub fn monthly(&self) -> Self {
        let services = |test: &TestTable| Services { metrics: Periods::new(true), ..test.services() };
        Self(Harness::over(&self.test, insights::routes(), services))
    }

    /// Sends a request that must succeed with 200.
    pub async fn done(&self, call: Call) -> Answered {
        let answer = self.ok(call).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer
    }

    /// Returns the text of a response.
    pub async fn text(&self, call: &Call) -> String {
        String::from_utf8(self.raw(call).await.body.unwrap().to_vec()).unwrap()
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
}
