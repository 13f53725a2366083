//! Records about the recipients of mail. A [`MailDay`] counts the mails of a day to an address. A
//! [`MailStop`] stops all further mail to an address.
//!
//! The keys hold a hash of the folded address instead of the address. An erased customer's address
//! is therefore not in these items, and a complaint stays effective after the erasure.
//!
//! A permanent bounce or a complaint creates a [`MailStop`]. It has no time to live: only staff can
//! remove it.

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::expression::Condition;
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, PartitionKey, SortKey, hash};
use crate::request::{Guarded, Single};
use crate::text::Email;

/// The maximum number of mails to one address on one UTC day.
pub const MAX_MAILS: u64 = 50;
/// The maximum number of mails with codes to one address on one UTC day. They also count toward
/// [`MAX_MAILS`]. Any customer can request a code for any address, so mails with codes must leave
/// room for other mail.
pub const MAX_CODES: u64 = 10;
/// The lifetime of a day's count, from the last mail or request.
const LIFETIME_SECONDS: i64 = 2 * 24 * 60 * 60;

/// The hash of a folded address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientHash(String);

impl RecipientHash {
    /// Returns the hash of an address. All spellings of the address have the same hash.
    #[must_use]
    pub fn of(email: &Email) -> Self {
        Self(hash("mail recipient", &email.folded()))
    }

    /// Returns the hash under which the requests for codes to an address are counted.
    fn of_requests_for(email: &Email) -> Self {
        Self(hash("code requests for", &email.folded()))
    }

    fn partition(&self) -> Result<PartitionKey, KeyError> {
        PartitionKey::of("RECIPIENT", &[&self.0])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The recipient's server refuses mail to the address permanently.
    Bounce,
    /// The recipient has marked a mail as spam.
    Complaint,
}

entity! {
    MailDay = "MailDay" {
        fixed {
            recipient: RecipientHash,
            /// The UTC day.
            day: String,
            /// The instant at which the count expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable by MailDayChanges {
            mails: u64,
            /// The number of mails with codes. Requests for codes are counted in a separate item,
            /// under another hash of the address.
            codes: u64,
        }
    }
}

impl Entity for MailDay {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        day_key(&self.recipient, &self.day)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

entity! {
    /// The record that an address gets no more mail.
    MailStop = "MailStop" {
        fixed {
            recipient: RecipientHash,
        }
        mutable by MailStopChanges {
            reason: StopReason,
        }
    }
}

impl Entity for MailStop {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        stop_key(&self.recipient)
    }
}

fn day_key(recipient: &RecipientHash, day: &str) -> Result<Key, KeyError> {
    Ok(Key { pk: recipient.partition()?, sk: SortKey::new(crate::encoding::join("DAY", &[&day]))? })
}

fn stop_key(recipient: &RecipientHash) -> Result<Key, KeyError> {
    Ok(Key { pk: recipient.partition()?, sk: SortKey::new("STOP")? })
}

patterns! {
    STOP {
        id: "recipients.stop",
        purpose: "Stop mail to an address after a bounce or a complaint",
        request: PutItem,
        key: "PK = RECIPIENT#<hash of the address>, SK = STOP",
        requires: "mail to the address is not stopped yet",
        callers: "system",
    }
    LIFT {
        id: "recipients.lift",
        purpose: "Allow mail to an address again",
        request: DeleteItem,
        key: "PK = RECIPIENT#<hash of the address>, SK = STOP",
        requires: "no condition",
        callers: "staff",
    }
}

/// Stops mail to an address. DynamoDB refuses the write if mail to it is already stopped.
pub fn stop(recipient: &RecipientHash, reason: StopReason, at: Instant) -> Result<Single<()>, EncodeError> {
    let mark = Stored::new(MailStop { recipient: recipient.clone(), reason }, Born::counter(), at);
    Ok(Single::new(&STOP, Guarded::put(&mark, Condition::NotExists)?))
}

/// Allows mail to an address again.
pub fn lift(recipient: &RecipientHash) -> Result<Single<()>, KeyError> {
    Ok(Single::new(&LIFT, Guarded::remove(stop_key(recipient)?)))
}

pub(crate) fn not_stopped(recipient: &RecipientHash) -> Result<Guarded, KeyError> {
    Ok(Guarded::check(stop_key(recipient)?, Condition::NotExists))
}

/// Counts a mail to an address, as an action of a transaction. DynamoDB refuses the action if a
/// limit of the day is reached.
pub(crate) fn count(recipient: &RecipientHash, has_code: bool, at: Instant) -> Result<Guarded, EncodeError> {
    let all = Condition::count_below("mails", MAX_MAILS);
    let condition = if has_code { all.and(Condition::count_below("codes", MAX_CODES)) } else { all };
    count_on(recipient, (1, i64::from(has_code)), condition, at)
}

/// Counts a request for a code that verifies an address, as an action of a transaction. DynamoDB
/// refuses the action if the address already has [`MAX_CODES`] requests on the day.
pub(crate) fn count_request(email: &Email, at: Instant) -> Result<Guarded, EncodeError> {
    let of = RecipientHash::of_requests_for(email);
    count_on(&of, (0, 1), Condition::count_below("codes", MAX_CODES), at)
}

fn count_on(
    of: &RecipientHash,
    (mails, codes): (i64, i64),
    condition: Condition,
    at: Instant,
) -> Result<Guarded, EncodeError> {
    let day = at.day();
    let expires_at = at.plus_seconds(LIFETIME_SECONDS);
    let change = Change::<MailDay>::visible(at)
        .or_create(&Born::counter(), at)
        .set("recipient", of)?
        .set("day", &day)?
        .set("expires_at", expires_at)?
        .expire_at(expires_at)
        .add("mails", mails)
        .add("codes", codes);
    Ok(Guarded::update(day_key(of, &day)?, change, condition))
}
