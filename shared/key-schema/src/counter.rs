//! Counters that many add to: how often a product was looked at, `product:<id>`.
//!
//! A counter is the sum of its shards. They lie in partitions of their own, because a partition takes 1,000 write units a second however many items
//! it has. A counter begins with one shard; when that is too hot, the number is doubled, up to [`MAX_SHARDS`]. The number stands on the counter's
//! head, which is made when the number first changes: until then there is one shard.
//!
//! # Why a sum is right before, during and after a split
//!
//! The number of shards only grows, and every shard of a smaller number is one of a larger. Whoever adds picks one of as many as it has last seen. A
//! number that is out of date is smaller, so the shard is one that every reader reads: nothing has to be moved, and a split is one write of the head.
//! A reader reads the head strongly, and each shard that the head names strongly after it began itself ([`read`], [`rest`]). So its number is at least
//! that of anybody who was answered before, and what they have added is in the sum.
//!
//! # Why nothing is counted twice
//!
//! Adding is a transaction, for its token: an attempt whose answer was lost is the same attempt when it is sent again. Only one that was certainly
//! cancelled is tried on another shard. Where the client has given an Idempotency-Key, the record of the key is written in the same transaction.

use crate::change::{Change, entity};
use crate::encoding;
use crate::entity::AnyEntity;
use crate::expression::{Condition, first_alive, number};
use crate::id::{Born, CounterName};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Get, Guarded, Single, Transaction, Write};

/// The most shards: some 16,000 additions a second, because one in a transaction costs two write units.
pub const MAX_SHARDS: u32 = 64;
/// The most that is added at once.
pub const MAX_ADD: u32 = 1000;
/// How long a counter that was split because it was hot is left alone: the next addition that is in the way of others then sees what the split was
/// good for. From one shard to all of them it is a minute.
pub const PAUSE_SECONDS: i64 = 10;
/// So many refused requests of a counter in a minute are heat; fewer are absorbed by the retries of those who were refused.
pub const THROTTLED_A_MINUTE: f64 = 10.0;

entity! {
    /// A counter's head.
    Counter = "Counter" {
        keyed {
            /// What it counts.
            name: CounterName,
            /// How many shards it has: a power of two, never less than it was.
            shards: u32,
        }
        free {}
    }
}

impl Entity for Counter {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        head_key(&self.name)
    }
}

entity! {
    /// A part of what was counted.
    CounterShard = "CounterShard" {
        keyed {
            /// Of which counter.
            name: CounterName,
            /// Which of its shards, from 0.
            shard: u32,
            /// What was added to this shard.
            counted: u64,
        }
        free {}
    }
}

impl Entity for CounterShard {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        shard_key(&self.name, self.shard)
    }
}

fn head_key(name: &CounterName) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("COUNTER", &[name])?, sk: SortKey::new("COUNTER")? })
}

fn shard_key(name: &CounterName, shard: u32) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("COUNTER", &[name, &shard])?, sk: SortKey::new("SHARD")? })
}

/// Of which counter a partition is a shard, by its key; `None` for a partition of anything else. A counter's head is none: a split does not make it
/// any cooler.
#[must_use]
pub fn counter_of(partition: &str) -> Option<CounterName> {
    let parts = encoding::split(partition)?;
    let [_, name, shard] = parts.as_slice() else { return None };
    let (name, shard) = (CounterName::stored(name.as_str()).ok()?, shard.parse::<u32>().ok()?);
    // The same key again, so that no other entity's and no other spelling passes.
    let key = shard_key(&name, shard).ok()?;
    (shard < MAX_SHARDS && key.pk.as_str() == partition).then_some(name)
}

/// How many shards a counter with this head has; a counter without one has one.
#[must_use]
pub fn shards(head: Option<&Counter>) -> u32 {
    head.map_or(1, |head| head.shards.clamp(1, MAX_SHARDS))
}

patterns! {
    HEAD = "counters.head": GetItem, "PK = COUNTER#<name>, SK = COUNTER" => "the number of shards; one that is out of date is as good", Consistency::Eventual, "any", "Read how many shards a counter has, to add to one of them or to split it", ["POST /v1/counters/{name}", "POST /v1/counters/{name}/split", "splitter"];
    ADD = "counters.add": TransactWriteItems, "PK = COUNTER#<name>#<shard>, SK = SHARD; PK = IDEMPOTENCY#<caller>#<key>, SK = IDEMPOTENCY where there is a key" => "ADD to one of the shards at random, once for the token; the key is free", Consistency::Write, "any", "Add to a counter", ["POST /v1/counters/{name}"];
    SPLIT = "counters.split": UpdateItem, "PK = COUNTER#<name>, SK = COUNTER" => "the number of shards is as it was read; a hot counter was not split just now, a throttled one not since", Consistency::Write, "any", "Double the number of a counter's shards", ["POST /v1/counters/{name}/split", "POST /v1/counters/{name}", "splitter"];
    READ = "counters.read": BatchGetItem, "PK = COUNTER#<name>, SK = COUNTER; PK = COUNTER#<name>#<shard>, SK = SHARD for the first shard, then for the others" => "head and shards", Consistency::Strong("every addition that was answered before is in the sum"), "staff", "Read a counter", ["GET /v1/counters/{name}"];
}

/// Which part of an addition was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The shard, which no condition guards.
    Shard,
    /// The idempotency key is in use.
    Idempotency,
}

/// Reads the head.
///
/// # Errors
/// [`KeyError`].
pub fn head(name: &CounterName) -> Result<Get<Stored<Counter>>, KeyError> {
    Ok(Get::new(&HEAD, head_key(name)?))
}

/// Adds to a shard, which it makes if it is not there.
///
/// # Errors
/// [`EncodeError`].
pub fn add(
    name: &CounterName,
    shard: u32,
    amount: u32,
    claim: Option<Guarded>,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let change = Change::<CounterShard>::visible(at)
        .or_create(&Born::counter(), at)
        .set("name", name)?
        .set("shard", shard)?
        .add("counted", i64::from(amount));
    let write = Write::Update { key: shard_key(name, shard)?, steps: change.into_steps() };
    let transaction = Transaction::new(&ADD).action(Part::Shard, Guarded { write, condition: None });
    Ok(claim.into_iter().fold(transaction, |transaction, claim| transaction.action(Part::Idempotency, claim)))
}

/// Why a counter is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Staff wants it.
    Asked,
    /// Additions were in each other's way. Many see that at the same time, so it counts once in [`PAUSE_SECONDS`].
    Hot,
    /// The table has throttled the counter in the minute that begins here. A split is good for what comes after it: a minute that began before the
    /// last one says nothing of the shards that there are now, and so each minute splits once at the most, however often it is reported.
    Throttled(Instant),
}

/// Doubles the number of shards, as long as it is what the caller has seen; gives the head back. `None` when there are as many as there can be.
///
/// # Errors
/// [`EncodeError`].
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
    // The head changes with a split alone. Without one there was no split yet.
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

/// Reads the head and the first shard, which is all there is of a counter that was never split.
///
/// # Errors
/// [`KeyError`].
pub fn read(name: &CounterName) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&READ, vec![head_key(name)?, shard_key(name, 0)?]))
}

/// Reads the other shards that the head names; `None` when there are none.
///
/// # Errors
/// [`KeyError`].
pub fn rest(head: &Counter) -> Result<Option<BatchGet<AnyEntity>>, KeyError> {
    let keys: Vec<Key> = (1..shards(Some(head))).map(|shard| shard_key(&head.name, shard)).collect::<Result<_, _>>()?;
    Ok((!keys.is_empty()).then(|| BatchGet::new(&READ, keys)))
}
