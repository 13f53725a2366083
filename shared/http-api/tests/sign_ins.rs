//! Tests of tokens whose session has ended.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Measured as _, Response, Routes, SIGN_IN_MAX_AGE, Services, SignIns};
use key_schema::id::{Born, CustomerId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::revocation::SignIn;
use key_schema::session::{self, Session};
use serde_json::{Value, json};

/// A function with one route, with its own table and clock.
struct TestFunction {
    test: TestTable,
    services: Services,
    routes: Routes<Services>,
    /// The seconds by which the function's clock is ahead.
    ahead: Arc<AtomicI64>,
}

impl TestFunction {
    async fn open() -> Self {
        let test = TestTable::create().await;
        let ahead = Arc::new(AtomicI64::new(0));
        let (clock, start) = (Arc::clone(&ahead), Instant::now());
        let mut services = test.services();
        services.sign_ins = SignIns::new(move || start.plus_seconds(clock.load(Ordering::Relaxed)));
        let routes = Routes::new()
            .checking(Services::checks)
            .on("GET /v1/desk", |_, request| Box::pin(async { Ok(Response::ok(&request.caller().key())) }));
        Self { test, services, routes, ahead }
    }

    async fn send(&self, claims: &Value) -> Answered {
        Call::new("GET /v1/desk").claims(claims.clone()).send(&self.routes, &self.services).await
    }

    /// Sends a request and returns its status and read units.
    async fn cost(&self, claims: &Value) -> (u16, f64) {
        let _ = self.services.table.meter().take();
        let status = self.send(claims).await.status;
        (status, self.services.table.meter().take().iter().map(|measured| measured.capacity_units).sum())
    }

    /// Ends the session of `customer` that has this sign-in claim, as another environment would do.
    async fn end(&self, customer: &str, claim: &str) {
        let (customer_id, now) = (CustomerId::new(customer).unwrap(), Instant::now());
        let sign_in = Some(SignIn::of(&customer_id, claim));
        let id = SessionId::new("session").unwrap();
        let data = Session { id, customer_id, expires_at: now.plus_seconds(60), sign_in, device: "phone".to_owned() };
        let session = Stored::new(data, Born::generate(now, [1; 10]), now);
        self.services.table.transact(&session::end(&session, now).unwrap()).await.unwrap().unwrap();
    }

    fn step(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::Relaxed);
    }
}

fn max_age() -> i64 {
    SIGN_IN_MAX_AGE.as_secs().try_into().unwrap()
}

#[tokio::test]
async fn the_tokens_of_an_ended_session_are_refused_within_30_seconds() {
    let desk = TestFunction::open().await;
    let token = json!({"sub": "ann", "sid": "s"});
    assert_eq!(desk.send(&token).await.status, 200);
    desk.end("ann", "s").await;
    // Until the cached result reaches its maximum age, the function uses it.
    desk.step(max_age() - 1);
    assert_eq!(desk.send(&token).await.status, 200);
    desk.step(1);
    for _ in 0..2 {
        let refused = desk.send(&token).await;
        assert_eq!((refused.status, refused.code()), (401, Some("unauthenticated")));
    }
    // Tokens that name the ended session in another way are refused, too. Cognito names the sign-in
    // in `origin_jti` instead of `sid`, and `sid` may also contain the session's own id.
    for claims in [
        json!({"sub": "ann", "origin_jti": "s"}),
        json!({"sub": "ann", "sid": "session"}),
        json!({"sub": "ann", "sid": "s", "cognito:groups": "[staff]"}),
    ] {
        assert_eq!(desk.send(&claims).await.status, 401, "{claims}");
    }
}

#[tokio::test]
async fn the_consumption_of_a_request_has_read_units_for_reads_and_write_units_for_writes() {
    let desk = TestFunction::open().await;
    desk.end("ann", "s").await;
    let of_writes = desk.services.take();
    assert!(of_writes.iter().all(|cost| cost.read_units == 0.0 && cost.write_units > 0.0), "{of_writes:?}");
    desk.send(&json!({"sub": "ann", "sid": "t"})).await;
    let of_reads = desk.services.take();
    assert!(of_reads.iter().all(|cost| cost.read_units > 0.0 && cost.write_units == 0.0), "{of_reads:?}");
    assert_eq!((of_writes.len(), of_reads.len()), (1, 1));
}

#[tokio::test]
async fn a_customer_cannot_end_the_sign_in_of_another_customer() {
    let desk = TestFunction::open().await;
    desk.end("bob", "s").await;
    assert_eq!(desk.send(&json!({"sub": "ann", "sid": "s"})).await.status, 200);
    assert_eq!(desk.send(&json!({"sub": "bob", "sid": "s"})).await.status, 401);
    assert_eq!(desk.send(&json!({"sub": "bob", "sid": "t"})).await.status, 200);
}

/// docs/cost.md states this cost: one read unit for each sign-in, in each environment, every 30
/// seconds.
#[tokio::test]
async fn a_lookup_costs_one_read_unit_in_30_seconds_and_is_skipped_without_a_sign_in() {
    let desk = TestFunction::open().await;
    for claims in [json!({"sub": "ann"}), json!({"sub": "ann", "sid": ""}), json!({"sid": "s"})] {
        assert_eq!(desk.cost(&claims).await, (200, 0.0), "{claims}");
    }
    let token = json!({"sub": "ann", "sid": "s"});
    assert_eq!(desk.cost(&token).await, (200, 1.0));
    assert_eq!(desk.cost(&token).await, (200, 0.0));
    desk.step(max_age());
    assert_eq!(desk.cost(&token).await, (200, 1.0));
    // The clock is set back, so the age of the result is unknown, and the item is read again.
    desk.step(-1);
    assert_eq!(desk.cost(&token).await, (200, 1.0));
    // An ended sign-in stays ended, so it is not read again.
    desk.end("ann", "s").await;
    desk.step(max_age());
    assert_eq!(desk.cost(&token).await, (401, 1.0));
    desk.step(10 * max_age());
    assert_eq!(desk.cost(&token).await, (401, 0.0));
}

#[tokio::test]
async fn a_token_whose_sign_in_is_not_cached_is_refused_while_the_table_does_not_answer() {
    let desk = TestFunction::open().await;
    let (known, unknown) = (json!({"sub": "ann", "sid": "s"}), json!({"sub": "ann", "sid": "t"}));
    assert_eq!(desk.send(&known).await.status, 200);
    desk.test.faults().add(Fault { kind: FaultKind::Error, rate: 1.0, count: None, seed: 1 }).unwrap();
    let refused = desk.send(&unknown).await;
    assert_eq!((refused.status, refused.code(), refused.header("retry-after")), (503, Some("unavailable"), Some("1")));
    assert_eq!(desk.send(&known).await.status, 200);
    assert_eq!(desk.send(&json!({"sub": "ann"})).await.status, 200);
    desk.step(max_age());
    assert_eq!(desk.send(&known).await.status, 503);
    desk.test.faults().clear();
    assert_eq!(desk.send(&unknown).await.status, 200);
}
