//! The processing of one event: claim, send, record. The crate's documentation explains the
//! guarantees.

use std::time::Duration;

use bus::Event;
use key_schema::entity::AnyEntity;
use key_schema::id::{Born, IdError};
use key_schema::instant::Instant;
use key_schema::item::{DecodeError, EncodeError, FromItem as _, Stored};
use key_schema::key::KeyError;
use key_schema::mail::{self, LIFETIME_SECONDS, Mail, MailState};
use key_schema::order::{self, OrderLine};
use table::{Backoff, Measured, Table, TableError, WriteError};
use telemetry::crash_point;
use tokio::time::{Instant as Clock, sleep, timeout_at};

use crate::event::{Delivery, News, Occasion};
use crate::mailer::{MailError, Mailer};
use crate::message::Message;

/// How long an attempt's claim excludes other attempts.
pub const LEASE: Duration = Duration::from_secs(10);
/// How long an attempt sends. It stops 2 s before its lease ends, because two clocks may differ.
pub const SEND_UNTIL: Duration = Duration::from_secs(8);
/// The time of an invocation that is reserved after sending, for the record of the outcome and the
/// response. With less time left, no attempt begins or continues to send.
pub const MARGIN: Duration = Duration::from_secs(3);
/// The part of [`MARGIN`] that is reserved for the response. A record that takes longer stays
/// unwritten. Otherwise Lambda would end the function during the write, count that as a failure and
/// invoke it again, which sends the message again.
pub const ANSWER: Duration = Duration::from_secs(1);
/// The interval at which an attempt checks whether another attempt has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The maximum age of an event in a replay of the archive that still sends a message, in seconds.
/// It is shorter than the lifetime of the records ([`LIFETIME_SECONDS`]), so younger events still
/// have theirs.
pub const MAX_REPLAY_AGE_SECONDS: i64 = 30 * 24 * 60 * 60;

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A message was sent.
    Sent,
    /// An earlier delivery has handled the event.
    Known,
    /// The event does not concern customers, or is too old.
    NoNews,
    /// The customer or the order does not exist any more.
    Nobody,
    /// The mail service refuses the message permanently.
    Rejected,
}

impl Outcome {
    /// Returns its name in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Known => "known",
            Self::NoNews => "no_news",
            Self::Nobody => "nobody",
            Self::Rejected => "rejected",
        }
    }
}

/// The reason why an event must be delivered again.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// This program does not know the event.
    #[error("the event cannot be read: {0}")]
    Event(#[from] bus::DecodeError),
    /// Another attempt has claimed the message and has not ended yet.
    #[error("another attempt has claimed the message")]
    Claimed,
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The mail service failed.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// An id cannot be part of a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An id is invalid.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The claim cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The existing claim cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// The notifier, which sends the messages of events.
#[derive(Debug)]
pub struct Notifier<M> {
    table: Table,
    mailer: M,
}

impl<M: Mailer> Notifier<M> {
    /// Creates a notifier with a table and a mailer.
    #[must_use]
    pub const fn new(table: Table, mailer: M) -> Self {
        Self { table, mailer }
    }

    /// Returns the consumption of the access patterns since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Takes one event at `now`, in an invocation that is killed at `deadline`. It waits for
    /// another attempt's end while there is time for its own attempt afterwards.
    ///
    /// # Errors
    /// [`NotifyError`]: the event must be delivered again.
    pub async fn take(&self, delivery: &Delivery, now: Instant, deadline: Clock) -> Result<Outcome, NotifyError> {
        let began = Clock::now();
        let event = delivery.event()?;
        let told_no_more = event.occurred_at.plus_seconds(MAX_REPLAY_AGE_SECONDS) < now;
        let Some(news) = News::of(&event).filter(|_| delivery.replay.is_none() || !told_no_more) else {
            return Ok(Outcome::NoNews);
        };
        // Read everything before the claim, so that the lease covers only the sending.
        let Some(message) = self.compose(&news).await? else { return Ok(Outcome::Nobody) };
        let claim = loop {
            match self.claim(&event, now.plus_millis(millis(began.elapsed())), deadline).await? {
                Claim::Ours(claim) => break claim,
                Claim::Settled => return Ok(Outcome::Known),
                Claim::Anothers if Clock::now() + LOOK_AGAIN + SEND_UNTIL + MARGIN < deadline => {
                    sleep(LOOK_AGAIN).await
                }
                Claim::Anothers => return Err(NotifyError::Claimed),
            }
        };
        crash_point("notifier.claimed");
        self.once(&event, &message, claim).await
    }

    /// Returns the message, or `None` without the customer or the order.
    async fn compose(&self, news: &News<'_>) -> Result<Option<Message>, NotifyError> {
        let found = self.table.batch_get(&mail::prepare(news.customer, news.order)?).await?;
        let mut found = found.into_iter();
        let (Some(Some(AnyEntity::Customer(customer))), Some(Some(AnyEntity::CustomerOrder(order)))) =
            (found.next(), found.next())
        else {
            return Ok(None);
        };
        let lines: Vec<OrderLine> = match news.occasion {
            Occasion::Placed => {
                self.table.query(&order::lines(news.order)?).await?.items.into_iter().map(|line| line.data).collect()
            }
            _ => Vec::new(),
        };
        Ok(Some(Message::about(news.occasion, &customer, &order, &lines)))
    }

    /// Claims the message of an event for one attempt.
    async fn claim(&self, event: &Event, now: Instant, deadline: Clock) -> Result<Claim, NotifyError> {
        let until = (Clock::now() + SEND_UNTIL).min(before(deadline, MARGIN));
        let claim = Mail {
            event_id: event.id.to_string(),
            expires_at: now.plus_seconds(LIFETIME_SECONDS),
            state: MailState::Sending,
            lease_until: now.plus_millis(millis(LEASE)),
        };
        // A claim has only one incarnation, so the event's id serves as `born`.
        let claim = Stored::new(claim, Born::new(event.id.as_str())?, now);
        match self.table.write(&mail::claim(&claim, now)?).await {
            Ok(()) => Ok(Claim::Ours(Lease { mail: claim.data, until, end: before(deadline, ANSWER), now })),
            Err(WriteError::Refused(Some(item))) => Ok(match Stored::<Mail>::from_item(*item)?.state {
                MailState::Sent | MailState::Rejected => Claim::Settled,
                MailState::Sending => Claim::Anothers,
            }),
            // Refused by an item that has expired meanwhile.
            Err(WriteError::Refused(None)) => Ok(Claim::Anothers),
            Err(WriteError::Table(error)) => Err(error.into()),
        }
    }

    /// Sends the claimed message.
    async fn once(&self, event: &Event, message: &Message, lease: Lease) -> Result<Outcome, NotifyError> {
        let Lease { mail: claim, until, end, now } = lease;
        let sent = self.send(message, until).await;
        let state = match &sent {
            Ok(()) => MailState::Sent,
            Err(MailError::Rejected(_)) => MailState::Rejected,
            Err(error) => {
                // If time runs out, the next attempt waits for the lease.
                if error.is_certain() && timeout_at(end, self.release(&claim, now)).await.is_err() {
                    tracing::info!(event_id = event.id.as_str(), "no time was left to give a claim back");
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

    /// Sends the message. While the service is only busy, it retries until `until`.
    async fn send(&self, message: &Message, until: Clock) -> Result<(), MailError> {
        if !message.has_plain_recipient() {
            return Err(MailError::Rejected("the recipient is no plain address".to_owned()));
        }
        let mut backoff = Backoff::new();
        loop {
            if Clock::now() >= until {
                return Err(MailError::Throttled("no time left".to_owned()));
            }
            // A request that is cut off at the deadline may have been accepted.
            let sent = timeout_at(until, self.mailer.send(message)).await;
            match sent.unwrap_or_else(|_| Err(MailError::Unknown("timeout".to_owned()))) {
                Err(MailError::Throttled(_)) if backoff.wait().await => {}
                sent => return sent,
            }
        }
    }

    /// Records the outcome of the message. A failure is only a warning: the message has been sent,
    /// and an error here would only send it again.
    async fn settle(&self, event: &Event, state: MailState, now: Instant) {
        let mut backoff = Backoff::new();
        loop {
            let write = match mail::settle(event.id.as_str(), state, now) {
                Ok(settle) => self.table.write(&settle).await,
                Err(error) => return tracing::warn!(event_id = event.id.as_str(), %error, "a message is not recorded"),
            };
            match write {
                // Refused: another attempt, after this one's lease, has recorded the outcome.
                Ok(()) | Err(WriteError::Refused(_)) => return,
                Err(WriteError::Table(_)) if backoff.wait().await => {}
                Err(error) => return tracing::warn!(event_id = event.id.as_str(), %error, "a message is not recorded"),
            }
        }
    }

    /// Releases the claim, so that the next attempt need not wait for the lease.
    async fn release(&self, claim: &Mail, now: Instant) {
        let released = match mail::release(claim, now) {
            Ok(release) => self.table.write(&release).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = released {
            tracing::info!(event_id = claim.event_id, error, "a claim is not given back");
        }
    }
}

/// The owner of a message.
enum Claim {
    /// This attempt.
    Ours(Lease),
    /// Another attempt, which may be running or have crashed.
    Anothers,
    /// Nobody: the message was sent or given up.
    Settled,
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
