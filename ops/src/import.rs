//! `ops import`: writes the items of an export to a table.
//!
//! The command writes an item only if its key is free. Otherwise it compares the item with the
//! existing one. So no run overwrites anything, and a repeated run only reads the items that an
//! earlier run wrote.
//!
//! Items that grant rights or queue work ([`RIGHTS`]) are imported only with `--with-rights`. In a
//! running shop they would make a removed member a member again, or queue a cancelled order for
//! picking.
//!
//! Every imported item gets the value [`IMPORTED`] in its attribute [`CAUSE`]. So the consumer of a
//! running shop adds these items to the search index, but publishes no events for them. It derives
//! no sales from them either, because the export contains the items of the sales.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use key_schema::entity::AnyEntity;
use key_schema::heartbeat::Heartbeat;
use key_schema::item::{CAUSE, Entity as _, IMPORTED, Item, MAX_ITEM_BYTES, entity_name, key_of, size};
use key_schema::request::MAX_BATCH_GET;
use serde::Serialize;
use serde_dynamo::AttributeValue;

use crate::error::OpsError;
use crate::export::{Export, Line};
use crate::items::{Items, set};
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::verify;

const CONCURRENCY: usize = 32;
const NAMED: usize = 20;

/// The entities whose items grant rights or queue work.
pub const RIGHTS: [&str; 12] = [
    "CustomerDocument",
    "Document",
    "DocumentSection",
    "DocumentVersion",
    "EmailVerification",
    "Invitation",
    "Invitations",
    "Member",
    "OpenOrders",
    "PickingStations",
    "Session",
    "WaitingJob",
];

/// The arguments of `ops import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops import shop-2026-11-25 --dry-run\n  ops import shop-2026-11-25 --with-rights\n  ops import \
                        shop-2026-11-25 --entity Product --max-write-units 2000\n\nThe command may be stopped at any \
                        time and run again. Run `ops verify` afterwards."
)]
pub struct ImportArgs {
    /// The folder of a complete export.
    folder: PathBuf,
    /// Import only items of this entity. May be given more than once.
    #[arg(long, value_name = "NAME", value_parser = verify::entity)]
    entity: Vec<String>,
    /// Also import items that grant rights or queue work, such as memberships and orders that wait
    /// for picking. Use it only if nobody has deleted items from the table since the export.
    #[arg(long)]
    with_rights: bool,
    /// Write nothing. Count the items that an import would write.
    #[arg(long)]
    dry_run: bool,
    /// The maximum number of write capacity units per second.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    max_write_units: u32,
    /// The maximum number of read capacity units per second.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_read_units: u32,
}

pub(crate) async fn run(args: ImportArgs) -> Result<Outcome, OpsError> {
    let ImportArgs { folder, entity, with_rights, dry_run, max_write_units, max_read_units } = args;
    let export = Export::open(folder)?;
    let options = ImportOptions {
        entities: entity,
        with_rights,
        dry_run,
        max_read_units: Some(max_read_units),
        max_write_units: Some(max_write_units),
    };
    let imported = import(&Items::from_env().await?, &export, &options).await?;
    Ok(Outcome::new(&imported, imported.is_complete()))
}

#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The entities to import. Empty for all.
    pub entities: Vec<String>,
    /// Whether to import the entities of [`RIGHTS`], too.
    pub with_rights: bool,
    pub dry_run: bool,
    pub max_read_units: Option<u32>,
    pub max_write_units: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    pub dry_run: bool,
    /// The number of written items by entity. A dry run counts the items that it would write.
    pub imported: BTreeMap<String, u64>,
    /// The number of items that the table has in the same state.
    pub present: u64,
    /// The number of items that the table has in another state. They stay as they are.
    pub different: u64,
    /// The number of items that the import left out because they grant rights or queue work.
    pub left_out: u64,
    pub invalid: u64,
    /// Some of the lines that were not imported, each with its reason.
    pub named: Vec<String>,
}

impl Imported {
    /// Returns whether every line is valid and no item of the table differs from its line. Items
    /// that the options leave out do not count.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.different == 0 && self.invalid == 0
    }

    fn refuse(&mut self, place: &str, reason: &str) {
        if self.named.len() < NAMED {
            self.named.push(format!("{place}: {reason}"));
        }
    }

    fn differs(&mut self, place: &str) {
        self.different += 1;
        self.refuse(place, "the table has another item with this key");
    }
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (entity, count) in &self.imported {
            writeln!(f, "{count:>10}  {entity}")?;
        }
        let what = if self.dry_run { "would be imported" } else { "imported" };
        let Self { imported, present, .. } = self;
        writeln!(f, "{} items {what}, {present} existed already", imported.values().sum::<u64>())?;
        if self.left_out > 0 {
            writeln!(f, "{} items that grant rights or queue work were left out: see --with-rights", self.left_out)?;
        }
        for line in &self.named {
            writeln!(f, "  NOT IMPORTED: {line}")?;
        }
        let all = self.different + self.invalid;
        if all > 0 {
            writeln!(f, "  {all} lines were not imported")?;
        }
        Ok(())
    }
}

/// Writes the items of an export to a table.
///
/// # Errors
/// [`OpsError`], for example when the table cannot be reached. Items that were written before the
/// error stay.
pub async fn import(items: &Items, export: &Export, options: &ImportOptions) -> Result<Imported, OpsError> {
    let (reads, writes) = (Pace::new(options.max_read_units), Pace::new(options.max_write_units));
    let progress = Progress::new("import", Some(export.counts().values().sum()));
    let mut result = Imported { dry_run: options.dry_run, ..Imported::default() };
    let mut lines = export.lines();
    loop {
        let page: Vec<Line> = lines.by_ref().take(MAX_BATCH_GET).collect::<Result<_, _>>()?;
        if page.is_empty() {
            return Ok(result);
        }
        progress.step(page.len());
        let valid = page.into_iter().filter_map(|line| checked(line, options, &mut result)).collect::<Vec<_>>();
        let keys: Vec<_> = valid.iter().filter_map(|(_, item)| key_of(item)).collect();
        let present = items.get_within(&keys, &reads).await?;
        let mut missing = Vec::new();
        for (place, item) in valid {
            match key_of(&item).and_then(|key| present.get(&key)) {
                Some(other) => compare(&place, &item, other, &mut result),
                None => missing.push((place, item)),
            }
        }
        let written = stream::iter(missing)
            .map(async |(place, item)| {
                let other = if options.dry_run { None } else { items.put_new(&item, &writes).await? };
                Ok::<_, OpsError>((place, item, other))
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect::<Vec<_>>()
            .await?;
        for (place, item, other) in written {
            match other {
                // The key is taken: an earlier attempt of this write lost its response, or another
                // writer was first.
                Some(other) => compare(&place, &item, &other, &mut result),
                None => *result.imported.entry(entity_name(&item).unwrap_or_default().to_owned()).or_default() += 1,
            }
        }
    }
}

/// Returns a line's item with [`IMPORTED`] in [`CAUSE`], if it is a valid item of the entities to
/// import.
fn checked(Line { place, item }: Line, options: &ImportOptions, result: &mut Imported) -> Option<(String, Item)> {
    let mut refuse = |reason: &str| {
        result.invalid += 1;
        result.refuse(&place, reason);
        None
    };
    let Some(item) = item else { return refuse("the line is not an item") };
    let Some(name) = entity_name(&item).ok().filter(|name| AnyEntity::NAMES.contains(name)) else {
        return refuse("the item has an unknown entity");
    };
    // A heartbeat is never imported, because each table has its own.
    let is_wanted = options.entities.is_empty() || options.entities.iter().any(|entity| entity == name);
    if name == Heartbeat::NAME || !is_wanted {
        return None;
    }
    if RIGHTS.contains(&name) && !options.with_rights {
        result.left_out += 1;
        return None;
    }
    if let Err(reason) = verify::readable(&item) {
        return refuse(&reason);
    }
    let item = set(item, CAUSE, AttributeValue::S(IMPORTED.to_owned()));
    if size(&item) > MAX_ITEM_BYTES {
        return refuse("the item is too large with the mark of an import");
    }
    Some((place, item))
}

/// Compares an item with the table's item, except for the id of the request that wrote it.
fn compare(place: &str, item: &Item, other: &Item, result: &mut Imported) {
    let content = |item: &Item| -> HashMap<String, AttributeValue> {
        item.iter().filter(|(name, _)| *name != CAUSE).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    if content(item) == content(other) {
        result.present += 1;
    } else {
        result.differs(place);
    }
}
