//! Tests of placing an order, also for a product that was retired and then revived under the same id.

use http_api::sample::Call;
use key_schema::id::{Born, ProductId};
use key_schema::product::Stock;
use serde_json::json;

use crate::shop::{Shop, errors, money, moved, order, reasons, staff_order, stored};

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
    assert_eq!([reasons(&short), reasons(&by_staff)], [["insufficient_stock", "out_of_stock"]; 2]);

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

/// The product is in the catalogue, so `unknown_product` would be wrong.
#[tokio::test]
async fn an_order_for_a_product_without_a_stock_gets_503_with_the_line() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.product("rice", 10).await;
    shop.delete_at("STOCK#tea#main#00000000000000000000", "STOCK").await;
    let refused = shop.send(order(&[("rice", 1), ("tea", 3)], "k")).await;
    assert_eq!((refused.status, refused.code()), (503, Some("stock_unavailable")), "{}", refused.body);
    assert_eq!((refused.pointers(), reasons(&refused)), (vec!["/lines/1/product_id"], vec!["stock_unavailable"]));
    assert_eq!(shop.stock("rice").await, 10);
}

#[tokio::test]
async fn an_order_a_quote_and_a_checkout_with_an_unreadable_product_get_503_with_the_line() {
    let shop = Shop::open().await;
    for product in ["tea", "rice"] {
        shop.product(product, 10).await;
    }
    shop.fill_cart(&[("rice", 1), ("tea", 3)]).await;
    shop.spoil("PRODUCT#tea", "PRODUCT", "price").await;
    let place = shop.send(order(&[("rice", 1), ("tea", 3)], "k")).await;
    let (quote, checkout) = (shop.quoted(&json!({})).await, shop.check_out(&json!({})).await);
    for (refused, pointer) in
        [(place, "/lines/1/product_id"), (quote, "/items/1/product_id"), (checkout, "/items/1/product_id")]
    {
        assert_eq!((refused.status, refused.code()), (503, Some("stock_unavailable")), "{}", refused.body);
        assert_eq!(refused.pointers(), [pointer]);
    }
    assert_eq!(shop.stock("rice").await, 10);
}

#[tokio::test]
async fn a_cancelled_order_of_a_retired_product_returns_no_pieces_to_the_revived_product() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    shop.product("rice", 10).await;
    let earlier = shop.send(order(&[("tea", 3), ("rice", 2)], "earlier")).await;
    assert_eq!(earlier.status, 201, "{}", earlier.body);
    shop.revive("tea", 5).await;

    let cancelled = shop.send(moved(&earlier.body, "cancelled")).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    assert_eq!((shop.stock("tea").await, shop.stock("rice").await), (5, 10));
    // Later orders take pieces of the revived product and return them.
    let later = shop.send(order(&[("tea", 4)], "later")).await;
    assert_eq!((later.status, &later.body["total"]["amount"]), (201, &800.into()), "{}", later.body);
    assert_eq!(shop.stock("tea").await, 1);
    assert_eq!(shop.send(moved(&later.body, "cancelled")).await.status, 200);
    assert_eq!(shop.stock("tea").await, 5);
}

/// The first attempt computed the total with the price from before the retirement.
#[tokio::test]
async fn an_order_whose_product_is_revived_during_the_attempt_gets_503_and_succeeds_on_retry() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let stock = |product_born| Stock { product_born, ..Stock::new(ProductId::new("tea").unwrap(), 10) };
    shop.put(&stored(stock(Some(Born::new("next").unwrap())))).await;
    let refused = shop.send(order(&[("tea", 3)], "k")).await;
    assert_eq!((refused.status, shop.stock("tea").await), (503, 10), "{}", refused.body);
    shop.put(&stored(stock(None))).await;
    assert_eq!(shop.send(order(&[("tea", 3)], "k")).await.status, 201);
}
