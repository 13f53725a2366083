//! The janitor. It finishes or undoes abandoned work on orders, and cancels orders that were not
//! paid in time. It also finishes erasures and deletions of documents, continues category moves,
//! and deletes unreferenced objects.
//!
//! Placing an order of many lines, and returning its stock, take several transactions
//! ([`key_schema::order::staged`]). Between two of them the function `Orders` may crash, lose the
//! connection to the table or run out of time. A sparse index lists the unfinished orders, and the
//! janitor reads it every minute. If an order was not placed, the janitor returns its stock and
//! removes its lines and claims. If an order was cancelled or returned, the janitor returns the
//! remaining stock. After a failure, or when time runs out, the janitor continues in the next
//! minute.
//!
//! A second sparse index lists the pending orders by the instant until which they must be paid. The
//! janitor cancels the orders that were not paid by then ([`key_schema::order::open`]).
//!
//! An erasure of a customer, a deletion of a document and the removal of a draft can need more
//! writes than one request may make. Two further sparse indexes list these removals. The janitor
//! finishes the removals that no client has retried ([`workflows::removal`],
//! [`workflows::erasure`]).
//!
//! The janitor also deletes an erased customer's items in the archive, as soon as no consumer can
//! still be archiving them ([`key_schema::erasure`]).
//!
//! The move of a category with its descendants takes many transactions as well
//! ([`key_schema::category::relocation`]). The request that began the move does as much as its time
//! allows. The janitor does the rest, after all other work of its round. Before the end of the
//! move, it waits for requests that may still use the old categories.
//!
//! The janitor waits until work is older than [`Grace`]. This grace period is longer than the
//! longest run of the function that began the work. For orders it only avoids conflicts. Every
//! transaction has a condition on the order's head. So a janitor that begins too early interrupts
//! the function, and a second janitor interrupts the first one, but neither does damage. A bucket
//! has no such condition: a copy could complete after the object's deletion. So the grace period
//! must also be longer than the longest run of the function `Catalog`, which copies pictures
//! ([`key_schema::media`]).

mod category;
mod erasures;
mod grace;
mod lapses;
mod objects;
mod removals;
pub mod round;
mod turns;

use std::time::Duration;

use key_schema::pattern::Pattern;
use key_schema::{archive, customer, document, erasure, heartbeat, instant, order};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::Value;
use storage::media::Media;
use storage::objects::ObjectStore;
use table::{Measured, SetupError, Table};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;
use workflows::erasure::with_patterns;

pub use category::Moved;
pub use grace::{Grace, GraceError};
use round::{Janitor, Round};

/// The access patterns besides those of an erasure.
const OTHERS: &[&Pattern] = &[
    &customer::ERASING,
    &document::REMOVALS,
    &document::DISCARD_TEXTS,
    &key_schema::media::UNSETTLED,
    &key_schema::media::DOOM,
    &key_schema::media::REFERENCES,
    &key_schema::media::FORGET,
    &key_schema::category::KNOWN,
    &key_schema::category::relocation::GET,
    &key_schema::category::relocation::BELOW,
    &key_schema::category::relocation::ABOUT,
    &key_schema::category::relocation::COPY,
    &key_schema::category::relocation::LISTED,
    &key_schema::category::relocation::READ,
    &key_schema::category::relocation::ADD,
    &key_schema::category::relocation::MOVE_PRODUCTS,
    &key_schema::category::relocation::TRANSFER,
    &key_schema::category::relocation::CLEAR,
    &key_schema::category::relocation::KEEP,
    &key_schema::category::relocation::ADVANCE,
    &order::EDIT,
    &order::HEAD,
    &order::LAPSE,
    &order::open::LAPSING,
    &order::staged::UNDO,
    &order::staged::GIVE_BACK,
    &order::staged::UNFINISHED,
    &erasure::PENDING,
    &erasure::DONE,
    &archive::OWNER,
    &heartbeat::BEAT,
];

pub const PATTERNS: &[&Pattern] = &with_patterns::<{ OTHERS.len() + workflows::erasure::PATTERNS.len() }>(OTHERS);

/// The time before the deadline at which the function stops, so that its response is still sent.
const MARGIN: Duration = Duration::from_secs(2);

/// The function's event: an operator's input, or EventBridge's scheduled event, which does not have
/// the field `grace_seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Event {
    /// The grace period of this invocation, in seconds, instead of the environment's. 0 means no
    /// grace period.
    #[serde(default)]
    pub grace_seconds: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The client of the table or of a bucket cannot be set up.
    #[error(transparent)]
    Table(#[from] SetupError),
    /// The grace period in the environment is invalid.
    #[error(transparent)]
    Grace(#[from] GraceError),
}

/// Runs a round at each invocation, until Lambda shuts down the execution environment.
///
/// Environment: `TABLE_NAME`, `MEDIA_BUCKET`, `ARCHIVE_BUCKET`, the SDK's variables, and optionally
/// `JANITOR_GRACE_SECONDS` ([`Grace`]).
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("janitor");
    let grace = Grace::from_variable(std::env::var("JANITOR_GRACE_SECONDS").ok().as_deref())?;
    let media = Media::from_env("MEDIA_BUCKET").map_err(StartError::from)?;
    let archive = ObjectStore::from_env("ARCHIVE_BUCKET").map_err(StartError::from)?;
    let janitor = &Janitor::new(Table::from_env().await.map_err(StartError::from)?, media, archive);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Event>| async move {
        let (started, left) = (Instant::now(), telemetry::time_left(event.context.deadline()));
        let stop = started + left.saturating_sub(MARGIN);
        let now = instant::Instant::now();
        let grace = event.payload.grace_seconds.map_or(grace, Grace::seconds);
        // Boxed, because the compiler cannot compute the layout of such deeply nested futures.
        let round = Box::pin(async move {
            janitor.beat(now).await;
            let (mut round, list) = janitor.run_round(now, grace, stop).await;
            round.category = janitor.go_on(now, grace, stop).await;
            round.failed += u32::from(round.category == Some(Moved::Failed));
            (round, list)
        });
        // The requests that began the work have ended, so this invocation's id is recorded as the
        // cause.
        let (round, list) = correlation::caused_by(Some(&event.context.request_id), round).await;
        report(&event.context, &round, started, &janitor.costs());
        list.map(|()| round).map_err(lambda_runtime::Error::from)
    }))
    .await
}

fn report(context: &Context, round: &Round, started: Instant, costs: &[Measured]) {
    Line::new()
        .metric("Unfinished", Unit::Count, f64::from(round.found))
        .metric("Undone", Unit::Count, f64::from(round.undone))
        .metric("Finished", Unit::Count, f64::from(round.finished))
        .metric("Lapsed", Unit::Count, f64::from(round.lapsed))
        .metric("Erased", Unit::Count, f64::from(round.erased))
        .metric("Deleted", Unit::Count, f64::from(round.deleted))
        .metric("Failed", Unit::Count, f64::from(round.failed))
        .metric("OldestAge", Unit::Milliseconds, round.oldest.as_secs_f64() * 1000.0)
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", context.request_id.as_str())
        .property("left", round.left)
        .property("removed", round.removed)
        .property("category", round.category.map(Moved::name))
        .property("patterns", costs.iter().map(Value::from).collect::<Vec<Value>>())
        .trace(context.xray_trace_id.as_deref())
        .print();
}
