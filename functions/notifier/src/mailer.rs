//! The port for sending mail, and its implementation with SES. The tests have a second
//! implementation, which fails on purpose.

use std::future::Future;
use std::time::Duration;

use aws::{Call, CallError, Failure, Limits, Method, Response, Service};
use serde::Serialize;

use crate::message::Message;

/// The timeout of one request. It is long, because SES may accept a request that timed out.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The path of the operation, in the REST JSON protocol of SES's API version 2.
const SEND_EMAIL: &str = "/v2/email/outbound-emails";

pub trait Mailer: Send + Sync {
    /// Sends a message at most once. `Ok` means that the service accepted it.
    fn send(&self, message: &Message) -> impl Future<Output = Result<(), MailError>> + Send;
}

/// The reason why a message was not sent, or may not have been sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The message's recipient or content is refused permanently.
    #[error("the message is refused: {0}")]
    Rejected(String),
    /// The account's limit per second or per day is reached. The message was certainly not sent.
    #[error("the mail service takes no more messages at the moment: {0}")]
    Throttled(String),
    /// This deployment may not send: the sender is not verified, or sending is paused. The message
    /// was certainly not sent.
    #[error("the mail service refuses this deployment: {0}")]
    Refused(String),
    /// There was no response, or only a broken response. The message may have been sent.
    #[error("the mail service did not answer: {0}")]
    Unknown(String),
}

impl MailError {
    /// Returns whether the message was certainly not sent.
    #[must_use]
    pub const fn is_certain(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Amazon Simple Email Service.
#[derive(Debug)]
pub struct Ses {
    service: Service,
    from: String,
    configuration_set: String,
}

impl Ses {
    /// Creates a mailer with the sender's address and the name of a configuration set. SES reports
    /// bounces and complaints through that set. The mailer never retries, because SES may have
    /// accepted a request whose response was lost. The message's claim in the table decides about a
    /// retry.
    #[must_use]
    pub fn new(service: Service, from: String, configuration_set: String) -> Self {
        Self { service: service.with_limits(Limits::once(REQUEST_TIMEOUT)), from, configuration_set }
    }
}

impl Mailer for Ses {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        let body = serde_json::to_vec(&request(message, &self.from, &self.configuration_set));
        let body = body.map_err(|error| MailError::Rejected(error.to_string()))?.into();
        let headers = [("content-type", "application/json")];
        let call = Call { headers: &headers, body, ..Call::new(Method::POST, SEND_EMAIL) };
        match self.service.call(&call, |_| false).await {
            Ok(response) if response.status == 200 => Ok(()),
            Ok(response) => Err(judge(&response)),
            Err(error) => Err(error.into()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendEmail<'a> {
    from_email_address: &'a str,
    destination: Destination<'a>,
    content: Content<'a>,
    configuration_set_name: &'a str,
    email_tags: [Tag<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Destination<'a> {
    to_addresses: [&'a str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Content<'a> {
    simple: Simple<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Simple<'a> {
    subject: Text<'a>,
    body: Body<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Body<'a> {
    text: Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Text<'a> {
    data: &'a str,
    charset: &'static str,
}

/// A message tag. SES counts deliveries and complaints by tags.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Tag<'a> {
    name: &'static str,
    value: &'a str,
}

fn request<'a>(message: &'a Message, from: &'a str, configuration_set_name: &'a str) -> SendEmail<'a> {
    let text = |data| Text { data, charset: "UTF-8" };
    SendEmail {
        from_email_address: from,
        destination: Destination { to_addresses: [message.to().as_str()] },
        content: Content {
            simple: Simple { subject: text(message.subject()), body: Body { text: text(message.text()) } },
        },
        configuration_set_name,
        email_tags: [Tag { name: "event", value: message.kind().as_str() }],
    }
}

/// Classifies an unsuccessful response. The error has only SES's code, because SES's text quotes
/// addresses.
fn judge(response: &Response) -> MailError {
    let code = response.json_error().unwrap_or_else(|| format!("status {}", response.status));
    match code.as_str() {
        "MessageRejected" | "BadRequestException" => MailError::Rejected(code),
        "TooManyRequestsException"
        | "LimitExceededException"
        | "ThrottlingException"
        | "Throttling"
        | "ServiceUnavailable" => MailError::Throttled(code),
        "AccountSuspendedException"
        | "MailFromDomainNotVerifiedException"
        | "NotFoundException"
        | "SendingPausedException"
        | "AccessDeniedException"
        | "UnrecognizedClientException"
        | "ExpiredTokenException" => MailError::Refused(code),
        _ => MailError::Unknown(code),
    }
}

impl From<CallError> for MailError {
    fn from(error: CallError) -> Self {
        match error.failure {
            // The credentials cannot be read, or the endpoint is not an address.
            Failure::Invalid(reason) => Self::Refused(reason),
            // Without a connection the request cannot have arrived.
            failure @ Failure::NotConnected(_) => Self::Throttled(failure.to_string()),
            failure => Self::Unknown(failure.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_of_ses_means_rejected_throttled_refused_or_unknown() {
        let judged = |code: &str| {
            let body = format!("{{\"__type\":\"{code}\",\"message\":\"ann@example.com\"}}");
            judge(&Response { status: 400, body: body.into(), ..Response::default() })
        };
        let said = |code: &str| code.to_owned();
        for code in ["MessageRejected", "BadRequestException"] {
            assert_eq!(judged(code), MailError::Rejected(said(code)));
        }
        for code in ["TooManyRequestsException", "LimitExceededException", "ThrottlingException", "Throttling"] {
            assert_eq!(judged(code), MailError::Throttled(said(code)));
        }
        for code in [
            "AccountSuspendedException",
            "MailFromDomainNotVerifiedException",
            "NotFoundException",
            "SendingPausedException",
            "AccessDeniedException",
            "ExpiredTokenException",
        ] {
            assert_eq!(judged(code), MailError::Refused(said(code)));
        }
        assert_eq!(judged("InternalServiceException"), MailError::Unknown(said("InternalServiceException")));
        let bare = Response { status: 502, ..Response::default() };
        assert_eq!(judge(&bare), MailError::Unknown("status 502".to_owned()));
    }

    #[test]
    fn a_message_without_a_connection_or_a_valid_request_was_certainly_not_sent() {
        let certain = |failure| MailError::from(CallError { failure, attempts: 1 }).is_certain();
        assert!(certain(Failure::NotConnected(aws::NoConnection::Refused)));
        assert!(certain(Failure::Invalid("no credentials".to_owned())));
        assert!(![Failure::Timeout, Failure::Broken, Failure::TooLong(1)].into_iter().any(certain));
    }
}
