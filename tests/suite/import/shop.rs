use std::collections::{BTreeMap, BTreeSet};

use local::System;
use serde_json::{Value as Json, json};

use super::data::{DISCOUNTS, Expected, Order, STOCK, money};
use crate::support::client::Call;
use crate::support::shop::listed;

/// Compares everything that clients can see with the expected data.
pub async fn is_as_expected(system: &System, expected: &Expected) {
    products(system, expected).await;
    let orders = orders(system, expected).await;
    customers(system, expected, &orders).await;
    sales(system, expected, &orders).await;
    index(system, expected, &orders).await;
    search(system).await;
}

fn staff(path: &str) -> Call {
    Call::new("GET", path).staff()
}

async fn read(system: &System, path: &str) -> Json {
    staff(path).send(system).await.expect(200).body
}

/// Compares each product with the data, and its stock with the number of pieces that were not sold.
async fn products(system: &System, expected: &Expected) {
    let sold = expected.sold();
    for product in &expected.products {
        let found = read(system, &format!("/v1/products/{}", product.id)).await;
        let numbers = read(system, &format!("/v1/products/{}/numbers", product.id)).await;
        let shown = json!({
            "name": found["name"], "brand": found["brand"], "package_size": found["package_size"],
            "category_path": found["category_path"], "price": found["price"], "stock": numbers["stock"],
            "version": found["version"],
        });
        let wanted = json!({
            "name": product.name, "brand": product.brand, "package_size": product.package_size,
            "category_path": product.category_path, "price": money(product.cents),
            "stock": STOCK - sold.get(&product.id).unwrap_or(&0), "version": 1,
        });
        assert_eq!(shown, wanted, "product {}", product.id);
    }
    for unknown in [1008, 4444] {
        staff(&format!("/v1/products/{unknown}")).send(system).await.expect(404);
    }
}

/// Compares each order with the data, and returns the orders by basket.
async fn orders(system: &System, expected: &Expected) -> BTreeMap<u64, Json> {
    let pending = listed(system, "/v1/orders?status=pending", 7, staff).await;
    let basket = |order: &Json| order["reference"].as_str().unwrap().parse::<u64>().unwrap();
    let mut found = BTreeMap::new();
    for summary in &pending {
        let order = read(system, &format!("/v1/orders/{}", summary["id"].as_str().unwrap())).await;
        for member in ["id", "reference", "customer_id", "status", "total", "placed_at"] {
            assert_eq!(summary[member], order[member]);
        }
        assert_eq!(summary["line_count"], order["lines"].as_array().unwrap().len());
        assert!(found.insert(basket(&order), order).is_none(), "listed twice: {summary}");
    }
    let wanted: BTreeSet<u64> = expected.orders.iter().map(|order| order.basket).collect();
    assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), wanted);
    for wanted in &expected.orders {
        let order = &found[&wanted.basket];
        assert_eq!(order["customer_id"], wanted.household.to_string());
        assert_eq!(order["store_id"], "330");
        assert_eq!(order["placed_at"], wanted.placed_at);
        assert_eq!(order["total"], money(wanted.total()));
        assert_eq!(order["history"][0]["at"], wanted.placed_at);
        let discount = wanted.lines.len() as i64 * DISCOUNTS.iter().sum::<i64>();
        let totals = &order["totals"];
        assert_eq!((&totals["discount"], &totals["total"]), (&money(discount), &money(wanted.total())));
        assert_eq!(totals["items"], money(wanted.total() + discount));
        let lines = order["lines"].as_array().unwrap();
        assert_eq!(lines.len(), wanted.lines.len());
        for (line, (product, quantity, cents)) in lines.iter().zip(&wanted.lines) {
            assert_eq!(line["product_id"], product.to_string());
            assert_eq!((&line["quantity"], &line["total"]), (&json!(quantity), &money(*cents)));
            let [retail, coupon] = DISCOUNTS;
            let discounts = json!([{ "name": "retail_disc", "amount": money(retail) },
                { "name": "coupon_disc", "amount": money(coupon) }]);
            assert_eq!((&line["discounts"], &line["discount"]), (&discounts, &money(retail + coupon)));
            let product = expected.products.iter().find(|known| known.id == *product).unwrap();
            assert_eq!((&line["name"], &line["unit_price"]), (&json!(product.name), &money(product.cents)));
        }
    }
    found
}

/// Orders with the same time are sorted by basket, because the API may return them in any order.
fn newest(orders: &[&Order]) -> Vec<(String, u64)> {
    let mut sorted: Vec<(String, u64)> = orders.iter().map(|order| (order.placed_at.clone(), order.basket)).collect();
    sorted.sort_by(|one, other| other.cmp(one));
    sorted
}

fn shown(orders: &[Json]) -> Vec<(String, u64)> {
    let text = |order: &Json, member: &str| order[member].as_str().unwrap().to_owned();
    let mut shown: Vec<(String, u64)> =
        orders.iter().map(|order| (text(order, "placed_at"), text(order, "reference").parse().unwrap())).collect();
    assert!(shown.is_sorted_by(|one, other| one.0 >= other.0), "{shown:?}");
    shown.sort_by(|one, other| other.cmp(one));
    shown
}

/// Checks each customer's overview and list of orders.
async fn customers(system: &System, expected: &Expected, orders: &BTreeMap<u64, Json>) {
    let everybody = listed(system, "/v1/customers?tier=bronze", 3, staff).await;
    let ids: BTreeSet<u64> =
        everybody.iter().map(|customer| customer["id"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(ids, &expected.placed | &expected.bare);
    for id in ids {
        let overview = read(system, &format!("/v1/customers/{id}/overview")).await;
        let place = expected.placed.contains(&id).then(|| json!({ "country": "US", "city": "unknown" }));
        let customer = &overview["customer"];
        assert_eq!(customer["email"], format!("household-{id}@example.com"));
        assert_eq!((&customer["place"], &customer["version"]), (&json!(place), &json!(1)));
        let own: Vec<&Order> = expected.orders.iter().filter(|order| order.household == id).collect();
        let wanted = newest(&own);
        let newest_20 = overview["orders"].as_array().unwrap();
        assert_eq!(shown(newest_20), wanted[..wanted.len().min(20)], "customer {id}");
        for summary in newest_20 {
            let order = orders.values().find(|order| order["id"] == summary["id"]).unwrap();
            assert_eq!((&summary["total"], &summary["status"]), (&order["total"], &order["status"]));
            assert_eq!(summary["line_count"], order["lines"].as_array().unwrap().len());
        }
        let all = listed(system, &format!("/v1/customers/{id}/orders"), 4, staff).await;
        assert_eq!(shown(&all), wanted, "customer {id}");
    }
}

/// Checks each product's sales by date, in a long and in a short period, with two entries per page.
async fn sales(system: &System, expected: &Expected, orders: &BTreeMap<u64, Json>) {
    let basket_of: BTreeMap<&str, u64> =
        orders.iter().map(|(basket, order)| (order["id"].as_str().unwrap(), *basket)).collect();
    let row = |row: &Json| {
        let basket = basket_of[row["order_id"].as_str().unwrap()];
        (row["placed_at"].as_str().unwrap().to_owned(), basket, row["quantity"].clone(), row["total"].clone())
    };
    for product in &expected.products {
        for (from, to) in
            [("2017-01-01T00:00:00Z", "2017-12-31T23:59:59.999Z"), ("2017-01-01T10:01:26Z", "2017-01-01T10:15:26.000Z")]
        {
            let path = format!("/v1/products/{}/sales?from={from}&to={to}", product.id);
            let found = listed(system, &path, 2, staff).await;
            let found: Vec<_> = found.iter().map(row).collect();
            assert!(found.is_sorted_by(|one, other| one.0 >= other.0), "{path}: {found:?}");
            let mut wanted: Vec<_> = expected
                .orders
                .iter()
                .filter(|order| (&*from.replace('Z', ".000Z")..=to).contains(&order.placed_at.as_str()))
                .flat_map(|order| order.lines.iter().map(move |line| (order, line)))
                .filter(|(_, (id, _, _))| *id == product.id)
                .map(|(order, (_, quantity, cents))| {
                    (order.placed_at.clone(), order.basket, json!(quantity), money(*cents))
                })
                .collect();
            let by_time_and_basket = |rows: &mut Vec<(String, u64, Json, Json)>| {
                rows.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
            };
            let mut found = found;
            by_time_and_basket(&mut found);
            by_time_and_basket(&mut wanted);
            assert_eq!(found, wanted, "{path}");
        }
    }
}

/// Checks that the index has exactly the live products and orders, with their versions.
async fn index(system: &System, expected: &Expected, orders: &BTreeMap<u64, Json>) {
    let indexed = async |collection: &str| {
        let (mut found, mut cursor) = (BTreeMap::new(), String::new());
        loop {
            let page = read(system, &format!("/_local/index/{collection}{cursor}")).await;
            for item in page["items"].as_array().unwrap() {
                let id = item["id"].as_str().unwrap().to_owned();
                assert!(found.insert(id, item["version"].as_u64().unwrap()).is_none(), "twice: {item}");
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("?cursor={next}"),
                None => return found,
            }
        }
    };
    let products: BTreeMap<String, u64> = expected.products.iter().map(|product| (product.id.to_string(), 1)).collect();
    let orders: BTreeMap<String, u64> =
        orders.values().map(|order| (order["id"].as_str().unwrap().to_owned(), 1)).collect();
    assert_eq!(indexed("products").await, products);
    assert_eq!(indexed("orders").await, orders);
    let drained = Call::new("POST", "/_local/drain").send(system).await.expect(200);
    assert_eq!(drained.body["index"], json!({ "products": products.len(), "orders": orders.len() }));
    assert_eq!((&drained.body["quarantined"], &drained.body["lag"]), (&json!(0), &json!(0)));
}

/// Searches products by words, by words with typos, and by category. Searches orders by basket and
/// by household.
async fn search(system: &System) {
    for (query, wanted) in [
        ("q=potatoes", &["1003"][..]),
        ("q=crushed", &["1001", "1002"]),
        ("q=ice+22", &["1001"]),
        ("q=potatos+onoins", &["1003"]),
        ("q=gasolnie", &["1006"]),
        ("category=GROCERY~FRZN_20ICE", &["1001", "1002"]),
        ("category=GROCERY", &["1001", "1002"]),
        ("category=PRODUCE~UNKNOWN", &["1003"]),
        ("category=UNKNOWN", &["1007"]),
        ("category=FRZN_20ICE", &[]),
        ("q=crushed&brand=Private", &["1002"]),
        ("q=crushed&category=PRODUCE", &[]),
    ] {
        let found = listed(system, &format!("/v1/search/products?{query}"), 1, |path| Call::new("GET", path)).await;
        let found: BTreeSet<&str> = found.iter().map(|hit| hit["id"].as_str().unwrap()).collect();
        assert_eq!(found, wanted.iter().copied().collect(), "{query}");
    }
    let found = listed(system, "/v1/search/products?category=SHELF", 20, |path| Call::new("GET", path)).await;
    assert_eq!(found.len(), 48);
    for (query, wanted) in [("5008", 1), ("77", 1), ("600", 10)] {
        let found = listed(system, &format!("/v1/search/orders?q={query}"), 100, staff).await;
        assert_eq!(found.len(), wanted, "{query}: {found:?}");
    }
}
