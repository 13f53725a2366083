//! The webhooks of the payment provider that were received.
//!
//! The provider delivers an event at least once, and in any sequence. The first delivery writes an
//! item, and the stream passes it on. An event is a hint: its reader reads the provider's present
//! state of the payment.

use item_model::prelude::*;

use crate::expression::Condition;
use crate::id::{Born, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::request::{Guarded, Single};

/// The lifetime of an event's item. Stripe delivers an event again for three days, and staff can
/// deliver it again by hand for 15 days (<https://docs.stripe.com/webhooks#retries>).
pub const LIFETIME_SECONDS: i64 = 16 * 24 * 60 * 60;

entity! {
    ProviderEvent = "ProviderEvent" {
        fixed {
            event_id: String,
            /// The provider's id of the payment that the event is about.
            intent: String,
            /// The order of the payment, as the event has it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            order_id: Option<OrderId>,
            /// The instant at which the item expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable {}
    }
}

impl Entity for ProviderEvent {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        let pk = PartitionKey::of("PROVIDEREVENT", &[&self.event_id])?;
        Ok(Key { pk, sk: SortKey::new("PROVIDEREVENT")? })
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

patterns! {
    RECEIVE {
        id: "payments.receive-event",
        purpose: "Remember an event of the payment provider, only once",
        request: PutItem,
        key: "PK = PROVIDEREVENT#<event>, SK = PROVIDEREVENT",
        requires: "the event is new",
        callers: "any",
    }
}

/// Writes an event. DynamoDB refuses the write if the event was received before.
pub fn receive(
    event_id: String,
    intent: String,
    order_id: Option<OrderId>,
    born: Born,
    at: Instant,
) -> Result<Single<()>, EncodeError> {
    let event = ProviderEvent { event_id, intent, order_id, expires_at: at.plus_seconds(LIFETIME_SECONDS) };
    Ok(Single::new(&RECEIVE, Guarded::put(&Stored::new(event, born, at), Condition::NotExists)?))
}
