//! Tests of the stock level, and of the exact stock and sales that only staff see.

use fixture::Trouble;
use http_api::sample::{Answered, Call};
use serde_json::{Value, json};

use crate::shop::Shop;

/// Reads a product with this `Authorization` header. The gateway passes the header on without
/// claims.
async fn seen(shop: &Shop, product: &str, authorization: Option<&str>) -> Answered {
    let call = Call::new("GET /v1/products/{id}").path("id", product);
    let call = authorization.into_iter().fold(call, |call, value| call.header("authorization", value));
    shop.send(call).await
}

fn of_stock(body: &Value) -> [&Value; 4] {
    ["in_stock", "availability", "stock", "sold"].map(|name| body.get(name).unwrap_or(&Value::Null))
}

#[tokio::test]
async fn everybody_sees_a_stock_level_and_only_staff_see_the_numbers() {
    let shop = Shop::open().await;
    let customer = format!("Bearer {}", shop.issuer.token(&json!({ "sub": "ann" })));
    let other_group = shop.issuer.token(&json!({ "sub": "ann", "cognito:groups": ["staffing"] }));
    let staff = shop.issuer.token(&json!({ "sub": "s1", "cognito:groups": ["staff"] }));
    let forged = format!("Bearer {}AAAA", &staff[..staff.len() - 4]);
    let expired = shop.issuer.token(&json!({ "sub": "s1", "cognito:groups": ["staff"], "exp": 1_600_000_000 }));
    let (other_group, expired) = (format!("Bearer {other_group}"), format!("Bearer {expired}"));
    for (stock, level) in [(0, "none"), (1, "low"), (9, "low"), (10, "plenty"), (4_000, "plenty")] {
        let id = format!("p{stock}");
        shop.stock_up(&id, stock).await;
        for authorization in [None, Some(&customer), Some(&other_group), Some(&forged), Some(&expired)] {
            let answer = seen(&shop, &id, authorization.map(String::as_str)).await;
            assert_eq!((answer.status, answer.version()), (200, Some(1)));
            let members = answer.body.as_object().unwrap();
            assert!(!members.contains_key("stock") && !members.contains_key("sold"), "{authorization:?}");
            assert_eq!(of_stock(&answer.body)[..2], [&json!(stock > 0), &json!(level)], "{authorization:?}");
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
        let answer = seen(&shop, &id, Some(&format!("Bearer {staff}"))).await;
        let numbers = [&json!(stock > 0), &json!(level), &json!(stock), &json!({"quantity": 0, "orders": 0})];
        assert_eq!((of_stock(&answer.body), answer.version()), (numbers, Some(1)));
        // A shared cache that stored this response would show it to everybody.
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn customers_read_products_and_staff_get_503_while_the_issuer_is_unreachable() {
    let shop = Shop::open().await;
    shop.stock_up("p1", 3).await;
    shop.issuer.trouble(Some(Trouble::Status(500)));
    let token = |claims: Value| format!("Bearer {}", shop.issuer.token(&claims));
    let customer = seen(&shop, "p1", Some(&token(json!({ "sub": "ann" })))).await;
    assert_eq!((customer.status, &customer.body["availability"]), (200, &json!("low")));
    // A response without the exact numbers would look complete to staff. So they get an error
    // instead.
    let staff = seen(&shop, "p1", Some(&token(json!({ "sub": "s1", "cognito:groups": ["staff"] })))).await;
    assert_eq!((staff.status, staff.code()), (503, Some("unavailable")));
}
