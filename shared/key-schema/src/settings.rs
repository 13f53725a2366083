//! The shop's settings: one thing that everybody reads.
//!
//! One item would put all its readers on one partition. So there are ten of it ([`COPIES`]), each in a partition of its own, and a reader takes one at
//! random. All are written in one transaction under the same condition, so that they never differ, and there are all of them or none.
//!
//! What the values are is the clients' business: they are kept as the JSON that was given, so that no number loses a digit on the way.

use serde::{Deserialize, Serialize};

use crate::change::{Change, entity};
use crate::expression::Condition;
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Get, Guarded, Transaction};

/// How many copies there are.
pub const COPIES: u64 = 10;
/// The most bytes that all values have together, as they were written.
pub const MAX_BYTES: usize = 32 * 1024;

entity! {
    /// One copy of the settings.
    Settings = "Settings" {
        keyed {
            /// Which one, from 0.
            copy: u64,
        }
        free {
            /// What everybody may see: a JSON object.
            values: String,
            /// What only staff may see: a JSON object.
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

/// What the settings are, whichever copy says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Counts the changes; 0 before the first.
    pub version: u64,
    /// What everybody may see: a JSON object.
    pub values: String,
    /// What only staff may see: a JSON object.
    pub private: String,
}

impl Default for Known {
    /// Nothing is set yet.
    fn default() -> Self {
        Self { version: 0, values: "{}".to_owned(), private: "{}".to_owned() }
    }
}

impl From<Stored<Settings>> for Known {
    fn from(Stored { meta, data }: Stored<Settings>) -> Self {
        Self { version: meta.version, values: data.values, private: data.private }
    }
}

patterns! {
    READ = "settings.read": GetItem, "PK = SETTINGS#<n>, SK = SETTINGS, n at random" => "the settings, unless nothing was set yet", Consistency::Strong("what is kept in memory for a time must not be older than that time when it gets there"), "any", "Read the settings", ["GET /v1/settings", "GET /v1/settings/private"];
    CREATE = "settings.create": TransactWriteItems, "PK = SETTINGS#<n>, SK = SETTINGS, for all 10" => "none exists", Consistency::Write, "staff", "Set the first settings", ["PUT /v1/settings"];
    CHANGE = "settings.change": TransactWriteItems, "PK = SETTINGS#<n>, SK = SETTINGS, for all 10" => "version = the If-Match", Consistency::Write, "staff", "Replace the settings", ["PUT /v1/settings"];
}

/// Reads the settings from the copy that a random number stands for.
///
/// # Errors
/// [`KeyError`].
pub fn read(random: u64) -> Result<Get<Stored<Settings>>, KeyError> {
    Ok(Get::new(&READ, key(random % COPIES)?))
}

/// Writes all copies for the first time. Each action's label is its copy.
///
/// # Errors
/// [`EncodeError`].
pub fn create(values: &String, private: &String, born: &Born, at: Instant) -> Result<Transaction<u64>, EncodeError> {
    let change = |copy| Change::<Settings>::visible(at).or_create(born, at).set("copy", copy);
    (0..COPIES).try_fold(Transaction::new(&CREATE), |transaction, copy| {
        let change = change(copy)?.values(values)?.private(private)?;
        Ok(transaction.action(copy, Guarded::update(key(copy)?, change, Condition::NotExists)))
    })
}

/// Replaces all copies, which are at `version`. Each action's label is its copy.
///
/// # Errors
/// [`EncodeError`].
pub fn change(values: &String, private: &String, version: u64, at: Instant) -> Result<Transaction<u64>, EncodeError> {
    (0..COPIES).try_fold(Transaction::new(&CHANGE), |transaction, copy| {
        let change = Change::<Settings>::visible(at).values(values)?.private(private)?;
        Ok(transaction.action(copy, Guarded::update(key(copy)?, change, Condition::version(version))))
    })
}
