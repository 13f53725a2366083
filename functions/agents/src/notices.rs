//! What agents hear about their orders: order webhooks of UCP
//! (<https://ucp.dev/2026-04-08/specification/order#events>) and of ACP
//! (<https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/tree/main/spec/2026-04-17/openapi>).
//!
//! The messages of an SQS queue are events of orders. Each event of an agent's order becomes a
//! delivery with the present state of the order, and the courier signs and sends it. The key of a delivery
//! follows from its event, so a repeated event makes no second one.
//!
//! Over UCP, the address comes from the agent's profile. If staff have registered endpoints for the agent,
//! these get its orders over ACP instead. A delivery has neither the buyer's address nor the secret
//! link to the order, because it stays in the log for a month. The agent reads them from the order.

use std::collections::{BTreeMap, BTreeSet};

use bus::queue::{Answer, Batch, Message};
use bus::{Data, Event};
use http_api::{Context, Error, Problem};
use key_schema::agent::{self, Agent, AgentScope};
use key_schema::checkout_session;
use key_schema::id::{Born, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{self, OrderStatus, PlacedOrder};
use key_schema::webhook_delivery::{self, DeliveryState, LIFETIME_SECONDS, MAX_BODY_BYTES, WebhookDelivery};
use key_schema::webhook_endpoint::{self, DisabledReason, WebhookEndpoint};
use ordering::visible;
use serde_json::{Value, json};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant as Clock;

use crate::orders::own;
use crate::pages::Pages;
use crate::profiles::NoProfile;
use crate::ucp::{self, ORDER, Root};
use crate::{App, acp};

const UCP_KIND: &str = "ucp.order";
const ACP_KIND: &str = "acp.order";

#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    #[error(transparent)]
    Message(#[from] bus::queue::MessageError),
    #[error(transparent)]
    Table(#[from] table::TableError),
    #[error(transparent)]
    Key(#[from] key_schema::key::KeyError),
    #[error(transparent)]
    Item(#[from] key_schema::item::EncodeError),
    #[error(transparent)]
    Id(#[from] key_schema::id::IdError),
    #[error(transparent)]
    Profile(#[from] NoProfile),
    #[error("{0}")]
    Problem(String),
    #[error("the order has {0} bytes")]
    TooLong(usize),
}

impl From<Problem> for NoticeError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem.detail().to_owned())
    }
}

/// What came of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The courier sends it.
    Kept,
    /// It was kept before.
    Known,
    /// It concerns no agent, or nothing that its agent wants to hear.
    Unwanted,
}

/// Handles a batch of the queue. The answer names the messages that must be handled again.
pub async fn hear(app: &App, text: &str, context: &Context) -> Result<Value, Error> {
    let started = Clock::now();
    // The error does not quote the batch.
    let batch: Batch = serde_json::from_str(text).map_err(|_| Error::from("this is no request and no batch"))?;
    let (answer, kept) = take(app, &batch).await;
    let causes: Vec<String> = batch.records.iter().filter_map(Message::cause).collect();
    Line::new()
        .metric("NoticesKept", Unit::Count, f64::from(kept))
        .metric("MessagesFailed", Unit::Count, f64::from(u32::try_from(answer.failed().len()).unwrap_or(u32::MAX)))
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", context.request_id.as_str())
        .property("patterns", app.shop.services.table.meter().take().iter().map(Value::from).collect::<Vec<Value>>())
        .causes(&causes.iter().map(String::as_str).collect())
        .trace(context.xray_trace_id.as_deref())
        .print();
    Ok(serde_json::to_value(answer)?)
}

/// Handles the messages of a batch. Returns the answer, and how many notices were kept.
pub async fn take(app: &App, batch: &Batch) -> (Answer, u32) {
    let (mut failed, mut kept) = (Vec::new(), 0);
    for message in &batch.records {
        let cause = message.cause();
        let taken = match message.event() {
            Ok(event) => {
                // A replay may have events that are older than the log of deliveries.
                let oldest = Instant::now().plus_seconds(-LIFETIME_SECONDS);
                if message.is_replayed() && event.occurred_at < oldest {
                    continue;
                }
                correlation::caused_by(cause.as_deref(), keep(app, &event)).await
            }
            Err(error) => Err(error.into()),
        };
        match taken {
            Ok(outcome) => kept += u32::from(outcome == Outcome::Kept),
            Err(error) => {
                tracing::warn!(message_id = message.id, %error, "an agent does not hear of its order");
                failed.push(message.id.clone());
            }
        }
    }
    (Answer::naming(failed), kept)
}

/// Keeps the state of an agent's order for the courier, if its agent wants to hear of it.
///
/// # Errors
/// [`NoticeError`]. The event must be handled again.
async fn keep(app: &App, event: &Event) -> Result<Outcome, NoticeError> {
    let now = Instant::now();
    let (Some(id), true) = (order_of(event), app.signing.is_some()) else { return Ok(Outcome::Unwanted) };
    let table = &app.shop.services.table;
    let order = visible(table.query(&order::read_for_update(id)?).await?.items, now).filter(was_sold);
    let origin = order.as_ref().and_then(|order| order.head.origin.clone());
    let Some((order, origin)) = order.zip(origin) else { return Ok(Outcome::Unwanted) };
    let agent = table.get(&agent::get(&origin.agent)?).await?;
    let is_open = |agent: &Stored<Agent>| own(&order, agent).is_some() && agent.scopes.contains(&AgentScope::Orders);
    let Some(agent) = agent.filter(is_open) else { return Ok(Outcome::Unwanted) };
    let endpoints = endpoints(app, &agent, now).await?;
    if endpoints.is_empty() {
        return Ok(Outcome::Unwanted);
    }
    let session = table.get(&checkout_session::get(&origin.checkout)?).await?;
    let wish = session.map(|session| session.data.wish).unwrap_or_default();
    let Some(pages) = Pages::of(app, Some(origin.api.clone())).await? else { return Ok(Outcome::Unwanted) };
    let link = pages.order(None, &order.head.id);
    let mut outcome = Outcome::Known;
    for endpoint in endpoints {
        let is_ucp = endpoint.is_from_profile();
        let body = if is_ucp {
            let mut shown = ucp::order::snapshot(&order, &origin, &wish, &pages, &link);
            let profile = app.profiles.known(&agent.profile_url);
            shown.insert("ucp".to_owned(), ucp::part(Root::Order, false, profile.as_deref()));
            json!(shown)
        } else {
            let kind = if is_sale(event) { "order_create" } else { "order_update" };
            json!({ "type": kind, "data": acp::order::snapshot(&order, &origin.checkout, &wish, &pages, &link) })
        };
        let body = body.to_string();
        if body.len() > MAX_BODY_BYTES {
            return Err(NoticeError::TooLong(body.len()));
        }
        let delivery = WebhookDelivery {
            id: webhook_delivery::id_of(event.id.as_str(), event.occurred_at),
            endpoint_id: endpoint.id.clone(),
            event_id: event.id.to_string(),
            kind: if is_ucp { UCP_KIND } else { ACP_KIND }.to_owned(),
            body,
            signed_headers: is_ucp.then(|| headers(&pages, event)),
            state: DeliveryState::Pending,
            due_at: Some(now),
            tries: 0,
            expires_at: now.plus_seconds(LIFETIME_SECONDS),
            attempts: Vec::new(),
        };
        // Each event's delivery to an endpoint is created only once, so the event's id serves as `born`.
        let delivery = Stored::new(delivery, Born::new(event.id.as_str())?, now);
        if table.write(&webhook_delivery::add(&delivery)?).await?.is_ok() {
            outcome = Outcome::Kept;
        }
    }
    Ok(outcome)
}

/// Returns the order that an event has changed. An order that was placed before its payment is not sold
/// yet, and the event of its payment follows.
const fn order_of(event: &Event) -> Option<&OrderId> {
    match &event.data {
        Data::OrderPlaced(placed) if is_paid(placed.status) => Some(&placed.order_id),
        Data::OrderStatusChanged(changed) => Some(&changed.order_id),
        Data::PaymentReversed(reversed) => Some(&reversed.order_id),
        _ => None,
    }
}

/// Returns whether the order was sold by this event.
const fn is_sale(event: &Event) -> bool {
    match &event.data {
        Data::OrderPlaced(_) => true,
        Data::OrderStatusChanged(changed) => !is_paid(changed.from) && is_paid(changed.to),
        _ => false,
    }
}

/// Returns whether an order was paid. Until then its checkout is not completed, and there is no order for
/// the agent.
fn was_sold(order: &PlacedOrder) -> bool {
    is_paid(order.head.status) || order.history.iter().any(|step| is_paid(step.status))
}

const fn is_paid(status: OrderStatus) -> bool {
    !matches!(status, OrderStatus::Placing | OrderStatus::Pending | OrderStatus::Cancelled)
}

fn headers(pages: &Pages, event: &Event) -> BTreeMap<String, String> {
    let headers = [
        ("ucp-agent", format!("profile=\"{}/.well-known/ucp\"", pages.api)),
        ("idempotency-key", event.id.to_string()),
        ("webhook-id", event.id.to_string()),
        ("webhook-timestamp", event.occurred_at.as_seconds().to_string()),
    ];
    headers.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns the endpoints that get the orders of an agent: those that staff have registered for it, or else
/// that of its profile. An endpoint of an earlier agent with the same id gets nothing.
async fn endpoints(
    app: &App,
    agent: &Stored<Agent>,
    now: Instant,
) -> Result<Vec<Stored<WebhookEndpoint>>, NoticeError> {
    let all = app.shop.services.table.query(&webhook_endpoint::list()?).await?.items;
    let is_own = |endpoint: &Stored<WebhookEndpoint>| {
        endpoint.agent.as_ref() == Some(&agent.id) && endpoint.meta.created_at >= agent.meta.created_at
    };
    let (known, registered): (Vec<_>, Vec<_>) =
        all.into_iter().filter(is_own).partition(|endpoint| endpoint.is_from_profile());
    let mut endpoints = registered;
    if endpoints.is_empty() {
        endpoints.extend(endpoint(app, agent, known.into_iter().next(), now).await?);
    }
    endpoints.retain(|endpoint| endpoint.disabled.is_none());
    Ok(endpoints)
}

/// Returns the endpoint of an agent, as its profile wants it now. If the profile cannot be read, the last
/// endpoint counts, and an agent without one must be asked again.
async fn endpoint(
    app: &App,
    agent: &Stored<Agent>,
    known: Option<Stored<WebhookEndpoint>>,
    now: Instant,
) -> Result<Option<Stored<WebhookEndpoint>>, NoticeError> {
    let (services, id) = (&app.shop.services, webhook_endpoint::id_of_agent(agent));
    let get = webhook_endpoint::get(&id)?;
    let profile = match app.profiles.read(&agent.profile_url).await {
        Ok(profile) => profile,
        Err(error @ NoProfile::Unreachable) if known.is_none() => return Err(error.into()),
        Err(_) => return Ok(known),
    };
    let Some(url) = profile.webhook_url(ORDER) else { return Ok(None) };
    if let Err(bad) = aws::Target::new(url, app.profiles.reach()) {
        tracing::warn!(agent = %agent.id, %bad, "the agent's profile names no usable address for webhooks");
        return Ok(None);
    }
    match known {
        Some(known) if known.url == url => return Ok(Some(known)),
        Some(known) => {
            // Another address begins without failures, unless staff have disabled it.
            let disabled = known.disabled.filter(|disabled| disabled.reason == DisabledReason::Staff);
            let endpoint = WebhookEndpoint { url: url.to_owned(), disabled, ..known.data };
            let change = webhook_endpoint::change(&endpoint, known.meta.version, true, now)?;
            if let Ok(changed) = services.table.update(&change).await? {
                return Ok(Some(changed));
            }
        }
        None => {
            let endpoint = WebhookEndpoint {
                id,
                agent: Some(agent.id.clone()),
                secrets: Vec::new(),
                failing_since: None,
                url: url.to_owned(),
                kinds: BTreeSet::new(),
                description: None,
                disabled: None,
            };
            let endpoint = Stored::new(endpoint, services.born(now)?, now);
            if services.table.transact(&webhook_endpoint::adopt(&endpoint, agent)?).await?.is_ok() {
                return Ok(Some(endpoint));
            }
        }
    }
    // Another event has changed the endpoint meanwhile.
    Ok(services.table.get(&get).await?)
}
