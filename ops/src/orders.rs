//! `ops orders`: retiring closed orders.
//!
//! A retired order leaves the lists and expires some time later; the stream archives what DynamoDB then removes, and `ops archive restore`
//! brings it back. Orders are found through the lists by status, which an order leaves in the last transaction of its retirement, so the command goes
//! on where it was stopped, and a second run finds nothing to do.
//!
//! What happened to an order must have been derived from the stream before it expires: an order that is gone has no head to derive from. So orders
//! that changed within the time for which a record can still come are not retired ([`MIN_AGE_DAYS`]).

use std::fmt;
use std::time::Duration;

use clap::Subcommand;
use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{self, Order, OrderLine, OrderStatus, OrderStatusEvent, Part, Retirement};
use serde::Serialize;
use table::{Table, TransactError};

use crate::error::OpsError;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// A record may come so many days after its change: a stream keeps it for one, and the bucket of failed records for 30 more.
pub const MIN_AGE_DAYS: u32 = 31;
const MAX_AGE_DAYS: u32 = 36_500;
/// Orders that are listed at once.
const PAGE: usize = 100;
/// So many ids are in the summary of a dry run.
const SHOWN: usize = 20;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give closed orders (delivered, cancelled, returned) that nobody has moved for long a time to live.
    Retire {
        /// Those that were placed, and last changed, more than so many days ago: 31 at least, for which a record of a change may still come.
        #[arg(long, value_name = "DAYS", value_parser = age)]
        older_than: u32,
        /// How long they are found by their id before they expire.
        #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
        grace: u32,
        /// Orders a second, at most.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        rate: u32,
        /// Retire nothing; say what would be.
        #[arg(long)]
        dry_run: bool,
    },
}

fn age(text: &str) -> Result<u32, String> {
    let days: u32 = text.parse().map_err(|_| "must be a number of days".to_owned())?;
    if days < MIN_AGE_DAYS {
        return Err(format!(
            "must be at least {MIN_AGE_DAYS} days: records of younger changes may still be in the stream or set aside, and an \
             order that is gone cannot be derived from"
        ));
    }
    if days > MAX_AGE_DAYS { Err(format!("must be at most {MAX_AGE_DAYS} days")) } else { Ok(days) }
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let Command::Retire { older_than, grace, rate, dry_run } = command;
    let before = Instant::now().plus_seconds(-i64::from(older_than) * DAY_SECONDS);
    let options = RetireOptions { before, grace: Duration::from_secs(grace.into()), rate: Some(rate), dry_run };
    let retired = retire(&Table::from_env().await?, &options).await?;
    Ok(Outcome::new(&retired, retired.failed.is_empty()))
}

/// What a run of retiring is told.
#[derive(Debug, Clone)]
pub struct RetireOptions {
    /// Orders that were placed and last changed before this.
    pub before: Instant,
    /// How long after now they expire.
    pub grace: Duration,
    /// Orders a second, at most.
    pub rate: Option<u32>,
    /// Whether only to look.
    pub dry_run: bool,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Retired {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Orders that are retired, or would be.
    pub orders: u64,
    /// The first of them.
    pub first: Vec<OrderId>,
    /// Orders that were placed long ago and changed lately, or that something is still being done with.
    pub recent: u64,
    /// Orders that somebody moved or retired meanwhile.
    pub moved: u64,
    /// Orders that were not retired whole.
    pub failed: Vec<OrderId>,
}

impl fmt::Display for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dry_run { "would be retired" } else { "retired" };
        writeln!(f, "{} orders {what}; {} changed too lately, {} meanwhile", self.orders, self.recent, self.moved)?;
        if self.dry_run {
            for id in &self.first {
                writeln!(f, "  {id}")?;
            }
        }
        for id in &self.failed {
            writeln!(f, "NOT RETIRED, or in part: {id}: give the command again")?;
        }
        Ok(())
    }
}

/// Retires closed orders.
///
/// # Errors
/// [`OpsError`] when the table cannot be reached; what is retired by then is.
pub async fn retire(table: &Table, options: &RetireOptions) -> Result<Retired, OpsError> {
    let pace = Pace::new(options.rate);
    let bar = Progress::new("retire", None);
    let mut retired = Retired { dry_run: options.dry_run, ..Retired::default() };
    for status in OrderStatus::VISIBLE.into_iter().filter(|status| status.is_closed()) {
        let mut after = None;
        // Ends with the list: every page begins behind the one before, whether or not that is still there.
        loop {
            let list = order::by_status(status, None, Some(options.before))?.limit(PAGE).after(after);
            let page = table.query(&list).await?;
            for summary in page.items {
                pace.admit(1).await;
                retire_one(table, &summary.id, options, &mut retired).await?;
                bar.step(1);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(retired)
}

async fn retire_one(
    table: &Table,
    id: &OrderId,
    options: &RetireOptions,
    retired: &mut Retired,
) -> Result<(), OpsError> {
    let Some(Whole { head, lines, history }) = read(table, id).await? else {
        retired.moved += 1;
        return Ok(());
    };
    if !head.status.is_closed() {
        retired.moved += 1;
        return Ok(());
    }
    // One that another run began with is gone on with, whenever that was.
    let begun = head.expires_at.is_some();
    if !begun && (head.meta.updated_at > options.before || head.unfinished.is_some()) {
        retired.recent += 1;
        return Ok(());
    }
    if !options.dry_run {
        let at = Instant::now();
        let grace = i64::try_from(options.grace.as_secs()).unwrap_or(i64::MAX);
        let expires_at = at.plus_seconds(grace);
        let retirement = Retirement { order: &head, lines: &lines, history: &history, expires_at, at };
        for transaction in order::retire(retirement)? {
            match table.transact(&transaction).await {
                Ok(()) => {}
                // The head is not as it was read, or another run has come to the end.
                Err(TransactError::Refused(refusals))
                    if refusals.iter().any(|refusal| refusal.label == Part::Order) =>
                {
                    retired.moved += 1;
                    return Ok(());
                }
                Err(TransactError::Refused(_)) => {
                    retired.failed.push(id.clone());
                    return Ok(());
                }
                Err(TransactError::Table(error)) => return Err(error.into()),
            }
        }
    }
    retired.orders += 1;
    if retired.first.len() < SHOWN {
        retired.first.push(id.clone());
    }
    Ok(())
}

struct Whole {
    head: Stored<Order>,
    lines: Vec<Stored<OrderLine>>,
    history: Vec<Stored<OrderStatusEvent>>,
}

async fn read(table: &Table, id: &OrderId) -> Result<Option<Whole>, OpsError> {
    let (mut head, mut lines, mut history) = (None, Vec::new(), Vec::new());
    for item in table.query(&order::edit(id)?).await?.items {
        match item {
            AnyEntity::Order(order) => head = Some(order),
            AnyEntity::OrderLine(line) => lines.push(line),
            AnyEntity::OrderStatusEvent(event) => history.push(event),
            _ => {}
        }
    }
    Ok(head.map(|head| Whole { head, lines, history }))
}
