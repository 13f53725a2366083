//! The settings of the deployment, which every client reads.
//!
//! Every client reads the settings, and the partition of one item could not serve all these reads.
//! So there are ten copies ([`COPIES`]), each in a separate partition, and a reader picks one at
//! random. One transaction writes all copies under the same condition. So the copies never differ,
//! and either all exist or none does.
//!
//! The Lambda functions interpret only the public values `maintenance` and `orders`. Clients
//! interpret all values. The table stores the JSON text as it was sent, so that no number loses a
//! digit.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::Condition;
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::lists::Lists;
use crate::pattern::Consistency;
use crate::request::{Get, Guarded, Transaction};

pub const COPIES: u64 = 10;
/// The maximum number of bytes of all values together, as they were sent.
pub const MAX_BYTES: usize = 32 * 1024;

entity! {
    Settings = "Settings" {
        fixed {
            /// The number of the copy, from 0.
            copy: u64,
            /// The layouts of the sharded lists. Only [`arrange`] changes them.
            #[serde(skip_serializing_if = "Lists::is_empty", default)]
            lists: Lists,
        }
        mutable by SettingsChanges {
            /// The public values, a JSON object.
            values: String,
            /// The values that only staff can read, a JSON object.
            private: String,
        }
    }
}

impl Entity for Settings {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(self.copy)
    }
}

fn key(copy: u64) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("SETTINGS", &[&copy])?, sk: SortKey::new("SETTINGS")? })
}

/// The settings, independent of the copy from which they were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The number of changes, 0 before the first change.
    pub version: u64,
    /// The public values, a JSON object.
    pub values: String,
    /// The values that only staff can read, a JSON object.
    pub private: String,
    /// The layouts of the sharded lists.
    pub lists: Lists,
}

impl Default for Known {
    fn default() -> Self {
        Self { version: 0, values: "{}".to_owned(), private: "{}".to_owned(), lists: Lists::default() }
    }
}

impl From<Stored<Settings>> for Known {
    fn from(Stored { meta, data }: Stored<Settings>) -> Self {
        Self { version: meta.version, values: data.values, private: data.private, lists: data.lists }
    }
}

patterns! {
    READ {
        id: "settings.read",
        purpose: "Read the settings",
        request: GetItem,
        key: "PK = SETTINGS#<n>, SK = SETTINGS, n at random",
        returns: "the settings, if any were set",
        consistency: Consistency::Strong("a value must be current when it is cached, so that it \
            never gets older than the cache's lifetime"),
        callers: "any",
    }
    CREATE {
        id: "settings.create",
        purpose: "Set the first settings",
        request: TransactWriteItems,
        key: "PK = SETTINGS#<n>, SK = SETTINGS, for all 10",
        requires: "no copy exists",
        callers: "staff",
    }
    CHANGE {
        id: "settings.change",
        purpose: "Replace the settings",
        request: TransactWriteItems,
        key: "PK = SETTINGS#<n>, SK = SETTINGS, for all 10",
        requires: "version = the If-Match",
        callers: "staff",
    }
    ARRANGE {
        id: "settings.arrange",
        purpose: "Change the number of shards of a list",
        request: TransactWriteItems,
        key: "PK = SETTINGS#<n>, SK = SETTINGS, for all 10",
        requires: "version = the version that was read; if there were no settings to read, no copy \
            exists",
        callers: "system",
    }
}

/// Reads the settings from one copy, which the random number selects.
pub fn read(random: u64) -> Result<Get<Stored<Settings>>, KeyError> {
    Ok(Get::new(&READ, key(random % COPIES)?))
}

/// Creates all copies. Each action's label is the number of its copy.
pub fn create(values: &String, private: &String, born: &Born, at: Instant) -> Result<Transaction<u64>, EncodeError> {
    let change = |copy| Change::<Settings>::visible(at).or_create(born, at).set("copy", copy);
    (0..COPIES).try_fold(Transaction::new(&CREATE), |transaction, copy| {
        let change = change(copy)?.values(values)?.private(private)?;
        Ok(transaction.action(copy, Guarded::update(key(copy)?, change, Condition::NotExists)))
    })
}

/// Replaces all copies, which must be at `version`. Each action's label is the number of its copy.
pub fn change(values: &String, private: &String, version: u64, at: Instant) -> Result<Transaction<u64>, EncodeError> {
    (0..COPIES).try_fold(Transaction::new(&CHANGE), |transaction, copy| {
        let change = Change::<Settings>::visible(at).values(values)?.private(private)?;
        Ok(transaction.action(copy, Guarded::update(key(copy)?, change, Condition::version(version))))
    })
}

/// Sets the layouts of the sharded lists in all copies, which must be unchanged since `known` was
/// read. Creates the copies with empty values if nothing was set before. Each action's label is the
/// number of its copy.
pub fn arrange(known: &Known, lists: &Lists, born: &Born, at: Instant) -> Result<Transaction<u64>, EncodeError> {
    let lists = (!lists.is_empty()).then_some(lists);
    (0..COPIES).try_fold(Transaction::new(&ARRANGE), |transaction, copy| {
        let change = Change::<Settings>::visible(at).set("lists", lists)?;
        let (change, condition) = if known.version == 0 {
            let change =
                change.or_create(born, at).set("copy", copy)?.values(&known.values)?.private(&known.private)?;
            (change, Condition::NotExists)
        } else {
            (change, Condition::version(known.version))
        };
        Ok(transaction.action(copy, Guarded::update(key(copy)?, change, condition)))
    })
}
