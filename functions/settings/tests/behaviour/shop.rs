//! Settings in a separate table for each test, and any number of running functions on it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fixture::seed::stored;
use fixture::{Harness, TestTable};
use http_api::sample::{Answered, Call};
use http_api::{Services, SettingsCache};
use key_schema::instant::Instant;
use key_schema::pricing::TaxRule;
use serde_json::Value;

pub struct Shop {
    test: Arc<TestTable>,
    millis: Arc<AtomicI64>,
}

/// One execution environment of the function.
pub struct Function(pub Harness<Services>);

impl Deref for Shop {
    type Target = TestTable;

    fn deref(&self) -> &Self::Target {
        &self.test
    }
}

impl Deref for Function {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Shop {
    pub async fn open() -> Self {
        let millis = Arc::new(AtomicI64::new(1_795_176_000_000));
        Self { test: Arc::new(TestTable::create().await), millis }
    }

    /// Stores tax rules, each with a category of its own.
    pub async fn store_tax_rules(&self, count: usize) {
        for n in 0..count {
            self.put(&stored(TaxRule {
                id: format!("t{n}").parse().unwrap(),
                country: "DE".parse().unwrap(),
                region: None,
                category: format!("c{n}").parse().unwrap(),
                rate_millionths: 1,
                included: true,
            }))
            .await;
        }
    }

    /// Creates a function that has just started.
    pub fn function(&self) -> Function {
        let clock = Arc::clone(&self.millis);
        let now = move || Instant::from_millis(clock.load(Ordering::Relaxed)).unwrap();
        let app = |test: &TestTable| Services { settings: SettingsCache::new(now), ..test.services() };
        Function(Harness::over(&self.test, settings::routes(), app))
    }

    /// Advances the clock by a number of milliseconds, or sets it back if the number is below 0.
    pub fn wait(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
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
    /// Sends a change, which must succeed.
    pub async fn set(&self, call: Call) -> Answered {
        let answer = self.ok(call).await;
        assert!([200, 201].contains(&answer.status), "{}", answer.body);
        answer
    }

    /// Returns the version of the public settings.
    pub async fn version(&self) -> u64 {
        self.send(get()).await.version().unwrap()
    }
}
