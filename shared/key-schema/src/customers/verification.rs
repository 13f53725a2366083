//! The verification of an email address.
//!
//! A customer requests a mail with a code and enters the code. One item in the customer's partition
//! holds the state of the latest request. It does not hold the code ([`crate::code`]). The item
//! also remembers the instants of the customer's mails, so it is kept for a day, much longer than
//! the code is valid.
//!
//! Every rule is a condition of a write:
//!
//! - A request is written on the condition that the profile has the address and the address is not
//!   verified. The request is counted for the customer and for the address, in items that outlive
//!   the profile. So neither an erasure nor a second account gives more codes or more tries for an
//!   address.
//! - A try is counted before the code is compared. After [`MAX_TRIES`] tries, no further try is
//!   accepted.
//! - The transaction that marks the address as verified has the condition that the profile still
//!   has this address. The same transaction claims the address as unique. A request verifies an
//!   address at most once.

use item_model::prelude::*;

use crate::change::Change;
use crate::customer::{self, Customer, EmailClaim};
use crate::expression::{Condition, first_alive, number, value};
use crate::id::{Born, CustomerId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Stored};
use crate::key::{Key, KeyError, SortKey};
use crate::pattern::Consistency;
use crate::quota::{self, Quota};
use crate::recipient;
use crate::request::{BatchGet, Guarded, Single, Transaction};
use crate::text::Email;

pub const CODE_SECONDS: i64 = 10 * 60;
pub const MAX_TRIES: u64 = 5;
pub const MAX_MAILS: usize = 3;
/// The period in which mails are counted.
pub const WINDOW_SECONDS: i64 = 24 * 60 * 60;

entity! {
    /// The latest request to verify a customer's email address.
    EmailVerification = "EmailVerification" {
        fixed {
            customer_id: CustomerId,
            /// The address that the code verifies, as the profile held it.
            email: Email,
            /// The instant at which the item expires, which is also its time to live. From then on
            /// the last mail no longer counts toward [`MAX_MAILS`].
            expires_at: Instant,
        }
        mutable by EmailVerificationChanges {
            /// The random text from which the code is derived. It is absent once the code has
            /// verified the address.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            nonce: Option<String>,
            /// The name of the key from which the code is derived.
            key: String,
            /// The instant at which the code expires. It identifies the request.
            code_expires_at: Instant,
            tries: u64,
            /// The instants of the customer's requests, oldest first.
            requested_at: Vec<Instant>,
        }
    }
}

impl Entity for EmailVerification {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.customer_id)
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

/// Returns the key. It sorts after the questions, so the ranges of other items in the customer's
/// partition do not contain it.
fn key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::new("VERIFICATION")? })
}

/// The error for a customer who has requested [`MAX_MAILS`] mails in the period. It holds the
/// instant from which another mail is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no more mails before {0}")]
pub struct TooManyMails(pub Instant);

impl EmailVerification {
    /// Returns the item of a new request. `previous` is the item that is stored now, if it exists.
    pub fn next(
        previous: Option<&Stored<Self>>,
        profile: &Customer,
        (nonce, key): (String, &str),
        born: Born,
        now: Instant,
    ) -> Result<Stored<Self>, TooManyMails> {
        let counts = |at: &Instant| at.plus_seconds(WINDOW_SECONDS) > now;
        let mut requested_at: Vec<Instant> =
            previous.map(|item| item.requested_at.iter().copied().filter(counts).collect()).unwrap_or_default();
        if let (true, Some(oldest)) = (requested_at.len() >= MAX_MAILS, requested_at.first()) {
            return Err(TooManyMails(oldest.plus_seconds(WINDOW_SECONDS)));
        }
        requested_at.push(now);
        let request = Self {
            customer_id: profile.id.clone(),
            email: profile.email.clone(),
            expires_at: now.plus_seconds(WINDOW_SECONDS),
            nonce: Some(nonce),
            key: key.to_owned(),
            code_expires_at: now.plus_seconds(CODE_SECONDS),
            tries: 0,
            requested_at,
        };
        let mut stored = Stored::new(request, born, now);
        if let Some(previous) = previous {
            stored.meta = previous.meta.clone();
            stored.meta.version += 1;
            stored.meta.rev += 1;
            stored.meta.updated_at = now;
        }
        Ok(stored)
    }

    /// Returns the nonce if the code of this request can still verify the address at `now`.
    #[must_use]
    pub fn open_nonce(&self, email: &Email, now: Instant) -> Option<&str> {
        self.nonce.as_deref().filter(|_| self.email == *email && now < self.code_expires_at)
    }
}

/// An action of a transaction of this module. A refusal names the action whose condition failed.
/// The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationAction {
    /// The profile has another address, its address is verified already, the customer is being
    /// erased, or the profile does not exist.
    Profile,
    /// Another customer has verified the address.
    Claim,
    /// The request has changed since it was read.
    Request,
    /// The day's quota of codes is used up, either for the customer or for the address.
    Count,
}

patterns! {
    READ {
        id: "verification.read",
        purpose: "Read the profile and the latest verification request",
        request: BatchGetItem,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, VERIFICATION",
        returns: "the profile, the latest request",
        consistency: Consistency::Strong("only the code of the latest request is valid"),
        callers: "owner",
    }
    REQUEST {
        id: "verification.request",
        purpose: "Request a mail with a code",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, VERIFICATION; PK = QUOTA#<hash of the customer> \
            and RECIPIENT#<hash of the address>, SK = DAY#<day>",
        requires: "the profile has the address, which is not verified; no erasure has begun; the \
            latest request is unchanged; fewer than 3 codes for the customer and fewer than 10 for \
            the address on the day; ADD 1 to both counters",
        callers: "owner",
    }
    TRY {
        id: "verification.try",
        purpose: "Count a try before the code is compared",
        request: UpdateItem,
        key: "PK = CUSTOMER#<id>, SK = VERIFICATION",
        requires: "the nonce is unchanged; the code has not expired; fewer than 5 tries are \
            counted; ADD 1 to tries",
        callers: "owner",
    }
    VERIFY {
        id: "verification.verify",
        purpose: "Verify the email address and claim it",
        request: TransactWriteItems,
        key: "PK = CUSTOMER#<id>, SK = PROFILE, VERIFICATION; PK = EMAIL#<folded>",
        requires: "the profile has the address, which is not verified; no erasure has begun; the \
            claim is free or the customer's; the nonce is unchanged",
        callers: "owner",
    }
}

one_of! {
    pub enum VerificationItem { Customer EmailVerification }
}

/// Reads a customer's profile and latest request, in this order.
pub fn read(customer: &CustomerId) -> Result<BatchGet<VerificationItem>, KeyError> {
    Ok(BatchGet::new(&READ, vec![customer::key(customer)?, key(customer)?]))
}

/// Writes a new request. `previous` is the item from which it was made.
pub fn request(
    next: &Stored<EmailVerification>,
    previous: Option<&Stored<EmailVerification>>,
) -> Result<Transaction<VerificationAction>, EncodeError> {
    let unchanged = match previous {
        Some(previous) => Condition::Is("rev", number(previous.meta.rev)),
        None => Condition::NotExists,
    };
    let at = next.meta.updated_at;
    Ok(Transaction::new(&REQUEST)
        .action(
            VerificationAction::Profile,
            Guarded::check(customer::key(&next.customer_id)?, unverified(&next.email)?),
        )
        .action(VerificationAction::Request, Guarded::put(next, unchanged)?)
        .action(VerificationAction::Count, quota::count(&next.customer_id, Quota::Codes, at)?)
        .action(VerificationAction::Count, recipient::count_request(&next.email, at)?))
}

/// Counts a try for the code of a nonce, and returns the request.
pub fn count_try(
    customer: &CustomerId,
    nonce: &str,
    now: Instant,
) -> Result<Single<Stored<EmailVerification>>, EncodeError> {
    let change = Change::<EmailVerification>::visible(now).add("tries", 1);
    let open = Condition::Is("nonce", value(nonce)?)
        .and(Condition::AtLeast("code_expires_at", first_alive(now)))
        .and(Condition::Below("tries", number(MAX_TRIES)));
    Ok(Single::new(&TRY, Guarded::update(key(customer)?, change, open)))
}

/// Verifies the email address of a profile and claims it. `nonce` is the nonce of the entered code.
/// It is [`None`] if the caller's token says that the address is verified.
pub fn verify(
    profile: &Stored<Customer>,
    nonce: Option<&str>,
    now: Instant,
) -> Result<Transaction<VerificationAction>, EncodeError> {
    let change = Change::<Customer>::visible(now).set("email_verified", true)?;
    let claim = EmailClaim { email: profile.email.folded(), customer_id: profile.id.clone() };
    let claim = Stored::new(claim, profile.meta.born.clone(), now);
    let free = Condition::NotExists.or(Condition::Is("customer_id", value(&profile.id)?));
    let mut transaction = Transaction::new(&VERIFY)
        .action(
            VerificationAction::Profile,
            Guarded::update(customer::key(&profile.id)?, change, unverified(&profile.email)?),
        )
        .action(VerificationAction::Claim, Guarded::put(&claim, free)?);
    if let Some(nonce) = nonce {
        let spent = Change::<EmailVerification>::visible(now).nonce(&None)?;
        let this = Condition::Is("nonce", value(nonce)?);
        transaction = transaction.action(VerificationAction::Request, Guarded::update(key(&profile.id)?, spent, this));
    }
    Ok(transaction)
}

/// Removes a customer's request, in the transaction that removes the profile. No request can be
/// written without a profile.
pub(crate) fn discard(customer: &CustomerId) -> Result<Guarded, KeyError> {
    Ok(Guarded::remove(key(customer)?))
}

/// Returns the condition that the profile has exactly this address, unverified, and is not being
/// erased.
fn unverified(email: &Email) -> Result<Condition, EncodeError> {
    let same = Condition::Is("email", value(email)?).and(Condition::Is("email_verified", value(false)?));
    Ok(same.and(customer::stays()))
}
