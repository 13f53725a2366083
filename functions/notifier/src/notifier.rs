//! One event: claim, send, record. See the crate's documentation for what that promises.

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

/// How long an attempt keeps others away.
pub const LEASE: Duration = Duration::from_secs(10);
/// When an attempt stops sending: before its lease ends, by what two machines' clocks may differ.
pub const SEND_UNTIL: Duration = Duration::from_secs(8);
/// What is kept of an invocation for what comes after the sending: the record of how it ended, and the answer. No attempt begins, and none goes on
/// sending, when less is left.
pub const MARGIN: Duration = Duration::from_secs(3);
/// What is kept of that for the answer alone. A record that takes longer is left unwritten: Lambda would end the function in the middle of it, call that
/// a failure, and invoke it again, which sends the message once more.
pub const ANSWER: Duration = Duration::from_secs(1);
/// How often an attempt that finds another under way looks whether that has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// What a replay of the archive tells nobody any more. Shorter than the records live ([`LIFETIME_SECONDS`]), so that of what it does tell it is still
/// known whether it was told.
pub const MAX_REPLAY_AGE_SECONDS: i64 = 30 * 24 * 60 * 60;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A message was sent.
    Sent,
    /// An earlier delivery has seen to it.
    Known,
    /// It is not for customers, or too old a story.
    NoNews,
    /// There is nobody to tell: the customer, or the order, is gone.
    Nobody,
    /// The mail service will never take the message.
    Rejected,
}

impl Outcome {
    /// Its name in logs.
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

/// Why an event must come again.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// It is none that this program knows.
    #[error("the event cannot be read: {0}")]
    Event(#[from] bus::DecodeError),
    /// Another attempt has claimed its message and was not heard of yet.
    #[error("another attempt has claimed the message")]
    Claimed,
    /// The table fails.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The mail service fails.
    #[error(transparent)]
    Mail(#[from] MailError),
    /// An id makes no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An id is none.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The claim cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The claim that is there cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Sends the messages of events.
#[derive(Debug)]
pub struct Notifier<M> {
    table: Table,
    mailer: M,
}

impl<M: Mailer> Notifier<M> {
    /// Over a table and a way out.
    #[must_use]
    pub const fn new(table: Table, mailer: M) -> Self {
        Self { table, mailer }
    }

    /// What the access patterns have consumed since the last look.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Takes one event, at `now`, in an invocation that is killed at `deadline`. An attempt that is under way elsewhere is waited for while there is time
    /// for one of its own.
    ///
    /// # Errors
    /// [`NotifyError`]: the event must come again.
    pub async fn take(&self, delivery: &Delivery, now: Instant, deadline: Clock) -> Result<Outcome, NotifyError> {
        let began = Clock::now();
        let event = delivery.event()?;
        let told_no_more = event.occurred_at.plus_seconds(MAX_REPLAY_AGE_SECONDS) < now;
        let Some(news) = News::of(&event).filter(|_| delivery.replay.is_none() || !told_no_more) else {
            return Ok(Outcome::NoNews);
        };
        // What is read is read before the claim, so that the lease covers the sending alone.
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

    /// The message; none without a customer or an order.
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
        // An event is told in one life: its id serves.
        let claim = Stored::new(claim, Born::new(event.id.as_str())?, now);
        match self.table.write(&mail::claim(&claim, now)?).await {
            Ok(()) => Ok(Claim::Ours(Lease { mail: claim.data, until, end: before(deadline, ANSWER), now })),
            Err(WriteError::Refused(Some(item))) => Ok(match Stored::<Mail>::from_item(*item)?.state {
                MailState::Sent | MailState::Rejected => Claim::Settled,
                MailState::Sending => Claim::Anothers,
            }),
            // Refused for an item that is gone meanwhile: its time to live was over.
            Err(WriteError::Refused(None)) => Ok(Claim::Anothers),
            Err(WriteError::Table(error)) => Err(error.into()),
        }
    }

    /// Sends the message that was claimed.
    async fn once(&self, event: &Event, message: &Message, lease: Lease) -> Result<Outcome, NotifyError> {
        let Lease { mail: claim, until, end, now } = lease;
        let sent = self.send(message, until).await;
        let state = match &sent {
            Ok(()) => MailState::Sent,
            Err(MailError::Rejected(_)) => MailState::Rejected,
            Err(error) => {
                // Out of time, the next attempt waits for the lease.
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

    /// Hands the message over, again and again while the service is only busy, until `until`.
    async fn send(&self, message: &Message, until: Clock) -> Result<(), MailError> {
        if !message.has_plain_recipient() {
            return Err(MailError::Rejected("the recipient is no plain address".to_owned()));
        }
        let mut backoff = Backoff::new();
        loop {
            if Clock::now() >= until {
                return Err(MailError::Throttled("no time left".to_owned()));
            }
            // What is under way when the time is up may have been accepted.
            let sent = timeout_at(until, self.mailer.send(message)).await;
            match sent.unwrap_or_else(|_| Err(MailError::Unknown("timeout".to_owned()))) {
                Err(MailError::Throttled(_)) if backoff.wait().await => {}
                sent => return sent,
            }
        }
    }

    /// Records how the message ended. It can fail only as a warning: the message is out, and an error here would only send it again.
    async fn settle(&self, event: &Event, state: MailState, now: Instant) {
        let mut backoff = Backoff::new();
        loop {
            let write = match mail::settle(event.id.as_str(), state, now) {
                Ok(settle) => self.table.write(&settle).await,
                Err(error) => return tracing::warn!(event_id = event.id.as_str(), %error, "a message is not recorded"),
            };
            match write {
                // Refused: another attempt, later than this one's lease, has recorded it.
                Ok(()) | Err(WriteError::Refused(_)) => return,
                Err(WriteError::Table(_)) if backoff.wait().await => {}
                Err(error) => return tracing::warn!(event_id = event.id.as_str(), %error, "a message is not recorded"),
            }
        }
    }

    /// Lets the next attempt begin at once. Without it, it waits for the lease.
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

/// Whose the message is.
enum Claim {
    /// This attempt's.
    Ours(Lease),
    /// Another attempt's, which may be under way or have ended without a word.
    Anothers,
    /// Nobody's any more: it was sent, or given up.
    Settled,
}

/// The right to send a message, until a time on the clock of this process.
struct Lease {
    mail: Mail,
    until: Clock,
    /// When the invocation must answer.
    end: Clock,
    now: Instant,
}

fn before(deadline: Clock, margin: Duration) -> Clock {
    deadline.checked_sub(margin).unwrap_or(deadline)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
