//! Mail that was sent, or is being sent: one item an event, so that an event that comes again is not told twice.
//!
//! A message is claimed, sent, and recorded as sent. The claim is a lease: an attempt that was never heard of again holds it until it runs out,
//! and another may try then. The items outlive every path by which an event can come again ([`LIFETIME_SECONDS`]).

use serde::{Deserialize, Serialize};

use crate::change::{Change, entity};
use crate::customer;
use crate::entity::AnyEntity;
use crate::expression::{Condition, value};
use crate::id::{CustomerId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::order;
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Guarded, Single};

/// How long it is remembered that an event was told: longer than a queue keeps a message (14 days) and a quarantine a record (30 days).
pub const LIFETIME_SECONDS: i64 = 35 * 24 * 60 * 60;

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailState {
    /// An attempt is under way, or ended without a word.
    Sending,
    /// The mail service has taken it.
    Sent,
    /// The mail service refuses it for good.
    Rejected,
}

entity! {
    /// One message, told by its event. Neither what it says nor to whom.
    Mail = "Mail" {
        keyed {
            /// The event.
            event_id: String,
            /// Also the time to live.
            expires_at: Instant,
        }
        free {
            /// How far it has come.
            state: MailState,
            /// Until when the attempt under way keeps others away.
            lease_until: Instant,
        }
    }
}

impl Entity for Mail {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.event_id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

fn key(event: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: PartitionKey::of("MAIL", &[&event])?, sk: SortKey::new("MAIL")? })
}

patterns! {
    PREPARE = "mail.prepare": BatchGetItem, "PK = CUSTOMER#<id>, SK = PROFILE, ORDER#<order>" => "the customer, the customer's copy of the order", Consistency::Strong("who was erased gets no mail, and what was just shipped has its tracking number"), "system", "Read whom to tell about an order, and where it stands", ["notifier"];
    CLAIM = "mail.claim": PutItem, "PK = MAIL#<event>, SK = MAIL" => "absent, or unfinished and its lease has run out", Consistency::Write, "system", "Claim the right to send the message of an event", ["notifier"];
    SETTLE = "mail.settle": UpdateItem, "PK = MAIL#<event>, SK = MAIL" => "unfinished", Consistency::Write, "system", "Record that a message was sent, or never will be", ["notifier"];
    RELEASE = "mail.release": UpdateItem, "PK = MAIL#<event>, SK = MAIL" => "unfinished, and the lease is this attempt's", Consistency::Write, "system", "Give back a claim whose message was certainly not sent", ["notifier"];
}

/// The customer and his copy of the order, in this order.
///
/// # Errors
/// [`KeyError`].
pub fn prepare(customer: &CustomerId, order: &OrderId) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![customer::key(customer)?, order::copy_key(customer, order)?]))
}

/// Claims the message for an attempt that has ended when `mail.lease_until` has come.
///
/// # Errors
/// [`EncodeError`].
pub fn claim(mail: &Stored<Mail>, now: Instant) -> Result<Single<()>, EncodeError> {
    let abandoned = unfinished()?.and(Condition::Below("lease_until", value(now)?));
    Ok(Single::new(&CLAIM, Guarded::put(mail, Condition::NotExists.or(abandoned))?))
}

/// Records how the message ended. Refused when that is known already.
///
/// # Errors
/// [`EncodeError`].
pub fn settle(event: &str, state: MailState, now: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<Mail>::visible(now).state(&state)?;
    Ok(Single::new(&SETTLE, Guarded::update(key(event)?, change, unfinished()?)))
}

/// Ends a lease early, so that the next attempt need not wait for it.
///
/// # Errors
/// [`EncodeError`].
pub fn release(mail: &Mail, now: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<Mail>::visible(now).lease_until(&Instant::MIN)?;
    let own = unfinished()?.and(Condition::Is("lease_until", value(mail.lease_until)?));
    Ok(Single::new(&RELEASE, Guarded::update(key(&mail.event_id)?, change, own)))
}

fn unfinished() -> Result<Condition, EncodeError> {
    Ok(Condition::Is("state", value(MailState::Sending)?))
}
