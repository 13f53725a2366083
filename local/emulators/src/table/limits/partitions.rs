//! The partitions of a table or of an index: their throughput, and how hot ones split.

use std::collections::BTreeMap;
use std::time::Duration;

use super::request::Access;

/// How long a partition saves unused units.
pub const BURST: Duration = Duration::from_secs(1);
/// A partition splits when it has throttled requests for this long. It is an assumption: AWS says
/// only that a split needs sustained traffic.
pub const SPLIT_AFTER: Duration = Duration::from_secs(300);
/// A partition without a throttled request for this long is no longer hot.
const COOLS_AFTER: Duration = Duration::from_secs(10);
/// The number of items of a hot partition that the model counts.
const COUNTED_ITEMS: usize = 10_000;

/// Read and write units a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    pub reads: u32,
    pub writes: u32,
}

impl Throughput {
    /// The maximum of a partition.
    pub const OF_PARTITION: Self = Self { reads: 3_000, writes: 1_000 };
    /// The warm throughput of a new on-demand table.
    pub const NEW: Self = Self { reads: 12_000, writes: 4_000 };
}

/// The place of an item: the hash of its partition key, and its sort key. A partition is a range of
/// places, so a split never divides an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    hash: u64,
    sort: String,
}

impl Place {
    pub(super) fn new(partition: &str, sort: &str) -> Self {
        Self { hash: hash(partition), sort: sort.to_owned() }
    }
}

/// FNV-1a with the finalizer of SplitMix64. It is the same in every run and on every machine.
fn hash(text: &str) -> u64 {
    let fnv = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[derive(Debug)]
pub(super) struct Partitions {
    /// The partitions by their first place.
    by_start: BTreeMap<Place, Partition>,
}

#[derive(Debug, Default)]
struct Partition {
    reads: Bucket,
    writes: Bucket,
    heat: Option<Heat>,
}

/// The units that were consumed beyond the rate, as the time that a partition needs for them.
#[derive(Debug, Default)]
struct Bucket {
    /// The units of the last [`BURST`] that are consumed, at time `at`.
    used: f64,
    at: Duration,
}

impl Bucket {
    fn used(&mut self, now: Duration, rate: f64) -> f64 {
        let refilled = now.saturating_sub(self.at).as_secs_f64() * rate;
        (self.used, self.at) = ((self.used - refilled).max(0.0), now.max(self.at));
        self.used
    }
}

/// The traffic of a partition since it began to throttle.
#[derive(Debug)]
struct Heat {
    since: Duration,
    last: Duration,
    requests: BTreeMap<Place, u32>,
}

impl Partitions {
    pub(super) fn new(warm: Throughput) -> Self {
        let most = Throughput::OF_PARTITION;
        let count = warm.writes.div_ceil(most.writes).max(warm.reads.div_ceil(most.reads)).max(1);
        let width = u64::MAX / u64::from(count);
        let start = |number: u32| Place { hash: u64::from(number) * width, sort: String::new() };
        Self { by_start: (0..count).map(|number| (start(number), Partition::default())).collect() }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.by_start.len()
    }

    fn of(&mut self, place: &Place) -> Option<(&Place, &mut Partition)> {
        self.by_start.range_mut(..=place).next_back()
    }

    /// Returns whether the place's partition has units left. DynamoDB lets a request exceed the
    /// rest.
    pub(super) fn has_room(&mut self, now: Duration, place: &Place, access: Access) -> bool {
        let Some((_, partition)) = self.of(place) else { return false };
        let (bucket, rate) = partition.bucket(access);
        bucket.used(now, rate) < rate * BURST.as_secs_f64()
    }

    pub(super) fn consume(&mut self, now: Duration, place: &Place, access: Access, units: f64) {
        let Some((_, partition)) = self.of(place) else { return };
        partition.count(place);
        let (bucket, rate) = partition.bucket(access);
        bucket.used(now, rate);
        bucket.used += units;
    }

    /// Counts a request that was throttled, if `is_full` by this place's partition. Splits a
    /// partition that has been hot for long. Returns whether it was split.
    pub(super) fn heat(&mut self, now: Duration, place: &Place, is_full: bool) -> bool {
        let Some((start, partition)) = self.of(place) else { return false };
        if is_full {
            let heat = partition.heat.take().filter(|heat| now.saturating_sub(heat.last) < COOLS_AFTER);
            let heat = heat.unwrap_or_else(|| Heat { since: now, last: now, requests: BTreeMap::new() });
            partition.heat = Some(Heat { last: now, ..heat });
        }
        partition.count(place);
        let is_due = partition.heat.as_ref().is_some_and(|heat| now.saturating_sub(heat.since) >= SPLIT_AFTER);
        let Some(second) = is_due.then(|| partition.heat.as_ref().and_then(Heat::middle)).flatten() else {
            return false;
        };
        let start = start.clone();
        self.by_start.insert(start, Partition::default());
        self.by_start.insert(second, Partition::default());
        true
    }
}

impl Partition {
    fn bucket(&mut self, access: Access) -> (&mut Bucket, f64) {
        let most = Throughput::OF_PARTITION;
        match access {
            Access::Read => (&mut self.reads, f64::from(most.reads)),
            Access::Write => (&mut self.writes, f64::from(most.writes)),
        }
    }

    fn count(&mut self, place: &Place) {
        let Some(heat) = &mut self.heat else { return };
        let has_room = heat.requests.len() < COUNTED_ITEMS;
        match heat.requests.get_mut(place) {
            Some(count) => *count += 1,
            None if has_room => drop(heat.requests.insert(place.clone(), 1)),
            None => {}
        }
    }
}

impl Heat {
    /// Returns the item with which the second half of the traffic begins. Returns `None` if only
    /// one item has traffic.
    fn middle(&self) -> Option<Place> {
        let total: u32 = self.requests.values().sum();
        let mut before = 0;
        let starts = self.requests.iter().map(|(place, count)| {
            before += count;
            (place, (before - count).abs_diff(total - (before - count)))
        });
        starts.skip(1).min_by_key(|(_, difference)| *difference).map(|(place, _)| place.clone())
    }
}
