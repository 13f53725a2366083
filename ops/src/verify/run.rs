use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use key_schema::entity::AnyEntity;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item, key_of};
use key_schema::key::{Key, PartitionKey, shown};
use key_schema::lists::{self, Lists};
use key_schema::region::{self, SaleRegion};
use key_schema::{order, sales};
use table::Table;
use tokio::time::sleep;

use super::relations::{self, Seen};
use super::report::{Finding, Kind, Verified};
use super::totals::{self, HEAD, REPAIRABLE, Scope, Sum, TABLE_WIDE, Tally, facts, in_part};
use super::{Fix, MAX_PASSES, Problem, VerifyOptions, shape};
use crate::error::OpsError;
use crate::items::{Items, Repair, RepairWrite, Repaired, Walk, set, sets};
use crate::pace::Pace;
use crate::progress::Progress;
use crate::shards;

/// The maximum number of times that totals are read again until two reads agree.
const READS: usize = 3;

type Wrong = HashMap<(Key, String), Sum>;

pub async fn verify(items: &Items, options: &VerifyOptions) -> Result<Verified, OpsError> {
    let units = Pace::new(options.max_read_units);
    let mut result: Option<Verified> = None;
    for _ in 0..MAX_PASSES {
        let table = items.table();
        let pass = Pass {
            items,
            options,
            units: &units,
            lists: shards::known(&table).await?.lists,
            table,
            result: Mutex::default(),
            tally: Mutex::new((Tally::default(), 0, 1)),
        };
        let verified = pass.run().await?;
        let is_last = !options.fix || verified.repaired() == 0;
        match &mut result {
            Some(before) => before.follow(verified, options.limit),
            None => result = Some(verified),
        }
        if is_last {
            break;
        }
    }
    Ok(result.unwrap_or_default())
}

struct Pass<'a> {
    items: &'a Items,
    options: &'a VerifyOptions,
    units: &'a Pace,
    table: Table,
    result: Mutex<Verified>,
    /// Totals of the whole table. The pass holds one part of all totals: the first number selects
    /// the part, and the second is the number of parts.
    tally: Mutex<(Tally, u64, u64)>,
    /// The layouts of the sharded lists when the pass began.
    lists: Lists,
}

/// The partition that a segment reads.
#[derive(Default)]
struct Partition {
    key: Option<PartitionKey>,
    tally: Tally,
    /// Whether an item of the partition is unreadable. The partition's totals are then not checked.
    is_unreadable: bool,
}

/// An item with differences that a second read has confirmed.
struct Suspect {
    key: Key,
    entity: AnyEntity,
    problems: Vec<Problem>,
}

impl Pass<'_> {
    fn result(&self) -> MutexGuard<'_, Verified> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_checked(&self, entity: &AnyEntity) -> bool {
        self.options.entities.is_empty() || self.options.entities.iter().any(|name| name == entity.name())
    }

    async fn run(self) -> Result<Verified, OpsError> {
        let progress = Progress::new("verify", self.items.estimate().await?);
        let entities: Vec<&str> = self.options.entities.iter().map(String::as_str).collect();
        let walk =
            Walk { entities: &entities, segments: self.options.segments, units: self.units, progress: &progress };
        self.items.walk(walk, async |partition: &mut Partition, page| self.page(partition, page).await).await?;
        // An unreadable item may be a part of any total. If there is one, the totals of the whole
        // table are not checked.
        let has_unreadable = self.result().found.contains_key(&Kind::Unreadable);
        if has_unreadable {
            self.result().totals_unchecked = true;
        } else if self.options.entities.is_empty() {
            self.table_totals(&progress).await?;
        }
        Ok(self.result.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    async fn page(&self, partition: &mut Partition, page: Vec<Item>) -> Result<(), OpsError> {
        if page.is_empty() {
            return self.end(partition).await;
        }
        let now = Instant::now();
        self.result().items += u64::try_from(page.len()).unwrap_or_default();
        let mut read = Vec::with_capacity(page.len());
        for item in page {
            let Some(key) = key_of(&item) else { continue };
            let (entity, problems) = shape::check(&item);
            for problem in problems {
                self.report(&key, problem).await?;
            }
            if self.options.entities.is_empty() && partition.key.as_ref() != Some(&key.pk) {
                self.end(partition).await?;
                partition.key = Some(key.pk.clone());
            }
            partition.is_unreadable |= entity.is_none();
            if let Some(entity) = entity.filter(|entity| self.is_checked(entity)) {
                if self.options.entities.is_empty() {
                    self.count(&entity, partition, now)?;
                }
                self.result().to_migrate += u64::from(shape::is_old(&item, &entity));
                self.listed(&key, &item, &entity).await?;
                read.push((key, item, entity));
            }
        }
        self.relate(read, now).await
    }

    /// Checks that an item's number of shards fits the layout of its list. Otherwise readers of the
    /// list may miss the item.
    async fn listed(&self, key: &Key, item: &Item, entity: &AnyEntity) -> Result<(), OpsError> {
        let Some((list, shards)) = lists::entry(entity) else { return Ok(()) };
        if self.lists.of(list).has(shards) {
            return Ok(());
        }
        // A change of the list may have begun after this pass began.
        let layout = shards::known(&self.table).await?.lists.of(list);
        let Some(change) = shards::moved(item, entity, layout.write)?.filter(|_| !layout.has(shards)) else {
            return Ok(());
        };
        let what = format!("the index key belongs to one of {shards} shards, but the list has {}", layout.to);
        let repair = Repair { checks: Vec::new(), change };
        self.report(key, Problem::new(Kind::Index, what).repaired_by(repair)).await
    }

    /// Adds the facts of an item to the totals of its partition, or of the whole table.
    fn count(&self, entity: &AnyEntity, partition: &mut Partition, now: Instant) -> Result<(), OpsError> {
        for fact in facts(entity, now)? {
            match fact.scope {
                Scope::Partition => partition.tally.add(fact, || totals::fresh(entity)),
                Scope::Table => {
                    let mut guard = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
                    let (tally, part, parts) = &mut *guard;
                    if !in_part(&fact.total, *part, *parts) {
                        continue;
                    }
                    tally.add(fact, || totals::fresh(entity));
                    if tally.len() > self.options.max_totals {
                        *parts *= 2;
                        tally.keep(*part, *parts);
                    }
                }
            }
        }
        Ok(())
    }

    /// Compares the items of a page with the items to which they have a relation.
    async fn relate(&self, read: Vec<(Key, Item, AnyEntity)>, now: Instant) -> Result<(), OpsError> {
        let needs: Vec<Vec<Key>> =
            read.iter().map(|(_, _, entity)| relations::needs(entity)).collect::<Result<_, _>>()?;
        let others = self.items.get_within(&needs.concat(), self.units).await?;
        let mut suspects = Vec::new();
        for ((key, item, entity), needs) in read.into_iter().zip(needs) {
            let seen = Seen { key: &key, item: &item, others: &others, now };
            if relations::check(&entity, &seen).is_empty() {
                continue;
            }
            let problems = self.again(&key, &needs).await?;
            suspects.extend(problems.map(|(entity, problems)| Suspect { key, entity, problems }));
        }
        // All suspects of the page share the waits.
        for _ in 0..2 {
            if !suspects.iter().any(|suspect| suspect.problems.iter().any(|problem| problem.lags)) {
                break;
            }
            sleep(self.options.settle).await;
            for suspect in &mut suspects {
                if suspect.problems.iter().any(|problem| problem.lags) {
                    let found = self.again(&suspect.key, &relations::needs(&suspect.entity)?).await?;
                    suspect.problems = found.map(|(_, problems)| problems).unwrap_or_default();
                }
            }
        }
        // Several items may show the same difference of another item. The difference is reported
        // once.
        let mut reported = HashSet::new();
        for Suspect { key, problems, .. } in suspects {
            for problem in problems {
                if reported.insert((problem.key.clone().unwrap_or_else(|| key.clone()), problem.what.clone())) {
                    self.report(&key, problem).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads an item and its related items at one instant, and compares them again.
    async fn again(&self, key: &Key, needs: &[Key]) -> Result<Option<(AnyEntity, Vec<Problem>)>, OpsError> {
        let mut keys = vec![key.clone()];
        keys.extend_from_slice(needs);
        let found = self.items.snapshot(&keys, self.units).await?;
        let Some(item) = found.get(key) else { return Ok(None) };
        let Ok(entity) = AnyEntity::from_item(item.clone()) else { return Ok(None) };
        let seen = Seen { key, item, others: &found, now: Instant::now() };
        let problems = relations::check(&entity, &seen);
        Ok((!problems.is_empty()).then_some((entity, problems)))
    }

    /// Repairs a difference that has a repair, if the options permit repairs. Then adds the
    /// finding.
    async fn report(&self, key: &Key, problem: Problem) -> Result<(), OpsError> {
        let Problem { kind, key: other, what, lags: _, fix } = problem;
        let repaired = match fix.filter(|_| self.options.fix) {
            Some(Fix::Write(repairs)) => self.write(&repairs).await?,
            Some(Fix::Derive(order)) => sales_of(&self.table, &order).await? == Repaired::Done,
            Some(Fix::Rank(position)) => position.derive(self.items, self.units).await? == Repaired::Done,
            None => false,
        };
        let key = shown(other.as_ref().unwrap_or(key));
        self.result().add(Finding { kind, key, what, repaired }, self.options.limit);
        Ok(())
    }

    /// Writes the repairs up to the first that is refused. Returns whether all were written.
    async fn write(&self, repairs: &[Repair]) -> Result<bool, OpsError> {
        for repair in repairs {
            if self.items.repair(repair, self.units).await? == Repaired::Refused {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks the totals of a partition whose items were all read.
    async fn end(&self, partition: &mut Partition) -> Result<(), OpsError> {
        let (key, tally) = (partition.key.take(), std::mem::take(&mut partition.tally));
        let is_unreadable = std::mem::take(&mut partition.is_unreadable);
        let wrong = tally.wrong();
        let (Some(key), false) = (key, wrong.is_empty() || is_unreadable) else { return Ok(()) };
        let (mut last, mut is_confirmed) = (wrong, false);
        for read in 0..READS {
            if read > 0 {
                // The first two reads disagree, so the total is changing.
                sleep(self.options.settle).await;
            }
            let (mut tally, now) = (Tally::default(), Instant::now());
            let mut failed = None;
            let add = |item: Item| {
                let Ok(entity) = AnyEntity::from_item(item) else { return };
                match facts(&entity, now) {
                    Ok(facts) => facts
                        .into_iter()
                        .filter(|fact| fact.scope == Scope::Partition)
                        .for_each(|fact| tally.add(fact, || totals::fresh(&entity))),
                    Err(error) => failed = Some(error),
                }
            };
            self.items.partition(&key, self.units, add).await?;
            if let Some(error) = failed {
                return Err(error);
            }
            let next = tally.wrong();
            is_confirmed = next.len() == last.len() && next.iter().all(|(name, sum)| agrees(&last, name, sum));
            last = next;
            if is_confirmed || last.is_empty() {
                break;
            }
        }
        if is_confirmed {
            return self.wrong(last).await;
        }
        self.result().unsettled += u64::try_from(last.len()).unwrap_or_default();
        Ok(())
    }

    /// Reports totals that differ from their parts, with the same values in two reads.
    async fn wrong(&self, wrong: Wrong) -> Result<(), OpsError> {
        let mut wrong: Vec<_> = wrong.into_iter().collect();
        wrong.sort_by(|(a, _), (b, _)| a.cmp(b));
        for ((key, field), sum) in wrong {
            let problem = if field == HEAD {
                Problem::new(Kind::Orphan, format!("is missing, but {} items belong to it", sum.parts))
            } else if field == "texts" {
                Problem::new(Kind::Total, "the stored texts differ from the texts that the versions name")
            } else {
                let problem =
                    Problem::new(Kind::Total, format!("{field} is {}, but its parts give {}", sum.is, sum.parts));
                match self.corrected(&key, &field, &sum).await? {
                    Some(repair) => problem.repaired_by(repair),
                    None => problem,
                }
            };
            self.report(&key, problem).await?;
        }
        Ok(())
    }

    /// Returns the write that sets a total to the sum of its parts, if that is possible.
    async fn corrected(&self, key: &Key, field: &str, sum: &Sum) -> Result<Option<Repair>, OpsError> {
        if !self.options.fix || !REPAIRABLE.contains(&field) {
            return Ok(None);
        }
        let value = serde_dynamo::AttributeValue::N(sum.parts.to_string());
        let Some(rev) = sum.rev else {
            // A later pass corrects the other attributes of a new total.
            let change = sum.fresh.as_deref().map(|item| RepairWrite::Put(set(item.clone(), field, value)));
            return Ok(change.map(|change| Repair { checks: Vec::new(), change }));
        };
        let Some(old) = self.items.get_within(std::slice::from_ref(key), self.units).await?.remove(key) else {
            return Ok(None);
        };
        let is_same = old.get("rev") == Some(&serde_dynamo::AttributeValue::N(rev.to_string()));
        let right = set(old.clone(), field, value);
        Ok(is_same.then(|| Repair { checks: Vec::new(), change: sets(&old, &right, [field], true) }))
    }

    /// Checks the totals whose parts are anywhere in the table.
    async fn table_totals(&self, progress: &Progress) -> Result<(), OpsError> {
        let (tally, part, parts) = std::mem::replace(
            &mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner),
            (Tally::default(), 0, 1),
        );
        self.confirm(tally.wrong(), part, parts, progress).await?;
        for part in 1..parts {
            let tally = self.table_tally(part, parts, progress).await?;
            self.confirm(tally.wrong(), part, parts, progress).await?;
        }
        Ok(())
    }

    /// Scans again until two scans agree on a difference.
    async fn confirm(&self, mut last: Wrong, part: u64, parts: u64, progress: &Progress) -> Result<(), OpsError> {
        for _ in 0..READS {
            if last.is_empty() {
                return Ok(());
            }
            let next = self.table_tally(part, parts, progress).await?.wrong();
            let (same, changed): (Wrong, Wrong) = next.into_iter().partition(|(name, sum)| agrees(&last, name, sum));
            self.wrong(same).await?;
            // The next scan checks the totals whose difference has changed. It leaves out totals
            // that are already reported or were correct before.
            last = changed.into_iter().filter(|(name, _)| last.contains_key(name)).collect();
        }
        self.result().unsettled += u64::try_from(last.len()).unwrap_or_default();
        Ok(())
    }

    async fn table_tally(&self, part: u64, parts: u64, progress: &Progress) -> Result<Tally, OpsError> {
        let tally = Mutex::new(Tally::default());
        let walk = Walk { entities: TABLE_WIDE, segments: self.options.segments, units: self.units, progress };
        let take = async |(): &mut (), page: Vec<Item>| {
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            for entity in page.into_iter().filter_map(|item| AnyEntity::from_item(item).ok()) {
                for fact in facts(&entity, Instant::now())? {
                    if fact.scope == Scope::Table && in_part(&fact.total, part, parts) {
                        tally.add(fact, || totals::fresh(&entity));
                    }
                }
            }
            Ok(())
        };
        self.items.walk(walk, take).await?;
        Ok(tally.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns whether an earlier read has found the same difference at the same `rev` of total and parts.
fn agrees(last: &Wrong, name: &(Key, String), sum: &Sum) -> bool {
    let seen = |sum: &Sum| (sum.is, sum.parts, sum.rev, sum.part_revs);
    last.get(name).is_some_and(|last| seen(last) == seen(sum))
}

/// Derives the sales of an order, as the stream's consumer does. The derived items record which
/// sales are counted. So if a consumer derives the same sales concurrently, nothing is counted
/// twice.
async fn sales_of(table: &Table, id: &OrderId) -> Result<Repaired, OpsError> {
    let Some(head) = table.get(&order::head(id)?).await? else { return Ok(Repaired::Refused) };
    let lines = table.query(&order::lines(id)?).await?.items;
    let seen: sales::Derived = table.query(&sales::derived(id)?).await?.items.into_iter().collect();
    let region = if let Some(region) = &seen.region {
        region.data.clone()
    } else {
        let store_id = region::store_of(&head);
        let store = table.get(&region::read_for_update(&store_id)?).await?;
        SaleRegion::of(&head, store.as_deref(), store_id)
    };
    for transaction in sales::apply(&head, &lines, &seen, region, Instant::now())? {
        if table.transact(&transaction).await?.is_err() {
            return Ok(Repaired::Refused);
        }
    }
    Ok(Repaired::Done)
}
