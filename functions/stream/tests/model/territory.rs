//! Territories: the items that each actor touches. They let the search skip most sequences of
//! moves.
//!
//! Two moves *commute* if they touch no common item. In either sequence they lead to the same
//! state, and neither prevents the other. So one sequence of commuting moves is enough. A history
//! lists the items that several actors ([`Actor`]) *share*. Every other document, mark, row and
//! object belongs to one actor alone. This gives four rules:
//!
//! - If a call touches no shared data, it succeeds, fails or crashes before any other actor moves.
//!   A move in between would have the same effect after the call. All deliveries share one limit of
//!   crashes, but the rule still hides no schedule. If another delivery uses the last crash, this
//!   call has already succeeded.
//! - If no delivery touches an item, and only sources add records to its shard, the source writes
//!   the item at once. This hides no schedule, because a delivery need not contain all records.
//! - Shards that share nothing run one after the other.
//! - A delivery crashes only directly after a call that changed something. A later crash leads to
//!   the same state, unless another such call or the response comes first. A crash before the first
//!   such call leads to the same state as no delivery.
//!
//! Moves never lead back to an earlier state, so no move is postponed forever. The test checks the
//! territories. Every call declares the data that it touches before it waits at its gate. A call
//! that touches unshared data of another actor panics.

use std::collections::BTreeMap;
use std::sync::Mutex;

use key_schema::key::{Key, PartitionKey};
use key_schema::request::{Query, Range};

/// An actor, which makes moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The deliveries of a shard. They run one after the other.
    Delivery(usize),
    /// The sources that write the items of a shard: a function behind the API, or DynamoDB at an
    /// expiry.
    Shop(usize),
}

impl Actor {
    fn shard(self) -> usize {
        match self {
            Self::Delivery(shard) | Self::Shop(shard) => shard,
        }
    }
}

/// The data that a call reads or writes.
#[derive(Debug, Default)]
pub struct Footprint {
    keys: Vec<Key>,
    ranges: Vec<Stretch>,
    /// Documents, objects and the bus.
    others: Vec<String>,
}

/// A range of sort keys in a partition.
#[derive(Debug, Clone, PartialEq)]
struct Stretch(PartitionKey, Range);

impl Stretch {
    fn covers(&self, key: &Key) -> bool {
        self.0 == key.pk && (self.1 == Range::All || self.1.contains(key.sk.as_str()))
    }
}

impl Footprint {
    pub fn keys(keys: impl IntoIterator<Item = Key>) -> Self {
        Self { keys: keys.into_iter().collect(), ..Self::default() }
    }

    pub fn query<T>(query: &Query<T>) -> Self {
        let bounds = query.bounds();
        let stretch = |partition: &PartitionKey| Some(Stretch(partition.clone(), bounds.clone()?));
        Self { ranges: query.partitions().iter().filter_map(stretch).collect(), ..Self::default() }
    }

    pub fn others(others: impl IntoIterator<Item = String>) -> Self {
        Self { others: others.into_iter().collect(), ..Self::default() }
    }
}

/// Whether other actors can notice a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The call touches only data of the actor that makes it.
    Own,
    /// The call touches shared data.
    Shared,
}

/// A history's declaration of the shared items.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    /// The items that more than one actor touches.
    pub items: Vec<Key>,
    /// Whether an actor of one shard touches data of an actor of the other shard.
    pub across_shards: bool,
    /// The shard whose stream also has records of the consumer's own writes, if there is one.
    pub fed: Option<usize>,
}

/// The actors that have touched each item, in all schedules together.
#[derive(Debug)]
pub struct Territory {
    pub sharing: Sharing,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    keys: BTreeMap<Key, Actor>,
    ranges: Vec<(Stretch, Actor)>,
    others: BTreeMap<String, Actor>,
}

impl Territory {
    pub fn new(sharing: Sharing) -> Self {
        Self { sharing, seen: Mutex::default() }
    }

    /// Returns whether other actors can notice a call. Panics if it touches another actor's own
    /// data.
    pub fn enter(&self, actor: Actor, footprint: &Footprint) -> Reach {
        let mut seen = self.seen.lock().unwrap();
        let mut reach = Reach::Own;
        for key in &footprint.keys {
            reach = if self.sharing.items.contains(key) { Reach::Shared } else { reach };
            let known = *seen.keys.entry(key.clone()).or_insert(actor);
            self.agree(known, actor, key);
            for (_, other) in seen.ranges.iter().filter(|(stretch, _)| stretch.covers(key)) {
                self.agree(*other, actor, key);
            }
        }
        for range in &footprint.ranges {
            reach = if self.sharing.items.iter().any(|key| range.covers(key)) { Reach::Shared } else { reach };
            for (key, other) in seen.keys.iter().filter(|(key, _)| range.covers(key)) {
                self.agree(*other, actor, key);
            }
            let known = (range.clone(), actor);
            if !seen.ranges.contains(&known) {
                seen.ranges.push(known);
            }
        }
        for other in &footprint.others {
            let known = *seen.others.entry(other.clone()).or_insert(actor);
            assert_eq!(known, actor, "{other} is not shared");
        }
        reach
    }

    fn agree(&self, one: Actor, other: Actor, key: &Key) {
        let shared = self.sharing.items.contains(key);
        let near = self.sharing.across_shards || one.shard() == other.shard();
        assert!(one == other || (shared && near), "{one:?} and {other:?} both access {key:?}");
    }

    /// Returns whether a call with this reach may add records to a shard.
    pub fn is_fed(&self, shard: usize, reach: Reach) -> bool {
        self.sharing.fed == Some(shard) && reach == Reach::Shared
    }

    /// Returns whether a source's write of this item is invisible to every other actor.
    pub fn is_unnoticed(&self, shard: usize, key: &Key) -> bool {
        self.sharing.fed != Some(shard) && !self.sharing.items.contains(key)
    }
}
