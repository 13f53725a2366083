//! Mail on one machine: SES v2's `SendEmail`.
//!
//! [`MailServer`] takes simple messages (a subject, a text, perhaps HTML) as SES does, refuses what SES refuses and what it does not
//! know, sends nothing, and keeps what it took to be looked at. The handlers are our own: it is one call, and a crate that knows all of
//! SES (`winterbaume-sesv2`) still does not let it fail on purpose.
//!
//! # Faults
//!
//! [`MailServer::faults`] makes requests fail: `throttle` answers 429 `TooManyRequestsException`, `error` 500 `InternalServiceException`,
//! `reset` closes the connection, all three with nothing done; `slow` answers late, `timeout` takes the message and never answers. `partial`
//! and `conflict` have no meaning here.

mod message;
mod server;

pub use message::Mail;
pub use server::MailServer;
