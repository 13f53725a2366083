use super::*;

#[tokio::test]
async fn each_kind_of_fault_has_its_documented_status_and_effect() {
    // The key's second request is stored (replayed), or new and successful.
    for (kind, status, code, retry, is_executed, is_stored) in [
        (FaultKind::Throttle, 429, "rate_limit", Some("true"), false, false),
        (FaultKind::Conflict, 409, "idempotency_key_in_use", Some("true"), false, false),
        (FaultKind::Error, 500, "", Some("false"), false, true),
        (FaultKind::ErrorAfter, 500, "", Some("false"), true, true),
        (FaultKind::Slow, 200, "", None, true, true),
        (FaultKind::Partial, 200, "", None, true, true),
    ] {
        let stripe = Stripe::new().await;
        stripe.fault(kind);
        let struck = stripe.post_with_key(INTENTS, "k", MANUAL).await;
        assert_eq!((struck.status, struck.error("code"), struck.retry.as_deref()), (status, code, retry), "{kind:?}");
        assert_eq!(stripe.server.accounts().len(), usize::from(is_executed), "{kind:?}");
        stripe.server.faults().clear();
        let again = stripe.post_with_key(INTENTS, "k", MANUAL).await;
        assert_eq!(again.is_replayed, is_stored, "{kind:?}");
        assert_eq!(again.status, if is_stored { status } else { 200 }, "{kind:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_says_nothing_about_the_effect() {
    for (kind, is_executed) in [(FaultKind::Reset, false), (FaultKind::Truncate, true)] {
        let stripe = Stripe::new().await;
        // The client repeats a request on a closed connection, so every request is hit.
        stripe.server.faults().add(Fault { kind, rate: 1.0, count: None, seed: 0 }).unwrap();
        let request = stripe.request("POST", INTENTS, MANUAL).header("idempotency-key", "k");
        assert!(reply(request).await.is_err(), "{kind:?}");
        assert_eq!(stripe.server.accounts().len(), usize::from(is_executed), "{kind:?}");
        stripe.server.faults().clear();
        let again = stripe.post_with_key(INTENTS, "k", MANUAL).await;
        assert_eq!((again.status, again.is_replayed), (200, is_executed), "{kind:?}");
        assert_eq!(stripe.server.accounts().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_response_has_its_effect_or_not() {
    for (kind, is_executed) in [(FaultKind::TimeoutBefore, false), (FaultKind::Timeout, true)] {
        let stripe = Stripe::new().await;
        stripe.fault(kind);
        let request = stripe.request("POST", INTENTS, MANUAL).header("idempotency-key", "k");
        let client = tokio::spawn(reply(request));
        let executed = || stripe.server.accounts().len() == 1;
        until(|| stripe.server.faults().counts()[0].fired == 1 && executed() == is_executed).await;
        client.abort();
        let again = stripe.post_with_key(INTENTS, "k", MANUAL).await;
        assert_eq!((again.status, again.is_replayed), (200, is_executed), "{kind:?}");
        assert_eq!(stripe.server.accounts().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn an_error_after_the_effect_hits_no_read() {
    let stripe = Stripe::new().await;
    stripe.fault(FaultKind::ErrorAfter);
    assert_eq!(stripe.get(INTENTS).await.status, 200);
    stripe.fault(FaultKind::Error);
    assert_eq!(stripe.get(INTENTS).await.status, 500);
}
