//! Settings in a separate table for each test, with any number of warm functions on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use http_api::SettingsCache;
use http_api::sample::{Answered, Call};
use key_schema::instant::Instant;
use serde_json::Value;
use settings::App;

pub struct Shop {
    pub test: TestTable,
    millis: Arc<AtomicI64>,
}

/// One execution environment of the function.
pub struct Function {
    pub app: App,
}

impl Shop {
    pub async fn open() -> Self {
        Self { test: TestTable::create().await, millis: Arc::new(AtomicI64::new(1_795_176_000_000)) }
    }

    /// Creates a function that has just started.
    pub fn function(&self) -> Function {
        let clock = Arc::clone(&self.millis);
        let now = move || Instant::from_millis(clock.load(Ordering::Relaxed)).unwrap();
        Function { app: App { services: self.test.services(), settings: SettingsCache::new(now) } }
    }

    /// Advances the clock by a number of milliseconds, or sets it back if the number is below 0.
    pub fn wait(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }

    /// Makes the table's next requests fail.
    pub fn break_with(&self, kind: FaultKind) {
        self.test.faults().add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
    }

    pub fn clear_faults(&self) {
        self.test.faults().clear();
    }
}

pub fn get() -> Call {
    Call::new("GET /v1/settings")
}

pub fn whole() -> Call {
    Call::new("GET /v1/settings/private").staff("s1")
}

pub fn put(body: &Value) -> Call {
    Call::new("PUT /v1/settings").json(body).staff("s1")
}

pub fn first(body: &Value) -> Call {
    put(body).header("if-none-match", "*")
}

pub fn change(body: &Value, version: u64) -> Call {
    put(body).header("if-match", &format!("\"{version}\""))
}

impl Function {
    pub async fn send(&self, call: Call) -> Answered {
        call.send(&settings::routes(), &self.app).await
    }

    /// Sends a change, which must succeed.
    pub async fn set(&self, call: Call) -> Answered {
        let answer = self.send(call).await;
        assert!([200, 201].contains(&answer.status), "{}", answer.body);
        answer
    }

    /// Returns the public version.
    pub async fn version(&self) -> u64 {
        self.send(get()).await.version().unwrap()
    }

    /// Returns the patterns since the last call, with their numbers of requests.
    pub fn costs(&self) -> Vec<(&'static str, u32)> {
        self.app.services.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect()
    }
}
