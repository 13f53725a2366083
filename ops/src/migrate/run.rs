use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use key_schema::entity::AnyEntity;
use key_schema::item::{FromItem as _, Item, entity_name, key_of};
use serde::Serialize;
use serde_dynamo::AttributeValue;
use table::Backoff;

use super::catalogue::{Migration, Plan, Seen};
use super::{NONE, Speed};
use crate::error::OpsError;
use crate::items::{Items, Repair, RepairWrite, Repaired, Walk};
use crate::pace::Pace;
use crate::progress::Progress;

/// The maximum number of different changes in the summary of a dry run.
const SHOWN: usize = 5;
/// The maximum number of attempts for an item that other writers keep changing.
const ATTEMPTS: usize = 10;

#[derive(Debug, Clone, Copy)]
pub struct MigrateOptions {
    pub dry_run: bool,
    pub segments: i32,
    pub max_read_units: Option<u32>,
    pub max_write_units: Option<u32>,
}

impl MigrateOptions {
    /// Returns the options of a run without a limit of writes.
    #[must_use]
    pub const fn new(Speed { segments, max_read_units }: Speed) -> Self {
        Self { dry_run: false, segments, max_read_units: Some(max_read_units), max_write_units: None }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Migrated {
    pub name: &'static str,
    pub dry_run: bool,
    /// The number of items that already had the new form.
    pub done: u64,
    /// The number of items that got the new form, or would get it in a dry run.
    pub migrated: u64,
    /// The number of items that keep the old form, by reason.
    pub kept: BTreeMap<&'static str, u64>,
    /// The number of items that other writers kept changing.
    pub contended: u64,
    pub unreadable: u64,
    /// Examples of different changes, as names of attributes and types of values.
    pub sample: Vec<String>,
}

impl Migrated {
    /// Returns whether the run processed every item, without unreadable or contended items.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.contended == 0 && self.unreadable == 0
    }
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dry_run { "would be migrated" } else { "migrated" };
        writeln!(f, "{}: {} items {what}, {} had the new form", self.name, self.migrated, self.done)?;
        for (reason, count) in &self.kept {
            writeln!(f, "  {count} keep the old form: {reason}")?;
        }
        if self.contended > 0 {
            writeln!(f, "  NOT MIGRATED: {} kept changing: run the command again", self.contended)?;
        }
        if self.unreadable > 0 {
            writeln!(f, "  NOT MIGRATED: {} cannot be read: see `ops verify`", self.unreadable)?;
        }
        for change in &self.sample {
            writeln!(f, "  {change}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Statuses {
    /// A dry run of each migration, without samples.
    pub migrations: Vec<Migrated>,
}

impl Statuses {
    pub(super) fn is_readable(&self) -> bool {
        self.migrations.iter().all(|migration| migration.unreadable == 0)
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.migrations.is_empty() {
            writeln!(f, "{NONE}")?;
        }
        for Migrated { name, done, migrated, kept, unreadable, .. } in &self.migrations {
            let kept: u64 = kept.values().sum();
            write!(f, "{name:<16}  {migrated} to migrate, {done} in the new form, {kept} keep the old form")?;
            writeln!(f, "{}", if *unreadable > 0 { format!(", {unreadable} UNREADABLE") } else { String::new() })?;
        }
        Ok(())
    }
}

/// Runs a migration.
///
/// # Errors
/// [`OpsError`], for example when the table cannot be reached. Items that were written before the
/// error keep their new form.
pub async fn run(items: &Items, migration: &dyn Migration, options: &MigrateOptions) -> Result<Migrated, OpsError> {
    let mut runs = walk(items, &[migration], options).await?;
    Ok(runs.pop().unwrap_or_default())
}

/// Counts the items that each migration still has to write, in one scan. Without a migration there
/// is no scan.
pub async fn status(
    items: &Items,
    migrations: &[&dyn Migration],
    options: &MigrateOptions,
) -> Result<Statuses, OpsError> {
    if migrations.is_empty() {
        return Ok(Statuses { migrations: Vec::new() });
    }
    let mut migrations = walk(items, migrations, &MigrateOptions { dry_run: true, ..*options }).await?;
    migrations.iter_mut().for_each(|migration| migration.sample.clear());
    Ok(Statuses { migrations })
}

async fn walk(
    items: &Items,
    migrations: &[&dyn Migration],
    options: &MigrateOptions,
) -> Result<Vec<Migrated>, OpsError> {
    let (reads, writes) = (Pace::new(options.max_read_units), Pace::new(options.max_write_units));
    let progress = Progress::new("migrate", items.estimate().await?);
    let entities: Vec<&str> = migrations.iter().flat_map(|migration| migration.entities()).copied().collect();
    let started = |migration: &&dyn Migration| {
        let run = Migrated { name: migration.name(), dry_run: options.dry_run, ..Migrated::default() };
        Mutex::new(run)
    };
    let runs: Vec<Mutex<Migrated>> = migrations.iter().map(started).collect();
    let walk = Walk { entities: &entities, segments: options.segments, units: &reads, progress: &progress };
    items
        .walk(walk, async |(): &mut (), page| {
            for (migration, result) in migrations.iter().zip(&runs) {
                let run = Run {
                    items,
                    migration: *migration,
                    reads: &reads,
                    writes: &writes,
                    dry_run: options.dry_run,
                    result,
                };
                run.page(&page).await?;
            }
            Ok(())
        })
        .await?;
    Ok(runs.into_iter().map(|run| run.into_inner().unwrap_or_else(PoisonError::into_inner)).collect())
}

struct Run<'a> {
    items: &'a Items,
    migration: &'a dyn Migration,
    reads: &'a Pace,
    writes: &'a Pace,
    dry_run: bool,
    result: &'a Mutex<Migrated>,
}

impl Run<'_> {
    fn count(&self, count: impl FnOnce(&mut Migrated)) {
        count(&mut self.result.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn page(&self, page: &[Item]) -> Result<(), OpsError> {
        let (mut read, mut needs) = (Vec::new(), Vec::new());
        for item in page.iter().filter(|item| entity_name(item).is_ok_and(|of| self.migration.entities().contains(&of)))
        {
            match AnyEntity::from_item(item.clone()) {
                Ok(entity) => {
                    needs.extend(self.migration.needs(&entity)?);
                    read.push((item, entity));
                }
                Err(_) => self.count(|result| result.unreadable += 1),
            }
        }
        let mut others = self.items.get_within(&needs, self.reads).await?;
        for (item, entity) in read {
            match self.migration.plan(&Seen { item, entity: &entity, others: &others })? {
                Plan::Done => self.count(|result| result.done += 1),
                Plan::Keep(reason) => self.count(|result| *result.kept.entry(reason).or_default() += 1),
                Plan::Write(writes) if self.dry_run => self.count(|result| {
                    result.migrated += 1;
                    for change in writes.iter().map(described) {
                        if result.sample.len() < SHOWN && !result.sample.contains(&change) {
                            result.sample.push(change);
                        }
                    }
                }),
                Plan::Write(writes) => match self.write(item, writes).await? {
                    Written::Done(new) => {
                        // The plans for later items of the page must not write these items again.
                        others.extend(new.into_iter().filter_map(|item| Some((key_of(&item)?, item))));
                        self.count(|result| result.migrated += 1);
                    }
                    Written::Gone => {}
                    Written::Contended => self.count(|result| result.contended += 1),
                },
            }
        }
        Ok(())
    }

    /// Writes an item's new form. After a conflict, reads the item again and makes a new plan.
    async fn write(&self, item: &Item, mut writes: Vec<Repair>) -> Result<Written, OpsError> {
        let Some(key) = key_of(item) else { return Ok(Written::Gone) };
        let mut backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            if let Some(new) = self.all(&writes).await? {
                return Ok(Written::Done(new));
            }
            // The loop already limits the attempts, so the limit of the backoff is ignored.
            let _ = backoff.wait().await;
            let Some(item) = self.items.get_within(std::slice::from_ref(&key), self.reads).await?.remove(&key) else {
                return Ok(Written::Gone);
            };
            let Ok(entity) = AnyEntity::from_item(item.clone()) else { return Ok(Written::Contended) };
            let others = self.items.get_within(&self.migration.needs(&entity)?, self.reads).await?;
            match self.migration.plan(&Seen { item: &item, entity: &entity, others: &others })? {
                Plan::Write(again) => writes = again,
                Plan::Done | Plan::Keep(_) => return Ok(Written::Done(Vec::new())),
            }
        }
        Ok(Written::Contended)
    }

    /// Executes all writes and returns the created items, or [`None`] after a refusal.
    async fn all(&self, writes: &[Repair]) -> Result<Option<Vec<Item>>, OpsError> {
        let mut new = Vec::new();
        for write in writes {
            if self.items.repair(write, self.writes).await? == Repaired::Refused {
                return Ok(None);
            }
            if let RepairWrite::Put(item) | RepairWrite::Move { new: item, .. } = &write.change {
                new.push(item.clone());
            }
        }
        Ok(Some(new))
    }
}

enum Written {
    /// The item has its new form. The value contains the items that were created.
    Done(Vec<Item>),
    /// The item does not exist any more.
    Gone,
    Contended,
}

/// Describes a write by names of attributes and kinds of values.
fn described(repair: &Repair) -> String {
    let entity = |item: &Item| entity_name(item).unwrap_or("item").to_owned();
    match &repair.change {
        RepairWrite::Put(item) => {
            let mut parts: Vec<String> =
                item.iter().map(|(name, value)| format!("{name} {}", kind(Some(value)))).collect();
            parts.sort();
            format!("new {}: {}", entity(item), parts.join(", "))
        }
        RepairWrite::Rewrite { old, new } => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let names = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
            let parts = names.map(|name| format!("{name} {} -> {}", kind(old.get(name)), kind(new.get(name))));
            format!("{}: {}", entity(new), parts.collect::<Vec<_>>().join(", "))
        }
        RepairWrite::Move { new, .. } => format!("{} under another key", entity(new)),
        RepairWrite::Delete(item) => format!("no {} any more", entity(item)),
    }
}

const fn kind(value: Option<&AttributeValue>) -> &'static str {
    match value {
        None => "absent",
        Some(AttributeValue::S(_)) => "text",
        Some(AttributeValue::N(_)) => "number",
        Some(AttributeValue::Bool(_)) => "boolean",
        Some(AttributeValue::B(_)) => "binary",
        Some(AttributeValue::Null(_)) => "null",
        Some(AttributeValue::M(_)) => "map",
        Some(AttributeValue::L(_)) => "list",
        Some(AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_)) => "set",
    }
}
