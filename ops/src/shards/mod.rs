//! `ops shards`: changes the number of shards of a list or of a stock while the shop runs.
//!
//! The shards of a stock change in a few transactions ([`workflows::stock`]). The rest of this page is
//! about lists.
//!
//! An item stores the number of shards with which its index key is computed. The settings contain
//! the [layout] of each list ([`key_schema::lists`]). A change takes these steps:
//!
//! 1. **Readers.** From now on, readers read the shards of the old and of the new number.
//! 2. **Writers.** New items get the new number. A change of an older item keeps the item's number.
//! 3. **Move.** The command gives the older items of the list the new number, with the writer of
//!    `ops migrate`. Its writes are conditional, are limited in rate, and cause no events. The
//!    command scans the table until a pass finds no item with the old number.
//! 4. **End.** Readers read only the shards of the new number.
//!
//! # Waits
//! A function may use settings that are [`SETTINGS_MAX_AGE`] old, and then run until its timeout.
//! So the command waits [`WAIT`] between a change of the layout and the next step. It waits again
//! before the last pass: a function that read an item before the move may still write the old
//! number.
//!
//! # Interruption
//! The layout and the items hold the whole progress. The next run reads them, waits again, and
//! continues. Each step writes the layout on the condition that the settings did not change.
//!
//! A run may be paused while other runs end its change and begin the next one. So for each page of
//! the scan, the run reads the layout after the items. A later change rewrites every item before it
//! ends. So if the paused run read an item before that change, the table refuses its write. The run
//! then reads the item again.
//!
//! [layout]: key_schema::shard::Layout

mod moving;

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use http_api::SETTINGS_MAX_AGE;
use key_schema::id::{Born, ProductId};
use key_schema::instant::Instant;
use key_schema::lists::GROWING;
use key_schema::pattern::Pattern;
use key_schema::product::{self, ShardedStock};
use key_schema::settings::{self, Known};
use key_schema::shard::{Layout, MAX_SHARDS, Shards};
use serde::Serialize;
use table::Table;
use tokio::time::sleep;

use crate::error::OpsError;
use crate::items::Items;
use crate::migrate::{MigrateOptions, Migrated, Speed, run_migration};
use crate::outcome::Outcome;
use moving::Move;
pub(crate) use moving::moved;

/// The longest timeout of a function in template.yaml.
const LONGEST_RUN: Duration = Duration::from_secs(60);
/// Functions may use outdated settings for [`SETTINGS_MAX_AGE`], and then run until their timeout.
pub const WAIT: Duration = SETTINGS_MAX_AGE.saturating_add(LONGEST_RUN);
/// The numbers of shards that a list can have.
const NUMBERS: RangeInclusive<i64> = 1..=MAX_SHARDS as i64;
const MAX_PASSES: usize = 10;
/// The maximum number of attempts to change settings that staff are changing, too.
const ATTEMPTS: usize = 10;

/// Change the number of shards of a list or of a stock while the shop runs.
///
/// Without a list or a stock, the command prints the numbers of shards of all lists, and of the stocks
/// with several shards. The command may be stopped at any time and run again. It then continues.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops shards\n  ops shards --stock tea --to 16\n  ops shards --index orders.by-status --to 8 --dry-run\n  ops shards --index \
                        orders.by-status --to 8 --max-write-units 200\n\nFor a list, the command waits 90 seconds after each step. \
                        Exit status 1 means that items are left to move."
)]
pub struct ShardsArgs {
    /// The list, by its access pattern.
    #[arg(long, value_name = "LIST", value_parser = list, requires = "to")]
    index: Option<&'static Pattern>,
    /// The product whose stock gets another number of shards, as before a sale.
    #[arg(long, value_name = "PRODUCT", requires = "to", conflicts_with_all = ["index", "dry_run"])]
    stock: Option<ProductId>,
    /// The new number of shards. For a list: a multiple or a divisor of the present number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(NUMBERS))]
    to: Option<u32>,
    /// Write nothing. Print the steps, and count the items that would move.
    #[arg(long, requires = "index")]
    dry_run: bool,
    /// The maximum number of write capacity units per second.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    max_write_units: u32,
    /// How fast the command reads the table.
    #[command(flatten)]
    speed: Speed,
}

fn list(name: &str) -> Result<&'static Pattern, String> {
    let found = GROWING.into_iter().find(|list| list.id == name);
    let names = GROWING.map(|list| list.id);
    found.ok_or_else(|| format!("must be one of {}{}", names.join(", "), template::near::hint(name, names)))
}

#[derive(Debug, Clone, Copy)]
pub struct ShardsOptions {
    pub list: &'static Pattern,
    pub to: Shards,
    /// The wait between a change of the layout and the next step.
    pub wait: Duration,
    /// How to scan the table and to write items.
    pub scan: MigrateOptions,
}

pub(crate) async fn run(args: ShardsArgs) -> Result<Outcome, OpsError> {
    let ShardsArgs { index, stock, to, dry_run, max_write_units, speed } = args;
    let items = Items::from_env().await?;
    if let (Some(product), Some(to)) = (stock, to) {
        return Ok(Outcome::new(&reshard(&items.table(), product, to).await?, true));
    }
    let (Some(list), Some(to)) = (index, to) else {
        if to.is_some() {
            return Err(OpsError::Usage("--to needs --index or --stock".to_owned()));
        }
        return Ok(Outcome::new(&Numbers::read(&items.table()).await?, true));
    };
    let scan = MigrateOptions { dry_run, max_write_units: Some(max_write_units), ..MigrateOptions::new(speed) };
    let changed = change(&items, &ShardsOptions { list, to: Shards(to), wait: WAIT, scan }).await?;
    Ok(Outcome::new(&changed, changed.is_complete() || dry_run))
}

/// Reads the settings. Settings that were never set have version 0.
pub(crate) async fn known(table: &Table) -> Result<Known, OpsError> {
    Ok(table.get(&settings::read(0)?).await?.map(Known::from).unwrap_or_default())
}

/// Gives a stock another number of shards, as the route for staff does.
///
/// # Errors
/// [`OpsError::Usage`] if the product has no stock for sale.
pub async fn reshard(table: &Table, product: ProductId, to: u32) -> Result<Spread, OpsError> {
    let whole = workflows::stock::reshard::<()>(table, &product, to).await.map_err(OpsError::failed)?;
    let whole = whole.ok_or_else(|| OpsError::Usage(format!("the product {product} has no stock for sale")))?;
    workflows::stock::level::<()>(table, &product).await.map_err(OpsError::failed)?;
    Ok(Spread { product, shards: to, pieces: Some(whole.available) })
}

/// The shards of a stock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub product: ProductId,
    pub shards: u32,
    /// The pieces of all shards, if they were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u64>,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { product, shards, pieces } = self;
        let pieces = pieces.map(|pieces| format!(", {pieces} pieces")).unwrap_or_default();
        writeln!(f, "stock of {product:<20}  {shards} shards{pieces}")
    }
}

/// The maximum number of stocks in the list of all numbers.
const SHOWN_STOCKS: usize = 100;

#[derive(Debug, Serialize)]
struct Numbers {
    lists: Vec<Number>,
    stocks: Vec<Spread>,
}

#[derive(Debug, Serialize)]
struct Number {
    list: &'static str,
    #[serde(flatten)]
    layout: Layout,
}

impl Numbers {
    async fn read(table: &Table) -> Result<Self, OpsError> {
        let lists = known(table).await?.lists;
        let listed = table.query(&product::sharded()?.limit(SHOWN_STOCKS)).await?.items.into_iter();
        let stocks = listed.filter(|stock| stock.shards > 1).map(|stock| {
            let ShardedStock { product_id, shards, .. } = stock.data;
            Spread { product: product_id, shards, pieces: None }
        });
        let lists = GROWING.map(|list| Number { list: list.id, layout: lists.of(list) }).into();
        Ok(Self { lists, stocks: stocks.collect() })
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Number { list, layout } in &self.lists {
            write!(f, "{list:<20}  {} shards", layout.from)?;
            writeln!(f, "{}", if layout.is_stable() { String::new() } else { format!(", CHANGING to {}", layout.to) })?;
        }
        self.stocks.iter().try_for_each(|stock| write!(f, "{stock}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Readers read the shards of the old and of the new number.
    Readers,
    /// New items get the new number.
    Writers,
    /// The older items get the new number.
    Move,
    /// Readers read only the shards of the new number.
    End,
}

impl Step {
    const ALL: [Self; 4] = [Self::Readers, Self::Writers, Self::Move, Self::End];

    /// Returns the next step of a change to a number, or [`None`] if the list has that number.
    ///
    /// # Errors
    /// [`OpsError::Usage`] if the list is changing to another number, or if neither number divides
    /// the other.
    pub fn next(layout: Layout, to: Shards) -> Result<Option<Self>, OpsError> {
        if !layout.is_stable() {
            return match () {
                () if layout.to != to => Err(OpsError::Usage(format!(
                    "the list is changing to {} shards: finish that change first with --to {}",
                    layout.to, layout.to
                ))),
                () if layout.write == to => Ok(Some(Self::Move)),
                () => Ok(Some(Self::Writers)),
            };
        }
        let [less, more] = [layout.to.0.min(to.0), layout.to.0.max(to.0)];
        if less == 0 || !more.is_multiple_of(less) {
            return Err(OpsError::Usage(format!("--to must be a multiple or a divisor of {}", layout.to)));
        }
        Ok((layout.to != to).then_some(Self::Readers))
    }

    const fn after(self, layout: Layout, to: Shards) -> Layout {
        match self {
            Self::Readers => Layout { to, ..layout },
            Self::Writers | Self::Move => Layout { write: to, ..layout },
            Self::End => Layout::stable(to),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    pub list: &'static str,
    pub from: Shards,
    pub to: Shards,
    /// The steps that this run took. After a dry run, the steps that a run would take.
    pub steps: Vec<Step>,
    /// The last scan, or the counts of a dry run.
    pub scan: Option<Migrated>,
    pub moved: u64,
    /// Whether the list has the new number.
    pub done: bool,
}

impl Changed {
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.done
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, from, to, steps, scan, moved, done } = self;
        let dry_run = scan.as_ref().is_some_and(|scan| scan.dry_run);
        match (dry_run, done) {
            (true, _) => writeln!(f, "{list}: would change from {from} to {to} shards; steps: {steps:?}")?,
            (false, true) => writeln!(f, "{list}: {to} shards; {moved} items moved")?,
            (false, false) => writeln!(f, "{list}: NOT DONE, {moved} items moved: run the command again")?,
        }
        match scan {
            Some(scan) if dry_run || !done => write!(f, "{scan}"),
            _ => Ok(()),
        }
    }
}

/// Changes the number of shards of a list, or continues such a change.
///
/// # Errors
/// [`OpsError`]. A change that began continues with the next run.
pub async fn change(items: &Items, options: &ShardsOptions) -> Result<Changed, OpsError> {
    let ShardsOptions { list, to, wait, scan } = *options;
    let table = items.table();
    let mut layout = known(&table).await?.lists.of(list);
    let from = layout.from;
    let mut changed = Changed { list: list.id, from, to, steps: Vec::new(), scan: None, moved: 0, done: false };
    while let Some(step) = Step::next(layout, to)? {
        if scan.dry_run {
            changed.steps = Step::ALL.into_iter().skip_while(|left| *left != step).collect();
            changed.scan = Some(run_migration(items, &Move { list, to, is_dry: true }, &scan).await?);
            return Ok(changed);
        }
        let ends = match step {
            Step::Readers => step,
            Step::Writers => {
                sleep(wait).await;
                step
            }
            Step::Move | Step::End => {
                sleep(wait).await;
                changed.steps.push(Step::Move);
                if !move_all(items, options, &mut changed).await? {
                    return Ok(changed);
                }
                Step::End
            }
        };
        if arrange(&table, list, layout, ends.after(layout, to)).await? {
            changed.steps.push(ends);
        }
        layout = known(&table).await?.lists.of(list);
        // If this run was paused, other runs may have ended this change and a later one.
        if layout.is_stable() && layout.to != to {
            let now = layout.to;
            return Err(OpsError::Failed(format!(
                "another run has changed the list to {now} shards: see `ops shards`"
            )));
        }
    }
    changed.done = true;
    Ok(changed)
}

/// Moves all items of the list. Returns whether a pass that began long enough after the last move
/// found no item with the old number.
async fn move_all(items: &Items, options: &ShardsOptions, changed: &mut Changed) -> Result<bool, OpsError> {
    let work = Move { list: options.list, to: options.to, is_dry: false };
    for pass in 0..MAX_PASSES {
        // If another run has changed the layout, nothing is left to move. The caller then finds
        // that layout, too.
        if !Move::is_due(known(&items.table()).await?.lists.of(options.list), options.to) {
            return Ok(true);
        }
        let scan = run_migration(items, &work, &options.scan).await?;
        let is_clean = scan.is_complete() && scan.migrated == 0 && scan.kept.is_empty();
        let is_unreadable = scan.unreadable > 0;
        changed.moved += scan.migrated;
        changed.scan = Some(scan);
        // An unreadable item may have the old number. After the last step, no reader would find it.
        if is_unreadable || (is_clean && pass > 0) {
            return Ok(!is_unreadable);
        }
        sleep(options.wait).await;
    }
    Ok(false)
}

/// Sets the layout of a list, if the layout is still `before`. Returns whether it was set.
async fn arrange(table: &Table, list: &Pattern, before: Layout, after: Layout) -> Result<bool, OpsError> {
    for _ in 0..ATTEMPTS {
        let known = known(table).await?;
        if known.lists.of(list) != before {
            return Ok(false);
        }
        let at = Instant::now();
        let lists = known.lists.clone().with(list, after);
        // The settings exist in ten copies. One transaction writes all of them or none.
        if table.transact(&settings::arrange(&known, &lists, &born(at), at)?).await?.is_ok() {
            return Ok(true);
        }
    }
    Err(OpsError::Failed("the settings kept changing: run the command again".to_owned()))
}

/// Returns a new `born` value, for settings that do not exist yet.
fn born(at: Instant) -> Born {
    Born::generate(at, std::array::from_fn(|_| fastrand::u8(..)))
}
