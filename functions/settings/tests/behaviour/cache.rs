//! Tests of the cache: how long after a change a function may return the old values.

use emulators::table::FaultKind;
use serde_json::json;

use crate::shop::{Shop, change, first, get, whole};

#[tokio::test]
async fn a_function_sees_its_own_change_at_once_and_other_functions_see_it_within_the_stated_time() {
    let shop = Shop::open().await;
    let (one, other) = (shop.function(), shop.function());
    one.set(first(&json!({ "values": { "n": 1 } }))).await;
    assert_eq!((one.version().await, other.version().await), (1, 1));
    shop.wait(20_000);
    one.set(change(&json!({ "values": { "n": 2 } }), 1)).await;
    assert_eq!((one.version().await, other.version().await), (2, 1));
    // A function returns values for up to 30 seconds after it has read them.
    shop.wait(9_999);
    assert_eq!(other.version().await, 1);
    shop.wait(1);
    assert_eq!(other.version().await, 2);
}

#[tokio::test]
async fn cached_settings_cost_no_request_and_a_response_states_its_maximum_age() {
    let shop = Shop::open().await;
    let function = shop.function();
    function.set(first(&json!({ "values": { "n": 1 } }))).await;
    let fresh = shop.function();
    let _ = fresh.requests();
    // A cache may use the response as long as the function may use the settings.
    for (after, max_age, stale) in [(0, 5, 25), (10_000, 5, 15), (19_400, 0, 0)] {
        shop.wait(after);
        let answer = fresh.send(get()).await;
        let expected = format!("public, max-age={max_age}, stale-while-revalidate={stale}");
        assert_eq!(answer.header("cache-control"), Some(expected.as_str()), "{after}");
    }
    assert_eq!(fresh.requests(), [("settings.read", 1)].into());
    shop.wait(600);
    fresh.send(get()).await;
    assert_eq!(fresh.requests(), [("settings.read", 1)].into());
    assert_eq!(fresh.send(whole()).await.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_prolong_the_life_of_cached_settings() {
    let shop = Shop::open().await;
    let (one, other) = (shop.function(), shop.function());
    assert_eq!(other.version().await, 0);
    shop.wait(-3_600_000);
    one.set(first(&json!({ "values": {} }))).await;
    assert_eq!(other.version().await, 1);
}

#[tokio::test]
async fn a_read_by_staff_returns_the_current_settings_and_refreshes_the_cache() {
    let shop = Shop::open().await;
    let (one, other) = (shop.function(), shop.function());
    assert_eq!(other.version().await, 0);
    one.set(first(&json!({ "values": {} }))).await;
    assert_eq!(other.version().await, 0);
    assert_eq!(other.send(whole()).await.version(), Some(1));
    assert_eq!(other.version().await, 1);
}

#[tokio::test]
async fn a_function_with_outdated_settings_reads_them_again() {
    let shop = Shop::open().await;
    let (one, other) = (shop.function(), shop.function());
    assert_eq!(other.version().await, 0);
    one.set(first(&json!({ "values": {} }))).await;
    let late = other.send(change(&json!({ "values": { "n": 1 } }), 0)).await;
    assert_eq!((late.status, late.code()), (412, Some("version_mismatch")));
    assert_eq!(other.version().await, 1);
}

#[tokio::test]
async fn a_change_with_an_unknown_outcome_leaves_no_settings_in_memory() {
    let shop = Shop::open().await;
    let function = shop.function();
    function.set(first(&json!({ "values": { "n": 1 } }))).await;
    shop.fail(FaultKind::Error);
    assert_eq!(function.send(change(&json!({ "values": { "n": 2 } }), 1)).await.status, 503);
    shop.clear_faults();
    let _ = function.requests();
    assert_eq!(function.send(get()).await.body["values"], json!({ "n": 1 }));
    assert_eq!(function.requests(), [("settings.read", 1)].into());
}

#[tokio::test]
async fn cached_settings_outlast_an_outage_of_the_table() {
    let shop = Shop::open().await;
    let function = shop.function();
    function.set(first(&json!({ "values": { "n": 1 } }))).await;
    shop.fail(FaultKind::Error);
    assert_eq!(function.send(get()).await.body["values"], json!({ "n": 1 }));
    shop.clear_faults();
}
