//! Settings in a table of their own for each test, and as many warm functions over it as a test wants.

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

/// One environment of the function.
pub struct Function {
    pub app: App,
}

impl Shop {
    pub async fn open() -> Self {
        Self { test: TestTable::create().await, millis: Arc::new(AtomicI64::new(1_795_176_000_000)) }
    }

    /// A function that has just started.
    pub fn function(&self) -> Function {
        let clock = Arc::clone(&self.millis);
        let now = move || Instant::from_millis(clock.load(Ordering::Relaxed)).unwrap();
        Function { app: App { store: self.test.store(), settings: SettingsCache::new(now) } }
    }

    /// Lets time pass, or, below 0, sets the clock back.
    pub fn wait(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }

    /// Lets the table's next requests fail.
    pub fn break_with(&self, kind: FaultKind) {
        self.test.faults().add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
    }

    pub fn mend(&self) {
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

    /// Sends a change and expects that to succeed.
    pub async fn set(&self, call: Call) -> Answered {
        let answer = self.send(call).await;
        assert!([200, 201].contains(&answer.status), "{}", answer.body);
        answer
    }

    /// The version that anybody sees.
    pub async fn version(&self) -> u64 {
        self.send(get()).await.version().unwrap()
    }

    /// The patterns since the last look, and how many requests each took.
    pub fn costs(&self) -> Vec<(&'static str, u32)> {
        self.app.store.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect()
    }
}
