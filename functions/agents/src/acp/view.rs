//! Checkouts as the protocol shows them.

use http_api::{Problem, Request};
use key_schema::agent::{Agent, AgentScope};
use key_schema::checkout_session::{Buyer, SessionDestination};
use key_schema::instant::Instant;
use serde_json::{Map, Value, json};

use super::VERSION;
use super::wire::HANDLER;
use crate::App;
use crate::pages::Pages;
use crate::purchase::Seen;
use crate::session::{Evaluation, Kind, Line, Message, Offer, Severity, Status, Totals};

/// What an agent without the scope `orders` sees of an order.
const PLACED: [&str; 5] = ["type", "id", "checkout_session_id", "order_number", "permalink_url"];
const DAY_SECONDS: i64 = 24 * 60 * 60;
const HANDLER_SPEC: &str = "https://acp.dev/handlers/tokenized.card";
const HANDLER_SCHEMAS: &str = "https://acp.dev/schemas/handlers/tokenized.card";

/// Returns a session with its state.
pub async fn session(app: &App, request: &Request<'_>, agent: &Agent, seen: &Seen) -> Result<Value, Problem> {
    let pages = Pages::read(app, request).await?;
    let Seen { session, evaluation, status, order } = seen;
    let handlers = if app.shop.account.keys().await.is_ok() { json!([handler()]) } else { json!([]) };
    let mut shown = json!({
        "id": session.id,
        "protocol": { "version": VERSION },
        "capabilities": {
            "payment": { "handlers": handlers },
            "interventions": { "supported": [] },
            "extensions": [{ "name": "discount" }],
        },
        "status": name(*status),
        "currency": evaluation.currency.to_string().to_lowercase(),
        "line_items": evaluation.lines.iter().map(|line| line_item(line, &pages)).collect::<Vec<_>>(),
        "fulfillment_options": evaluation.offers.iter().map(option).collect::<Vec<_>>(),
        "totals": totals(&evaluation.totals),
        "messages": evaluation.messages.iter().map(message).collect::<Vec<_>>(),
        "links": links(&pages),
        "discounts": discounts(&session.wish.codes, evaluation),
        "created_at": session.meta.created_at,
        "updated_at": session.meta.updated_at,
        "expires_at": session.expires_at,
    });
    let Some(fields) = shown.as_object_mut() else { return Ok(shown) };
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    if let Some(buyer) = session.wish.buyer().as_ref().and_then(shown_buyer) {
        add("buyer", buyer);
    }
    if let Some(destination) = session.wish.destinations.first() {
        add("fulfillment_details", details(destination));
    }
    if let (Some(method), true) = (&evaluation.method, evaluation.is_shipped) {
        let items: Vec<&str> = evaluation.lines.iter().map(|line| line.id.as_str()).collect();
        add("selected_fulfillment_options", json!([{ "type": "shipping", "option_id": method, "item_ids": items }]));
    }
    match (order, status) {
        (Some(order), Status::Completed) => {
            let link = pages.order(Some(session), &order.head.id);
            let mut shown = super::order::snapshot(order, &session.id, &session.wish, &pages, &link);
            if let (false, Some(order)) = (agent.scopes.contains(&AgentScope::Orders), shown.as_object_mut()) {
                order.retain(|name, _| PLACED.contains(&name.as_str()));
            }
            add("order", shown);
        }
        (_, Status::Canceled) => {}
        // The buyer pays the order in the shop.
        (Some(order), _) => {
            add("continue_url", pages.order(Some(session), &order.head.id).into());
        }
        (None, _) => {
            add("continue_url", pages.shop.clone().into());
        }
    }
    Ok(shown)
}

const fn name(status: Status) -> &'static str {
    match status {
        Status::Incomplete => "not_ready_for_payment",
        Status::RequiresEscalation => "requires_escalation",
        Status::ReadyForComplete => "ready_for_payment",
        Status::CompleteInProgress => "complete_in_progress",
        Status::Completed => "completed",
        Status::Canceled => "canceled",
    }
}

/// Returns the handler of tokens that the payment provider has made for this shop.
fn handler() -> Value {
    json!({
        "id": HANDLER,
        "name": "dev.acp.tokenized.card",
        "version": "2026-01-22",
        "spec": HANDLER_SPEC,
        "requires_delegate_payment": true,
        "requires_pci_compliance": false,
        "psp": "stripe",
        "config_schema": format!("{HANDLER_SCHEMAS}/config.json"),
        "instrument_schemas": [format!("{HANDLER_SCHEMAS}/instrument.json")],
        "config": { "psp": "stripe" },
    })
}

fn line_item(line: &Line, pages: &Pages) -> Value {
    let mut shown = json!({
        "id": line.id,
        "item": { "id": line.product_id, "name": line.name, "unit_amount": line.unit_price },
        "quantity": line.quantity,
        "name": line.name,
        "unit_amount": line.unit_price,
        "totals": [
            total("items_base_amount", "Price of the pieces", line.amount),
            total("total", "Total", line.amount),
        ],
    });
    if let (Some(picture), Some(fields)) = (&line.thumbnail, shown.as_object_mut()) {
        fields.insert("images".to_owned(), json!([pages.picture(line.product_id.as_str(), picture.as_str())]));
    }
    shown
}

pub fn total(kind: &str, text: &str, amount: i64) -> Value {
    json!({ "type": kind, "display_text": text, "amount": amount })
}

pub fn totals(totals: &Totals) -> Vec<Value> {
    let mut shown = vec![total("items_base_amount", "Items", totals.items)];
    if totals.discount > 0 {
        shown.push(total("discount", "Discount", totals.discount));
    }
    shown.push(total("subtotal", "Subtotal", totals.items.saturating_sub(totals.discount)));
    shown.extend(totals.shipping.map(|shipping| total("fulfillment", "Shipping", shipping)));
    if totals.tax > 0 {
        shown.push(total("tax", "Tax", totals.tax));
    }
    shown.push(total("total", "Total", totals.total));
    shown
}

fn option(offer: &Offer) -> Value {
    let (first, last) = offer.days;
    let after = |days: u64| Instant::now().plus_seconds(i64::try_from(days).unwrap_or(0).saturating_mul(DAY_SECONDS));
    json!({
        "type": "shipping",
        "id": offer.id,
        "title": offer.name,
        "description": format!("Arrives in {first} to {last} days"),
        "earliest_delivery_time": after(first),
        "latest_delivery_time": after(last),
        "totals": [total("total", "Shipping", offer.price)],
    })
}

fn links(pages: &Pages) -> Vec<Value> {
    let link = |kind: &str, url: &Option<String>| url.as_ref().map(|url| json!({ "type": kind, "url": url }));
    [link("terms_of_use", &pages.terms), link("privacy_policy", &pages.privacy)].into_iter().flatten().collect()
}

/// Returns the buyer. The protocol wants the address of mail.
fn shown_buyer(buyer: &Buyer) -> Option<Value> {
    let Buyer { email, first_name, last_name, phone } = buyer;
    email.as_ref()?;
    let fields = [("email", email), ("first_name", first_name), ("last_name", last_name), ("phone_number", phone)];
    Some(present(fields))
}

fn details(destination: &SessionDestination) -> Value {
    let SessionDestination { first_name, line1, line2, city, region, postal_code, country, phone, .. } = destination;
    let mut shown = present([("name", first_name), ("phone_number", phone)]);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut address = json!({
        "name": text(first_name),
        "line_one": text(line1),
        "city": text(city),
        "state": text(region),
        "country": text(country),
        "postal_code": text(postal_code),
    });
    if let (Some(line), Some(fields)) = (line2, address.as_object_mut()) {
        fields.insert("line_two".to_owned(), line.as_str().into());
    }
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("address".to_owned(), address);
    }
    shown
}

fn present<'a>(fields: impl IntoIterator<Item = (&'a str, &'a Option<String>)>) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.as_deref()?.into())));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn discounts(codes: &[String], evaluation: &Evaluation) -> Value {
    let is_sent = |code: &str, sent: &&String| sent.trim().eq_ignore_ascii_case(code);
    let applied = evaluation.applied.iter().zip(1..).map(|(applied, number): (_, u64)| {
        let mut shown = json!({
            "id": format!("discount_{number}"),
            "coupon": { "id": format!("coupon_{number}"), "name": applied.name },
            "amount": applied.amount,
            "automatic": applied.code.is_none(),
        });
        if let (Some(code), Some(fields)) = (&applied.code, shown.as_object_mut()) {
            // The agent gets the code as it sent it.
            let sent = codes.iter().find(|sent| is_sent(code, sent)).unwrap_or(code);
            fields.insert("code".to_owned(), sent.as_str().into());
        }
        shown
    });
    let rejected = evaluation.messages.iter().filter_map(|message| {
        let at =
            message.path.as_deref()?.strip_prefix("$.discounts.codes[")?.strip_suffix(']')?.parse::<usize>().ok()?;
        Some(json!({ "code": codes.get(at)?, "reason": warning(message.code), "message": message.content }))
    });
    json!({
        "codes": codes,
        "applied": applied.collect::<Vec<_>>(),
        "rejected": rejected.collect::<Vec<_>>(),
    })
}

fn message(message: &Message) -> Value {
    let mut shown = json!({ "content_type": "plain", "content": message.content });
    let Some(fields) = shown.as_object_mut() else { return shown };
    let mut add = |name: &str, value: &str| fields.insert(name.to_owned(), value.into());
    match message.kind {
        Kind::Error(severity) => {
            add("type", "error");
            add("code", code(message.code));
            add("resolution", if severity == Severity::Recoverable { "recoverable" } else { "requires_buyer_input" });
        }
        Kind::Warning => {
            add("type", "warning");
            add("code", warning(message.code));
        }
    }
    if let Some(path) = &message.path {
        add("param", &param(path));
    }
    shown
}

/// Returns the protocol's code of an error.
fn code(code: &str) -> &'static str {
    match code {
        "missing" => "missing",
        "out_of_stock" => "out_of_stock",
        "item_unavailable" => "not_found",
        "payment_failed" => "payment_declined",
        "requires_3ds" => "requires_3ds",
        "sign_in_required" => "requires_sign_in",
        "payment_unavailable" => "unsupported",
        "address_undeliverable" => "region_restricted",
        "limit_reached" => "maximum_exceeded",
        _ => "invalid",
    }
}

/// Returns the protocol's code of a warning.
fn warning(code: &str) -> &str {
    match code {
        "price_changed" => "price_change",
        code if code.starts_with("discount_code_") => code,
        _ => "limited_availability",
    }
}

/// Returns the part of the checkout of which a message speaks.
fn param(path: &str) -> String {
    const DESTINATION: &str = "$.fulfillment.methods[0].destinations[0].";
    match path {
        "$.fulfillment.methods[0].selected_destination_id" => "$.fulfillment_details.address".to_owned(),
        "$.fulfillment.methods[0].groups[0].selected_option_id" => {
            "$.selected_fulfillment_options[0].option_id".to_owned()
        }
        path if path.starts_with("$.payment.") => "$.payment_data".to_owned(),
        path => match path.strip_prefix(DESTINATION) {
            Some(field) => {
                let field = match field {
                    "first_name" => "name",
                    "street_address" => "line_one",
                    "extended_address" => "line_two",
                    "address_locality" => "city",
                    "address_region" => "state",
                    "address_country" => "country",
                    "phone_number" => return "$.fulfillment_details.phone_number".to_owned(),
                    field => field,
                };
                format!("$.fulfillment_details.address.{field}")
            }
            None => path.to_owned(),
        },
    }
}
