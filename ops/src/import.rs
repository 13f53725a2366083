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
//! Some time after a product or an order is deleted, its search document is a tombstone with a higher
//! `rev` than the export has. The tombstone would hide the imported item. So the command reads the
//! search index, and writes such an item with a `rev` beyond its document ([`raise`]). A product that
//! stays in the table has copies of its stock and its statistics, and never takes a copy of a lower
//! `rev`. So an imported source gets at least the copied `rev`.
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
use key_schema::id::LocationId;
use key_schema::instant::Instant;
use key_schema::item::{
    CAUSE, Entity as _, FromItem as _, IMPORTED, Item, MAX_COUNT, MAX_ITEM_BYTES, Stored, entity_name, key_of, size,
};
use key_schema::key::{Key, shown};
use key_schema::order::Order;
use key_schema::product::{self, Product, ReviewStats, Stock};
use key_schema::request::MAX_BATCH_GET;
use search_index::{Collection, SearchClient, SearchError, StoredSource};
use serde::Serialize;
use serde_dynamo::AttributeValue;

use crate::error::OpsError;
use crate::export::{Export, Line};
use crate::items::{Items, set};
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::search::expected;
use crate::verify;

const CONCURRENCY: usize = 32;
const NAMED: usize = 20;

/// The entities whose items grant rights or queue work.
pub const RIGHTS: [&str; 18] = [
    "Agent",
    "Agents",
    "CheckoutSession",
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
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEndpoints",
];

/// The arguments of `ops import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ops import shop-2026-11-25 --dry-run\n  ops import shop-2026-11-25 --with-rights\n  ops import \
                        shop-2026-11-25 --entity Product --max-write-units 2000\n  ops import shop-2026-11-25 \
                        --partition PRODUCT#tea --partition CUSTOMER#ann --with-rights\n\nThe command may be stopped at any \
                        time and run again. Run `ops verify` afterwards."
)]
pub struct ImportArgs {
    /// The folder of a complete export.
    folder: PathBuf,
    /// Import only items of this entity. May be given more than once.
    #[arg(long, value_name = "NAME", value_parser = verify::entity)]
    entity: Vec<String>,
    /// Import only items with this partition key, such as `PRODUCT#tea`. May be given more than
    /// once.
    #[arg(long, value_name = "PK")]
    partition: Vec<String>,
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
    let ImportArgs { folder, entity, partition, with_rights, dry_run, max_write_units, max_read_units } = args;
    let export = Export::open(folder)?;
    let options = ImportOptions {
        entities: entity,
        partitions: partition,
        with_rights,
        dry_run,
        max_read_units: Some(max_read_units),
        max_write_units: Some(max_write_units),
    };
    let imported = import(&Items::from_env().await?, search_index()?.as_ref(), &export, &options).await?;
    Ok(Outcome::new(&imported, imported.is_complete()))
}

/// Returns the shop's search index. A deployment without a search engine has no endpoint.
pub(crate) fn search_index() -> Result<Option<SearchClient>, OpsError> {
    let has_index = std::env::var("SEARCH_ENDPOINT").is_ok_and(|endpoint| !endpoint.is_empty());
    Ok(has_index.then(SearchClient::from_env).transpose()?)
}

/// The warning about items that a tombstone may hide.
pub(crate) const INDEX_NOT_READ: &str =
    "the search index was not read (SEARCH_ENDPOINT is not set): run `ops search reconcile`";

#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The entities to import. Empty for all.
    pub entities: Vec<String>,
    /// The partition keys of the items to import. Empty for all.
    pub partitions: Vec<String>,
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
    /// The number of items by entity that the table has in a newer state. They stay as they are.
    pub newer: BTreeMap<String, u64>,
    /// The number of items that the table has in another state, which is not newer. They stay as
    /// they are.
    pub different: u64,
    /// The number of written items whose `rev` was raised because of their search document or of a
    /// product's copy.
    pub raised: u64,
    /// Whether the search index was read. Without it, tombstones may hide imported items.
    pub index_was_read: bool,
    /// The number of items that the import left out because they grant rights or queue work.
    pub left_out: u64,
    pub invalid: u64,
    /// The chosen partition keys that no item of the export has.
    pub not_found: Vec<String>,
    /// Some of the lines that were not imported, each with its reason.
    pub named: Vec<String>,
}

impl Imported {
    /// Returns whether every line is valid, every chosen partition is in the export, and no item of
    /// the table differs from its line, except for newer items. Items that the options leave out do
    /// not count.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.different == 0 && self.invalid == 0 && self.not_found.is_empty()
    }

    fn refuse(&mut self, place: &str, reason: &str) {
        if self.named.len() < NAMED {
            self.named.push(format!("{place}: {reason}"));
        }
    }

    fn differs(&mut self, place: &str, item: &Item) {
        self.different += 1;
        self.refuse(place, &format!("{}: the table has another item with this key", named(item)));
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
        for (entity, count) in &self.newer {
            writeln!(f, "{count:>10}  {entity} newer in the table, left unchanged")?;
        }
        if self.raised > 0 {
            writeln!(f, "{} items got a rev beyond a search document or a product's copy", self.raised)?;
        }
        if !self.index_was_read && self.imported.keys().any(|entity| SEARCHED.contains(&entity.as_str())) {
            writeln!(f, "{INDEX_NOT_READ}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "{} items that grant rights or queue work were left out: see --with-rights", self.left_out)?;
        }
        for partition in &self.not_found {
            writeln!(f, "  NOT FOUND: no item of the export has the partition key {partition}")?;
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

/// Writes the items of an export to a table. `index` is the search index of the shop, if it has
/// one.
///
/// # Errors
/// [`OpsError`], for example when the table cannot be reached. Items that were written before the
/// error stay.
pub async fn import(
    items: &Items,
    index: Option<&SearchClient>,
    export: &Export,
    options: &ImportOptions,
) -> Result<Imported, OpsError> {
    let (reads, writes) = (Pace::new(options.max_read_units), Pace::new(options.max_write_units));
    let progress = Progress::new("import", Some(export.counts().values().sum()));
    let mut result = Imported { dry_run: options.dry_run, index_was_read: index.is_some(), ..Imported::default() };
    result.not_found.clone_from(&options.partitions);
    let mut lines = export.lines();
    loop {
        let page: Vec<Line> = lines.by_ref().take(MAX_BATCH_GET).collect::<Result<_, _>>()?;
        if page.is_empty() {
            return Ok(result);
        }
        progress.step(page.len());
        for key in page.iter().filter_map(|line| key_of(line.item.as_ref()?)) {
            result.not_found.retain(|partition| partition != key.pk.as_str());
        }
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
        result.raised += raise(items, index, &mut missing, &reads).await?;
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
        return refuse(&format!("{}: the item has an unknown entity", named(&item)));
    };
    // A heartbeat is never imported, because each table has its own.
    let is_wanted = options.entities.is_empty() || options.entities.iter().any(|entity| entity == name);
    if name == Heartbeat::NAME || !is_wanted || !is_in(&item, &options.partitions) {
        return None;
    }
    if RIGHTS.contains(&name) && !options.with_rights {
        result.left_out += 1;
        return None;
    }
    let named = named(&item);
    if let Err(reason) = verify::readable(&item) {
        return refuse(&format!("{named}: {reason}"));
    }
    let item = set(item, CAUSE, AttributeValue::S(IMPORTED.to_owned()));
    if size(&item) > MAX_ITEM_BYTES {
        return refuse(&format!("{named}: the item is too large with the mark of an import"));
    }
    Some((place, item))
}

/// The entities that have search documents.
pub(crate) const SEARCHED: [&str; 2] = [Product::NAME, Order::NAME];

/// Returns whether an item is in one of the partitions. The stock of a product belongs to it.
fn is_in(item: &Item, partitions: &[String]) -> bool {
    let product = || {
        let stock = Stored::<Stock>::from_item(item.clone()).ok()?;
        Some(product::read_for_update(&stock.product_id).ok()?.key().clone())
    };
    let is_named = |key: Key| partitions.iter().any(|named| named == key.pk.as_str());
    partitions.is_empty() || key_of(item).is_some_and(is_named) || product().is_some_and(is_named)
}

/// Gives each new item a `rev` with which readers of its search document and of its copies see its
/// later changes. Returns the number of items whose `rev` was too low.
pub(crate) async fn raise(
    items: &Items,
    index: Option<&SearchClient>,
    new: &mut [(String, Item)],
    reads: &Pace,
) -> Result<u64, OpsError> {
    let raised = match index {
        Some(index) => raise_documents(index, new).await?,
        None => 0,
    };
    Ok(raised + raise_copies(items, new, reads).await?)
}

/// Gives each stock and each statistics at least the `rev` that their product has copied.
async fn raise_copies(items: &Items, new: &mut [(String, Item)], reads: &Pace) -> Result<u64, OpsError> {
    let mut sources = Vec::new();
    for (position, (_, item)) in new.iter().enumerate() {
        if entity_name(item).is_ok_and(|name| [Stock::NAME, ReviewStats::NAME].contains(&name)) {
            let (product, copy) = match AnyEntity::from_item(item.clone())? {
                // Only the stock that orders sell has a copy on the product.
                AnyEntity::Stock(stock) if stock.location == LocationId::main() => (stock.data.product_id, "stock_rev"),
                AnyEntity::ReviewStats(stats) => (stats.data.product_id, "rating_rev"),
                _ => continue,
            };
            sources.push((position, product::read_for_update(&product)?.key().clone(), copy));
        }
    }
    let keys: Vec<_> = sources.iter().map(|(_, key, _)| key.clone()).collect();
    let mut products = items.get_within(&keys, reads).await?;
    // A product of the same page is not in the table yet.
    products.extend(new.iter().filter_map(|(_, item)| Some((key_of(item)?, item.clone()))));
    let mut raised = 0;
    for (position, key, copy) in sources {
        let (Some(copied), Some((_, item))) =
            (products.get(&key).and_then(|product| number(product, copy)), new.get_mut(position))
        else {
            continue;
        };
        raised += u64::from(raise_to(item, copied));
    }
    Ok(raised)
}

/// Gives an item at least this `rev`. Returns whether its own was lower.
fn raise_to(item: &mut Item, least: u64) -> bool {
    let is_low = number(item, "rev").is_some_and(|rev| rev < least);
    if is_low {
        *item = set(std::mem::take(item), "rev", AttributeValue::N(least.min(MAX_COUNT).to_string()));
    }
    is_low
}

/// Gives each item whose search document would hide it a `rev` beyond that document. Returns the
/// number of these items.
///
/// The document is the tombstone of the removal. Or it is still live, and the removal's record, which
/// has not arrived yet, will replace it with a tombstone of the next `rev`.
async fn raise_documents(index: &SearchClient, items: &mut [(String, Item)]) -> Result<u64, OpsError> {
    let mut documents: BTreeMap<Collection, Vec<(usize, String)>> = BTreeMap::new();
    for (position, (_, item)) in items.iter().enumerate() {
        if let Some(expected) = expected(item.clone())? {
            let id = expected.operation.document_id().to_owned();
            documents.entry(expected.operation.collection()).or_default().push((position, id));
        }
    }
    let mut raised = 0;
    for (collection, documents) in documents {
        let (positions, ids): (Vec<usize>, Vec<String>) = documents.into_iter().unzip();
        for (position, stored) in positions.into_iter().zip(stored(index, collection, &ids).await?) {
            let (Some(stored), Some((_, item))) = (stored, items.get_mut(position)) else { continue };
            let last = if stored.is_tombstone() { stored.rev } else { stored.rev.saturating_add(1) };
            raised += u64::from(raise_to(item, last.saturating_add(1)));
        }
    }
    Ok(raised)
}

/// Returns the stored documents. An index that does not exist yet has none.
async fn stored(
    index: &SearchClient,
    collection: Collection,
    ids: &[String],
) -> Result<Vec<Option<StoredSource>>, OpsError> {
    match index.stored(collection, ids).await {
        Err(SearchError::Rejected { status: 404, .. }) => Ok(vec![None; ids.len()]),
        other => Ok(other?),
    }
}

fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name)? {
        AttributeValue::N(number) => number.parse().ok(),
        _ => None,
    }
}

/// Returns an item's entity and key, as a report shows them.
fn named(item: &Item) -> String {
    let entity = entity_name(item).unwrap_or("no entity");
    format!("{entity} {}", key_of(item).map_or_else(|| "without a key".to_owned(), |key| shown(&key)))
}

/// Compares an item with the table's item, except for the id of the request that wrote it, and for
/// the `rev` of an item that an earlier run wrote.
fn compare(place: &str, item: &Item, other: &Item, result: &mut Imported) {
    let is_imported = other.get(CAUSE) == item.get(CAUSE);
    let is_compared = |name: &str| name != CAUSE && !(is_imported && name == "rev");
    let content = |item: &Item| -> HashMap<String, AttributeValue> {
        let kept = item.iter().filter(|(name, _)| is_compared(name));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    if content(item) == content(other) {
        result.present += 1;
    } else if is_newer(other, item) {
        *result.newer.entry(entity_name(item).unwrap_or_default().to_owned()).or_default() += 1;
    } else {
        result.differs(place, item);
    }
}

/// Returns whether an item is a later state than `than`. If the item was deleted and created again,
/// its `rev` may have restarted, so the times decide.
fn is_newer(item: &Item, than: &Item) -> bool {
    let time = |item: &Item| match item.get("updated_at") {
        Some(AttributeValue::S(text)) => text.parse::<Instant>().ok(),
        _ => None,
    };
    if item.get("born") == than.get("born") {
        return number(item, "rev") > number(than, "rev");
    }
    time(item) > time(than)
}
