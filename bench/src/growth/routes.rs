//! The routes that are not lists: the main writes and the other reads, with their requests.
//!
//! Most writes change a different record with each request, as in a shop. The number of these
//! records is the same for every size of the table.

use http_api::sample::Call;
use key_schema::cart::CartLine;
use key_schema::document::{Document, DocumentSection};
use key_schema::guest_cart::{CartToken, GuestCart, LIFETIME_SECONDS};
use key_schema::id::{
    CustomerId, DocumentId, GuestCartId, MetricName, OrganizationId, PointId, ProductId, SectionName, StoreId, TeamId,
};
use key_schema::instant::Instant;
use key_schema::invoice::Invoice;
use key_schema::item::Item;
use key_schema::metric::MetricPoint;
use key_schema::order::guest::OrderToken;
use key_schema::order::{CustomerOrder, Order, OrderStatusEvent};
use key_schema::organization::{Organization, Team};
use key_schema::product::Stock;
use key_schema::region;
use serde_json::{Value, json};

use super::lists::{Open, catalog, community, customers, documents, insights, orders, organizations, support, wallet};
use crate::BenchError;
use crate::examples::{
    OWNER, STAFF, at, customer, customer_id, document, item, numbered, order, order_id, order_line, owned_product,
    owner, product, product_id, question,
};

pub(super) struct Route {
    /// The name in the template, with the query parameters that distinguish it from others.
    pub name: String,
    pub function: Open,
    /// The n-th request.
    pub call: Box<dyn Fn(u64) -> Result<Call, BenchError>>,
}

/// Higher than the number of every list entry.
const FIRST: u64 = 9_000_000;
/// The number of a list entry. Every list has an entry with this number.
const ENTRY: u64 = 7;

fn thing(n: u64) -> Result<(CustomerId, ProductId), BenchError> {
    Ok((customer_id(FIRST + n)?, product_id(FIRST + n)?))
}

/// Returns the items that the routes need and the lists lack, for this many requests to each route.
pub(super) fn around(repeat: u64) -> Result<Vec<Item>, BenchError> {
    let club = OrganizationId::new("chess-club")?;
    let team = TeamId::new("bishops")?;
    let shop = region::StoreLocation {
        id: StoreId::new("364")?,
        country: "DE".to_owned(),
        city: "Ulm".to_owned(),
        name: "By the river".to_owned(),
    };
    let stock = |product_id| Stock::new(product_id, 1_000_000);
    let billed = order(FIRST)?;
    let invoice = Invoice {
        number: 4_711,
        order_id: billed.id,
        customer_id: billed.customer_id,
        total: billed.total,
        issued_at: at(FIRST),
    };
    let section = DocumentSection {
        id: DocumentId::new("rules")?,
        name: SectionName::new("purpose")?,
        number: 1,
        text: "To play chess.".to_owned(),
        by: owner()?,
        at: at(0),
    };
    let sections = [(section.name.clone(), section.number)].into_iter().collect();
    let rules = Document { sections, ..document(section.id.clone())? };
    let mut items = vec![
        item(stock(owned_product()?), 0)?,
        item(guest_cart()?, 0)?,
        item(invoice, 0)?,
        item(shop, 0)?,
        item(Organization { id: club.clone(), teams: 1, admins: 1, invited: 0, name: "Chess club".to_owned() }, 0)?,
        item(Team { organization_id: club, id: team, members: 0, name: "Bishops".to_owned() }, 0)?,
        item(rules, 0)?,
        item(section, 0)?,
        MetricPoint {
            name: MetricName::new("queue")?,
            at: midnight()?,
            id: PointId::new("1")?,
            value: "12.50".parse()?,
        }
        .stored()
        .to_item()?,
    ];
    for n in 0..repeat {
        let (buyer, goods) = thing(n)?;
        items.extend([
            item(customer(buyer, FIRST + n)?, 0)?,
            item(product(goods.clone())?, 0)?,
            item(stock(goods), 0)?,
        ]);
        items.extend(placed(Order { token_hash: Some(order_token().hash()), ..order(FIRST + n)? }, FIRST + n)?);
    }
    Ok(items)
}

fn order_token() -> OrderToken {
    OrderToken::given("guest")
}

fn token() -> CartToken {
    CartToken::new([1; 32])
}

fn guest_cart() -> Result<GuestCart, BenchError> {
    let line = CartLine { quantity: 3, added_at: at(0) };
    Ok(GuestCart {
        id: GuestCartId::new("guest")?,
        token_hash: token().hash(),
        expires_at: Instant::now().plus_seconds(LIFETIME_SECONDS),
        lines: [(product_id(ENTRY)?, line)].into(),
        claim: None,
    })
}

/// Points expire after 30 days, so the point is from today.
fn midnight() -> Result<Instant, BenchError> {
    Ok(format!("{}T00:00:00Z", Instant::now().day()).parse()?)
}

fn placed(order: Order, n: u64) -> Result<[Item; 4], BenchError> {
    let step = OrderStatusEvent {
        order_id: order.id.clone(),
        status: order.status,
        at: at(n),
        by: OWNER.to_owned(),
        note: None,
        message: None,
        carrier: None,
        tracking: None,
        expires_at: None,
    };
    let copy = CustomerOrder::of(&order);
    Ok([item(order_line(&order.id)?, n)?, item(step, n)?, item(copy, n)?, item(order, n)?])
}

/// Returns the calls to send once, before the measurement.
pub(super) fn before() -> Vec<(Open, Call)> {
    let customer = json!({
        "id": OWNER, "email": "star@example.com", "username": "star", "name": "Somebody",
        "place": {"country": "DE", "city": "Ulm"},
    });
    let goods = numbered("product", ENTRY);
    let basket = Call::new("PUT /v1/customers/{id}/cart/items/{product}").path("id", OWNER).path("product", &goods);
    let content = Call::new("PUT /v1/products/{id}/content").path("id", OWNER).header("if-none-match", "*");
    vec![
        (customers, Call::new("POST /v1/customers").json(&customer).staff(STAFF)),
        (customers, basket.json(&json!({"quantity": 3})).customer(OWNER)),
        (catalog, content.json(&json!({"text": "Cold."})).staff(STAFF)),
        (wallet, deposit("first", 1_000_000)),
        (insights, add("before")),
    ]
}

fn deposit(key: &str, amount: u64) -> Call {
    let body = json!({"amount": {"amount": amount, "currency": "USD"}});
    let call = Call::new("POST /v1/customers/{id}/wallet/deposits").path("id", OWNER).json(&body);
    call.header("idempotency-key", key).staff(STAFF)
}

fn add(key: &str) -> Call {
    Call::new("POST /v1/counters/{name}")
        .path("name", "product:star")
        .header("idempotency-key", key)
        .json(&json!({"add": 1}))
}

pub(super) fn all() -> Result<Vec<Route>, BenchError> {
    let mut routes = reads()?;
    routes.extend(writes());
    Ok(routes)
}

fn reads() -> Result<Vec<Route>, BenchError> {
    let entry = numbered("product", ENTRY);
    let (order, question) = (order_id(FIRST), question(ENTRY)?.id);
    let reviewer = numbered("customer", ENTRY);
    let of_owner = |route: &'static str| Call::new(route).path("id", OWNER).staff(STAFF);
    let guests =
        |route: &'static str| Call::new(route).path("id", order.as_str()).header("order-token", order_token().as_str());
    // A category path escapes every byte except letters, digits and hyphens.
    let child = format!("GROCERY~{}", numbered("child", ENTRY).replace(' ', "_20"));
    Ok(vec![
        read(customers, of_owner("GET /v1/customers/{id}")),
        read(customers, Call::new("GET /v1/customers").query("email", "star@example.com").staff(STAFF)),
        read(customers, of_owner("GET /v1/customers/{id}/overview")),
        read(customers, of_owner("GET /v1/customers/{id}/overview").query("questions", "20")),
        read(customers, of_owner("GET /v1/customers/{id}/cart")),
        read(customers, of_owner("GET /v1/customers/{id}/cart/items/{product}").path("product", &entry)),
        read(customers, Call::new("GET /v1/carts/{id}").path("id", "guest").header("cart-token", token().as_str())),
        read(catalog, Call::new("GET /v1/products").query("ids", &format!("{OWNER},{entry}"))),
        read(catalog, of_owner("GET /v1/products/{id}")),
        read(catalog, of_owner("GET /v1/products/{id}/content")),
        read(catalog, of_owner("GET /v1/products/{id}/pictures")),
        read(catalog, of_owner("GET /v1/products/{id}/reviews/{customer}").path("customer", &reviewer)),
        read(catalog, Call::new("GET /v1/categories/{path}").path("path", "GROCERY")),
        read(catalog, Call::new("GET /v1/leaderboards/{by}").path("by", "likes")),
        read(catalog, Call::new("GET /v1/categories/{path}/ancestors").path("path", &child)),
        read(orders, Call::new("GET /v1/orders/{id}").path("id", order.as_str()).staff(STAFF)),
        read(orders, Call::new("GET /v1/orders/{id}/lines").path("id", order.as_str()).staff(STAFF)),
        read(orders, Call::new("GET /v1/orders/{id}/history").path("id", order.as_str()).staff(STAFF)),
        read(orders, Call::new("GET /v1/orders/{id}/payments").path("id", order.as_str()).staff(STAFF)),
        read(orders, guests("GET /v1/guest/orders/{id}")),
        read(orders, guests("GET /v1/guest/orders/{id}/payments")),
        read(orders, Call::new("GET /v1/invoices/{number}").path("number", "4711").staff(STAFF)),
        read(wallet, of_owner("GET /v1/customers/{id}/wallet")),
        read(community, of_owner("GET /v1/customers/{id}/following/{other}").path("other", &reviewer)),
        read(community, of_owner("GET /v1/customers/{id}/likes/{product}").path("product", &entry)),
        read(community, of_owner("GET /v1/products/{id}/likes")),
        read(organizations, Call::new("GET /v1/organizations/{id}").path("id", "chess-club").staff(STAFF)),
        read(documents, Call::new("GET /v1/documents/{id}").path("id", "statutes").staff(STAFF)),
        read(
            documents,
            Call::new("GET /v1/documents/{id}/sections/{name}")
                .path("id", "rules")
                .path("name", "purpose")
                .staff(STAFF),
        ),
        read(
            documents,
            Call::new("GET /v1/documents/{id}/versions/{n}").path("id", "statutes").path("n", "7").staff(STAFF),
        ),
        read(support, of_owner("GET /v1/customers/{id}/support")),
        read(support, Call::new("GET /v1/questions/{id}").path("id", question.as_str()).staff(STAFF)),
        read(insights, Call::new("GET /v1/stores/{id}").path("id", "364").staff(STAFF)),
        read(
            insights,
            Call::new("GET /v1/metrics/{name}/points/{id}")
                .path("name", "queue")
                .path("id", "1")
                .query("at", &midnight()?.to_string())
                .staff(STAFF),
        ),
        read(insights, Call::new("GET /v1/counters/{name}").path("name", "product:star").staff(STAFF)),
    ])
}

/// Returns a read. All its requests are equal.
fn read(function: Open, call: Call) -> Route {
    Route { name: call.name(), function, call: Box::new(move |_| Ok(call.clone())) }
}

/// Returns a write. `fill` completes its n-th request.
fn write(route: &'static str, function: Open, fill: impl Fn(Call, u64) -> Result<Call, BenchError> + 'static) -> Route {
    Route { name: route.to_owned(), function, call: Box::new(move |n| fill(Call::new(route), n)) }
}

fn writes() -> Vec<Route> {
    // A caller's idempotency keys apply to all routes, so each key names its operation.
    let once = |call: Call, what: &str, n: u64, body: &Value| {
        call.header("idempotency-key", &format!("{what}-{n:04}")).json(body)
    };
    vec![
        write("POST /v1/customers", customers, |call, n| {
            let (id, email) = (format!("new-{n:04}"), format!("new-{n:04}@example.com"));
            Ok(call.json(&json!({"id": id, "email": email, "username": id, "name": "Somebody"})).staff(STAFF))
        }),
        write("POST /v1/customers/{id}/sessions", customers, |call, _| {
            Ok(call.path("id", OWNER).json(&json!({"device": "Phone", "ttl_seconds": 3_600})).customer(OWNER))
        }),
        write("PUT /v1/customers/{id}/cart/items/{product}", customers, |call, n| {
            let (buyer, goods) = thing(n)?;
            let call = call.path("id", buyer.as_str()).path("product", goods.as_str());
            Ok(call.json(&json!({"quantity": 3})).customer(buyer.as_str()))
        }),
        write("PATCH /v1/products/{id}", catalog, |call, n| {
            let call = call.path("id", thing(n)?.1.as_str()).header("if-match", "\"1\"");
            Ok(call.json(&json!({"price": {"amount": 199, "currency": "USD"}})).staff(STAFF))
        }),
        write("PUT /v1/products/{id}/stock", catalog, |call, n| {
            Ok(call.path("id", thing(n)?.1.as_str()).json(&json!({"set": 500_000})).staff(STAFF))
        }),
        write("POST /v1/products/{id}/stock/adjustments", catalog, move |call, n| {
            let call = call.path("id", thing(n)?.1.as_str()).staff(STAFF);
            Ok(once(call, "adjust", n, &json!({"adjust": -3, "reason": "broken"})))
        }),
        write("PUT /v1/products/{id}/reviews/{customer}", catalog, |call, n| {
            let call = call.path("id", thing(n)?.1.as_str()).path("customer", OWNER).header("if-none-match", "*");
            Ok(call.json(&json!({"rating": 4, "title": "Cold", "text": "As ice should be."})).customer(OWNER))
        }),
        write("POST /v1/orders", orders, move |call, n| {
            // A customer can have only a few unpaid orders, so each order has a different customer.
            let (customer, product) = thing(n)?;
            let body = json!({"customer_id": customer, "lines": [{"product_id": product, "quantity": 2}]});
            Ok(once(call.customer(customer.as_str()), "order", n, &body))
        }),
        write("POST /v1/orders/{id}/status", orders, |call, n| {
            let call = call.path("id", order_id(FIRST + n).as_str()).header("if-match", "\"1\"");
            Ok(call.json(&json!({"to": "paid"})).staff(STAFF))
        }),
        write("POST /v1/customers/{id}/wallet/deposits", wallet, |_, n| Ok(deposit(&format!("deposit-{n:04}"), 100))),
        write("POST /v1/transfers", wallet, move |call, n| {
            let amount = json!({"amount": 100, "currency": "USD"});
            Ok(once(call.customer(OWNER), "transfer", n, &json!({"from": OWNER, "to": thing(n)?.0, "amount": amount})))
        }),
        write("PUT /v1/customers/{id}/following/{other}", community, |call, n| {
            Ok(call.path("id", OWNER).path("other", thing(n)?.0.as_str()).customer(OWNER))
        }),
        write("PUT /v1/customers/{id}/likes/{product}", community, |call, n| {
            Ok(call.path("id", OWNER).path("product", thing(n)?.1.as_str()).customer(OWNER))
        }),
        write("POST /v1/customers/{id}/questions", support, move |call, n| {
            let call = call.path("id", OWNER).customer(OWNER);
            Ok(once(call, "question", n, &json!({"subject": "Ice", "text": "Does it melt?"})))
        }),
        write("POST /v1/metrics", insights, |call, n| {
            let point = json!({"name": "till", "value": 12.5, "at": Instant::now(), "id": format!("point-{n:04}")});
            Ok(call.json(&json!({"points": [point]})).staff(STAFF))
        }),
        write("POST /v1/counters/{name}", insights, |_, n| Ok(add(&format!("add-{n:04}")))),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use key_schema::item::key_of;

    use super::*;

    #[test]
    fn every_write_sends_a_new_request_each_time_except_the_start_of_a_session() {
        for route in writes() {
            let (first, second) = ((route.call)(0).unwrap(), (route.call)(1).unwrap());
            let again = ["POST /v1/customers/{id}/sessions"].contains(&route.name.as_str());
            assert_eq!(first.event() == second.event(), again, "{}", route.name);
        }
    }

    #[test]
    fn each_repetition_adds_its_own_items() {
        let keys = |repeat| around(repeat).unwrap().iter().filter_map(key_of).collect::<BTreeSet<_>>().len();
        assert_eq!([0, 1, 40].map(keys), [9, 9 + 7, 9 + 40 * 7]);
    }
}
