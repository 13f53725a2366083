//! `ops orders`: shows orders ([`show`]), and retires closed orders.
//!
//! A retired order leaves the lists, and expires some time later. DynamoDB then removes its items,
//! and the stream's consumer archives them. `ops archive restore` restores them.
//!
//! The command finds orders in the lists by status. An order leaves its list in the last
//! transaction of its retirement. So after an interruption, the next run finds the order again and
//! continues.
//!
//! The stream's consumer derives data from an order, such as sales, and needs the order's head for
//! that. So the command does not retire an order while a stream record of its last change can still
//! arrive ([`MIN_AGE_DAYS`]).

pub mod show;

use std::fmt;
use std::time::Duration;

use clap::Subcommand;
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder, addresses};
use serde::Serialize;
use table::Table;

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::shards;

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The number of days after a change during which its stream record can still arrive. The stream
/// keeps the record for 1 day, and the bucket of failed records keeps it for 30 more days.
pub const MIN_AGE_DAYS: u32 = 31;
const MAX_AGE_DAYS: u32 = 36_500;
const PAGE: usize = 100;
/// The maximum number of ids in the summary of a dry run.
const SHOWN: usize = 20;

/// The commands of `ops orders`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show an order in every state, also in status `placing`, and what the janitor will do with it.
    #[command(
        after_help = "Examples:\n  ops order show 0193…\n  ops order show 1042        # the number of an invoice, or a \
                            reference that staff gave\n  ops order show A-17 --customer ann\n  ops order show ann"
    )]
    Show {
        /// The order's id, its invoice's number or its reference, or the id of a customer.
        #[arg(value_name = "ID")]
        id: String,
        /// The customer who gave the reference.
        #[arg(long, value_name = "ID")]
        customer: Option<CustomerId>,
    },
    /// Give a time to live to closed orders (delivered, cancelled, returned) that have not changed
    /// for long.
    #[command(
        after_help = "Examples:\n  ops orders retire --older-than 730 --dry-run\n  ops orders retire --older-than \
                            730 --rate 20\n\nThe command may be stopped at any time and run again."
    )]
    Retire {
        /// Retire orders that were placed and last changed more than this many days ago. The
        /// minimum is 31, because the stream record of a change can arrive that late.
        #[arg(long, value_name = "DAYS", value_parser = age)]
        older_than: u32,
        /// How long callers still find a retired order by its id before it expires.
        #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
        grace: u32,
        /// The maximum number of orders per second.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        rate: u32,
        /// Retire nothing. Report the orders that would be retired.
        #[arg(long)]
        dry_run: bool,
    },
}

fn age(text: &str) -> Result<u32, String> {
    let days: u32 = text.parse().map_err(|_| "must be a number of days".to_owned())?;
    if days < MIN_AGE_DAYS {
        return Err(format!(
            "must be at least {MIN_AGE_DAYS} days: records of younger changes may still be in the stream or set aside, \
             and the consumer needs the order to process them"
        ));
    }
    if days > MAX_AGE_DAYS { Err(format!("must be at most {MAX_AGE_DAYS} days")) } else { Ok(days) }
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let (older_than, grace, rate, dry_run) = match command {
        Command::Show { id, customer } => {
            let shown = show::show(&Items::from_env().await?, &id, customer.as_ref()).await?;
            return Ok(Outcome::new(&shown, !shown.orders.is_empty()));
        }
        Command::Retire { older_than, grace, rate, dry_run } => (older_than, grace, rate, dry_run),
    };
    let before = Instant::now().plus_seconds(-i64::from(older_than) * DAY_SECONDS);
    let options = RetireOptions { before, grace: Duration::from_secs(grace.into()), rate: Some(rate), dry_run };
    let retired = retire(&Table::from_env().await?, &options).await?;
    Ok(Outcome::new(&retired, retired.failed.is_empty()))
}

#[derive(Debug, Clone)]
pub struct RetireOptions {
    /// Only orders that were placed and last changed before this instant are retired.
    pub before: Instant,
    /// How long after the run a retired order expires.
    pub grace: Duration,
    /// The maximum number of orders per second.
    pub rate: Option<u32>,
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Retired {
    pub dry_run: bool,
    /// The number of orders that were retired, or would be in a dry run.
    pub orders: u64,
    /// The ids of the first of these orders.
    pub first: Vec<OrderId>,
    /// The number of orders that were placed before [`RetireOptions::before`] but changed after it,
    /// or that have unfinished work.
    pub recent: u64,
    /// The number of orders that another writer changed or retired during the run.
    #[serde(rename = "moved")]
    pub concurrent: u64,
    /// The orders that were not retired, or were retired only in part.
    pub failed: Vec<OrderId>,
}

impl fmt::Display for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dry_run { "would be retired" } else { "retired" };
        writeln!(
            f,
            "{} orders {what}; {} changed recently, {} changed during the run",
            self.orders, self.recent, self.concurrent
        )?;
        if self.dry_run {
            for id in &self.first {
                writeln!(f, "  {id}")?;
            }
        }
        for id in &self.failed {
            writeln!(f, "NOT RETIRED, or retired only in part: {id}: run the command again")?;
        }
        Ok(())
    }
}

/// Retires closed orders.
///
/// # Errors
/// [`OpsError`], for example when the table cannot be reached. Orders that were retired before the
/// error stay retired.
pub async fn retire(table: &Table, options: &RetireOptions) -> Result<Retired, OpsError> {
    let pace = Pace::new(options.rate);
    let bar = Progress::new("retire", None);
    let mut retired = Retired { dry_run: options.dry_run, ..Retired::default() };
    let layout = shards::known(table).await?.lists.of(&order::BY_STATUS);
    for status in OrderStatus::VISIBLE.into_iter().filter(|status| status.is_closed()) {
        let mut after = None;
        // The loop ends, because each page starts after the previous one. This also holds if the
        // orders of the previous page have left the list.
        loop {
            let list = order::by_status(status, None, Some(options.before), layout)?.limit(PAGE).after(after);
            let page = table.query(&list).await?;
            for listed in page.items {
                pace.admit(1).await;
                retire_one(table, &listed.order.id, options, &mut retired).await?;
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
    let items = table.query(&order::read_for_update(id)?).await?.items;
    let Some(mut order) = PlacedOrder::of(items).filter(|order| order.head.status.is_closed()) else {
        retired.concurrent += 1;
        return Ok(());
    };
    let head = &order.head;
    // If an earlier run has begun this retirement, its first transaction counts as a recent change
    // of the order. This run continues the retirement nevertheless.
    let begun = head.expires_at.is_some();
    if !begun && (head.meta.updated_at > options.before || head.unfinished.is_some()) {
        retired.recent += 1;
        return Ok(());
    }
    if !options.dry_run {
        let at = Instant::now();
        let grace = i64::try_from(options.grace.as_secs()).unwrap_or(i64::MAX);
        let expires_at = at.plus_seconds(grace);
        if head.has_addresses() {
            order.addresses = table.get(&addresses::get(head)?).await?;
        }
        for transaction in order::retire(&order, expires_at, at)? {
            match table.transact(&transaction).await? {
                Ok(()) => {}
                // The head has changed since it was read, another run has finished the retirement,
                // or an erasure has removed the addresses.
                Err(refusals)
                    if [OrderAction::Order, OrderAction::Addresses].iter().any(|one| refusals.names(*one)) =>
                {
                    retired.concurrent += 1;
                    return Ok(());
                }
                Err(_) => {
                    retired.failed.push(id.clone());
                    return Ok(());
                }
            }
        }
    }
    retired.orders += 1;
    if retired.first.len() < SHOWN {
        retired.first.push(id.clone());
    }
    Ok(())
}
