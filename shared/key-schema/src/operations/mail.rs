//! Mail records: one item per event, so that a repeated delivery of the event sends no second
//! message.
//!
//! A consumer claims the message, sends it and records the result. The claim is a lease. If an
//! attempt ends without a result, its lease blocks other attempts until the lease expires. The
//! record is kept until its event can no longer be delivered again ([`LIFETIME_SECONDS`]).
//!
//! The transaction that first claims a message also counts it as a mail to the recipient. A later
//! attempt does not count the message again. DynamoDB refuses each claim if mail to the recipient
//! is stopped ([`crate::recipient`]).

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::customer::{self, Customer};
use crate::expression::{Condition, value};
use crate::id::{CustomerId, OrderId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey};
use crate::order::addresses::{self, OrderAddresses};
use crate::order::{self, CustomerOrder};
use crate::pattern::Consistency;
use crate::recipient::{self, RecipientHash};
use crate::request::{BatchGet, Guarded, Single, Transaction};

/// The lifetime of a mail record. It is longer than the times for which a queue keeps a message (14
/// days) and the quarantine keeps a record (30 days).
pub const LIFETIME_SECONDS: i64 = 35 * 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailState {
    /// An attempt is in progress, or it ended without a result.
    Sending,
    /// The mail service accepted the message.
    Sent,
    /// The mail service rejected the message permanently.
    Rejected,
}

entity! {
    /// The mail record of one event. It stores neither the message's text nor the recipient.
    Mail = "Mail" {
        fixed {
            event_id: String,
            /// The instant at which the record expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable by MailChanges {
            state: MailState,
            /// The end of the current attempt's lease. Until then no other attempt can claim the
            /// message.
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
    PREPARE {
        id: "mail.prepare",
        purpose: "Read the customer for a message, and the order's state after a change",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, or SHIPTO#<order> of a guest, and, after a change, ORDER#<order>",
        returns: "the customer or the guest, the customer's copy of the order",
        consistency: Consistency::Strong("an erased customer gets no mail, and the mail about a \
            new shipment has the tracking number"),
        callers: "system",
    }
    CLAIM {
        id: "mail.claim",
        purpose: "Claim the right to send the message of an event, and count it for the recipient",
        request: TransactWriteItems,
        key: "PK = MAIL#<event>, SK = MAIL; PK = RECIPIENT#<hash>, SK = DAY#<day>, STOP",
        requires: "the message is new; the recipient is below the limits of the day; mail to the \
            recipient is not stopped",
        callers: "system",
    }
    RECLAIM {
        id: "mail.reclaim",
        purpose: "Claim the message of an abandoned attempt",
        request: TransactWriteItems,
        key: "PK = MAIL#<event>, SK = MAIL; PK = RECIPIENT#<hash>, SK = STOP",
        requires: "the message is unfinished and its lease has expired; mail to the recipient is \
            not stopped",
        callers: "system",
    }
    SETTLE {
        id: "mail.settle",
        purpose: "Record that a message was sent or permanently rejected",
        request: UpdateItem,
        key: "PK = MAIL#<event>, SK = MAIL",
        requires: "the message is unfinished",
        callers: "system",
    }
    RELEASE {
        id: "mail.release",
        purpose: "Release the claim of a message that was not sent",
        request: UpdateItem,
        key: "PK = MAIL#<event>, SK = MAIL",
        requires: "the message is unfinished, and this attempt has the lease",
        callers: "system",
    }
}

one_of! {
    pub enum PreparedItem { Customer CustomerOrder OrderAddresses }
}

/// Reads the customer, then the customer's copy of the order, if the message needs it. [`of_guest`]
/// reads the guest instead of the customer.
pub fn prepare(customer: &CustomerId, order: Option<&OrderId>) -> Result<BatchGet<PreparedItem>, KeyError> {
    let copy = order.map(|order| order::copy_key(customer, order)).transpose()?;
    Ok(BatchGet::new(&PREPARE, [customer::key(customer)?].into_iter().chain(copy).collect()))
}

/// Reads the guest who placed an order, then the copy of the order.
pub fn of_guest(guest: &CustomerId, order: &OrderId) -> Result<BatchGet<PreparedItem>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![addresses::addresses_key(guest, order)?, order::copy_key(guest, order)?]))
}

/// An action of the transaction that claims a message. A refusal names the action whose condition
/// failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailAction {
    /// Another attempt has claimed the message, or its final state is recorded.
    Claim,
    /// The recipient has received the maximum number of mails of the day.
    Limit,
    /// Mail to the recipient is stopped.
    Stop,
}

/// Claims a new message for an attempt, and counts it as a mail to the recipient on the day of
/// `now`. The lease of the attempt ends at `mail.lease_until`.
pub fn claim(
    mail: &Stored<Mail>,
    to: &RecipientHash,
    has_code: bool,
    now: Instant,
) -> Result<Transaction<MailAction>, EncodeError> {
    Ok(Transaction::new(&CLAIM)
        .action(MailAction::Claim, Guarded::put(mail, Condition::NotExists)?)
        .action(MailAction::Limit, recipient::count(to, has_code, now)?)
        .action(MailAction::Stop, recipient::not_stopped(to)?))
}

/// Claims a message again after its lease has expired. The first claim has already counted the
/// message.
pub fn reclaim(mail: &Stored<Mail>, to: &RecipientHash, now: Instant) -> Result<Transaction<MailAction>, EncodeError> {
    let abandoned = unfinished()?.and(Condition::Below("lease_until", value(now)?));
    Ok(Transaction::new(&RECLAIM)
        .action(MailAction::Claim, Guarded::put(mail, abandoned)?)
        .action(MailAction::Stop, recipient::not_stopped(to)?))
}

/// Records the final state of a message. DynamoDB refuses the write if a final state is recorded
/// already.
pub fn settle(event: &str, state: MailState, now: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<Mail>::visible(now).state(&state)?;
    Ok(Single::new(&SETTLE, Guarded::update(key(event)?, change, unfinished()?)))
}

/// Ends a lease early, so that the next attempt does not wait until the lease expires.
pub fn release(mail: &Mail, now: Instant) -> Result<Single<()>, EncodeError> {
    let change = Change::<Mail>::visible(now).lease_until(&Instant::MIN)?;
    let own = unfinished()?.and(Condition::Is("lease_until", value(mail.lease_until)?));
    Ok(Single::new(&RELEASE, Guarded::update(key(&mail.event_id)?, change, own)))
}

fn unfinished() -> Result<Condition, EncodeError> {
    Ok(Condition::Is("state", value(MailState::Sending)?))
}
