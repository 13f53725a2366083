//! The courier. It sends the shop's events to the endpoints that staff have registered.
//!
//! The messages of the SQS queue are events of the bus. For each endpoint that wants an event, the courier
//! keeps a delivery in the table, and then sends it ([`take`]). Once a minute, a schedule runs a round,
//! which sends the deliveries that are due again ([`round`]). So an endpoint that fails delays nobody
//! else: its deliveries wait in its own list, and the queue is never blocked.
//!
//! A delivery is sent at least once. Each of its requests has the id of the event, so a receiver
//! recognises a repetition. Requests may arrive in another sequence than the events happened. The
//! number `sequence` tells the sequence of an order's own events.
//!
//! A delivery to an agent comes from the function of agents, which keeps it as due. A key of the shop
//! signs its message, and not a secret that the agent has.
//!
//! The courier sends only to addresses of the public internet, follows no redirect, and reads no body of
//! a response. It never logs the URL or the content of a delivery.

mod message;
mod round;
mod send;
mod take;

use std::time::Duration;

use aws::{Connector, Reach, Secret, Tls};
use bus::queue::{Answer, Batch, Input, Message};
use key_schema::pattern::Pattern;
use key_schema::webhook_secret::WebhookKeys;
use key_schema::{id, webhook_delivery, webhook_endpoint};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde_json::Value;
use signatures::SigningKeys;
use table::{Measured, Table, TableError};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;

pub use send::Tally;

pub const PATTERNS: &[&Pattern] = &[
    &webhook_endpoint::LIST,
    &webhook_endpoint::HEALTH,
    &webhook_delivery::ADD,
    &webhook_delivery::DUE,
    &webhook_delivery::CLAIM,
    &webhook_delivery::SETTLE,
];

/// The time before the deadline at which the function stops, so that its response is still sent.
const MARGIN: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum CourierError {
    #[error(transparent)]
    Message(#[from] bus::queue::MessageError),
    #[error("the event cannot be encoded")]
    Encode(#[from] serde_json::Error),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Key(#[from] key_schema::key::KeyError),
    #[error(transparent)]
    Item(#[from] key_schema::item::EncodeError),
    #[error(transparent)]
    Id(#[from] id::IdError),
}

#[derive(Debug)]
pub struct Courier {
    table: Table,
    /// The keys from which the secrets of endpoints follow, if the deployment sends webhooks.
    keys: Option<WebhookKeys>,
    /// The keys that sign messages to agents.
    signing: Option<SigningKeys>,
    connector: Connector,
    reach: Reach,
}

impl Courier {
    /// Creates a courier that trusts the servers that `tls` trusts.
    #[must_use]
    pub fn new(table: Table, keys: Option<WebhookKeys>, tls: Tls, reach: Reach) -> Self {
        let (signing, connector) = (keys.as_ref().map(SigningKeys::of), Connector::new(tls, CONNECT_TIMEOUT));
        Self { table, keys, signing, connector: connector.reaching(reach), reach }
    }

    async fn from_env() -> Result<Self, lambda_runtime::Error> {
        let keys = match Secret::from_env("WEBHOOK_KEYS_SECRET") {
            Ok(secret) => Some(WebhookKeys::new(&secret.read().await?)?),
            Err(_) => None,
        };
        Ok(Self::new(Table::from_env().await?, keys, aws::tls_of_internet()?, Reach::of_webhooks()))
    }

    /// Returns the capacity that each access pattern has consumed since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }
}

/// Handles messages of the webhook queue, and runs rounds, until Lambda shuts down the execution
/// environment.
///
/// Environment: `TABLE_NAME`, `WEBHOOK_KEYS_SECRET`, `WEBHOOK_TARGETS` and the SDK's variables.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("courier");
    let courier = &Courier::from_env().await?;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Input>| async move {
        let (started, left) = (Instant::now(), telemetry::time_left(event.context.deadline()));
        let stop = started + left.saturating_sub(MARGIN);
        let context = &event.context;
        match event.payload.records {
            // Boxed, because the compiler cannot compute the layout of such deeply nested futures.
            Some(records) => {
                let batch = Batch { records };
                let (answer, tally) = Box::pin(courier.take(&batch, stop)).await;
                let causes: Vec<String> = batch.records.iter().filter_map(Message::cause).collect();
                let line = line(&tally).metric("MessagesFailed", Unit::Count, count(answer.failed().len()));
                report(context, line, &causes, started, &courier.costs());
                Ok::<_, lambda_runtime::Error>(answer)
            }
            None => {
                let round = Box::pin(courier.run_round(stop));
                let round = correlation::caused_by(Some(&context.request_id), round).await;
                report(context, line(&round.as_ref().copied().unwrap_or_default()), &[], started, &courier.costs());
                round.map(|_| Answer::default()).map_err(lambda_runtime::Error::from)
            }
        }
    }))
    .await
}

fn line(tally: &Tally) -> Line {
    let Tally { delivered, failed, given_up, disabled } = *tally;
    Line::new()
        .metric("Delivered", Unit::Count, f64::from(delivered))
        .metric("AttemptsFailed", Unit::Count, f64::from(failed))
        .metric("GivenUp", Unit::Count, f64::from(given_up))
        .metric("EndpointsDisabled", Unit::Count, f64::from(disabled))
}

fn report(context: &Context, line: Line, causes: &[String], started: Instant, costs: &[Measured]) {
    line.metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", context.request_id.as_str())
        .property("patterns", costs.iter().map(Value::from).collect::<Vec<Value>>())
        .causes(&causes.iter().map(String::as_str).collect())
        .trace(context.xray_trace_id.as_deref())
        .print();
}

/// Converts a count. The result is exact, because a batch has at most 10,000 messages.
#[allow(clippy::cast_precision_loss)]
fn count(number: usize) -> f64 {
    number as f64
}
