//! The notifier. It sends customers mail about their orders: a confirmation when an order is
//! placed, and a message at each step that matters to them. It also mails the codes that verify
//! email addresses, and stops mail to an address after a permanent bounce or a complaint.
//!
//! # Which mails are sent
//!
//! Customers can enter any address, so these rules protect the owners of addresses:
//!
//! - A message about an order is sent only to a verified address.
//! - A message with a code is sent only to the address for which the code was requested, while the
//!   code is valid.
//! - An address gets a limited number of mails a day. The limit of mails with codes is lower
//!   ([`key_schema::recipient`]). Repeated attempts to send one message count once.
//! - After a permanent bounce or a complaint an address gets no mail, until staff enter the address
//!   again.
//!
//! A message that a rule refuses is dropped for good, logged and counted without the address.
//!
//! # Why a message is sent once, with one exception
//!
//! Events arrive at least once: from the bus, from retries of an asynchronous invocation, and from
//! a redriven queue. SES sends a mail for every request. So each event's message is claimed before
//! it is sent, and recorded afterwards:
//!
//! ```text
//! claim (a lease of 10 s) ──▶ send ──▶ SES accepts ──▶ record as sent
//!                                             └─ window ─┘
//! ```
//!
//! - Before SES accepts the message, a failure does no harm, because the next attempt sends it. If
//!   an attempt crashed, its lease excludes other attempts until the lease expires. The next
//!   attempt waits for this, if it has enough time. Otherwise it fails, and Lambda starts another
//!   attempt after a minute.
//! - After the message is recorded as sent, no attempt sends it again, however often and late the
//!   event arrives. The record lasts 35 days, and a replay of the bus's archive sends nothing for
//!   events older than 30 days.
//! - **Between SES's acceptance and the record there is a window in which a crash repeats a
//!   message.** In these milliseconds the function may crash, or SES's response may be lost. The
//!   next attempt cannot know that the message was accepted, and sends a second mail. A second mail
//!   is better than none. After a failure to write the record the invocation still succeeds, so
//!   Lambda does not retry it. Only a second delivery of the event could then repeat the message.
//!
//! Two attempts never send at once, because an attempt stops before its lease ends ([`notifier`]).
//!
//! This crate never logs the recipient or the content of a message.

pub mod event;
pub mod feedback;
pub mod mailer;
pub mod message;
pub mod notifier;

use aws::{Api, Service};
use key_schema::code::CodeKeys;
use key_schema::pattern::Pattern;
use key_schema::{instant, mail, order, recipient, verification};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use table::{Measured, Table};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tracing::Instrument as _;

use event::Delivery;
use mailer::Ses;
use notifier::{Notifier, NotifyError, Outcome};
use tokio::time::Instant;

pub const PATTERNS: &[&Pattern] = &[
    &verification::READ,
    &order::LINES,
    &order::parts::WITH_HISTORY,
    &mail::PREPARE,
    &mail::CLAIM,
    &mail::RECLAIM,
    &mail::SETTLE,
    &mail::RELEASE,
    &recipient::STOP,
];

/// Handles events of the bus until Lambda shuts down the execution environment.
///
/// Environment: `TABLE_NAME`, `MAIL_FROM` (the sender's address, verified in SES),
/// `MAIL_CONFIGURATION_SET`, `EMAIL_CODE_KEYS_SECRET` and the SDK's variables.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("notifier");
    let from = aws::variable("MAIL_FROM")?;
    let mailer = Ses::new(Service::from_env(Api::Ses)?, from, aws::variable("MAIL_CONFIGURATION_SET")?);
    let codes = CodeKeys::new(&aws::Secret::from_env("EMAIL_CODE_KEYS_SECRET")?.read().await?)?;
    let notifier = &Notifier::new(Table::from_env().await?, mailer, codes);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Delivery>| async move {
        let started = Instant::now();
        let left = telemetry::time_left(event.context.deadline());
        // Boxed, because the compiler cannot compute the layout of such deeply nested futures.
        let taking = Box::pin(notifier.take(&event.payload, instant::Instant::now(), started + left));
        let span = tracing::info_span!("event", correlation_id = event.payload.cause());
        let outcome = correlation::caused_by(event.payload.cause(), taking).instrument(span).await;
        report(&event, &outcome, started, &notifier.costs());
        // The response has only the error's text. Otherwise the runtime would also log the error's
        // sources, which may quote the event.
        outcome.map(|_| ()).map_err(|error| lambda_runtime::Error::from(error.to_string()))
    }))
    .await
}

/// Prints one line per event, without personal data.
fn report(event: &LambdaEvent<Delivery>, outcome: &Result<Outcome, NotifyError>, started: Instant, costs: &[Measured]) {
    let (kind, id) = event.payload.names();
    let is = |wanted: Outcome| f64::from(u8::from(matches!(outcome, Ok(outcome) if *outcome == wanted)));
    Line::new()
        .metric("Sent", Unit::Count, is(Outcome::Sent))
        .metric("Rejected", Unit::Count, is(Outcome::Rejected))
        .metric("Unverified", Unit::Count, is(Outcome::Unverified))
        .metric("Limited", Unit::Count, is(Outcome::Limited))
        .metric("Stopped", Unit::Count, is(Outcome::Stopped))
        .metric("Feedback", Unit::Count, is(Outcome::Feedback))
        .metric("Failed", Unit::Count, f64::from(u8::from(outcome.is_err())))
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", event.context.request_id.as_str())
        .property("correlation_id", event.payload.cause())
        .property("event_id", id)
        .property("event", kind)
        .property("outcome", outcome.as_ref().map_or("failed", |outcome| outcome.as_str()))
        .property("patterns", costs.iter().map(Value::from).collect::<Vec<Value>>())
        .trace(event.context.xray_trace_id.as_deref())
        .print();
    if let Err(error) = outcome {
        let correlation_id = event.payload.cause();
        tracing::warn!(event_id = id, event = kind, correlation_id, %error, "a message was not sent");
    }
}
