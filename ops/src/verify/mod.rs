//! `ops verify`: checks every invariant of the table in a running shop, and repairs the differences
//! that have a source of truth.
//!
//! One parallel scan reads each item once.
//!
//! - **An item alone** ([`shape`]): it can be decoded, its key and its index keys match its
//!   attributes, and it is within its bounds.
//! - **Two items** ([`relations`]): copies and their sources, claims and their owners, both sides
//!   of a relation. The command reads a page of items in the scan, and their related items by key.
//! - **Many items** ([`totals`]): counts and sums and their parts.
//!
//! # A running shop
//! The scan is not a snapshot, so a difference may have a harmless cause. Before the command
//! reports a difference between two items, it reads these items again at one instant. It reads the
//! parts of a total again, until two reads agree. A total that still changes after the last read is
//! no difference, but the run has not checked it, so it ends with status 1. The stream's consumer
//! refreshes some copies. The command waits twice before it reports that such a copy is behind.
//!
//! # Memory
//! The command holds one page of items for each segment, at most 1 MB each. It also holds the
//! related items of that page, and the totals of one partition. It holds the totals of the whole
//! table in one map of at most [`MAX_TOTALS`] entries, about 60 MB. If there are more totals, it
//! divides them by a hash, and scans once more for each further part.
//!
//! A scan returns the items of one partition one after another, and the command relies on this
//! order for the totals of a partition. If a scan returned them in another order, the command would
//! read some partitions twice. Its report would be the same.
//!
//! # Repairs
//! Each repair is a conditional write: the item and its source must be as they were read. A repair
//! can uncover another difference. So the command scans again after repairs, at most
//! [`MAX_PASSES`] times altogether.

mod relations;
mod report;
mod run;
mod shape;
mod totals;

use std::fmt::Display;
use std::time::Duration;

use clap::Args;
use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::item::{EncodeError, Entity, Item, Stored};
use key_schema::key::{Key, KeyError};

use relations::leaderboards::Position;
pub use report::{Counts, Finding, Kind, Verified};
pub use run::verify;

use crate::error::OpsError;
use crate::items::{Items, Repair};
use crate::migrate::Speed;
use crate::outcome::Outcome;

/// The maximum number of totals that the command holds at the same time.
pub const MAX_TOTALS: usize = 200_000;
pub const MAX_PASSES: usize = 4;

const EXAMPLES: &str = "Examples:
  ops verify
  ops verify --entity Order --entity CustomerOrder
  ops verify --fix --segments 16 --max-read-units 2000

The kinds of differences, and the repairs of --fix:
  unreadable  No reader can decode the item, or its key does not match its attributes. No repair.
  index       An index key or the time to live does not match the attributes. Written.
  bounds      An item is near 400 KB, or a value is beyond its bounds. No repair.
  copy        A copy differs from its source. Written, except a missing copy of a shipped order.
  behind      A derived item is behind its source. Written, except an order that no picking station has.
  claim       A unique name has no claim, or a claim has no owner. Written, or deleted if its owner exists.
  link        One side of a relation is missing. Some sides are written, and entries of closed orders are removed.
  orphan      The item to which an item belongs is missing. Ranks, entries of newest reviews and claims are deleted.
  total       A count or a sum differs from its parts. Set, except balances, and the totals of orders, invoices, \
  prices and documents.

A total that changes between two reads is read again. Exit status 1 means that differences are left, or that totals
changed until the last read and were not checked.";

/// The arguments of `ops verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Repair the differences that have a source of truth.
    #[arg(long)]
    fix: bool,
    /// Check only items of this entity and their relations, but no counts and no sums. May be given
    /// more than once.
    #[arg(long, value_name = "NAME", value_parser = entity)]
    entity: Vec<String>,
    /// The maximum number of differences in the summary. Further differences are only counted.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// The seconds between two reads of a copy that the stream's consumer refreshes, or of a total
    /// that is changing.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    settle: u32,
    /// How fast the command reads the table.
    #[command(flatten)]
    speed: Speed,
}

pub(crate) fn entity(name: &str) -> Result<String, String> {
    if AnyEntity::NAMES.contains(&name) {
        return Ok(name.to_owned());
    }
    let names = AnyEntity::NAMES;
    Err(format!("must be one of {}{}", names.join(", "), template::near::hint(name, names.iter().copied())))
}

/// Checks that an item can be decoded, and that its key matches its attributes.
pub(crate) fn readable(item: &Item) -> Result<(), String> {
    match shape::check(item) {
        (Some(_), _) => Ok(()),
        (None, problems) => Err(problems.into_iter().map(|problem| problem.what).collect::<Vec<_>>().join(", ")),
    }
}

#[derive(Debug, Clone)]
pub struct VerifyOptions {
    pub fix: bool,
    /// The entities to check. Empty for all.
    pub entities: Vec<String>,
    pub segments: i32,
    pub max_read_units: Option<u32>,
    pub limit: usize,
    /// The wait between two reads of a copy that the stream's consumer refreshes, or of a total that
    /// is changing.
    pub settle: Duration,
    /// The maximum number of totals to hold, at most [`MAX_TOTALS`].
    pub max_totals: usize,
}

pub(crate) async fn run(args: VerifyArgs) -> Result<Outcome, OpsError> {
    let VerifyArgs { fix, entity, limit, settle, speed } = args;
    let options = VerifyOptions {
        fix,
        entities: entity,
        segments: speed.segments,
        max_read_units: Some(speed.max_read_units),
        limit,
        settle: Duration::from_secs(settle.into()),
        max_totals: MAX_TOTALS,
    };
    let verified = verify(&Items::from_env().await?, &options).await?;
    Ok(Outcome::new(&verified, verified.is_clean()))
}

#[derive(Debug, Clone, PartialEq)]
struct Problem {
    kind: Kind,
    /// The item with the difference, if it is not the compared item.
    key: Option<Key>,
    what: String,
    /// Whether the difference may still disappear by itself.
    lags: bool,
    fix: Option<Fix>,
}

#[derive(Debug, Clone, PartialEq)]
enum Fix {
    /// Conditional writes, in this order.
    Write(Vec<Repair>),
    /// Derives the sales of an order, as the stream's consumer does.
    Derive(OrderId),
    /// Writes a missing rank, as the stream's consumer does.
    Rank(Position),
}

impl Problem {
    fn new(kind: Kind, what: impl Display) -> Self {
        Self { kind, key: None, what: what.to_string(), lags: false, fix: None }
    }

    fn at(key: &Key, kind: Kind, what: impl Display) -> Self {
        Self { key: Some(key.clone()), ..Self::new(kind, what) }
    }

    fn of<T: Entity>(item: &Stored<T>, kind: Kind, what: impl Display) -> Self {
        Self { key: item.key().ok(), ..Self::new(kind, what) }
    }

    const fn lagging(mut self) -> Self {
        self.lags = true;
        self
    }

    fn repaired_by(self, repair: Repair) -> Self {
        self.repaired_in_steps(vec![repair])
    }

    fn repaired_in_steps(mut self, repairs: Vec<Repair>) -> Self {
        self.fix = Some(Fix::Write(repairs));
        self
    }

    fn derived(mut self, order: &OrderId) -> Self {
        self.fix = Some(Fix::Derive(order.clone()));
        self
    }

    fn ranked(mut self, position: Position) -> Self {
        self.fix = Some(Fix::Rank(position));
        self
    }
}

/// The reason why a relation is not checked: one of its items is unreadable. The command reports
/// that item as a finding of its own.
#[derive(Debug, Clone, Copy)]
struct Skip;

impl From<KeyError> for Skip {
    fn from(_: KeyError) -> Self {
        Self
    }
}

impl From<EncodeError> for Skip {
    fn from(_: EncodeError) -> Self {
        Self
    }
}
