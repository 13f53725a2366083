//! Carts and checkouts as the protocol shows them.

use http_api::Problem;
use http_api::Request;
use key_schema::checkout_session::{Buyer, SessionDestination, SessionKind, Wish};
use serde_json::{Map, Value, json};

use super::{Root, Version, envelope, known, shown};
use crate::App;
use crate::pages::Pages;
use crate::purchase::Seen;
use crate::session::{Evaluation, Line, Offer, Status, Totals};

/// Returns a session with its state.
pub async fn session(app: &App, request: &Request<'_>, seen: &Seen) -> Result<Value, Problem> {
    let pages = Pages::read(app, request).await?;
    let Seen { session, evaluation, status, order } = seen;
    let is_cart = session.kind == SessionKind::Cart;
    let root = match (is_cart, evaluation.needs_address) {
        (true, _) => Root::Cart,
        (false, true) => Root::Shipment,
        (false, false) => Root::Checkout,
    };
    let mut shown_session = json!({
        "ucp": envelope(app, request, root, false).await,
        "id": session.id,
        "currency": evaluation.currency,
        "line_items": evaluation.lines.iter().map(|line| line_item(line, &pages)).collect::<Vec<_>>(),
        "totals": totals(&evaluation.totals),
        "messages": evaluation.messages.iter().map(shown).collect::<Vec<_>>(),
        "links": pages.links(),
        "expires_at": session.expires_at,
    });
    let Some(fields) = shown_session.as_object_mut() else { return Ok(shown_session) };
    let wish = &session.wish;
    if let Some(buyer) = wish.buyer() {
        fields.insert("buyer".to_owned(), shown_buyer(&buyer));
    }
    if !wish.codes.is_empty() || !evaluation.applied.is_empty() {
        fields.insert("discounts".to_owned(), discounts(&wish.codes, evaluation));
    } else {
        fields.insert("discounts".to_owned(), json!({ "codes": [], "applied": [] }));
    }
    if is_cart {
        fields.insert("continue_url".to_owned(), pages.shop.into());
        return Ok(shown_session);
    }
    fields.insert("status".to_owned(), status.name().into());
    if evaluation.needs_address {
        let version = Version::of(known(app, request).as_deref());
        fields.insert("fulfillment".to_owned(), fulfillment(evaluation, wish, version));
    }
    match (order, status) {
        (Some(order), Status::Completed) => {
            let id = &order.head.id;
            let link = pages.order(Some(session), id);
            fields.insert("order".to_owned(), json!({ "id": id, "permalink_url": link }));
        }
        (_, Status::Canceled) => {}
        // The buyer pays the order in the shop.
        (Some(order), _) => {
            fields.insert("continue_url".to_owned(), pages.order(Some(session), &order.head.id).into());
        }
        (None, _) => {
            fields.insert("continue_url".to_owned(), pages.shop.into());
        }
    }
    Ok(shown_session)
}

fn line_item(line: &Line, pages: &Pages) -> Value {
    let mut item = json!({ "id": line.product_id, "title": line.name, "price": line.unit_price });
    if let (Some(picture), Some(item)) = (&line.thumbnail, item.as_object_mut()) {
        item.insert("image_url".to_owned(), pages.picture(line.product_id.as_str(), picture.as_str()).into());
    }
    json!({
        "id": line.id,
        "item": item,
        "quantity": line.quantity,
        "totals": [total("subtotal", line.amount), total("total", line.amount)],
    })
}

fn total(kind: &str, amount: i64) -> Value {
    json!({ "type": kind, "amount": amount })
}

/// Returns the parts of a total. The discounts have no allocations, so they are of the type `discount`.
pub fn totals(totals: &Totals) -> Vec<Value> {
    let mut shown = vec![total("subtotal", totals.items)];
    if totals.discount > 0 {
        shown.push(total("discount", totals.discount.saturating_neg()));
    }
    shown.extend(totals.shipping.map(|shipping| total("fulfillment", shipping)));
    if totals.tax > 0 {
        shown.push(total("tax", totals.tax));
    }
    shown.push(total("total", totals.total));
    shown
}

fn shown_buyer(buyer: &Buyer) -> Value {
    let Buyer { email, first_name, last_name, phone } = buyer;
    present([("email", email), ("first_name", first_name), ("last_name", last_name), ("phone_number", phone)])
}

fn present<'a>(fields: impl IntoIterator<Item = (&'a str, &'a Option<String>)>) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.as_deref()?.into())));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn discounts(codes: &[String], evaluation: &Evaluation) -> Value {
    let applied = evaluation.applied.iter().map(|applied| {
        let mut shown = json!({ "title": applied.name, "amount": applied.amount });
        if let Some(fields) = shown.as_object_mut() {
            match &applied.code {
                // The agent gets the code as it sent it.
                Some(code) => {
                    let sent = codes.iter().find(|sent| sent.trim().eq_ignore_ascii_case(code)).unwrap_or(code);
                    fields.insert("code".to_owned(), sent.as_str().into());
                }
                None => {
                    fields.insert("automatic".to_owned(), true.into());
                }
            }
        }
        shown
    });
    json!({ "codes": codes, "applied": applied.collect::<Vec<_>>() })
}

/// Returns the fulfillment: one shipment of all goods, with the shop's methods as its options.
fn fulfillment(evaluation: &Evaluation, wish: &Wish, version: Version) -> Value {
    let lines: Vec<&str> = evaluation.lines.iter().map(|line| line.id.as_str()).collect();
    let option = |offer: &Offer| {
        let (first, last) = offer.days;
        let days = if first == last { format!("{last}") } else { format!("{first} to {last}") };
        let is_only = evaluation.offers.iter().filter(|other| other.name == offer.name).count() < 2;
        let title = if is_only { offer.name.clone() } else { format!("{}, {days} days", offer.name) };
        json!({
            "id": offer.id,
            "title": title,
            "description": version.description(format!("Arrives in {days} days")),
            "totals": [total("total", offer.price)],
        })
    };
    let mut method = json!({
        "id": "shipping",
        "type": "shipping",
        "line_item_ids": lines,
        "destinations": wish.destinations.iter().map(destination).collect::<Vec<_>>(),
        "selected_destination_id": wish.destination,
    });
    // Goods that are not sent need only a place, for their taxes.
    if let (true, Some(fields)) = (evaluation.is_shipped, method.as_object_mut()) {
        let group = json!({
            "id": "package",
            "line_item_ids": lines,
            "options": evaluation.offers.iter().map(option).collect::<Vec<_>>(),
            "selected_option_id": evaluation.method,
        });
        fields.insert("groups".to_owned(), json!([group]));
    }
    json!({ "methods": [method] })
}

fn destination(destination: &SessionDestination) -> Value {
    let (kind, id) = (Some("shipping_address".to_owned()), Some(destination.id.clone()));
    present([
        ("type", &kind),
        ("id", &id),
        ("first_name", &destination.first_name),
        ("last_name", &destination.last_name),
        ("street_address", &destination.line1),
        ("extended_address", &destination.line2),
        ("address_locality", &destination.city),
        ("address_region", &destination.region),
        ("postal_code", &destination.postal_code),
        ("address_country", &destination.country),
        ("phone_number", &destination.phone),
    ])
}
