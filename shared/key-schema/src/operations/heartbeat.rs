//! The heartbeat: an item that changes every minute, so that an alarm notices a stream without
//! readers.
//!
//! A disabled event source mapping invokes no function, and causes no error and no metric. In an
//! hour without writes, that looks normal. So the janitor writes this item in each round. Every
//! mapping of the stream delivers the item's record, and each consumer then emits a metric. An
//! alarm fires when the metric is missing.

use item_model::prelude::*;

use crate::change::Change;
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::request::{Guarded, Single};

entity! {
    /// The heartbeat. Its `updated_at` is the time of the last write.
    Heartbeat = "Heartbeat" {
        fixed {}
        mutable by HeartbeatChanges {
            /// The time of the janitor's round that last wrote the heartbeat.
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
    BEAT {
        id: "heartbeat.beat",
        purpose: "Write an item whose stream record makes each consumer emit a metric",
        request: UpdateItem,
        key: "PK = HEARTBEAT, SK = HEARTBEAT",
        requires: "no condition; SET round",
        callers: "system",
    }
}

pub fn beat(at: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<Heartbeat>::visible(at).or_create(&Born::counter(), at).round(&at)?;
    Ok(Single::new(&BEAT, Guarded::modify(key()?, change)))
}
