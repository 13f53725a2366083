//! Tests of placing an order.

use http_api::sample::Call;
use serde_json::json;

use crate::shop::{Shop, errors, money, order, staff_order};

#[tokio::test]
async fn a_refused_order_names_the_product_of_each_line() {
    let shop = Shop::open().await;
    for (product, stock) in [("tea", 1), ("rice", 10), ("salt", 0)] {
        shop.product(product, stock).await;
    }
    let short = shop.send(order(&[("tea", 2), ("rice", 1), ("salt", 3)], "short")).await;
    assert_eq!((short.status, short.code()), (409, Some("insufficient_stock")));
    // Only staff see the exact stock. Every caller sees that a product is out of stock.
    let lines = [("/lines/0/quantity", "tea", "not enough in stock"), ("/lines/2/quantity", "salt", "out of stock")];
    assert_eq!(errors(&short), lines);
    let by_staff = shop.send(order(&[("tea", 2), ("rice", 1), ("salt", 3)], "staff").staff("s1")).await;
    assert_eq!((by_staff.status, by_staff.code()), (409, Some("insufficient_stock")));
    let lines = [("/lines/0/quantity", "tea", "only 1 in stock"), ("/lines/2/quantity", "salt", "out of stock")];
    assert_eq!(errors(&by_staff), lines);

    let twice = shop.send(order(&[("tea", 1), ("rice", 1), ("tea", 1)], "twice")).await;
    assert_eq!((twice.status, twice.code()), (422, Some("invalid_body")));
    assert_eq!(errors(&twice), [("/lines/2/product_id", "tea", "is in an earlier line already")]);

    shop.retire("salt").await;
    let gone = shop.send(order(&[("nothing", 1), ("rice", 1), ("salt", 1)], "gone")).await;
    assert_eq!((gone.status, gone.code()), (422, Some("unknown_product")));
    let detail = "is not in the catalogue";
    assert_eq!(errors(&gone), [("/lines/0/product_id", "nothing", detail), ("/lines/2/product_id", "salt", detail)]);
    assert_eq!(shop.stock("rice").await, 10);
}

#[tokio::test]
async fn the_refusal_of_a_too_large_total_names_the_lines_of_the_order() {
    let shop = Shop::open().await;
    shop.priced_product("tea", money(6_000_000_000_000)).await;
    let refused = shop.send(order(&[("tea", 2)], "large")).await;
    assert_eq!((refused.status, refused.code(), refused.pointers()), (422, Some("invalid_body"), vec!["/lines"]));
}

#[tokio::test]
async fn staff_record_the_discounts_of_a_line_beside_the_amount_paid() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.product("ice", 10).await;
    let discount = |name: &str, amount| json!({ "name": name, "amount": money(amount) });
    let tea = json!({ "product_id": "tea", "quantity": 2, "total": money(150),
        "discounts": [discount("card", 40), discount("coupon", 10)] });
    let lines = json!([tea, { "product_id": "ice", "quantity": 1, "discounts": [] }]);
    let placed = shop.send(staff_order(&[], "k", &json!({ "lines": lines }))).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    let shown = &placed.body["lines"];
    assert_eq!(shown[0]["discounts"], json!([discount("card", 40), discount("coupon", 10)]));
    assert_eq!((&shown[0]["discount"], &shown[0]["total"]), (&json!(money(50)), &json!(money(150))));
    assert_eq!((shown[1].get("discounts"), &shown[1]["discount"]), (None, &json!(money(0))));
    let totals = json!({ "items": money(300), "discount": money(50), "shipping": money(0), "tax": money(0),
        "total": money(250) });
    assert_eq!((&placed.body["totals"], &placed.body["total"]), (&totals, &json!(money(250))));

    let euros = json!({ "name": "card", "amount": { "amount": 40, "currency": "EUR" } });
    let refused = [
        (json!({ "total": null, "discounts": [discount("card", 40)] }), "/lines/0/discounts"),
        (json!({ "discounts": [discount("card", 0)] }), "/lines/0/discounts/0/amount/amount"),
        (json!({ "discounts": [{ "name": "card" }] }), "/lines/0/discounts/0/amount"),
        (json!({ "discounts": vec![discount("card", 1); 6] }), "/lines/0/discounts"),
        (json!({ "discounts": [euros] }), "/lines/0/discounts/0/amount/currency"),
    ];
    for (change, pointer) in refused {
        let mut line = tea.clone();
        line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = shop.send(staff_order(&[], "other", &json!({ "lines": [line] }))).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer]), "{line}");
    }
    let own = json!({ "customer_id": "ann", "lines": [{ "product_id": "tea", "quantity": 1, "discounts": [] }] });
    let own = Call::new("POST /v1/orders").customer("ann").header("idempotency-key", "own").json(&own);
    assert_eq!(shop.send(own).await.pointers(), ["/lines/0/discounts"]);
}
