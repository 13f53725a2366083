//! Orders (<https://ucp.dev/2026-08-25/specification/shopping/order/rest>). An agent sees the orders that it has
//! placed.

use http_api::contract::route;
use http_api::{Problem, Request, Response};
use key_schema::address::PostalAddress;
use key_schema::agent::AgentScope;
use key_schema::checkout_session::{self, Origin, Wish};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{self, OrderLine, OrderStatus, PlacedOrder};
use ordering::{visible, with_addresses};
use serde_json::{Map, Value, json};

use super::view::totals;
use super::{Root, envelope, error, nothing};
use crate::App;
use crate::access::agent;
use crate::orders::{Adjustment, Pieces, add_tracking, adjustments, amount, is_shipped, own, quantities, steps};
use crate::pages::Pages;
use crate::session::{Message, Totals, line_id};

/// Read an order
#[route(GET "/ucp/orders/{id}", id = "ucpReadOrder", who = any, task = "agents", path(id: OrderId),
    spec = "https://ucp.dev/2026-08-25/specification/shopping/order/rest", errors = error)]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Orders).await?;
    let (id, services): (Option<OrderId>, _) = (request.path("id").ok(), &app.shop.services);
    let found = match &id {
        Some(id) => visible(services.table.query(&order::get(id)?).await?.items, Instant::now()),
        None => None,
    };
    let own = found.and_then(|order| Some((own(&order, &agent)?, order)));
    let Some((origin, order)) = own else {
        let message = Message::unrecoverable("not_found", "There is no such order of this agent.");
        return Ok(Response::ok(&nothing(app, request, Root::Order, &[message]).await?));
    };
    let order = with_addresses(services, order).await?;
    let session = services.table.get(&checkout_session::get(&origin.checkout)?).await?;
    let pages = Pages::read(app, request).await?;
    // The token pays and cancels the order.
    let token = session.as_deref().filter(|_| agent.scopes.contains(&AgentScope::Checkout));
    let link = pages.order(token, &order.head.id);
    let wish = session.as_ref().map(|session| session.wish.clone()).unwrap_or_default();
    let mut shown = snapshot(&order, &origin, &wish, &pages, &link);
    shown.insert("ucp".to_owned(), envelope(app, request, Root::Order, false).await);
    Ok(Response::ok(&shown))
}

/// Returns the present state of an order, without the protocol's part. `link` is the page of the order.
pub fn snapshot(order: &PlacedOrder, origin: &Origin, wish: &Wish, pages: &Pages, link: &str) -> Map<String, Value> {
    let charges = order.head.charges();
    let lines: Vec<Value> = order.lines.iter().map(|line| line_item(line, order, wish, pages)).collect();
    let fields = [
        ("id", json!(order.head.id)),
        ("label", json!(order::OrderNumber::of(&order.head.id).to_string())),
        ("checkout_id", json!(origin.checkout)),
        ("permalink_url", json!(link)),
        ("currency", json!(order.head.total.currency)),
        ("line_items", json!(lines)),
        ("fulfillment", json!({ "expectations": expectations(order, wish), "events": events(order, wish) })),
        ("adjustments", adjustments(order).iter().map(|adjustment| adjusted(adjustment, wish)).collect()),
        ("totals", json!(totals(&Totals::new(&charges, order.head.total.amount)))),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn line_item(line: &Stored<OrderLine>, order: &PlacedOrder, wish: &Wish, pages: &Pages) -> Value {
    let (Pieces { left, sent, status }, amount) = (Pieces::of(line, order.head.status), amount(line));
    let mut item = json!({ "id": line.product_id, "title": line.name, "price": line.unit_price.amount });
    if let (Some(picture), Some(item)) = (&line.thumbnail, item.as_object_mut()) {
        item.insert("image_url".to_owned(), pages.picture(line.product_id.as_str(), picture.as_str()).into());
    }
    json!({
        "id": line_id(wish, &line.product_id),
        "item": item,
        "quantity": { "original": line.quantity, "total": left, "fulfilled": sent },
        "totals": [{ "type": "subtotal", "amount": amount }, { "type": "total", "amount": amount }],
        "status": status,
    })
}

/// Returns what the buyer may expect: one shipment, or nothing to wait for.
fn expectations(order: &PlacedOrder, wish: &Wish) -> Vec<Value> {
    if order.head.status == OrderStatus::Cancelled {
        return Vec::new();
    }
    let charges = order.head.charges();
    // The order of a customer who has claimed it is no matter of the agent any more.
    let addresses = order.addresses.as_ref().filter(|_| order.head.customer_id.is_guest());
    let address = addresses.and_then(|addresses| addresses.shipping_address.as_ref());
    let (kind, description) = match &charges.method {
        Some(method) => {
            ("shipping", format!("{}, arrives in {} to {} days", method.name, method.days.0, method.days.1))
        }
        None if is_shipped(order) => ("shipping", "Sent by the shop".to_owned()),
        None => ("digital", "Available at once".to_owned()),
    };
    vec![json!({
        "id": "shipment",
        "line_items": quantities(order, wish),
        "method_type": kind,
        "destination": address.map(|address| place(address, wish)).unwrap_or_else(|| json!({})),
        "description": description,
    })]
}

fn place(address: &PostalAddress, wish: &Wish) -> Value {
    let PostalAddress { name, line1, line2, city, region, postal_code, country, phone } = address;
    // An order has the whole name, and the agent has named its parts.
    let people = [&wish.buyer, &wish.contact].into_iter().flatten().map(|known| (&known.first_name, &known.last_name));
    let places = wish.destinations.iter().map(|place| (&place.first_name, &place.last_name));
    let mut names = places.chain(people).filter_map(|(first, last)| Some((first.as_deref()?, last.clone()?)));
    let parts = names.find(|(first, last)| format!("{first} {last}") == *name);
    let (first, last) = parts.map_or((name.as_str(), None), |(first, last)| (first, Some(last)));
    let mut place = json!({
        "first_name": first,
        "street_address": line1,
        "address_locality": city,
        "address_country": country,
    });
    for (field, value) in [
        ("last_name", &last),
        ("extended_address", line2),
        ("address_region", region),
        ("postal_code", postal_code),
        ("phone_number", phone),
    ] {
        if let (Some(value), Some(place)) = (value, place.as_object_mut()) {
            place.insert(field.to_owned(), value.as_str().into());
        }
    }
    place
}

/// Returns the steps of the shipment.
fn events(order: &PlacedOrder, wish: &Wish) -> Vec<Value> {
    let shipped = order.history.iter().find(|step| step.status == OrderStatus::Shipped);
    let event = |(step, kind): (&Stored<order::OrderStatusEvent>, &str)| {
        let lines = quantities(order, wish);
        let mut event = json!({ "id": kind, "occurred_at": step.at, "type": kind, "line_items": lines });
        // A delivery has the tracking number of the shipment.
        if let Some(shipped) = shipped.filter(|_| step.status == OrderStatus::Delivered) {
            add_tracking(shipped, &mut event);
        }
        add_tracking(step, &mut event);
        event
    };
    steps(order).map(event).collect()
}

fn adjusted(adjustment: &Adjustment<'_>, wish: &Wish) -> Value {
    let Adjustment { id, kind, at, status, amount, .. } = adjustment;
    let lines = adjustment.lines(true, wish);
    let mut shown = json!({ "id": id, "type": kind, "occurred_at": at, "status": status, "line_items": lines });
    if let (Some(amount), Some(fields)) = (amount, shown.as_object_mut()) {
        fields.insert("totals".to_owned(), json!([{ "type": "total", "amount": amount.saturating_neg() }]));
    }
    shown
}
