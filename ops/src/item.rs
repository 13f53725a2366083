//! `ops item`: shows, writes and deletes one item by its key, for repairs that only a person can
//! decide.
//!
//! A write computes the attributes that nobody should compute by hand: `rev`, `version`, the keys of
//! the indexes and the time to live. It is refused if the new item is unreadable, or if the stored
//! item has changed since it was read.
//!
//! The search index ignores a document whose version is not higher than the stored one. So an item
//! that replaces a deleted one gets a `rev` as `ops import` gives it. Such an item is marked
//! like an imported one, so that the consumer of the stream publishes no event for it again.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use key_schema::entity::AnyEntity;
use key_schema::index::INDEXES;
use key_schema::instant::Instant;
use key_schema::item::{CAUSE, FromItem as _, IMPORTED, Item, MAX_COUNT, MAX_ITEM_BYTES, entity_name, key_of, size};
use key_schema::key::{Key, PartitionKey, SortKey};
use search_index::SearchClient;
use serde::Serialize;
use serde_dynamo::AttributeValue;

use crate::error::OpsError;
use crate::import::{self, INDEX_NOT_READ, SEARCHED};
use crate::items::{Items, Repair, RepairWrite, Repaired, set};
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::verify;

/// The commands of `ops item`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print an item as DynamoDB's JSON. Exit status 1 means that it is missing or unreadable.
    Show(ItemKey),
    /// Write an item, or change some of its attributes.
    #[command(after_help = "Examples:
  ops item put 'PRODUCT#tea' PRODUCT --set 'price.amount={\"N\":\"450\"}' --dry-run
  ops item show 'PRODUCT#tea' PRODUCT > tea.json   # edit the file
  ops item put 'PRODUCT#tea' PRODUCT --file tea.json

The command sets rev, version, the keys of the indexes and the time to live. Run `ops verify` afterwards.")]
    Put {
        #[command(flatten)]
        key: ItemKey,
        /// The whole item in DynamoDB's JSON, such as a line of an export. `-` reads standard input.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Set an attribute, or an entry of a map: `price.amount={"N":"450"}`. May be given more
        /// than once.
        #[arg(long, value_name = "PATH=JSON", value_parser = assignment)]
        set: Vec<Assignment>,
        /// Remove an attribute. May be given more than once.
        #[arg(long, value_name = "NAME")]
        remove: Vec<String>,
        /// Write nothing. Print the changes.
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete an item if nobody changes it meanwhile.
    Delete {
        #[command(flatten)]
        key: ItemKey,
        /// Delete nothing. Print the item's attributes.
        #[arg(long)]
        dry_run: bool,
    },
}

/// The key of an item, as `ops verify` and the logs print it.
#[derive(Debug, Clone, Args)]
pub struct ItemKey {
    /// The partition key, such as `PRODUCT#tea`.
    #[arg(value_name = "PK", value_parser = partition_key)]
    pk: PartitionKey,
    /// The sort key, such as `PRODUCT`.
    #[arg(value_name = "SK", value_parser = sort_key)]
    sk: SortKey,
}

impl From<ItemKey> for Key {
    fn from(ItemKey { pk, sk }: ItemKey) -> Self {
        Self { pk, sk }
    }
}

fn partition_key(text: &str) -> Result<PartitionKey, String> {
    PartitionKey::new(text).map_err(|error| error.to_string())
}

fn sort_key(text: &str) -> Result<SortKey, String> {
    SortKey::new(text).map_err(|error| error.to_string())
}

/// A new value of an attribute, or of an entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    path: Vec<String>,
    value: AttributeValue,
}

/// Parses `price.amount={"N":"450"}`.
pub fn assignment(text: &str) -> Result<Assignment, String> {
    let (path, value) = text.split_once('=').ok_or("must be PATH=JSON, such as name={\"S\":\"Tea\"}")?;
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        return Err("a part of the path is empty".to_owned());
    }
    let value = serde_json::from_str::<Item>(&format!("{{\"value\":{value}}}")).ok();
    let value = value.and_then(|item| item.get("value").cloned());
    Ok(Assignment { path, value: value.ok_or("the value must be DynamoDB's JSON, such as {\"S\":\"Tea\"}")? })
}

/// The changes of a write.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// The whole new item. [`None`] to change the stored item.
    pub whole: Option<Item>,
    pub set: Vec<Assignment>,
    pub remove: Vec<String>,
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let items = Items::from_env().await?;
    match command {
        Command::Show(key) => {
            let shown = show(&items, &key.into()).await?;
            // Standard output has only the item, so that `put` can read it.
            if let Some(fault) = &shown.fault {
                eprintln!("UNREADABLE: {fault}");
            }
            Ok(Outcome::new(&shown, shown.fault.is_none()))
        }
        Command::Put { key, file, set, remove, dry_run } => {
            let whole = file.map(|path| parse(&path)).transpose()?;
            if whole.is_none() && set.is_empty() && remove.is_empty() {
                return Err(OpsError::Usage("give --file, --set or --remove".to_owned()));
            }
            let edit = Edit { whole, set, remove };
            let written = put(&items, import::search_index()?.as_ref(), &key.into(), edit, dry_run).await?;
            Ok(Outcome::new(&written, written.is_complete()))
        }
        Command::Delete { key, dry_run } => {
            let written = delete(&items, &key.into(), dry_run).await?;
            Ok(Outcome::new(&written, written.is_complete()))
        }
    }
}

pub(crate) fn parse(path: &Path) -> Result<Item, OpsError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| ())
    } else {
        std::fs::read_to_string(path).map(|read| text = read)
    };
    read.map_err(|error| OpsError::Usage(format!("{}: {error}", path.display())))?;
    let wrong = |error| OpsError::Usage(format!("{} is no item in DynamoDB's JSON: {error}", path.display()));
    let mut value: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
    // A line of an export has the item in `Item`.
    let line = value.as_object_mut().filter(|line| line.len() == 1).and_then(|line| line.remove("Item"));
    serde_json::from_value(line.unwrap_or(value)).map_err(wrong)
}

#[derive(Debug, Serialize)]
pub struct ShownItem {
    pub item: Item,
    /// The reason why no reader can decode the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl fmt::Display for ShownItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(&self.item).map_err(|_| fmt::Error)?)
    }
}

pub async fn show(items: &Items, key: &Key) -> Result<ShownItem, OpsError> {
    let item = read(items, key).await?.ok_or_else(|| missing(key))?;
    let fault = verify::readable(&item).err();
    Ok(ShownItem { item, fault })
}

async fn read(items: &Items, key: &Key) -> Result<Option<Item>, OpsError> {
    Ok(items.get(std::slice::from_ref(key)).await?.remove(key))
}

fn missing(key: &Key) -> OpsError {
    OpsError::Failed(format!("no item has the key {} {}", key.pk, key.sk))
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WrittenItem {
    pub dry_run: bool,
    /// Whether another writer changed the item meanwhile. Then nothing was written.
    pub refused: bool,
    /// Whether a tombstone may hide the item, because the search index was not read.
    pub may_be_hidden: bool,
    /// The changed attributes. An item that is already as wanted has none, and is not written.
    pub changes: Vec<AttributeChange>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttributeChange {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<AttributeValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<AttributeValue>,
}

impl WrittenItem {
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        !self.refused
    }
}

impl fmt::Display for WrittenItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<AttributeValue>| match value {
            Some(value) => serde_json::to_string(value).unwrap_or_default(),
            None => "-".to_owned(),
        };
        for AttributeChange { name, old, new } in &self.changes {
            writeln!(f, "  {name}: {} -> {}", shown(old), shown(new))?;
        }
        if self.may_be_hidden {
            writeln!(f, "{INDEX_NOT_READ}")?;
        }
        f.write_str(match (self.changes.is_empty(), self.refused, self.dry_run) {
            (true, ..) => "the item is already so, nothing was written",
            (_, true, _) => "NOT WRITTEN: another writer changed the item: run the command again",
            (_, _, true) => "dry run: nothing was written",
            _ => "written: run `ops verify` to check the items that depend on it",
        })
    }
}

/// Writes the item of a key.
///
/// # Errors
/// [`OpsError::Usage`] if the new item has another key or is unreadable.
pub async fn put(
    items: &Items,
    search: Option<&SearchClient>,
    key: &Key,
    edit: Edit,
    dry_run: bool,
) -> Result<WrittenItem, OpsError> {
    let old = read(items, key).await?;
    // Otherwise the file would undo the changes since it was read.
    if let (Some(whole), Some(old)) = (&edit.whole, &old)
        && ["rev", "born"].iter().any(|name| whole.get(*name) != old.get(*name))
    {
        let what = "the stored item has changed since the file was written: show it again, and edit that";
        return Err(OpsError::Failed(what.to_owned()));
    }
    let mut new = edit.whole.or_else(|| old.clone()).ok_or_else(|| missing(key))?;
    for Assignment { path, value } in edit.set {
        new = assign(new, &path, value)?;
    }
    for name in &edit.remove {
        new.inner_mut().remove(name);
    }
    if old.as_ref().is_some_and(|old| differences(Some(old), Some(&new)).is_empty()) {
        return Ok(WrittenItem { dry_run, refused: false, may_be_hidden: false, changes: Vec::new() });
    }
    let new = match &old {
        Some(old) => succeeding(new, old),
        None => recreated(new),
    };
    let mut new = completed(new)?;
    if key_of(&new).as_ref() != Some(key) {
        return Err(OpsError::Usage(format!("the item has another key than {} {}", key.pk, key.sk)));
    }
    verify::readable(&new).map_err(|fault| OpsError::Usage(format!("the new item is unreadable: {fault}")))?;
    if old.is_none() {
        let mut created = [(String::new(), new)];
        import::raise(items, search, &mut created, &Pace::new(None)).await?;
        [(_, new)] = created;
    }
    if size(&new) > MAX_ITEM_BYTES {
        return Err(OpsError::Usage("the new item is too large".to_owned()));
    }
    let is_searched = entity_name(&new).is_ok_and(|name| SEARCHED.contains(&name));
    let may_be_hidden = old.is_none() && search.is_none() && is_searched;
    let changes = differences(old.as_ref(), Some(&new));
    let change = match old {
        Some(old) => RepairWrite::Rewrite { old, new },
        None => RepairWrite::Put(new),
    };
    Ok(WrittenItem { may_be_hidden, ..write(items, change, changes, dry_run).await? })
}

pub async fn delete(items: &Items, key: &Key, dry_run: bool) -> Result<WrittenItem, OpsError> {
    let old = read(items, key).await?.ok_or_else(|| missing(key))?;
    let changes = differences(Some(&old), None);
    write(items, RepairWrite::Delete(old), changes, dry_run).await
}

async fn write(
    items: &Items,
    change: RepairWrite,
    changes: Vec<AttributeChange>,
    dry_run: bool,
) -> Result<WrittenItem, OpsError> {
    let repair = Repair { checks: Vec::new(), change };
    let refused = !dry_run && items.repair(&repair, &Pace::new(None)).await? == Repaired::Refused;
    Ok(WrittenItem { dry_run, refused, may_be_hidden: false, changes })
}

fn assign(mut item: Item, path: &[String], value: AttributeValue) -> Result<Item, OpsError> {
    let Some((last, maps)) = path.split_last() else { return Ok(item) };
    let mut entries = item.inner_mut();
    for name in maps {
        match entries.get_mut(name) {
            Some(AttributeValue::M(inner)) => entries = inner,
            _ => return Err(OpsError::Usage(format!("{} does not exist: {name} is no map", path.join(".")))),
        }
    }
    entries.insert(last.clone(), value);
    Ok(item)
}

fn count(item: &Item, name: &str) -> Option<u64> {
    match item.get(name) {
        Some(AttributeValue::N(number)) => number.parse().ok().filter(|count| *count <= MAX_COUNT),
        _ => None,
    }
}

fn counted(item: Item, name: &str, count: u64) -> Item {
    set(item, name, AttributeValue::N(count.min(MAX_COUNT).to_string()))
}

/// Returns the item with the counts that follow those of the stored item. A count that cannot be
/// read is not changed.
fn succeeding(mut new: Item, old: &Item) -> Item {
    for name in ["rev", "version"] {
        if let Some(count) = count(old, name) {
            new = counted(new, name, count.saturating_add(1));
        }
    }
    new.inner_mut().remove(CAUSE);
    set(new, "updated_at", AttributeValue::S(Instant::now().to_string()))
}

/// Returns an item that was deleted, with a `rev` beyond that of its removal.
fn recreated(new: Item) -> Item {
    let new = match count(&new, "rev") {
        Some(rev) => counted(new, "rev", rev.saturating_add(2)),
        None => new,
    };
    set(new, CAUSE, AttributeValue::S(IMPORTED.to_owned()))
}

/// Returns the item with the index keys and the time to live that its attributes demand.
fn completed(mut item: Item) -> Result<Item, OpsError> {
    let entity = AnyEntity::from_item(item.clone())
        .map_err(|error| OpsError::Usage(format!("the new item is unreadable: {error}")))?;
    let right = entity.to_item()?;
    let names = INDEXES.iter().flat_map(|index| [index.partition_attribute(), index.sort_attribute()]);
    for name in names.chain(["ttl"]) {
        match right.get(name) {
            Some(value) => drop(item.inner_mut().insert(name.to_owned(), value.clone())),
            None => drop(item.inner_mut().remove(name)),
        }
    }
    Ok(item)
}

/// Returns the attributes in which two items differ, in ascending order.
fn differences(old: Option<&Item>, new: Option<&Item>) -> Vec<AttributeChange> {
    let value = |item: Option<&Item>, name: &str| item.and_then(|item| item.get(name)).cloned();
    let names = [old, new].into_iter().flatten().flat_map(|item| item.keys().cloned());
    let names: std::collections::BTreeSet<String> = names.collect();
    let changes = names.into_iter().map(|name| {
        let (old, new) = (value(old, &name), value(new, &name));
        AttributeChange { name, old, new }
    });
    changes.filter(|change| change.old != change.new).collect()
}
