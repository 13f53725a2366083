use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

#[tokio::test]
async fn bad_requests_get_the_documented_error() {
    let stripe = Stripe::new().await;
    let intent = stripe.created(MANUAL).await;
    let of_intent = format!("{INTENTS}/{intent}");
    let capture = format!("{of_intent}/capture");
    let many: String = (0..51).map(|n| format!("&metadata[{n}]=x")).collect();
    let (long_key, long_value) = ("k".repeat(41), "v".repeat(501));
    for (method, path, body, status, code, param) in [
        ("POST", INTENTS, "", 400, "parameter_missing", "amount"),
        ("POST", INTENTS, "amount=1000", 400, "parameter_missing", "currency"),
        ("POST", INTENTS, "amount=&currency=eur", 400, "parameter_invalid_empty", "amount"),
        ("POST", INTENTS, "amount=10.5&currency=eur", 400, "parameter_invalid_integer", "amount"),
        ("POST", INTENTS, "amount=-1&currency=eur", 400, "parameter_invalid_integer", "amount"),
        ("POST", INTENTS, "amount=99999999999999999999&currency=eur", 400, "parameter_invalid_integer", "amount"),
        ("POST", INTENTS, "amount=100000000&currency=eur", 400, "amount_too_large", "amount"),
        ("POST", INTENTS, "amount=49&currency=usd", 400, "amount_too_small", "amount"),
        ("POST", INTENTS, "amount=1000&currency=euro", 400, "", "currency"),
        ("POST", INTENTS, "amount=1000&currency=eur&capture_method=later", 400, "", "capture_method"),
        ("POST", INTENTS, "amount=1000&currency=eur&confirm=yes", 400, "", "confirm"),
        ("POST", INTENTS, "amount=1000&currency=eur&payment_method=pm_x", 400, "resource_missing", "payment_method"),
        ("POST", INTENTS, "amount=1000&currency=eur&confirm=true", 400, "payment_intent_unexpected_state", ""),
        ("POST", INTENTS, "amount=1000&currency=eur&tip=1", 400, "parameter_unknown", "tip"),
        ("POST", INTENTS, "amount=1000&currency=eur&metadata[a][b]=1", 400, "parameter_unknown", "metadata[a][b]"),
        ("POST", INTENTS, "amount=1000&currency=eur&expand[]=customer", 400, "", "expand"),
        ("POST", INTENTS, &format!("amount=1000&currency=eur{many}"), 400, "", "metadata"),
        ("POST", &of_intent, &format!("metadata[{long_key}]=x"), 400, "", "metadata"),
        ("POST", &of_intent, &format!("metadata[k]={long_value}"), 400, "", "metadata"),
        ("POST", &capture, "amount_to_capture=0", 400, "parameter_invalid_integer", "amount_to_capture"),
        ("POST", &format!("{of_intent}/cancel"), "cancellation_reason=automatic", 400, "", "cancellation_reason"),
        ("POST", "/v1/refunds", "amount=1", 400, "parameter_missing", "payment_intent"),
        ("GET", &format!("{INTENTS}?limit=0"), "", 400, "", "limit"),
        ("GET", &format!("{INTENTS}?limit=101"), "", 400, "", "limit"),
        ("GET", &format!("{INTENTS}?starting_after=pi_x"), "", 400, "resource_missing", "starting_after"),
        ("GET", &format!("{INTENTS}/search?query=amount:1"), "", 400, "", "query"),
        ("GET", &format!("{INTENTS}/pi_x"), "", 404, "resource_missing", "intent"),
        ("POST", &format!("{INTENTS}/pi_x/capture"), "", 404, "resource_missing", "intent"),
        ("GET", "/v1/charges", "", 404, "", ""),
        ("DELETE", &of_intent, "", 404, "", ""),
    ] {
        let refused = reply(stripe.request(method, path, body)).await.unwrap();
        let got = (refused.status, refused.error("code"), refused.error("param"));
        assert_eq!(got, (status, code, param), "{method} {path} {body}");
        assert_eq!(refused.error("type"), "invalid_request_error", "{method} {path} {body}");
        assert_eq!(refused.error("doc_url").is_empty(), code.is_empty(), "{method} {path} {body}");
    }
    assert_eq!(stripe.server.accounts().len(), 1);
}

#[tokio::test]
async fn hostile_input_is_refused() {
    let stripe = Stripe::new().await;
    let pairs: String = (0..501).map(|n| format!("a{n}=1&")).collect();
    let bodies: [(&[u8], u16); 7] = [
        (b"amount=\xff\xfe", 400),
        (b"amount=%ff", 400),
        (b"=&&==&%&[]=&[=&]=", 400),
        (b"metadata[]=1&amount=%zz&currency=%00", 400),
        (b"expand[9999999999999999999999]=latest_charge&created[gte]=-9223372036854775808", 400),
        (pairs.as_bytes(), 400),
        (&[b'a'; 70_000], 413),
    ];
    for (body, status) in bodies {
        for path in [INTENTS, "/v1/payment_intents/%2e%2e/capture", "/v1/refunds", "/", "//"] {
            let refused = reply(stripe.request("POST", path, "").body(body.to_vec())).await.unwrap();
            assert!(refused.status == status || refused.status == 404, "{path} {refused:?}");
        }
    }
    let json = stripe.request("POST", INTENTS, "{}").header("content-type", "application/json");
    assert_eq!(reply(json).await.unwrap().status, 400);
    for query in ["created[gt]=9223372036854775807", "created[lt]=-9223372036854775808"] {
        assert_eq!(stripe.get(&format!("{INTENTS}?{query}")).await.status, 200, "{query}");
    }
}

#[tokio::test]
async fn a_key_of_the_account_and_a_supported_version_are_needed() {
    let stripe = Stripe::new().await;
    let basic = |user: &str| format!("Basic {}", STANDARD.encode(format!("{user}:")));
    let status = async |authorization: Option<&str>, version: &str| {
        let request = stripe.client.get(format!("{}{INTENTS}", stripe.server.url()));
        let request = request.header("stripe-version", version);
        let request = match authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        };
        reply(request).await.unwrap().status
    };
    let version = "2025-03-31.basil";
    for (authorization, expected) in [
        (None, 401),
        (Some("Bearer sk_live_1"), 401),
        (Some("Basic ?"), 401),
        (Some("Bearer sk_test_1"), 200),
        (Some(&*basic("sk_test_1")), 200),
    ] {
        assert_eq!(status(authorization, version).await, expected, "{authorization:?}");
    }
    for (version, expected) in [("2022-11-15", 200), ("2022-08-01", 400), ("latest", 400)] {
        assert_eq!(status(Some("Bearer sk_test_1"), version).await, expected, "{version}");
    }
    stripe.server.set_api_keys(vec!["sk_live_1".to_owned()]);
    assert_eq!(status(Some("Bearer sk_test_1"), version).await, 401);
    assert_eq!(status(Some("Bearer sk_live_1"), version).await, 200);
}

#[tokio::test]
async fn the_seed_determines_the_ids() {
    let (one, two) = (Stripe::new().await, Stripe::new().await);
    let id = one.created(MANUAL).await;
    assert!(id.starts_with("pi_3") && id.len() == 27, "{id}");
    assert_eq!(two.created(MANUAL).await, id);
    assert_ne!(two.created(MANUAL).await, id);
}
