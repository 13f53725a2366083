//! One item that changes every minute, so that a stream that nobody reads is noticed.
//!
//! A disabled mapping invokes nobody: no error, no lag, no metric. In a quiet hour that looks as if
//! nothing had happened. So the janitor writes this item in each round, both mappings pass it on, and
//! each consumer answers with a metric. An alarm fires where the metric is missing.

use crate::change::{Change, entity};
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Single, Write};

entity! {
    /// The heartbeat. It has been written when `updated_at` says.
    Heartbeat = "Heartbeat" {
        keyed {}
        free {
            /// The janitor's round that wrote it last, by its time.
            round: Instant,
        }
    }
}

impl Entity for Heartbeat {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key()
    }
}

fn key() -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::new("HEARTBEAT")?, sk: SortKey::new("HEARTBEAT")? })
}

patterns! {
    BEAT = "heartbeat.beat": UpdateItem, "PK = HEARTBEAT, SK = HEARTBEAT" => "always; SET round", Consistency::Write, "system", "Give the stream's consumers something to answer", ["janitor"];
}

/// Writes the heartbeat of a round.
///
/// # Errors
/// [`EncodeError`].
pub fn beat(at: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<Heartbeat>::visible(at).or_create(&Born::counter(), at).round(&at)?;
    let write = Write::Update { key: key()?, steps: change.into_steps() };
    Ok(Single::new(&BEAT, Guarded { write, condition: None }))
}
