//! Emulates SES v2's `SendEmail`.
//!
//! [`MailServer`] accepts simple messages (a subject, and text or HTML or both) as SES does. It
//! rejects messages that SES rejects, and features that this emulator does not support. It sends
//! nothing, and keeps accepted messages for inspection. The crate `winterbaume-sesv2` supports all
//! of SES, but cannot inject faults.
//!
//! # Bounces and complaints
//!
//! Two addresses of the [mailbox
//! simulator](https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html#send-email-simulator)
//! work as in SES: `bounce@simulator.amazonses.com` and `complaint@simulator.amazonses.com`, also
//! with a label (`bounce+label@…`). A mail to such an address causes an event on the default bus,
//! if the mail names a configuration set ([`MailServer::report_to`]). In this emulator every
//! configuration set sends its events to that bus.
//!
//! # Faults
//!
//! [`MailServer::faults`] makes requests fail. These faults prevent the processing:
//! - `throttle` returns 429 `TooManyRequestsException`.
//! - `error` returns 500 `InternalServiceException`.
//! - `reset` closes the connection.
//!
//! Despite these faults the message is accepted:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` and `conflict` have no effect.

mod message;
mod server;

pub use message::Mail;
pub use server::MailServer;
