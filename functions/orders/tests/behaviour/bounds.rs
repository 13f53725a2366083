//! Tests of the limits on a customer's unpaid orders, and of the time at which these orders are
//! cancelled.

use futures::future::join_all;
use http_api::sample::Call;
use key_schema::id::{Born, CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{MAX_ITEM_BYTES, Stored, size};
use key_schema::order::open::{MAX_ORDERS, OpenOrder, OpenOrders};
use key_schema::order::{MAX_LINES, MAX_QUANTITY};
use serde_json::{Value, json};

use crate::shop::{Shop, checkout, errors, money, moved, order, reasons, staff_order};

/// Sends orders of one piece of tea until an order is refused. Returns the placed orders and the
/// refusal.
async fn until_refused(shop: &Shop) -> (Vec<Value>, http_api::sample::Answered) {
    let mut placed = Vec::new();
    loop {
        let answer = shop.send(order(&[("tea", 1)], &format!("until-{}", placed.len()))).await;
        if answer.status != 201 {
            return (placed, answer);
        }
        placed.push(answer.body);
    }
}

#[tokio::test]
async fn a_customer_has_at_most_20_unpaid_orders_and_can_order_after_a_payment_or_cancellation() {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    let (placed, refused) = until_refused(&shop).await;
    assert_eq!((placed.len(), refused.status, refused.code()), (20, 409, Some("too_many_pending_orders")));
    assert_eq!((shop.stock("tea").await, shop.open_orders().await.len()), (80, 20));

    for (at, to) in ["paid", "cancelled"].into_iter().enumerate() {
        let left = shop.send(moved(&placed[at], to)).await;
        assert_eq!(left.status, 200, "{}", left.body);
        assert_eq!(shop.open_orders().await.len(), 19, "{to}");
        assert_eq!(shop.send(order(&[("tea", 1)], to)).await.status, 201);
        assert_eq!(shop.send(order(&[("tea", 1)], &format!("{to}-2"))).await.code(), Some("too_many_pending_orders"));
    }
    // A status change after `paid` does not change the open orders.
    let paid = json!({ "id": placed[0]["id"], "version": 2 });
    assert_eq!(shop.send(moved(&paid, "picking")).await.status, 200);
    assert_eq!(shop.open_orders().await.len(), 20);
}

#[tokio::test]
async fn a_customer_places_a_limited_number_of_orders_a_day_including_cancelled_ones() {
    let shop = Shop::open().await;
    shop.product("tea", 1_000).await;
    shop.limit(&json!({ "max_orders_per_day": 4 })).await;
    let large: Vec<String> = (0..60).map(|number| format!("product-{number}")).collect();
    for product in &large {
        shop.product(product, 10).await;
    }
    let large: Vec<(&str, u64)> = large.iter().map(|product| (product.as_str(), 1)).collect();
    // The third order takes several transactions.
    for (number, lines) in [&[("tea", 1)], &[("tea", 2)], &large[..]].into_iter().enumerate() {
        let placed = shop.send(order(lines, &format!("k{number}"))).await;
        assert_eq!(placed.status, 201, "{}", placed.body);
        assert_eq!(shop.send(moved(&placed.body, "cancelled")).await.status, 200);
    }
    // A refused order and an order by staff do not count.
    assert_eq!(shop.send(order(&[("tea", 1_001)], "over")).await.status, 409);
    assert_eq!(shop.send(staff_order(&[("tea", 1)], "staff", &json!({}))).await.status, 201);
    shop.fill_cart(&[("tea", 1)]).await;
    assert_eq!(shop.check_out(&json!({})).await.status, 201);

    shop.fill_cart(&[("tea", 1)]).await;
    for call in [shop.check_out(&json!({})).await, shop.send(order(&[("tea", 1)], "k5")).await] {
        assert_eq!((call.status, call.code()), (429, Some("quota_exceeded")), "{}", call.body);
        let seconds: i64 = call.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_400).contains(&seconds), "{seconds}");
    }
    let again = shop.send(order(&[("tea", 1)], "k0")).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, Some("true")));
    assert_eq!(shop.open_orders().await.len(), 1);
}

#[tokio::test]
async fn a_repeated_request_gets_its_order_even_at_the_limit_of_unpaid_orders() {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    shop.limit(&json!({ "max_pending_orders": 1 })).await;
    let own = |key: &str| {
        let body =
            json!({ "customer_id": "ann", "reference": "r1", "lines": [{ "product_id": "tea", "quantity": 1 }] });
        Call::new("POST /v1/orders").customer("ann").header("idempotency-key", key).json(&body)
    };
    let first = shop.send(own("k1")).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = shop.send(own("k1")).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    let by_reference = shop.send(own("k2")).await;
    assert_eq!((by_reference.status, by_reference.code()), (409, Some("already_exists")));
    assert_eq!(by_reference.header("location"), first.header("location"));
    assert_eq!(shop.send(order(&[("tea", 1)], "k3")).await.code(), Some("too_many_pending_orders"));
}

#[tokio::test]
async fn unpaid_orders_have_at_most_1000_pieces_of_a_product_and_the_refusal_names_the_lines() {
    let shop = Shop::open().await;
    for product in ["tea", "rice", "salt"] {
        shop.product(product, 10_000).await;
    }
    let over = shop.send(order(&[("rice", 1), ("tea", 1_001)], "over")).await;
    assert_eq!((over.status, over.code()), (409, Some("quantity_limit")), "{}", over.body);
    let detail = "must be at most 1000, because unpaid orders already have 0 pieces";
    assert_eq!((errors(&over), reasons(&over)), (vec![("/lines/1/quantity", "tea", detail)], vec!["quantity_limit"]));

    assert_eq!(shop.send(order(&[("tea", 600), ("rice", 700)], "a")).await.status, 201);
    assert_eq!(shop.send(order(&[("salt", 900)], "b")).await.status, 201);
    let both = shop.send(order(&[("rice", 301), ("salt", 100), ("tea", 401)], "both")).await;
    assert_eq!((both.status, both.code()), (409, Some("quantity_limit")));
    let details = [
        "must be at most 300, because unpaid orders already have 700 pieces",
        "must be at most 400, because unpaid orders already have 600 pieces",
    ];
    assert_eq!(errors(&both), [("/lines/0/quantity", "rice", details[0]), ("/lines/2/quantity", "tea", details[1])]);
    assert_eq!(shop.stock("tea").await, 9_400);

    // The largest allowed quantities succeed.
    let rest = shop.send(order(&[("rice", 300), ("salt", 100), ("tea", 400)], "rest")).await;
    assert_eq!(rest.status, 201, "{}", rest.body);
    assert_eq!(shop.send(order(&[("tea", 1)], "one")).await.code(), Some("quantity_limit"));
    // The pieces of a paid order do not count.
    assert_eq!(shop.send(moved(&rest.body, "paid")).await.status, 200);
    assert_eq!(shop.send(order(&[("tea", 400)], "two")).await.status, 201);
}

#[tokio::test]
async fn a_checkout_has_the_limits_of_an_order_and_its_refusal_names_the_line_of_the_cart() {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    shop.product("rice", 100).await;
    shop.limit(&json!({ "max_pending_quantity": 5, "max_pending_orders": 1 })).await;
    shop.fill_cart(&[("tea", 6), ("rice", 1)]).await;
    let over = shop.check_out(&json!({})).await;
    let detail = "must be at most 5, because unpaid orders already have 0 pieces";
    assert_eq!((over.code(), errors(&over)), (Some("quantity_limit"), vec![("/items/0/quantity", "tea", detail)]));
    assert_eq!(shop.send(order(&[("tea", 1)], "k")).await.status, 201);
    assert_eq!(shop.check_out(&json!({})).await.code(), Some("too_many_pending_orders"));
    assert!(shop.has_cart().await);
}

#[tokio::test]
async fn orders_by_staff_have_no_bounds_and_do_not_count_toward_the_customers_bounds() {
    let shop = Shop::open().await;
    shop.product("tea", 10_000).await;
    shop.limit(&json!({ "max_pending_quantity": 1, "max_pending_orders": 1 })).await;
    for number in 0..3 {
        let placed = shop.send(staff_order(&[("tea", 50)], &format!("s{number}"), &json!({}))).await;
        assert_eq!(placed.status, 201, "{}", placed.body);
        assert_eq!(shop.send(moved(&placed.body, "paid")).await.status, 200);
    }
    shop.fill_cart(&[("tea", 7)]).await;
    assert_eq!(shop.send(checkout().staff("sam").json(&json!({}))).await.status, 201);
    assert!(shop.open_orders().await.is_empty());
    assert_eq!(shop.send(order(&[("tea", 1)], "own")).await.status, 201);
}

#[tokio::test]
async fn the_bounds_hold_for_20_concurrent_orders() {
    let shop = Shop::open().await;
    shop.product("tea", 1_000).await;
    shop.limit(&json!({ "max_pending_orders": 5 })).await;
    let answers = join_all((0..20).map(|number| shop.send(order(&[("tea", 1)], &format!("k{number}"))))).await;
    let placed = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.code() == Some("too_many_pending_orders")).count();
    assert_eq!((placed, refused, shop.stock("tea").await), (5, 15, 995));

    let shop = Shop::open().await;
    shop.product("tea", 1_000).await;
    shop.limit(&json!({ "max_pending_quantity": 50 })).await;
    let answers = join_all((0..20).map(|number| shop.send(order(&[("tea", 7)], &format!("k{number}"))))).await;
    let placed = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.code() == Some("quantity_limit")).count();
    assert_eq!((placed, refused, shop.stock("tea").await), (7, 13, 951));
}

#[tokio::test]
async fn an_order_of_many_lines_is_counted_as_soon_as_it_holds_stock() {
    let shop = Shop::open().await;
    let products: Vec<String> = (0..60).map(|number| format!("p{number:02}")).collect();
    for product in &products {
        shop.product(product, 100).await;
    }
    shop.limit(&json!({ "max_pending_quantity": 10 })).await;
    let lines = |quantity: u64| products.iter().map(|product| (product.as_str(), quantity)).collect::<Vec<_>>();
    let first = shop.send(order(&lines(6), "first")).await;
    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(shop.open_orders().await.into_values().collect::<Vec<_>>(), [OpenOrder { most: 6, lines: 60 }]);
    let over = shop.send(order(&lines(5), "over")).await;
    assert_eq!((over.code(), errors(&over).len()), (Some("quantity_limit"), 60));
    // A refused order of many lines leaves no entry among the open orders.
    shop.product("rare", 0).await;
    let short = shop.send(order(&[&lines(1)[..], &[("rare", 1)]].concat(), "short")).await;
    assert_eq!((short.code(), shop.open_orders().await.len()), (Some("insufficient_stock"), 1));
    assert_eq!(shop.send(moved(&first.body, "cancelled")).await.status, 200);
    assert_eq!((shop.open_orders().await.len(), shop.stock("p59").await), (0, 100));
}

/// Returns a customer's list of open orders. It has `entry` for each of `orders` orders.
fn held(orders: u64, entry: OpenOrder) -> Stored<OpenOrders> {
    let id = |number: u64| OrderId::generate(Instant::now().plus_seconds(-(number as i64)), [7; 10]);
    let open = OpenOrders {
        customer_id: CustomerId::new("ann").unwrap(),
        expires_at: Instant::now().plus_seconds(60),
        entries: (0..orders).map(|number| (id(number), entry)).collect(),
        day: Instant::now().day(),
        placed: 0,
    };
    Stored::new(open, Born::new("b").unwrap(), Instant::now())
}

/// The check of the quantity limit may read the lines of all unpaid orders, so the number of lines
/// is limited.
#[tokio::test]
async fn unpaid_orders_have_at_most_1000_lines() {
    let shop = Shop::open().await;
    for product in ["tea", "rice"] {
        shop.product(product, 10).await;
    }
    shop.put(&held(3, OpenOrder { most: 1, lines: 333 })).await;
    let over = shop.send(order(&[("tea", 1), ("rice", 1)], "over")).await;
    assert_eq!((over.status, over.code()), (409, Some("too_many_pending_orders")), "{}", over.body);
    assert_eq!(shop.send(order(&[("tea", 1)], "last")).await.status, 201);
    assert_eq!(shop.send(order(&[("tea", 1)], "one")).await.code(), Some("too_many_pending_orders"));
    assert_eq!((shop.stock("tea").await, shop.stock("rice").await), (9, 10));
    shop.limit(&json!({ "max_pending_lines": 1_001 })).await;
    shop.wait(30);
    assert_eq!(shop.send(order(&[("tea", 1)], "more")).await.status, 201);
}

/// The list has the maximum content: as many orders as a setting allows, with the largest entries.
#[tokio::test]
async fn the_largest_list_of_open_orders_fits_an_item_and_can_still_change() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let open = held(MAX_ORDERS, OpenOrder { most: MAX_QUANTITY, lines: MAX_LINES as u64 });
    assert!(size(&open.to_item().unwrap()) < MAX_ITEM_BYTES / 4);
    shop.put(&open).await;
    let lines = MAX_ORDERS * MAX_LINES as u64;
    shop.limit(&json!({
        "max_pending_orders": MAX_ORDERS, "max_pending_quantity": 1_000_000_000, "max_pending_lines": lines,
    }))
    .await;
    assert_eq!(shop.send(order(&[("tea", 1)], "full")).await.code(), Some("too_many_pending_orders"));

    let mut almost = open.clone();
    almost.data.entries.pop_first();
    shop.put(&almost).await;
    let placed = shop.send(order(&[("tea", 1)], "last")).await;
    assert_eq!((placed.status, shop.open_orders().await.len()), (201, 1_000), "{}", placed.body);
    assert_eq!(shop.send(moved(&placed.body, "paid")).await.status, 200);
    assert_eq!(shop.open_orders().await.len(), 999);
}

#[tokio::test]
async fn an_order_whose_entry_in_the_list_of_open_orders_has_expired_can_still_be_paid_or_cancelled() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    for to in ["paid", "cancelled"] {
        let placed = shop.send(order(&[("tea", 1)], to)).await.body;
        let mut open = OpenOrders {
            customer_id: CustomerId::new("ann").unwrap(),
            expires_at: Instant::now(),
            entries: Default::default(),
            day: Instant::now().day(),
            placed: 0,
        };
        open.expires_at = Instant::now().plus_seconds(60);
        shop.put(&Stored::new(open, Born::new("other").unwrap(), Instant::now())).await;
        let left = shop.send(moved(&placed, to)).await;
        assert_eq!((left.status, &left.body["status"]), (200, &json!(to)), "{}", left.body);
    }
    assert_eq!(shop.stock("tea").await, 9);
}

#[tokio::test]
async fn a_customers_order_lapses_after_the_set_time_and_an_order_by_staff_lapses_only_on_request() {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    let minutes = |order: &Value| {
        let at = |text: &Value| text.as_str().unwrap().parse::<Instant>().unwrap().as_millis();
        (at(&order["lapses_at"]) - at(&order["placed_at"])) / 60_000
    };
    let own = shop.send(order(&[("tea", 1)], "own")).await.body;
    assert_eq!((minutes(&own), shop.head(&own).await.by_customer), (60, true));
    let staffs = shop.send(staff_order(&[("tea", 1)], "staffs", &json!({}))).await.body;
    assert_eq!(staffs.get("lapses_at"), None);
    let exempt = shop.send(staff_order(&[("tea", 1)], "exempt", &json!({ "lapses": false }))).await.body;
    assert_eq!(exempt.get("lapses_at"), None);
    let lapses = shop.send(staff_order(&[("tea", 1)], "lapses", &json!({ "lapses": true }))).await.body;
    assert_eq!((minutes(&lapses), shop.head(&lapses).await.by_customer), (60, false));
    assert_eq!(shop.lapsing(Instant::MAX).await, 2);

    // The function caches the settings for 30 seconds.
    shop.limit(&json!({ "pending_minutes": 5 })).await;
    shop.wait(30);
    let sooner = shop.send(order(&[("tea", 1)], "sooner")).await.body;
    assert_eq!(minutes(&sooner), 5);

    // A paid order is never cancelled for lack of payment, so the response has no `lapses_at`.
    let paid = shop.send(moved(&sooner, "paid")).await.body;
    assert_eq!((paid.get("lapses_at"), shop.lapsing(Instant::MAX).await), (None, 2));
    let again = shop.send(order(&[("tea", 1)], "sooner")).await;
    assert_eq!(again.body, sooner, "a repetition gets the first response");

    let refused = shop
        .send(Call::new("POST /v1/orders").customer("ann").header("idempotency-key", "x").json(&json!({
            "customer_id": "ann", "lines": [{ "product_id": "tea", "quantity": 1 }], "lapses": false,
        })))
        .await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/lapses"]), "{}", refused.body);
}

/// If customers could confirm free orders, they could occupy stock and picking stations without a
/// payment.
#[tokio::test]
async fn only_staff_confirm_an_order_without_a_price() {
    let shop = Shop::open().await;
    shop.priced_product("sample", money(0)).await;
    let placed = shop.send(order(&[("sample", 1)], "k")).await.body;
    let pay = Call::new("POST /v1/orders/{id}/status").path("id", placed["id"].as_str().unwrap()).customer("ann");
    let pay = pay.header("if-match", "\"1\"").json(&json!({ "to": "paid", "pay_from_wallet": true }));
    let refused = shop.send(pay).await;
    assert_eq!((refused.status, refused.code()), (403, Some("forbidden")), "{}", refused.body);
    assert_eq!(shop.open_orders().await.len(), 1);
    let paid = shop.send(moved(&placed, "paid")).await;
    assert_eq!((paid.status, &paid.body["payments"]), (200, &json!([])), "{}", paid.body);
}
