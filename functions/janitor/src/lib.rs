//! Finishes or undoes work on orders that broke off, finishes erasures, goes on with the move of a category, and deletes objects that nothing references.
//!
//! An order of many lines is placed, and its stock given back, in several transactions ([`key_schema::order::staged`]). Whoever is at it may crash, lose
//! its table or run out of time between two of them; what is left is in a sparse index, and this function comes by every minute. An order that was not
//! placed is undone, stock, lines, claims and all; of one that was cancelled or returned the rest of the stock is given back. What it leaves, because
//! a table fails or time runs out, it finds again the next minute.
//!
//! What an erased customer has in the archive is deleted here as well, as soon as nobody can be archiving any more ([`key_schema::erasure`]).
//!
//! A category that moves with all below it takes many transactions too ([`key_schema::category::relocation`]). The request that began it does what it has
//! time for; the rest, and the end, which waits for other requests, is done here, when the orders are seen to.
//!
//! It waits until work is older than [`Grace`], longer than whoever began it may take. For orders that is politeness, not safety: every transaction is fenced by
//! the order's head, so a janitor that comes too early, or two of them at once, make somebody stop and nothing wrong. A bucket has no fence: a copy that
//! somebody has begun would come after its deletion, so the grace must be longer than a function of pictures may take, too ([`key_schema::media`]).

mod category;
mod erasures;
mod grace;
mod objects;
pub mod round;

use std::time::Duration;

use ::objects::ObjectStore;
use key_schema::instant;
use lambda_runtime::{Context, LambdaEvent, service_fn};
use media::Media;
use serde::Deserialize;
use serde_json::{Value, json};
use table::{Measured, SetupError, Table};
use telemetry::correlation;
use telemetry::emf::{Line, Unit};
use tokio::time::Instant;

pub use category::Moved;
pub use grace::{Grace, GraceError};
use round::{Janitor, Round};

/// How long before its deadline the function stops, so that its answer still gets out.
const MARGIN: Duration = Duration::from_secs(2);

/// What the function is invoked with: the scheduled event of EventBridge, of which nothing matters, or what an operator gives by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Event {
    /// Another grace for this once, also none at all.
    #[serde(default)]
    pub grace_seconds: Option<u32>,
}

/// Why the function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no way to the table, or to the bucket.
    #[error(transparent)]
    Table(#[from] SetupError),
    /// The environment has a grace that is none.
    #[error(transparent)]
    Grace(#[from] GraceError),
}

/// Comes by whenever it is invoked, for as long as the runtime lives.
///
/// Environment: `TABLE_NAME`, `MEDIA_BUCKET`, `ARCHIVE_BUCKET`, the SDK's own variables, and optionally `JANITOR_GRACE_SECONDS` ([`Grace`]).
///
/// # Errors
/// [`StartError`], and when the Runtime API breaks.
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
        // In a box: the state of the SDK's calls inside the runtime's own is deeper than the compiler likes to lay out.
        let round = Box::pin(async move {
            janitor.beat(now).await;
            let (mut round, list) = janitor.come_by(now, grace, stop).await;
            round.category = janitor.go_on(now, grace, stop).await;
            round.failed += u32::from(round.category == Some(Moved::Failed));
            (round, list)
        });
        // Who began the work is long gone: what follows from its end is found under the id of this invocation.
        let (round, list) = correlation::caused_by(Some(&event.context.request_id), round).await;
        report(&event.context, &round, started, &janitor.costs());
        list.map(|()| round).map_err(lambda_runtime::Error::from)
    }))
    .await
}

fn report(context: &Context, round: &Round, started: Instant, costs: &[Measured]) {
    let cost = |measured: &Measured| json!({"pattern": measured.pattern.id, "requests": measured.requests, "units": measured.capacity_units});
    Line::new()
        .metric("Unfinished", Unit::Count, f64::from(round.found))
        .metric("Undone", Unit::Count, f64::from(round.undone))
        .metric("Finished", Unit::Count, f64::from(round.finished))
        .metric("Erased", Unit::Count, f64::from(round.erased))
        .metric("Deleted", Unit::Count, f64::from(round.deleted))
        .metric("Failed", Unit::Count, f64::from(round.failed))
        .metric("OldestAge", Unit::Milliseconds, round.oldest.as_secs_f64() * 1000.0)
        .metric("Duration", Unit::Milliseconds, started.elapsed().as_secs_f64() * 1000.0)
        .property("request_id", context.request_id.as_str())
        .property("left", round.left)
        .property("category", round.category.map(Moved::name))
        .property("patterns", costs.iter().map(cost).collect::<Vec<Value>>())
        .trace(context.xray_trace_id.as_deref())
        .print();
}
