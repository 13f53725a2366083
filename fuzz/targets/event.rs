//! Events of API Gateway: whatever invokes a function, it answers in the form that the gateway takes, with a code if it refuses, and never blames itself.
#![no_main]

use fuzz::apps::Shop;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

thread_local! {
    static SHOP: Shop = Shop::open();
}

fuzz_target!(|input: &[u8]| {
    // What is no text is no event: the runtime hands on none.
    let Ok(text) = std::str::from_utf8(input) else { return };
    let event: Value = serde_json::from_str(text).unwrap_or_default();
    let number = input.iter().fold(0, |number: usize, byte| number.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    SHOP.with(|shop| {
        shop.hold(true);
        let answer = shop.answer(event["routeKey"].as_str(), number, text);
        let gone = Value::Null;
        let method = event["requestContext"].get("http").unwrap_or(&gone)["method"].as_str();
        assert!(answer.status < 500 || asks_the_bucket(&event), "{answer:?}");
        assert!(method.is_some() || answer.code.as_deref() == Some("malformed_request"), "{answer:?}");
        // Who has no token reads what is public, and does nothing.
        let claims = event.pointer("/requestContext/authorizer/jwt/claims/sub");
        assert!(
            claims.is_some() || answer.status >= 400 || method == Some("GET") || is_public(&event),
            "nobody has done something: {answer:?}"
        );
    });
});

/// An upload is looked at in the bucket, which is not there.
fn asks_the_bucket(event: &Value) -> bool {
    let has = |member: &str| {
        event[member]
            .as_str()
            .is_some_and(|text| text.contains("uploads") || text.contains("pictures") || text.contains("content"))
    };
    has("routeKey") || has("rawPath")
}

/// A counter of views is anybody's to add to.
fn is_public(event: &Value) -> bool {
    let has = |member: &str| event[member].as_str().is_some_and(|text| text.contains("counters"));
    has("routeKey") || has("rawPath")
}
