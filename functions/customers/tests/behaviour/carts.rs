//! Tests of a customer's cart.

use fixture::seed::{self, stored};
use http_api::sample::{Answered, Call};
use key_schema::cart::{LIFETIME_SECONDS, MAX_LINES};
use key_schema::instant::Instant;
use key_schema::money::Money;
use serde_json::{Value, json};

use crate::shop::{Shop, money};

async fn read(shop: &Shop) -> Answered {
    shop.send(Call::new("GET /v1/customers/{id}/cart").path("id", "ann").customer("ann")).await
}

fn line(method: &'static str, product: &str) -> Call {
    let route = match method {
        "GET" => "GET /v1/customers/{id}/cart/items/{product}",
        "PUT" => "PUT /v1/customers/{id}/cart/items/{product}",
        _ => "DELETE /v1/customers/{id}/cart/items/{product}",
    };
    Call::new(route).path("id", "ann").path("product", product).customer("ann")
}

async fn put(shop: &Shop, product: &str, quantity: u64) -> Answered {
    shop.send(line("PUT", product).json(&json!({ "quantity": quantity }))).await
}

fn quantities(cart: &Value) -> Vec<(&str, u64)> {
    let items = cart["items"].as_array().unwrap();
    items.iter().map(|item| (item["product_id"].as_str().unwrap(), item["quantity"].as_u64().unwrap())).collect()
}

#[tokio::test]
async fn a_line_of_an_unreadable_product_cannot_be_ordered_and_a_new_one_is_refused() {
    let shop = shop_with_ann().await;
    shop.product("p1").await;
    for product in ["p0", "p1"] {
        assert_eq!(put(&shop, product, 1).await.status, 200);
    }
    shop.spoil("PRODUCT#p1", "PRODUCT", "price").await;
    let cart = read(&shop).await;
    assert_eq!((cart.status, quantities(&cart.body)), (200, vec![("p0", 1), ("p1", 1)]), "{}", cart.body);
    let single = shop.send(line("GET", "p1")).await;
    assert_eq!([cart.header("x-left-out"), single.header("x-left-out")], [Some("1"); 2]);
    let broken = &cart.body["items"][1];
    assert_eq!((&broken["name"], &broken["in_stock"]), (&Value::Null, &json!(false)));
    let refused = put(&shop, "p1", 2).await;
    assert_eq!((refused.status, refused.code()), (503, Some("stock_unavailable")), "{}", refused.body);
}

fn empty() -> Value {
    json!({ "items": [], "subtotal": null, "expires_at": null })
}

async fn shop_with_ann() -> Shop {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    shop.product("p.1#ä").await;
    shop
}

#[tokio::test]
async fn lines_are_set_read_and_removed_one_by_one() {
    let shop = shop_with_ann().await;
    let before = Instant::now();
    assert_eq!(read(&shop).await.body, empty());
    let first = put(&shop, "p0", 3).await;
    assert_eq!((first.status, &first.body["product_id"], &first.body["quantity"]), (200, &json!("p0"), &json!(3)));
    assert_eq!(put(&shop, "p.1#ä", 1_000_000).await.status, 200);
    assert_eq!(put(&shop, "p0", 5).await.status, 200);
    let cart = read(&shop).await.body;
    assert_eq!(quantities(&cart), [("p0", 5), ("p.1#ä", 1_000_000)]);
    let expires: Instant = cart["expires_at"].as_str().unwrap().parse().unwrap();
    assert!(expires >= before.plus_seconds(LIFETIME_SECONDS));

    let one = shop.send(line("GET", "p0")).await;
    assert_eq!((one.status, &one.body), (200, &cart["items"][0]));
    assert_eq!(shop.send(line("DELETE", "p0")).await.status, 204);
    assert_eq!(shop.send(line("GET", "p0")).await.status, 404);
    assert_eq!(quantities(&read(&shop).await.body), [("p.1#ä", 1_000_000)]);
    assert_eq!(shop.send(line("DELETE", "p.1#ä")).await.status, 204);
    assert_eq!(read(&shop).await.body, empty());
}

/// The sequence of the lines is part of an open quote.
#[tokio::test]
async fn a_line_that_is_set_again_keeps_its_place() {
    let shop = shop_with_ann().await;
    let first = put(&shop, "p0", 3).await.body;
    // The next line gets a later instant.
    let added: Instant = first["added_at"].as_str().unwrap().parse().unwrap();
    while Instant::now() <= added {
        tokio::task::yield_now().await;
    }
    put(&shop, "p.1#ä", 1).await;
    let before = read(&shop).await.body["items"].clone();
    assert_eq!(put(&shop, "p0", 3).await.body, first);
    assert_eq!(read(&shop).await.body["items"], before);
    put(&shop, "p0", 4).await;
    let after = read(&shop).await.body;
    assert_eq!(quantities(&after), [("p0", 4), ("p.1#ä", 1)]);
    assert_eq!(after["items"][0]["added_at"], first["added_at"]);
    // A line that was removed is added at the end.
    shop.send(line("DELETE", "p0")).await;
    put(&shop, "p0", 3).await;
    assert_eq!(quantities(&read(&shop).await.body), [("p.1#ä", 1), ("p0", 3)]);
}

#[tokio::test]
async fn removing_a_missing_line_is_no_error() {
    let shop = shop_with_ann().await;
    assert_eq!(shop.send(line("DELETE", "p0")).await.status, 204);
    put(&shop, "p.1#ä", 1).await;
    for _ in 0..2 {
        assert_eq!(shop.send(line("DELETE", "p0")).await.status, 204);
    }
    assert_eq!(quantities(&read(&shop).await.body), [("p.1#ä", 1)]);
    assert_eq!(shop.send(line("GET", "p0")).await.code(), Some("not_found"));
}

#[tokio::test]
async fn a_line_needs_a_product_of_the_catalogue_and_an_existing_customer() {
    let shop = shop_with_ann().await;
    let unknown = put(&shop, "nothing", 1).await;
    assert_eq!((unknown.status, unknown.code()), (422, Some("unknown_product")));
    shop.retire("p0").await;
    let retired = put(&shop, "p0", 1).await;
    assert_eq!((retired.status, retired.code()), (422, Some("unknown_product")));
    let nobody = Call::new("PUT /v1/customers/{id}/cart/items/{product}").path("id", "bob").path("product", "p.1#ä");
    let nobody = shop.send(nobody.customer("bob").json(&json!({ "quantity": 1 }))).await;
    assert_eq!((nobody.status, nobody.code()), (404, Some("not_found")));
    assert_eq!(read(&shop).await.body, empty());
}

#[tokio::test]
async fn a_cart_takes_a_variant_but_not_its_parent() {
    let shop = shop_with_ann().await;
    shop.sell(seed::product("shirt", money(100)), 0).await;
    shop.vary("shirt", seed::product("shirt-m", money(250)), "M", 5).await;
    let parent = put(&shop, "shirt", 1).await;
    assert_eq!((parent.status, parent.code()), (409, Some("has_variants")), "{}", parent.body);
    assert_eq!(read(&shop).await.body, empty());
    assert_eq!(put(&shop, "shirt-m", 1).await.status, 200);
    assert_eq!(quantities(&read(&shop).await.body), [("shirt-m", 1)]);
}

#[tokio::test]
async fn a_cart_shows_current_prices_and_their_sum() {
    let shop = shop_with_ann().await;
    put(&shop, "p0", 3).await;
    let line = put(&shop, "p.1#ä", 2).await.body;
    let shown = |line: &Value| ["name", "unit_price", "total", "in_stock"].map(|field| line[field].clone());
    assert_eq!(shown(&line), [json!("p.1#ä"), json!(money(100)), json!(money(200)), json!(true)]);
    assert_eq!(read(&shop).await.body["subtotal"], json!(money(500)));

    shop.reprice("p0", money(110)).await;
    let cart = read(&shop).await.body;
    assert_eq!(cart["subtotal"], json!(money(530)));
    assert_eq!(shown(&cart["items"][0]), [json!("p0"), json!(money(110)), json!(money(330)), json!(true)]);

    // Prices in two currencies have no sum.
    shop.reprice("p0", Money::new(110, "EUR".parse().unwrap())).await;
    assert_eq!(read(&shop).await.body["subtotal"], Value::Null);
}

#[tokio::test]
async fn a_line_says_whether_its_quantity_is_available() {
    let shop = shop_with_ann().await;
    shop.sell(seed::product("rare", money(100)), 4).await;
    for (quantity, available) in [(99, false), (5, false), (4, true)] {
        let set = put(&shop, "rare", quantity).await.body;
        assert_eq!((&set["in_stock"], &set["available"]), (&json!(true), &json!(available)), "{quantity}");
        assert_eq!(read(&shop).await.body["items"], json!([set]));
    }
    let shown = async || {
        let line = shop.send(line("GET", "rare")).await;
        assert_eq!(line.status, 200, "{}", line.body);
        (line.body["in_stock"] == json!(true), line.body["available"] == json!(true))
    };
    shop.put(&stored(seed::stock("rare".parse().unwrap(), 0))).await;
    assert_eq!(shown().await, (false, false));
    shop.delete_at("STOCK#rare#main#00000000000000000000", "STOCK").await;
    assert_eq!(shown().await, (false, false), "the stock must be repaired");
    // Only the variants of a parent have stock.
    shop.put(&stored(seed::stock("rare".parse().unwrap(), 0))).await;
    shop.vary("rare", seed::product("rare-m", money(100)), "M", 5).await;
    assert_eq!(shown().await, (false, false));
    assert_eq!(put(&shop, "rare-m", 5).await.body["available"], json!(true));
    shop.retire("p0").await;
    shop.cart_of("ann", &[("p0", 1), ("rare-m", 6)]).await;
    let cart = read(&shop).await.body;
    assert_eq!([&cart["items"][0]["available"], &cart["items"][1]["available"]], [false, false]);
}

#[tokio::test]
async fn a_line_whose_product_has_left_the_catalogue_has_no_price() {
    let shop = shop_with_ann().await;
    put(&shop, "p0", 3).await;
    put(&shop, "p.1#ä", 2).await;
    shop.retire("p0").await;
    let cart = read(&shop).await.body;
    let gone = &cart["items"][0];
    assert_eq!([&gone["name"], &gone["unit_price"], &gone["total"]], [&Value::Null; 3]);
    assert_eq!((&gone["in_stock"], &cart["subtotal"]), (&json!(false), &Value::Null));
    assert_eq!(shop.send(line("GET", "p0")).await.body, *gone);
    assert_eq!(cart["items"][1]["total"], json!(money(200)));
}

#[tokio::test]
async fn a_cart_is_read_in_two_requests_and_an_empty_cart_in_one_request() {
    let shop = shop_with_ann().await;
    let measured = async || {
        let _ = shop.app.table.meter().take();
        read(&shop).await;
        let taken = shop.app.table.meter().take();
        taken.iter().map(|measured| (measured.pattern.id, measured.requests)).collect::<Vec<_>>()
    };
    assert_eq!(measured().await, [("carts.get", 1)]);
    put(&shop, "p0", 3).await;
    put(&shop, "p.1#ä", 2).await;
    assert_eq!(measured().await, [("carts.get", 1), ("carts.products", 1)]);
}

#[tokio::test]
async fn customer_product_and_cart_are_read_in_one_request() {
    let shop = shop_with_ann().await;
    put(&shop, "p0", 1).await;
    let _ = shop.app.table.meter().take();
    put(&shop, "p0", 2).await;
    let measured: Vec<_> =
        shop.app.table.meter().take().iter().map(|measured| (measured.pattern.id, measured.requests)).collect();
    assert_eq!(measured, [("carts.prepare", 1), ("carts.put-line", 1)]);
}

#[tokio::test]
async fn a_full_cart_refuses_another_line_and_accepts_another_quantity() {
    let shop = shop_with_ann().await;
    shop.cart("ann", MAX_LINES, 60).await;
    let more = put(&shop, "p.1#ä", 1).await;
    assert_eq!((more.status, more.code()), (422, Some("too_many_lines")));
    assert_eq!(put(&shop, "p0", 9).await.status, 200);
    assert_eq!(read(&shop).await.body["items"].as_array().unwrap().len(), MAX_LINES);
    assert_eq!(shop.send(line("DELETE", "p1")).await.status, 204);
    assert_eq!(put(&shop, "p.1#ä", 1).await.status, 200);
    assert_eq!(put(&shop, "p0", 9).await.status, 200);
    assert_eq!(read(&shop).await.body["items"].as_array().unwrap().len(), MAX_LINES);
}

#[tokio::test]
async fn an_expired_cart_is_empty_even_before_dynamodb_removes_it() {
    let shop = shop_with_ann().await;
    // The cart is full. It would refuse a further line if it had not expired.
    shop.cart("ann", MAX_LINES, -1).await;
    assert_eq!(read(&shop).await.body, empty());
    assert_eq!(shop.send(line("GET", "p0")).await.status, 404);
    assert_eq!(shop.send(line("DELETE", "p0")).await.status, 204);
    assert_eq!(put(&shop, "p.1#ä", 2).await.status, 200);
    assert_eq!(quantities(&read(&shop).await.body), [("p.1#ä", 2)]);
}

#[tokio::test]
async fn lines_set_at_once_are_all_stored_even_in_a_new_cart() {
    let shop = shop_with_ann().await;
    let (a, b) = futures::future::join(put(&shop, "p0", 1), put(&shop, "p.1#ä", 2)).await;
    assert_eq!((a.status, b.status), (200, 200));
    let cart = read(&shop).await.body;
    let mut stored = quantities(&cart);
    stored.sort_unstable();
    assert_eq!(stored, [("p.1#ä", 2), ("p0", 1)]);
}
