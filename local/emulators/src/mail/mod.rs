//! Emulates SES v2's `SendEmail`.
//!
//! [`MailServer`] accepts simple messages (a subject, a text, optionally HTML) as SES does. It
//! rejects messages that SES rejects, and unsupported features. It sends nothing and keeps accepted
//! messages for inspection. The module replaces `winterbaume-sesv2`, which knows all of SES but
//! cannot inject faults.
//!
//! # Faults
//!
//! [`MailServer::faults`] makes requests fail. With these faults nothing is done:
//! - `throttle` returns 429 `TooManyRequestsException`.
//! - `error` returns 500 `InternalServiceException`.
//! - `reset` closes the connection.
//!
//! With these faults the message is accepted:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` and `conflict` have no meaning here.

mod message;
mod server;

pub use message::Mail;
pub use server::MailServer;
