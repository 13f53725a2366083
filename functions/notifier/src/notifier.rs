//! Handles one event: claims its message, sends it and records the outcome. The crate's page
//! explains the guarantees.

use std::borrow::Cow;
use std::time::Duration;

use bus::{Event, OrderPlaced, PlacedLine};
use key_schema::code::{CodeKeys, Subject};
use key_schema::customer::Customer;
use key_schema::id::{Born, CustomerId, IdError, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored, take};
use key_schema::key::KeyError;
use key_schema::mail::{self, LIFETIME_SECONDS, Mail, MailAction, MailState};
use key_schema::order::addresses::OrderAddresses;
use key_schema::order::{self, CustomerOrder, OrderItem, OrderStatus};
use key_schema::recipient::{self, RecipientHash};
use key_schema::verification::{self, EmailVerification};
use table::{Backoff, Measured, Refusals, Table, TableError};
use telemetry::crash_point;
use tokio::time::{Instant as Clock, sleep, timeout_at};

use crate::event::{Delivery, News, Occasion};
use crate::feedback::{self, Feedback, NotFeedback};
use crate::mailer::{MailError, Mailer};
use crate::message::{Message, OrderNews, Recipient};

/// How long an attempt's claim excludes other attempts.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long an attempt may send after its claim. This time ends 2 s before the lease, because
/// clocks may differ.
pub const SEND_UNTIL: Duration = Duration::from_secs(8);
/// The time at the end of an invocation that is reserved to record the outcome and to respond. With
/// less time left, no attempt begins or continues to send.
pub const MARGIN: Duration = Duration::from_secs(3);
/// The part of [`MARGIN`] that is reserved for the response. When only this time is left, the
/// attempt stops recording. Otherwise Lambda would end the function during the write, count that as
/// a failure and invoke the function again. The new attempt would send the message again.
pub const ANSWER: Duration = Duration::from_secs(1);
/// The interval at which an attempt checks whether another attempt has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The maximum age, in seconds, of an event that may send a message in a replay of the archive. If
/// such an event has sent its message already, the record of the message prevents a second message.
/// The record still exists, because records live longer ([`LIFETIME_SECONDS`]).
pub const MAX_REPLAY_AGE_SECONDS: i64 = 30 * 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Sent,
    /// An earlier delivery of the event has completed.
    Known,
    /// The event has no news for a customer. It concerns no customer, is too old, reports a bounce
    /// that is not permanent, or its code is no longer needed or valid.
    NoNews,
    /// The customer or the order does not exist any more.
    NotFound,
    /// The mail service refuses the message permanently, or the address is not a plain address.
    Rejected,
    /// The customer has not verified the address.
    Unverified,
    /// The recipient has received the maximum number of mails for the day.
    Limited,
    /// Mail to the recipient is stopped after a bounce or a complaint.
    Stopped,
    /// The event was SES's report of a bounce or a complaint. Mail to its recipients is stopped.
    Feedback,
}

impl Outcome {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Known => "known",
            Self::NoNews => "no_news",
            Self::NotFound => "nobody",
            Self::Rejected => "rejected",
            Self::Unverified => "unverified",
            Self::Limited => "limited",
            Self::Stopped => "stopped",
            Self::Feedback => "feedback",
        }
    }
}

/// The reason why an event must be delivered again.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// This program does not know the event.
    #[error("the event cannot be read: {0}")]
    Event(#[from] bus::DecodeError),
    /// A report of SES cannot be read.
    #[error(transparent)]
    Feedback(#[from] NotFeedback),
    /// Another attempt has claimed the message and has not ended yet.
    #[error("another attempt has claimed the message")]
    Claimed,
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Mail(#[from] MailError),
    /// An id cannot be part of a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

#[derive(Debug)]
pub struct Notifier<M> {
    table: Table,
    mailer: M,
    codes: CodeKeys,
}

/// The message of an event, or the reason why there is no message.
enum Composed {
    Message(Message),
    None(Outcome),
}

impl<M: Mailer> Notifier<M> {
    #[must_use]
    pub const fn new(table: Table, mailer: M, codes: CodeKeys) -> Self {
        Self { table, mailer, codes }
    }

    /// Returns the capacity that each access pattern has consumed since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Handles one event at `now`, in an invocation that Lambda ends at `deadline`. It waits for
    /// the end of another attempt while enough time for its own attempt remains.
    ///
    /// # Errors
    /// [`NotifyError`]: the event must be delivered again.
    pub async fn take(&self, delivery: &Delivery, now: Instant, deadline: Clock) -> Result<Outcome, NotifyError> {
        let began = Clock::now();
        if delivery.source == feedback::SOURCE {
            return self.stop(&Feedback::read(&delivery.detail)?, now).await;
        }
        let event = delivery.event()?;
        let told_no_more = event.occurred_at.plus_seconds(MAX_REPLAY_AGE_SECONDS) < now;
        let Some(news) = News::of(&event).filter(|_| delivery.replay.is_none() || !told_no_more) else {
            return Ok(Outcome::NoNews);
        };
        // All reads come before the claim, so that the lease covers only the sending.
        let message = match self.compose(&news, now).await? {
            Composed::Message(message) => message,
            Composed::None(outcome) => return Ok(outcome),
        };
        if !message.to().is_mailable() {
            tracing::warn!(event_id = event.id.as_str(), "a message is given up: the recipient is not a plain address");
            return Ok(Outcome::Rejected);
        }
        let claim = loop {
            match self.claim(&event, &message, now.plus_millis(millis(began.elapsed())), deadline).await? {
                Claim::Ours(claim) => break claim,
                Claim::Done => return Ok(Outcome::Known),
                Claim::Refused(outcome) => return Ok(outcome),
                Claim::OtherAttempt if Clock::now() + LOOK_AGAIN + SEND_UNTIL + MARGIN < deadline => {
                    sleep(LOOK_AGAIN).await
                }
                Claim::OtherAttempt => return Err(NotifyError::Claimed),
            }
        };
        crash_point("notifier.claimed");
        self.send_claimed(&event, &message, claim).await
    }

    async fn stop(&self, feedback: &Feedback, now: Instant) -> Result<Outcome, NotifyError> {
        for recipient in &feedback.recipients {
            let stop = recipient::stop(&RecipientHash::of(recipient), feedback.reason, now)?;
            // A refusal means that mail to the address is stopped already.
            let _ = self.table.write(&stop).await?;
        }
        Ok(if feedback.recipients.is_empty() { Outcome::NoNews } else { Outcome::Feedback })
    }

    async fn compose(&self, news: &News<'_>, now: Instant) -> Result<Composed, NotifyError> {
        match *news {
            News::Placed(placed) => self.about_placed(placed).await,
            News::Changed { occasion, order, customer } => self.about_change(occasion, order, customer).await,
            News::Code { customer, expires_at } => self.with_code(customer, expires_at, now).await,
        }
    }

    /// Returns the message about a new order. The event has everything about the order, unless it
    /// leaves the lines out.
    async fn about_placed(&self, placed: &OrderPlaced) -> Result<Composed, NotifyError> {
        if placed.customer_id.is_guest() {
            // Nobody has paid yet, so the mail could be to anybody.
            return Ok(Composed::None(Outcome::Unverified));
        }
        let mut found = self.table.batch_get(&mail::prepare(&placed.customer_id, None)?).await?;
        let Some(customer) = take::<Customer, _>(&mut found) else {
            return Ok(Composed::None(Outcome::NotFound));
        };
        if !customer.email_verified {
            return Ok(Composed::None(Outcome::Unverified));
        }
        let lines = match placed.lines_left_out {
            0 => Cow::Borrowed(&placed.lines),
            _ => {
                let read = self.table.query(&order::lines(&placed.order_id)?).await?.items;
                Cow::Owned(read.iter().map(|line| PlacedLine::from(&line.data)).collect())
            }
        };
        let (id, total, placed_at) = (&placed.order_id, placed.totals.total, placed.placed_at);
        let news = OrderNews { id, total, placed_at, lines: &lines, carrier: None, tracking: None, said: None };
        Ok(Composed::Message(Message::about(Occasion::Placed, &Recipient::from(&customer.data), &news)))
    }

    async fn about_change(
        &self,
        occasion: Occasion,
        order: &OrderId,
        customer: &CustomerId,
    ) -> Result<Composed, NotifyError> {
        let steps = self.steps(order).await?;
        // A customer may have claimed a guest's order since the event.
        let owner = steps.customer.as_ref().filter(|_| customer.is_guest()).unwrap_or(customer);
        if owner.is_guest() && !steps.was_paid && occasion.moved().is_none() {
            // A visitor may enter anybody's address, but mail goes only to one who pays. Money that goes
            // back was paid.
            return Ok(Composed::None(Outcome::Unverified));
        }
        let (to, copy) = match self.recipient(owner, order).await? {
            Ok(found) => found,
            Err(outcome) => return Ok(Composed::None(outcome)),
        };
        let said = steps.said(occasion);
        let CustomerOrder { total, placed_at, carrier, tracking, .. } = &copy.data;
        let news = OrderNews {
            id: order,
            total: *total,
            placed_at: *placed_at,
            lines: &[],
            carrier: carrier.as_deref(),
            tracking: tracking.as_deref(),
            said: said.as_deref(),
        };
        Ok(Composed::Message(Message::about(occasion, &to, &news)))
    }

    /// Returns to whom a message about an order goes, and the copy of the order.
    async fn recipient(
        &self,
        customer: &CustomerId,
        order: &OrderId,
    ) -> Result<Result<(Recipient, Stored<CustomerOrder>), Outcome>, NotifyError> {
        let read =
            if customer.is_guest() { mail::of_guest(customer, order)? } else { mail::prepare(customer, Some(order))? };
        let mut found = self.table.batch_get(&read).await?;
        let profile = take::<Customer, _>(&mut found);
        let guest = take::<OrderAddresses, _>(&mut found).and_then(|addresses| addresses.data.guest);
        let Some(copy) = take::<CustomerOrder, _>(&mut found) else { return Ok(Err(Outcome::NotFound)) };
        Ok(match (profile, guest) {
            (Some(profile), _) if !profile.email_verified => Err(Outcome::Unverified),
            (Some(profile), _) => Ok((Recipient::from(&profile.data), copy)),
            (None, Some(guest)) => Ok((Recipient::from(&guest), copy)),
            (None, None) => Err(Outcome::NotFound),
        })
    }

    /// Returns the history of an order.
    async fn steps(&self, order: &OrderId) -> Result<Steps, NotifyError> {
        // The mail is more important than the words of staff, so it does not wait for an unreadable
        // step.
        let found = self.table.query_readable(&order::parts::with_history(order)?).await?;
        let mut steps = Steps::default();
        for item in found.items {
            match item {
                OrderItem::Order(head) => steps.customer = Some(head.data.customer_id),
                OrderItem::OrderStatusEvent(step) => {
                    steps.was_paid |= step.status == OrderStatus::Paid;
                    steps.said.push((step.data.status, step.data.message));
                }
                _ => {}
            }
        }
        Ok(steps)
    }

    /// Returns the message with the code of a request, if the request is still the customer's
    /// latest.
    async fn with_code(&self, id: &CustomerId, expires_at: Instant, now: Instant) -> Result<Composed, NotifyError> {
        let mut found = self.table.batch_get(&verification::read(id)?).await?;
        let (Some(customer), Some(request)) =
            (take::<Customer, _>(&mut found), take::<EmailVerification, _>(&mut found))
        else {
            return Ok(Composed::None(Outcome::NotFound));
        };
        let Customer { email, .. } = &customer.data;
        let nonce = request.open_nonce(email, now).filter(|_| request.code_expires_at == expires_at);
        let code = nonce.and_then(|nonce| self.codes.code(&request.key, &Subject { customer: id, email, nonce }));
        Ok(match code {
            Some(code) if !customer.email_verified => Composed::Message(Message::with_code(email, &code)),
            _ => Composed::None(Outcome::NoNews),
        })
    }

    /// Claims the message of an event for one attempt, and counts the message for its recipient.
    async fn claim(
        &self,
        event: &Event,
        message: &Message,
        now: Instant,
        deadline: Clock,
    ) -> Result<Claim, NotifyError> {
        let until = (Clock::now() + SEND_UNTIL).min(before(deadline, MARGIN));
        let claim = Mail {
            event_id: event.id.to_string(),
            expires_at: now.plus_seconds(LIFETIME_SECONDS),
            state: MailState::Sending,
            lease_until: now.plus_millis(millis(LEASE)),
        };
        // Each event's claim is created only once, so the event's id serves as `born`.
        let claim = Stored::new(claim, Born::new(event.id.as_str())?, now);
        let to = message.recipient();
        let first = self.table.transact(&mail::claim(&claim, &to, message.has_code(), now)?).await?;
        let Err(earlier) = first else {
            return Ok(Claim::Ours(Lease { mail: claim.data, until, end: before(deadline, ANSWER), now }));
        };
        if let Some(claim) = judge(&earlier, now)? {
            return Ok(claim);
        }
        match self.table.transact(&mail::reclaim(&claim, &to, now)?).await? {
            Ok(()) => Ok(Claim::Ours(Lease { mail: claim.data, until, end: before(deadline, ANSWER), now })),
            Err(refusals) => Ok(judge(&refusals, now)?.unwrap_or(Claim::OtherAttempt)),
        }
    }

    async fn send_claimed(&self, event: &Event, message: &Message, lease: Lease) -> Result<Outcome, NotifyError> {
        let Lease { mail: claim, until, end, now } = lease;
        let sent = self.send(message, until).await;
        let state = match &sent {
            Ok(()) => MailState::Sent,
            Err(MailError::Rejected(_)) => MailState::Rejected,
            Err(error) => {
                // If the release fails, the next attempt waits for the lease to expire.
                if error.is_certain() && timeout_at(end, self.release(&claim, now)).await.is_err() {
                    tracing::info!(event_id = event.id.as_str(), "no time was left to release a claim");
                }
                return Err(error.clone().into());
            }
        };
        crash_point("notifier.sent");
        if timeout_at(end, self.settle(event, state, now)).await.is_err() {
            tracing::warn!(event_id = event.id.as_str(), "no time was left to record a message");
        }
        match sent {
            Ok(()) => Ok(Outcome::Sent),
            Err(error) => {
                tracing::warn!(event_id = event.id.as_str(), %error, "a message is given up");
                Ok(Outcome::Rejected)
            }
        }
    }

    /// Sends the message. While the service is busy, this attempt retries until `until`, or until
    /// the budget of [`Backoff`] is used up.
    async fn send(&self, message: &Message, until: Clock) -> Result<(), MailError> {
        let mut backoff = Backoff::new();
        loop {
            if Clock::now() >= until {
                return Err(MailError::Throttled("no time left".to_owned()));
            }
            // SES may have accepted a request that is interrupted at `until`, so its outcome is
            // unknown.
            let sent = timeout_at(until, self.mailer.send(message)).await;
            match sent.unwrap_or_else(|_| Err(MailError::Unknown("timeout".to_owned()))) {
                Err(MailError::Throttled(_)) if backoff.wait().await => {}
                sent => return sent,
            }
        }
    }

    /// Records the outcome of the message. A failure is only a warning, because an error would
    /// cause another attempt to send.
    async fn settle(&self, event: &Event, state: MailState, now: Instant) {
        let mut backoff = Backoff::new();
        loop {
            let write = match mail::settle(event.id.as_str(), state, now) {
                Ok(settle) => self.table.write(&settle).await,
                Err(error) => return tracing::warn!(event_id = event.id.as_str(), %error, "a message is not recorded"),
            };
            match write {
                // A refusal means that a later attempt has recorded the outcome.
                Ok(_) => return,
                Err(_) if backoff.wait().await => {}
                Err(error) => return tracing::warn!(event_id = event.id.as_str(), %error, "a message is not recorded"),
            }
        }
    }

    /// Releases the claim, so that the next attempt need not wait for the lease.
    async fn release(&self, claim: &Mail, now: Instant) {
        let released = match mail::release(claim, now) {
            Ok(release) => match self.table.write(&release).await {
                Ok(released) => released.map_err(|_| "the condition of the write does not hold".to_owned()),
                Err(error) => Err(error.to_string()),
            },
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = released {
            tracing::info!(event_id = claim.event_id, error, "a claim was not released");
        }
    }
}

/// What a message needs of an order's history.
#[derive(Debug, Default)]
struct Steps {
    /// The present customer of the order, if the head was read.
    customer: Option<CustomerId>,
    was_paid: bool,
    /// The words of staff for the customer, by status.
    said: Vec<(OrderStatus, Option<String>)>,
}

impl Steps {
    /// Returns the words of staff for the customer about a change of an order's status.
    fn said(&self, occasion: Occasion) -> Option<String> {
        let status = occasion.status()?;
        self.said.iter().rev().find(|(step, _)| *step == status).and_then(|(_, said)| said.clone())
    }
}

/// The state of a message's claim.
enum Claim {
    /// This attempt has claimed the message.
    Ours(Lease),
    /// Another attempt has claimed the message. It may be running or have crashed.
    OtherAttempt,
    /// The message was sent or given up.
    Done,
    /// The message must not be sent, for this reason.
    Refused(Outcome),
}

/// Explains a refused claim. `None` means that an earlier attempt has claimed, counted and
/// abandoned the message. An existing claim takes precedence over the recipient's limit.
fn judge(refusals: &Refusals<MailAction>, now: Instant) -> Result<Option<Claim>, TableError> {
    let is_stopped = refusals.names(MailAction::Stop);
    let Some(refusal) = refusals.of(MailAction::Claim) else {
        return Ok(Some(Claim::Refused(if is_stopped { Outcome::Stopped } else { Outcome::Limited })));
    };
    Ok(match refusal.stored::<Stored<Mail>>()? {
        Some(known) => match known.state {
            MailState::Sent | MailState::Rejected => Some(Claim::Done),
            MailState::Sending if known.lease_until >= now => Some(Claim::OtherAttempt),
            MailState::Sending if is_stopped => Some(Claim::Refused(Outcome::Stopped)),
            MailState::Sending => None,
        },
        // The claim that caused the refusal has expired meanwhile. A later attempt may claim the
        // message.
        None => Some(Claim::OtherAttempt),
    })
}

/// The right to send a message, until a time on the clock of this process.
struct Lease {
    mail: Mail,
    until: Clock,
    /// When the invocation must respond.
    end: Clock,
    now: Instant,
}

fn before(deadline: Clock, margin: Duration) -> Clock {
    deadline.checked_sub(margin).unwrap_or(deadline)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
