//! The cashier. It settles card payments: it reads what the payment provider has announced, and repeats
//! the calls whose result is not known.
//!
//! The messages of the SQS queue are events of the bus. Each names a payment that has changed at the
//! provider. The cashier reads the provider's present state of the payment, and records it with
//! everything that follows ([`workflows::payments`]). So it does not matter how often, how late and in
//! which sequence messages arrive. The response names the messages that failed, and SQS delivers only
//! these again.
//!
//! Once a minute, a schedule runs a round. A sparse index lists the operations whose result is not
//! known, for example because a function ended between a call and its record. The round sends them
//! again with the same keys. It also counts the authorisations that expire within a day, for an alarm.
//!
//! Two cashiers, or a cashier and a request, may work on the same order. Every transaction has a
//! condition on the order's head, so the second one reads the order again.

mod round;
mod take;

use std::sync::Arc;
use std::time::Duration;

use bus::queue::{Answer, Batch, Input, Message};
use key_schema::id::OrderId;
use key_schema::pattern::Pattern;
use key_schema::{instant, order, payment, product};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use payments::{Account, AccountError, PaymentError};
use serde_json::Value;
use table::{Measured, Table, TableError};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;
use workflows::payments::SettleError;

pub use round::Round;

pub const PATTERNS: &[&Pattern] = &[
    &payment::UNSETTLED,
    &payment::EXPIRING,
    &payment::CHANGE,
    &order::EDIT,
    &order::MOVE,
    &order::REVIVE,
    &product::READ_STOCK,
    &product::READ_SHARDS,
    &product::GROW,
];

/// The time before the deadline at which the function stops, so that its response is still sent.
const MARGIN: Duration = Duration::from_secs(2);

/// The reason why an order was not settled.
#[derive(Debug, thiserror::Error)]
pub enum CashierError {
    #[error(transparent)]
    Message(#[from] bus::queue::MessageError),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Provider(#[from] PaymentError),
    #[error(transparent)]
    Settle(#[from] SettleError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Key(#[from] key_schema::key::KeyError),
}

#[derive(Debug)]
pub struct Cashier {
    table: Table,
    account: Account,
}

impl Cashier {
    #[must_use]
    pub const fn new(table: Table, account: Account) -> Self {
        Self { table, account }
    }

    /// Returns the capacity that each access pattern has consumed since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Settles an order. Returns whether there is such an order.
    async fn settle(&self, order: &OrderId, hint: Option<&str>) -> Result<bool, CashierError> {
        let keys = self.account.keys().await?;
        let provider = Arc::clone(&keys.provider);
        match workflows::payments::settle(&self.table, provider.as_ref(), order, hint).await? {
            Some(settled) => settled.error.map_or(Ok(true), |error| Err(error.into())),
            None => Ok(false),
        }
    }
}

/// Handles messages of the payment queue, and runs rounds, until Lambda shuts down the execution
/// environment.
///
/// Environment: `TABLE_NAME`, `PAYMENT_KEYS_SECRET`, `PAYMENT_PROVIDER_URL` and the SDK's variables.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("cashier");
    let cashier = &Cashier::new(Table::from_env().await?, Account::from_env()?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Input>| async move {
        let (started, left) = (Instant::now(), telemetry::time_left(event.context.deadline()));
        let stop = started + left.saturating_sub(MARGIN);
        let context = &event.context;
        match event.payload.records {
            // Boxed, because the compiler cannot compute the layout of such deeply nested futures.
            Some(records) => {
                let batch = Batch { records };
                let answer = Box::pin(cashier.take(&batch, stop)).await;
                let causes: Vec<String> = batch.records.iter().filter_map(Message::cause).collect();
                report(context, line(&batch, &answer), &causes, started, &cashier.costs());
                Ok::<_, lambda_runtime::Error>(answer)
            }
            None => {
                let round = Box::pin(cashier.run_round(instant::Instant::now(), stop));
                let round = correlation::caused_by(Some(&context.request_id), round).await;
                report(context, of_round(round.as_ref().ok()), &[], started, &cashier.costs());
                round.map(|_| Answer::default()).map_err(lambda_runtime::Error::from)
            }
        }
    }))
    .await
}

fn line(batch: &Batch, answer: &Answer) -> Line {
    Line::new().metric("Messages", Unit::Count, count(batch.records.len())).metric(
        "Failed",
        Unit::Count,
        count(answer.failed().len()),
    )
}

fn of_round(round: Option<&Round>) -> Line {
    let Round { found, failed, oldest, expiring } = round.copied().unwrap_or_default();
    Line::new()
        .metric("Unsettled", Unit::Count, f64::from(found))
        .metric("Failed", Unit::Count, f64::from(failed) + f64::from(u8::from(round.is_none())))
        .metric("OldestAge", Unit::Milliseconds, oldest.as_secs_f64() * 1000.0)
        .metric("ExpiringAuthorisations", Unit::Count, f64::from(expiring))
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
