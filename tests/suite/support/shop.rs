//! A shop in use: what tests create before they begin, and how they read lists.

use futures::{StreamExt as _, TryStreamExt as _};
use local::System;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};

use super::client::{Answer, Call};

/// Requests that are under way at once while a test sets up its world.
const CONCURRENCY: usize = 16;
/// Lines of one products/import.
const IMPORT_LINES: usize = 1000;
/// No list of a test has more pages.
const MAX_PAGES: usize = 10_000;
/// The unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as one segment of a path, or one value of a query.
pub fn segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A path made of these segments: `/v1/customers/a%2Fb`.
pub fn path(segments: &[&str]) -> String {
    segments.iter().fold("/v1".to_owned(), |path, part| path + "/" + &segment(part))
}

/// Answers of many calls, in their order, some of them under way at once.
pub async fn all(system: &System, calls: impl IntoIterator<Item = Call>) -> Vec<Answer> {
    futures::stream::iter(calls.into_iter().map(|call| call.send(system))).buffered(CONCURRENCY).collect().await
}

/// Creates a customer without a place.
pub async fn customer(system: &System, id: &str) -> Answer {
    customer_call(id).send(system).await.expect(201)
}

/// The call that creates a customer, whose address and name follow from the id.
pub fn customer_call(id: &str) -> Call {
    let email = format!("{}@example.com", segment(id).replace('%', "_"));
    let body = json!({ "id": id, "email": email, "username": id, "name": "Somebody" });
    Call::new("POST", "/v1/customers").staff().json(&body)
}

/// A product that costs 1.29, as POST products takes it.
pub fn product_body(id: &str, category: &[&str], stock: u64) -> Json {
    json!({
        "id": id,
        "name": format!("Thing {id}"),
        "brand": "Private",
        "category_path": category,
        "price": { "amount": 129, "currency": "USD" },
        "stock": stock,
    })
}

/// Creates products of the category `[id of the first]`, each with this stock.
pub async fn products(system: &System, ids: &[&str], stock: u64) {
    let bodies: Vec<Json> = ids.iter().map(|id| product_body(id, &ids[..1], stock)).collect();
    import(system, &bodies).await;
}

/// Creates products by the thousand.
pub async fn import(system: &System, products: &[Json]) {
    for lines in products.chunks(IMPORT_LINES) {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let call = Call::new("POST", "/v1/products/import").staff().header("content-type", "application/x-ndjson");
        let answer = call.body(lines).send(system).await.expect(200);
        for result in answer.body["results"].as_array().unwrap() {
            assert_eq!(result["status"], "created", "{result}");
        }
    }
}

/// An order's body: products with quantities.
pub fn order_body(customer: &str, lines: &[(&str, u64)]) -> Json {
    let lines: Vec<Json> =
        lines.iter().map(|(product, quantity)| json!({ "product_id": product, "quantity": quantity })).collect();
    json!({ "customer_id": customer, "lines": lines })
}

/// The call that places an order with an Idempotency-Key.
pub fn order_call(body: &Json, key: &str) -> Call {
    Call::new("POST", "/v1/orders").json(body).header("idempotency-key", key)
}

/// An order placed by its customer, under a key of the test's own.
pub async fn order(system: &System, customer: &str, lines: &[(&str, u64)], key: &str) -> Json {
    order_call(&order_body(customer, lines), key).customer(customer).send(system).await.expect(201).body
}

/// The call that moves an order which is at this version.
pub fn step(order: &Json, to: &str) -> Call {
    let call = Call::new("POST", &path(&["orders", order["id"].as_str().unwrap(), "status"]));
    call.json(&json!({ "to": to })).header("if-match", &format!("\"{}\"", order["version"]))
}

/// Moves an order through these statuses, by staff.
pub async fn moved(system: &System, mut order: Json, through: &[&str]) -> Json {
    for to in through {
        order = step(&order, to).staff().send(system).await.expect(200).body;
    }
    order
}

/// How many pieces of a product are in stock.
pub async fn stock(system: &System, product: &str) -> u64 {
    let found = Call::new("GET", &path(&["products", product])).send(system).await.expect(200);
    found.body["stock"].as_u64().unwrap()
}

/// Every entry of a list, read page by page with this many entries. `call` gives the request for a path with its query.
pub async fn listed(system: &System, path: &str, limit: usize, call: impl Fn(&str) -> Call) -> Vec<Json> {
    pages(system, path, limit, call).try_concat().await.unwrap()
}

/// The pages of a list.
pub fn pages<'s>(
    system: &'s System,
    path: &str,
    limit: usize,
    call: impl Fn(&str) -> Call + 's,
) -> impl futures::Stream<Item = Result<Vec<Json>, std::convert::Infallible>> + 's {
    let joint = if path.contains('?') { '&' } else { '?' };
    let first = format!("{path}{joint}limit={limit}");
    futures::stream::try_unfold((Some(first), 0), async |(next, turn): (Option<String>, usize)| Ok(None))
}
