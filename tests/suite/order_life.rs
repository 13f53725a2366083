//! Tests each status change of an order with its effects, and every illegal change.

use local::System;
use serde_json::{Value as Json, json};

use crate::support::client::Call;
use crate::support::shop::{
    customer, listed, moved, order, order_body, order_call, path, product_body, products, step, step_with, stock,
};
use crate::support::{drain, with_own_system, with_system};

/// Every status, with the status changes that lead to it.
const STATUS_PATHS: [(&str, &[&str]); 7] = [
    ("pending", &[]),
    ("paid", &["paid"]),
    ("picking", &["paid", "picking"]),
    ("shipped", &["paid", "picking", "shipped"]),
    ("delivered", &["paid", "picking", "shipped", "delivered"]),
    ("cancelled", &["cancelled"]),
    ("returned", &["paid", "picking", "shipped", "delivered", "returned"]),
];

/// The legal status changes.
const STEPS: [(&str, &str); 8] = [
    ("pending", "paid"),
    ("paid", "picking"),
    ("picking", "shipped"),
    ("shipped", "delivered"),
    ("pending", "cancelled"),
    ("paid", "cancelled"),
    ("picking", "cancelled"),
    ("delivered", "returned"),
];

/// The maximum number of reads of an eventually consistent list.
const MAX_READS: usize = 50;

fn staff(path: &str) -> Call {
    Call::new("GET", path).staff()
}

async fn read(system: &System, order: &Json) -> Json {
    staff(&path(&["orders", order["id"].as_str().unwrap()])).send(system).await.expect(200).body
}

/// Returns the statuses whose lists contain this order. Reads only the entries of each list that
/// have the order's time.
async fn statuses(system: &System, order: &Json) -> Vec<&'static str> {
    let at = order["placed_at"].as_str().unwrap();
    let mut found = Vec::new();
    for (status, _) in STATUS_PATHS {
        let list = listed(system, &format!("/v1/orders?status={status}&from={at}&to={at}"), 100, staff).await;
        for listed in list.iter().filter(|listed| listed["id"] == order["id"]) {
            assert_eq!(listed["status"], status);
            found.push(status);
        }
    }
    found
}

/// Reads until only this status's list contains the order, because an index follows the table with
/// a delay.
async fn is_listed_as(system: &System, order: &Json, status: &str) {
    let mut found = Vec::new();
    for _ in 0..MAX_READS {
        found = statuses(system, order).await;
        if found == [status] {
            return;
        }
    }
    panic!("the {status} order is in the lists {found:?}");
}

async fn shipments(system: &System, customer: &str) -> Vec<Json> {
    listed(system, &path(&["customers", customer, "shipments"]), 100, staff).await
}

async fn sales(system: &System, product: &str) -> Vec<Json> {
    drain(system).await;
    listed(system, &path(&["products", product, "sales"]), 100, staff).await
}

#[test]
fn each_status_change_up_to_delivered_updates_the_history_the_lists_and_the_customers_copy() {
    with_system(async |system| {
        let (buyer, product) = ("life-buyer", "life-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let mut body = order_body(buyer, &[(product, 3)]);
        body["placed_at"] = json!("2001-01-01T00:00:00.001Z");
        let mut order = order_call(&body, "life").staff().send(system).await.expect(201).body;
        let mut taken = vec!["pending"];
        is_listed_as(system, &order, "pending").await;
        for to in ["paid", "picking", "shipped", "delivered"] {
            assert!(
                to == "delivered" || shipments(system, buyer).await.is_empty(),
                "an order has no shipment before it is shipped"
            );
            let mut wanted = json!({ "to": to, "note": format!("now {to}") });
            if to == "shipped" {
                wanted["carrier"] = json!("DHL");
                wanted["tracking"] = json!("0034");
            }
            let moved = step_with(&order, &wanted).staff().send(system).await.expect(200);
            assert_eq!(moved.headers["etag"], format!("\"{}\"", moved.body["version"]));
            assert_eq!(moved.body["version"], json!(order["version"].as_u64().unwrap() + 1));
            assert_eq!(moved.body["lines"], order["lines"]);
            order = moved.body;
            taken.push(to);

            let whole = read(system, &order).await;
            assert_eq!(whole, order, "the response equals the stored order");
            let history = whole["history"].as_array().unwrap();
            let steps: Vec<&str> = history.iter().map(|step| step["status"].as_str().unwrap()).collect();
            assert_eq!(steps, taken);
            assert!(history.iter().all(|step| step["by"] == "staff"), "{history:?}");
            let payment = &whole["payments"][0];
            let said = (&payment["method"], &payment["amount"], &payment["refunded"]["amount"], &payment["by"]);
            assert_eq!(said, (&json!("manual"), &whole["total"], &json!(0), &json!("staff")));
            assert!(history.is_sorted_by_key(|step| step["at"].as_str().unwrap()), "{history:?}");
            assert_eq!(history.last().unwrap()["note"], format!("now {to}"));

            is_listed_as(system, &order, to).await;
            let copy = listed(system, &path(&["customers", buyer, "orders"]), 100, staff).await;
            assert_eq!((copy.len(), &copy[0]["status"]), (1, &json!(to)));
        }
        let shipped = shipments(system, buyer).await;
        assert_eq!(shipped.len(), 1);
        assert_eq!(shipped[0]["id"], order["id"]);
        assert_eq!(shipped[0]["status"], "delivered");
        assert_eq!((&shipped[0]["carrier"], &shipped[0]["tracking"]), (&json!("DHL"), &json!("0034")));
        assert_eq!(shipped[0]["shipped_at"], order["history"][3]["at"]);
        assert_eq!(stock(system, product).await, 7);
    });
}

#[test]
fn goods_of_a_cancelled_and_of_a_returned_order_are_in_stock_again_and_do_not_count_as_sold() {
    with_system(async |system| {
        let (buyer, ids) = ("back-buyer", ["back-1", "back-2"]);
        customer(system, buyer).await;
        products(system, &ids, 10).await;
        let mut orders = Vec::new();
        for key in ["kept", "cancelled", "returned"] {
            orders.push(order(system, buyer, &[(ids[0], 2), (ids[1], 3)], &format!("back-{key}")).await);
        }
        let sold = async |product| {
            let rows = sales(system, product).await;
            let mut sold: Vec<String> = rows.iter().map(|row| row["order_id"].as_str().unwrap().to_owned()).collect();
            sold.sort();
            sold
        };
        let ids_of = |orders: &[Json]| {
            let mut ids: Vec<String> = orders.iter().map(|order| order["id"].as_str().unwrap().to_owned()).collect();
            ids.sort();
            ids
        };
        assert_eq!(sold(ids[0]).await, ids_of(&orders));
        assert_eq!([stock(system, ids[0]).await, stock(system, ids[1]).await], [4, 1]);

        moved(system, orders.remove(1), &["paid", "cancelled"]).await;
        assert_eq!([stock(system, ids[0]).await, stock(system, ids[1]).await], [6, 4]);
        assert_eq!(sold(ids[1]).await, ids_of(&orders));

        moved(system, orders.remove(1), &["paid", "picking", "shipped", "delivered", "returned"]).await;
        assert_eq!([stock(system, ids[0]).await, stock(system, ids[1]).await], [8, 7]);
        for product in ids {
            assert_eq!(sold(product).await, ids_of(&orders));
        }
    });
}

#[test]
fn every_illegal_status_change_is_refused_from_every_status() {
    with_system(async |system| {
        let (buyer, product) = ("pairs-buyer", "pairs-product");
        customer(system, buyer).await;
        products(system, &[product], 1000).await;
        for (from, changes) in STATUS_PATHS {
            let placed = order(system, buyer, &[(product, 1)], &format!("pairs-{from}")).await;
            let order = moved(system, placed, changes).await;
            assert_eq!(order["status"], from);
            let left = stock(system, product).await;
            for (to, _) in STATUS_PATHS {
                if STEPS.contains(&(from, to)) {
                    continue;
                }
                let refused = step(&order, to).staff().send(system).await;
                // `pending` is not a valid target status, so the body is invalid.
                let expected = if to == "pending" { (422, "invalid_body") } else { (409, "illegal_transition") };
                assert_eq!((refused.status, refused.code()), expected, "{from} to {to}: {}", refused.body);
            }
            assert_eq!(read(system, &order).await, order, "a refused step changes nothing");
            assert_eq!(stock(system, product).await, left);
        }
        for (from, to) in STEPS {
            let (_, changes) = STATUS_PATHS.iter().find(|(status, _)| *status == from).unwrap();
            let placed = order(system, buyer, &[(product, 1)], &format!("pairs-{from}-{to}")).await;
            let order = moved(system, placed, changes).await;
            step(&order, to).staff().send(system).await.expect(200);
        }
    });
}

#[test]
fn an_owner_may_cancel_an_order_before_picking_but_may_take_no_other_step() {
    with_system(async |system| {
        let (buyer, product) = ("owner-buyer", "owner-product");
        customer(system, buyer).await;
        products(system, &[product], 1000).await;
        for (from, changes) in STATUS_PATHS {
            for (to, _) in &STATUS_PATHS[1..] {
                let placed = order(system, buyer, &[(product, 1)], &format!("owner-{from}-{to}")).await;
                let order = moved(system, placed, changes).await;
                let answer = step(&order, to).customer(buyer).send(system).await;
                let expected = match (STEPS.contains(&(from, to)), *to, from) {
                    (true, "cancelled", "pending" | "paid") => (200, ""),
                    (false, "cancelled", _) => (409, "illegal_transition"),
                    _ => (403, "forbidden"),
                };
                assert_eq!((answer.status, answer.code()), expected, "{from} to {to}: {}", answer.body);
                if answer.status == 200 {
                    assert_eq!(answer.body["history"].as_array().unwrap().last().unwrap()["by"], buyer);
                } else {
                    assert_eq!(read(system, &order).await, order);
                }
            }
        }
    });
}

#[test]
fn a_status_change_requires_the_current_version_and_a_caller_who_may_see_the_order() {
    with_system(async |system| {
        let (buyer, product) = ("seen-buyer", "seen-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let first = order(system, buyer, &[(product, 1)], "seen").await;
        let own = path(&["orders", first["id"].as_str().unwrap()]);
        let cancel = || Call::new("POST", &format!("{own}/status")).json(&json!({ "to": "cancelled" }));

        let second = moved(system, first.clone(), &["paid"]).await;
        for (call, status, code) in [
            (step(&first, "cancelled").staff(), 412, "version_mismatch"),
            (step(&first, "cancelled").customer(buyer), 412, "version_mismatch"),
            // The change is also illegal, but the server checks the version first.
            (step(&first, "delivered").staff(), 412, "version_mismatch"),
            (cancel().staff().header("if-match", "\"99\""), 412, "version_mismatch"),
            (cancel().staff(), 428, "if_match_missing"),
            (cancel().customer(buyer), 428, "if_match_missing"),
            (cancel().staff().header("if-match", "*"), 400, "invalid_header"),
            (cancel().staff().header("if-match", "W/\"2\""), 412, "version_mismatch"),
            (cancel().staff().header("if-match", "2"), 400, "invalid_header"),
            (step(&second, "cancelled").customer("seen-stranger"), 404, "not_found"),
            (cancel().customer("seen-stranger"), 404, "not_found"),
            (Call::new("GET", &own).customer("seen-stranger"), 404, "not_found"),
            (Call::new("GET", "/v1/orders/no-such-order").staff(), 404, "not_found"),
            (step(&json!({"id": "no-such-order", "version": 1}), "paid").staff(), 404, "not_found"),
        ] {
            let answer = call.clone().send(system).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{call:?}: {}", answer.body);
        }
        for call in [step(&second, "cancelled"), Call::new("GET", &own)] {
            let answer = call.send(system).await;
            assert_eq!((answer.status, answer.body), (401, json!({ "message": "Unauthorized" })));
        }
        assert_eq!(read(system, &second).await, second);
        // The customer does not see which member of staff has changed the order.
        let mut theirs = second;
        for part in ["/history/1", "/payments/0"] {
            theirs.pointer_mut(part).unwrap().as_object_mut().unwrap().remove("by");
        }
        assert_eq!(Call::new("GET", &own).customer(buyer).send(system).await.body, theirs);
    });
}

#[test]
fn one_of_two_clients_that_move_an_order_at_once_wins_and_the_other_gets_412() {
    with_system(async |system| {
        let (buyer, product) = ("race-buyer", "race-product");
        customer(system, buyer).await;
        products(system, &[product], 100).await;
        for round in 0..20 {
            let placed = order(system, buyer, &[(product, 1)], &format!("race-{round}")).await;
            // In even rounds both clients request the same change, in odd rounds different changes.
            let other = if round % 2 == 0 { "paid" } else { "cancelled" };
            let race = (step(&placed, "paid").staff().send(system), step(&placed, other).staff().send(system));
            let (one, two) = futures::join!(race.0, race.1);
            let (won, lost) = if one.status == 200 { (one, two) } else { (two, one) };
            assert_eq!((won.status, lost.status), (200, 412), "{} {}", won.body, lost.body);
            assert_eq!(lost.code(), "version_mismatch");
            let whole = read(system, &placed).await;
            assert_eq!(whole, won.body);
            assert_eq!((&whole["version"], whole["history"].as_array().unwrap().len()), (&json!(2), 2));
            let payments = whole["payments"].as_array().unwrap().len();
            assert_eq!(payments, usize::from(whole["status"] == "paid"), "a lost race writes no payment");
        }
    });
}

#[test]
fn only_staff_read_an_orders_log_which_begins_with_the_oldest_line() {
    with_system(async |system| {
        let (buyer, product) = ("log-buyer", "log-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let one = order(system, buyer, &[(product, 1)], "log-1").await;
        let other = order(system, buyer, &[(product, 1)], "log-2").await;
        let log = |order: &Json| path(&["orders", order["id"].as_str().unwrap(), "log"]);
        let mut written = Vec::new();
        for number in 0..25 {
            let text = json!({ "text": format!("note {number}") });
            written.push(Call::new("POST", &log(&one)).json(&text).staff().send(system).await.expect(201).body);
        }
        for limit in [7, 100] {
            assert_eq!(listed(system, &log(&one), limit, staff).await, written, "{limit} a page");
        }
        assert!(listed(system, &log(&other), 100, staff).await.is_empty());
        for call in [Call::new("GET", &log(&one)), Call::new("POST", &log(&one)).json(&json!({ "text": "mine" }))] {
            call.customer(buyer).send(system).await.expect(403);
        }
    });
}

#[test]
fn an_order_keeps_its_product_names_and_prices_after_a_product_changes() {
    with_system(async |system| {
        let (buyer, product) = ("kept-buyer", "kept-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let placed = order(system, buyer, &[(product, 2)], "kept").await;
        let change = json!({ "name": "Renamed", "price": { "amount": 999, "currency": "USD" } });
        let changed = Call::new("PATCH", &path(&["products", product])).json(&change).header("if-match", "\"1\"");
        assert_eq!(changed.staff().send(system).await.expect(200).body["name"], "Renamed");
        let kept = read(system, &placed).await;
        assert_eq!(kept, placed);
        let line = &kept["lines"][0];
        assert_eq!((&line["name"], &line["unit_price"]["amount"]), (&json!("Thing kept-product"), &json!(129)));
    });
}

/// A product that staff creates again under its id has its earlier reviews and other data, but not
/// its earlier stock. The cancellation of an earlier order returns no pieces to the new stock.
#[test]
fn a_product_that_returns_under_its_id_keeps_all_data_but_its_stock() {
    with_system(async |system| {
        let (buyer, product) = ("returns-buyer", "returns-product");
        customer(system, buyer).await;
        products(system, &[product], 10).await;
        let earlier = order(system, buyer, &[(product, 3)], "returns-earlier").await;
        let put = |segments: &[&str]| Call::new("PUT", &path(segments));
        let review = json!({ "rating": 5, "title": "Good", "text": "Tea" });
        let review = put(&["products", product, "reviews", buyer]).customer(buyer).json(&review);
        review.header("if-none-match", "*").send(system).await.expect(201);
        put(&["customers", buyer, "likes", product]).customer(buyer).send(system).await.expect(201);
        put(&["products", product, "categories", "Returns~Tea"]).staff().send(system).await.expect(201);
        let content = put(&["products", product, "content"]).staff().json(&json!({ "text": "Long" }));
        content.header("if-none-match", "*").send(system).await.expect(201);
        drain(system).await;

        let page = async || Call::new("GET", &path(&["products", product])).staff().send(system).await;
        let before = page().await.expect(200).body;
        let retire = Call::new("DELETE", &path(&["products", product])).staff();
        retire.header("if-match", &format!("\"{}\"", before["version"])).send(system).await.expect(204);
        page().await.expect(404);
        let back = Call::new("POST", "/v1/products").staff().json(&product_body(product, &[product], 5));
        back.send(system).await.expect(201);
        step(&earlier, "cancelled").customer(buyer).send(system).await.expect(200);
        drain(system).await;

        let after = page().await.expect(200).body;
        for kept in ["review_count", "average_rating", "categories"] {
            assert_eq!(after[kept], before[kept], "{kept}");
        }
        assert_eq!((&after["review_count"], after["categories"].as_array().unwrap().len()), (&json!(1), 2));
        assert_eq!(stock(system, product).await, 5);
        let likes = Call::new("GET", &path(&["products", product, "likes"])).send(system).await.expect(200).body;
        assert_eq!(likes["count"], 1);
        let content = Call::new("GET", &path(&["products", product, "content"])).send(system).await.expect(200).body;
        assert_eq!(content["text"], "Long");
        let listed = listed(system, "/v1/categories/Returns~Tea/products", 100, staff).await;
        assert_eq!(listed.iter().map(|entry| &entry["id"]).collect::<Vec<_>>(), [product]);
    });
}

/// Returns the orders that have a station, and the orders that wait for one.
async fn queue(system: &System) -> (Vec<Json>, Vec<Json>) {
    let page = Call::new("GET", "/v1/picking?limit=1").staff().send(system).await.expect(200).body;
    let ids = |list: &[Json]| list.iter().map(|job| job["order_id"].clone()).collect();
    let waiting = listed(system, "/v1/picking", 1, |path| Call::new("GET", path).staff()).await;
    (ids(page["jobs"].as_array().unwrap()), ids(&waiting))
}

#[test]
fn paid_orders_get_the_picking_stations_and_free_them_after_picking() {
    with_own_system(async |system| {
        let stations = crate::support::template().functions.iter().find_map(|function| {
            function.environment.get("PICKING_STATIONS").map(|number| number.parse::<usize>().unwrap())
        });
        let stations = stations.unwrap();
        customer(system, "picking-ann").await;
        products(system, &["picking-tea"], 1000).await;
        let mut orders = Vec::new();
        for number in 0..stations + 2 {
            let key = format!("picking-{number}");
            let order = order(system, "picking-ann", &[("picking-tea", 1)], &key).await;
            orders.push(moved(system, order, &["paid"]).await);
            // Wait after each payment, because the queue does not preserve the order of messages.
            drain(system).await;
        }
        let id = |index: usize| orders[index]["id"].clone();
        let ids = |range: std::ops::Range<usize>| range.map(id).collect::<Vec<_>>();
        assert_eq!(queue(system).await, (ids(0..stations), ids(stations..stations + 2)));

        // An order that is shipped or cancelled frees its station for the next waiting order.
        moved(system, orders[0].clone(), &["picking", "shipped"]).await;
        drain(system).await;
        assert_eq!(queue(system).await, (ids(1..stations + 1), ids(stations + 1..stations + 2)));
        moved(system, orders[stations + 1].clone(), &["cancelled"]).await;
        moved(system, orders[1].clone(), &["cancelled"]).await;
        drain(system).await;
        assert_eq!(queue(system).await, (ids(2..stations + 1), Vec::new()));
        Call::new("GET", "/v1/picking").customer("picking-ann").send(system).await.expect(403);
    });
}

#[test]
fn a_repeated_claim_after_the_checkout_adds_nothing() {
    with_system(async |system| {
        let (ann, tea) = ("guest-cart-ann", "guest-cart-tea");
        customer(system, ann).await;
        products(system, &[tea], 10).await;
        let cart = Call::new("POST", "/v1/carts").send(system).await.expect(201).body;
        let (id, token) = (cart["id"].as_str().unwrap(), cart["token"].as_str().unwrap());
        let line = Call::new("PUT", &path(&["carts", id, "items", tea])).header("cart-token", token);
        line.json(&json!({ "quantity": 2 })).send(system).await.expect(200);
        let claim = || {
            let call = Call::new("POST", &path(&["customers", ann, "cart", "claim"])).customer(ann);
            call.json(&json!({ "cart_id": id, "cart_token": token }))
        };
        assert_eq!(claim().send(system).await.expect(200).body["items"][0]["quantity"], 2);
        let checkout = Call::new("POST", &path(&["customers", ann, "cart", "checkout"])).customer(ann);
        checkout.json(&json!({})).header("idempotency-key", "guest-cart").send(system).await.expect(201);
        assert_eq!(claim().send(system).await.expect(200).body["items"], json!([]));
    });
}
