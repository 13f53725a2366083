//! Who touches what: the reason why not every order of moves need be tried.
//!
//! Two moves *commute* when they touch nothing in common: done in either order they leave the same state, and neither keeps the other from being
//! made. Of all orders of commuting moves one is enough, for they end alike. A history says which items are *shared*, between the deliveries of
//! the shards and the shop; everything else, each document, mark, row, object, belongs to one of them alone. So
//!
//! - a call that reaches nothing shared is made, or fails, or its delivery dies, before anybody else moves: whoever would have moved in between,
//!   moves behind it to the same effect. A crash counts against a common bound, and takes none away from the others: an order in which another crashed
//!   first has this call in it as done;
//! - a write of the shop to an item that no delivery touches, in a shard that only the shop feeds, is made at once: a delivery of fewer
//!   records is possible all the same;
//! - shards that share nothing with each other go one after the other;
//! - a delivery dies only right behind a call that changed something: dying later, up to its next such call and with its answer under way, leaves the
//!   same; and dying before the first such call leaves what not beginning does.
//!
//! Moves never lead back to an earlier state, so nothing is put off for ever. That everything keeps to its territory is not believed: every call says what
//! it reaches before it waits for its turn, and one that reaches what is another's, and not shared, is a panic.

use std::collections::BTreeMap;
use std::sync::Mutex;

use key_schema::key::{Key, PartitionKey};
use key_schema::request::{Query, Range};

/// Somebody who moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The deliveries of a shard, of which there is one at a time.
    Delivery(usize),
    /// The shop's writes to the items of a shard.
    Shop(usize),
}

impl Actor {
    fn shard(self) -> usize {
        match self {
            Self::Delivery(shard) | Self::Shop(shard) => shard,
        }
    }
}

/// What a call touches, read or written.
#[derive(Debug, Default)]
pub struct Footprint {
    keys: Vec<Key>,
    ranges: Vec<Stretch>,
    /// Documents, objects, the bus.
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

/// Whether others can tell when a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It touches what is its actor's alone.
    Own,
    /// It touches something shared.
    Shared,
}

/// What a history says of who touches what.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    /// The items that more than one actor touches.
    pub items: Vec<Key>,
    /// Whether an actor of one shard touches what one of the other does.
    pub across_shards: bool,
    /// The shard whose stream gets records of the consumer's own writes too.
    pub fed: Option<usize>,
}

/// Who was seen where, in all schedules together.
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

    /// How far a call reaches, which must be where its actor may be.
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
        assert!(one == other || (shared && near), "{key:?} is touched by {one:?} and {other:?}");
    }

    /// Whether a call that reaches so far may add records to a shard.
    pub fn is_fed(&self, shard: usize, reach: Reach) -> bool {
        self.sharing.fed == Some(shard) && reach == Reach::Shared
    }

    /// Whether nobody can tell when the shop writes this item.
    pub fn is_unnoticed(&self, shard: usize, key: &Key) -> bool {
        self.sharing.fed != Some(shard) && !self.sharing.items.contains(key)
    }
}
