use futures::StreamExt as _;
use local::System;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};

use super::client::{Answer, Call};

/// Maximum number of concurrent requests while a test sets up its data.
const CONCURRENCY: usize = 16;
const IMPORT_LINES: usize = 1000;
const MAX_IMPORTS: usize = 10;
const MAX_PAGES: usize = 10_000;
/// The characters to escape: all except the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a text as one path segment or one query value.
pub fn segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Joins segments to a path, for example `/v1/customers/a%2Fb`.
pub fn path(segments: &[&str]) -> String {
    segments.iter().fold("/v1".to_owned(), |path, part| path + "/" + &segment(part))
}

/// Sends calls, at most `CONCURRENCY` at once, and returns the responses in the order of the calls.
pub async fn all(system: &System, calls: impl IntoIterator<Item = Call>) -> Vec<Answer> {
    futures::stream::iter(calls.into_iter().map(|call| call.send(system))).buffered(CONCURRENCY).collect().await
}

/// Creates a customer without a country, city or store.
pub async fn customer(system: &System, id: &str) -> Answer {
    customer_call(id).send(system).await.expect(201)
}

/// The email address and the user name derive from the id.
pub fn customer_call(id: &str) -> Call {
    let email = format!("{}@example.com", segment(id).replace('%', "_"));
    let body = json!({ "id": id, "email": email, "username": id, "name": "Somebody" });
    Call::new("POST", "/v1/customers").staff().json(&body)
}

/// Returns a product that costs 1.29, as the request body of `POST /v1/products`.
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

/// Creates products with this stock. Their category is the first product's id.
pub async fn products(system: &System, ids: &[&str], stock: u64) {
    let bodies: Vec<Json> = ids.iter().map(|id| product_body(id, &ids[..1], stock)).collect();
    import(system, &bodies).await;
}

/// On a busy machine, the API may throttle some lines of a batch. Then the function sends the batch
/// again.
pub async fn import(system: &System, products: &[Json]) {
    for batch in products.chunks(IMPORT_LINES) {
        let lines: String = batch.iter().map(|line| format!("{line}\n")).collect();
        let call = Call::new("POST", "/v1/products/import").staff().header("content-type", "application/x-ndjson");
        let call = call.body(lines);
        let mut created = 0;
        for _ in 0..MAX_IMPORTS {
            let answer = call.clone().send(system).await.expect(200);
            let results = answer.body["results"].as_array().unwrap().iter();
            created += results.clone().filter(|result| result["status"] == "created").count();
            if results.clone().all(|result| result["code"] != "throttled") {
                break;
            }
        }
        assert_eq!(created, batch.len());
    }
}

pub fn order_body(customer: &str, lines: &[(&str, u64)]) -> Json {
    let lines: Vec<Json> =
        lines.iter().map(|(product, quantity)| json!({ "product_id": product, "quantity": quantity })).collect();
    json!({ "customer_id": customer, "lines": lines })
}

pub fn order_call(body: &Json, key: &str) -> Call {
    Call::new("POST", "/v1/orders").json(body).header("idempotency-key", key)
}

/// Places an order as its customer, with this idempotency key.
pub async fn order(system: &System, customer: &str, lines: &[(&str, u64)], key: &str) -> Json {
    order_call(&order_body(customer, lines), key).customer(customer).send(system).await.expect(201).body
}

/// Returns the call that moves an order to this status, on condition that the order still has the
/// version of `order`.
pub fn step(order: &Json, to: &str) -> Call {
    step_with(order, &json!({ "to": to }))
}

/// Returns the call that moves an order with this body, on condition that the order still has the
/// version of `order`.
pub fn step_with(order: &Json, body: &Json) -> Call {
    let call = Call::new("POST", &path(&["orders", order["id"].as_str().unwrap(), "status"]));
    call.json(body).header("if-match", &format!("\"{}\"", order["version"]))
}

/// Moves an order to each of these statuses in turn, as staff.
pub async fn moved(system: &System, mut order: Json, through: &[&str]) -> Json {
    for to in through {
        order = step(&order, to).staff().send(system).await.expect(200).body;
    }
    order
}

pub async fn stock(system: &System, product: &str) -> u64 {
    let found = Call::new("GET", &path(&["products", product, "numbers"])).staff().send(system).await.expect(200);
    found.body["stock"].as_u64().unwrap()
}

/// `call` makes the request from a path and query.
pub async fn listed(system: &System, path: &str, limit: usize, call: impl Fn(&str) -> Call) -> Vec<Json> {
    let mut pages = Pages::new(path, limit);
    let mut all = Vec::new();
    while let Some(page) = pages.next(system, &call).await {
        all.extend(page);
    }
    all
}

/// A list that is read page by page. The Link header of each page leads to the next one.
pub struct Pages {
    next: Option<String>,
    limit: usize,
    left: usize,
}

impl Pages {
    pub fn new(path: &str, limit: usize) -> Self {
        let joint = if path.contains('?') { '&' } else { '?' };
        Self { next: Some(format!("{path}{joint}limit={limit}")), limit, left: MAX_PAGES }
    }

    /// Returns the next page, or `None` after the last one.
    pub async fn next(&mut self, system: &System, call: impl Fn(&str) -> Call) -> Option<Vec<Json>> {
        let path = self.next.take()?;
        self.left =
            self.left.checked_sub(1).unwrap_or_else(|| panic!("{path}: the list has more than {MAX_PAGES} pages"));
        let mut page = call(&path).send(system).await.expect(200);
        let link = page
            .headers
            .get("link")
            .map(|link| link.strip_prefix('<').and_then(|rest| rest.strip_suffix(r#">; rel="next""#)).expect(link));
        match (page.body["next_cursor"].as_str(), link) {
            (Some(cursor), Some(link)) => assert!(link.contains(&format!("cursor={}", segment(cursor))), "{link}"),
            (None, None) => assert!(page.body["next_cursor"].is_null()),
            (cursor, link) => panic!("{path}: the cursor is {cursor:?}, the link {link:?}"),
        }
        self.next = link.map(str::to_owned);
        let Json::Array(items) = page.body["items"].take() else { panic!("{path}: a page without items") };
        assert!(items.len() <= self.limit, "{path}: {} entries", items.len());
        Some(items)
    }
}
