//! Counters with many concurrent writers, such as `product:<id>` for the views of a product.
//!
//! A counter is the sum of its shards. The shards are in separate partitions, because a partition
//! takes only 1,000 write units a second. A counter begins with one shard. When its shards get too
//! many writes, a *split* doubles the number of shards, up to [`MAX_SHARDS`]. The counter's head
//! records the number. The first split creates the head, so a counter without a head has one shard.
//!
//! # Why a sum is right before, during and after a split
//!
//! The number of shards only grows, and every split keeps the existing shards. A writer selects a
//! shard by the number of shards that it last read. If that number is outdated, it is smaller, so
//! every reader also reads the selected shard. A split therefore moves nothing and is one write of
//! the head.
//!
//! A reader reads the head and all its shards with strong consistency ([`read`], [`rest`]). It
//! starts these reads after its own request began. So it reads the shard of every addition whose
//! writer got the response before the reader's request began. The sum contains all these additions.
//!
//! # Why nothing is counted twice
//!
//! An addition is a transaction because a transaction has a client request token. If the response
//! is lost, the writer sends the same token again, and DynamoDB adds only once. A writer tries
//! another shard only if DynamoDB has certainly cancelled the attempt. If the client sends an
//! Idempotency-Key, the same transaction writes the record of the key.

use item_model::prelude::*;

use crate::change::Change;
use crate::encoding;
use crate::expression::{Condition, first_alive, number};
use crate::id::{Born, CounterName};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::Consistency;
use crate::request::{BatchGet, Get, Guarded, Single, Transaction};

/// The maximum number of shards. They take at most 32,000 additions a second. A partition takes
/// 1,000 write units a second, and an addition costs two because it is a transaction.
pub const MAX_SHARDS: u32 = 64;
pub const MAX_ADD: u32 = 1000;
/// The minimum time after a split before conflicting additions can cause another split. During that
/// time the first split takes effect. Growing from one shard to [`MAX_SHARDS`] takes a minute.
pub const PAUSE_SECONDS: i64 = 10;
/// The number of throttled requests in a minute that causes a split. Retries absorb a smaller
/// number.
pub const THROTTLED_A_MINUTE: f64 = 10.0;

entity! {
    /// A counter's head, which records the number of shards.
    Counter = "Counter" {
        fixed {
            name: CounterName,
            /// The number of shards: a power of two that never decreases.
            shards: u32,
        }
        mutable {}
    }
}

impl Entity for Counter {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        head_key(&self.name)
    }
}

entity! {
    CounterShard = "CounterShard" {
        fixed {
            name: CounterName,
            /// The number of the shard, from 0.
            shard: u32,
            /// The sum of the additions to this shard.
            counted: u64,
        }
        mutable {}
    }
}

impl Entity for CounterShard {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        shard_key(&self.name, self.shard)
    }
}

/// Returns whether a name is reserved. The invoice counter already has the key that a counter with
/// this name would have.
#[must_use]
pub fn is_reserved(name: &CounterName) -> bool {
    name.as_str() == crate::invoice::COUNTER_NAME
}

fn head_key(name: &CounterName) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("COUNTER", &[name])?, sk: SortKey::new("COUNTER")? })
}

fn shard_key(name: &CounterName, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("COUNTER", &[name, &shard])?, sk: SortKey::new("SHARD")? })
}

/// Returns the counter of which a partition is a shard. `partition` is the partition's key. Returns
/// `None` for every other partition. The partition of a counter's head also gives `None`, because a
/// split does not relieve the head.
#[must_use]
pub fn counter_of(partition: &str) -> Option<CounterName> {
    let parts = encoding::split(partition)?;
    let [_, name, shard] = parts.as_slice() else { return None };
    let (name, shard) = (CounterName::new(name.as_str()).ok()?, shard.parse::<u32>().ok()?);
    // This excludes other entities and other spellings: a key made of the name and the number must
    // equal the partition's key.
    let key = shard_key(&name, shard).ok()?;
    (shard < MAX_SHARDS && key.pk.as_str() == partition && !is_reserved(&name)).then_some(name)
}

/// Returns the number of shards of a counter with this head. A counter without a head has one
/// shard.
#[must_use]
pub fn shards(head: Option<&Counter>) -> u32 {
    head.map_or(1, |head| head.shards.clamp(1, MAX_SHARDS))
}

patterns! {
    HEAD {
        id: "counters.head",
        purpose: "Read a counter's number of shards, before an addition or a split",
        request: GetItem,
        key: "PK = COUNTER#<name>, SK = COUNTER",
        returns: "the number of shards; an outdated number works too",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    ADD {
        id: "counters.add",
        purpose: "Add to a counter",
        request: TransactWriteItems,
        key: "PK = COUNTER#<name>#<shard>, SK = SHARD; PK = IDEMPOTENCY#<caller>#<key>, SK = \
            IDEMPOTENCY where there is a key",
        requires: "ADD to a random shard, once per client token; the idempotency key is free",
        callers: "any",
    }
    SPLIT {
        id: "counters.split",
        purpose: "Double a counter's number of shards",
        request: UpdateItem,
        key: "PK = COUNTER#<name>, SK = COUNTER",
        requires: "the number of shards is unchanged; if conflicts caused the split, the last \
            split is not recent; if throttling caused it, the last split is before the throttled \
            minute",
        callers: "any",
    }
    READ {
        id: "counters.read",
        purpose: "Read a counter",
        request: BatchGetItem,
        key: "PK = COUNTER#<name>, SK = COUNTER; PK = COUNTER#<name>#<shard>, SK = SHARD for the \
            first shard, then for the other shards",
        returns: "head and shards",
        consistency: Consistency::Strong("the sum includes every addition that was acknowledged \
            before the request"),
        callers: "staff",
    }
}

/// An action of an addition to a counter. A refusal names the action whose condition failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterAction {
    /// The shard. Its write has no condition, so it is never refused.
    Shard,
    /// The idempotency key is in use.
    Idempotency,
}

pub fn head(name: &CounterName) -> Result<Get<Stored<Counter>>, KeyError> {
    Ok(Get::new(&HEAD, head_key(name)?))
}

/// Adds to a shard, and creates the shard if it is missing.
pub fn add(
    name: &CounterName,
    shard: u32,
    amount: u32,
    claim: Option<Guarded>,
    at: Instant,
) -> Result<Transaction<CounterAction>, EncodeError> {
    let change = Change::<CounterShard>::visible(at)
        .or_create(&Born::counter(), at)
        .set("name", name)?
        .set("shard", shard)?
        .add("counted", i64::from(amount));
    Ok(Transaction::new(&ADD)
        .action(CounterAction::Shard, Guarded::modify(shard_key(name, shard)?, change))
        .optional(CounterAction::Idempotency, claim))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Staff requested the split.
    Asked,
    /// Additions conflicted. Many writers notice that at the same time, so conflicts cause at most
    /// one split in [`PAUSE_SECONDS`].
    Hot,
    /// The table throttled the counter in the minute that begins at this instant.
    ///
    /// A minute that began before the last split says nothing about the current shards. So each
    /// minute causes at most one split, however often it is reported.
    Throttled(Instant),
}

/// Doubles the number of shards, if it is still the number that the caller has read. Returns the
/// new head, or `None` if the counter already has [`MAX_SHARDS`].
pub fn split(
    name: &CounterName,
    seen: Option<&Stored<Counter>>,
    reason: Reason,
    at: Instant,
) -> Result<Option<Single<Stored<Counter>>>, EncodeError> {
    let before = shards(seen.map(|seen| &seen.data));
    if before >= MAX_SHARDS {
        return Ok(None);
    }
    let unchanged = match seen {
        None => Condition::NotExists,
        Some(_) => Condition::Is("shards", number(before)),
    };
    // Only a split changes the head, so `updated_at` is the time of the last split. A counter
    // without a head was never split.
    let condition = match (reason, seen) {
        (Reason::Hot, Some(_)) => {
            unchanged.and(Condition::Below("updated_at", first_alive(at.plus_seconds(-PAUSE_SECONDS))))
        }
        (Reason::Throttled(minute), Some(_)) => unchanged.and(Condition::Below("updated_at", first_alive(minute))),
        _ => unchanged,
    };
    let change = Change::<Counter>::visible(at)
        .or_create(&Born::counter(), at)
        .set("name", name)?
        .set("shards", (before * 2).min(MAX_SHARDS))?;
    Ok(Some(Single::new(&SPLIT, Guarded::update(head_key(name)?, change, condition))))
}

one_of! {
    pub enum CounterItem { Counter CounterShard }
}

/// Reads the head and the first shard. A counter that was never split has no other items.
pub fn read(name: &CounterName) -> Result<BatchGet<CounterItem>, KeyError> {
    Ok(BatchGet::new(&READ, vec![head_key(name)?, shard_key(name, 0)?]))
}

/// Reads all shards except the first, up to the number in the head. Returns `None` if the counter
/// has only one shard.
pub fn rest(head: &Counter) -> Result<Option<BatchGet<CounterItem>>, KeyError> {
    let keys: Vec<Key> = (1..shards(Some(head))).map(|shard| shard_key(&head.name, shard)).collect::<Result<_, _>>()?;
    Ok((!keys.is_empty()).then(|| BatchGet::new(&READ, keys)))
}
