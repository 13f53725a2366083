//! The way out: a port, and SES behind it. The second implementation is the tests', which fail on purpose.

use std::future::Future;
use std::time::Duration;

use aws::SdkConfig;
use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::config::Builder;
use aws_sdk_sesv2::config::retry::RetryConfig;
use aws_sdk_sesv2::config::timeout::TimeoutConfig;
use aws_sdk_sesv2::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sesv2::operation::send_email::{SendEmailError, SendEmailInput};
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message as Simple, MessageTag};
use bus::Kind;

use crate::message::Message;

/// One connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// One request. Patient: an answer that is given up may be of a message that was accepted.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends messages.
pub trait Mailer: Send + Sync {
    /// Hands a message over, at most once: `Ok` when it was accepted.
    fn send(&self, message: &Message) -> impl Future<Output = Result<(), MailError>> + Send;
}

/// Why a message was not sent, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// This message will never be taken: its recipient or content is refused.
    #[error("the message is refused: {0}")]
    Rejected(String),
    /// Not now: more than the account may send in a second or a day. Certainly not sent.
    #[error("the mail service takes no more at the moment: {0}")]
    Throttled(String),
    /// Not from this deployment: the sender is not verified, sending is paused. Certainly not sent.
    #[error("the mail service refuses this deployment: {0}")]
    Refused(String),
    /// No answer, or a broken one: it may have been sent.
    #[error("the mail service did not answer: {0}")]
    Unknown(String),
}

impl MailError {
    /// Whether it is certain that nothing was sent.
    #[must_use]
    pub const fn is_certain(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Amazon Simple Email Service.
#[derive(Debug)]
pub struct Ses {
    client: Client,
    from: String,
}

impl Ses {
    /// With the sender's address. The client has no retries of its own: a request whose answer was lost may be one that was accepted, and
    /// only the claim in the table knows how to go on.
    #[must_use]
    pub fn new(config: &SdkConfig, from: String) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(REQUEST_TIMEOUT)
            .operation_timeout(REQUEST_TIMEOUT)
            .build();
        let config = Builder::from(config).retry_config(RetryConfig::disabled()).timeout_config(timeouts).build();
        Self { client: Client::from_conf(config), from }
    }
}

impl Mailer for Ses {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        let request = request(message, &self.from).map_err(|error| MailError::Rejected(error.to_string()))?;
        let sending = self
            .client
            .send_email()
            .set_from_email_address(request.from_email_address)
            .set_destination(request.destination)
            .set_content(request.content)
            .set_email_tags(request.email_tags);
        match sending.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(judge(&error)),
        }
    }
}

fn request(message: &Message, from: &str) -> Result<SendEmailInput, aws_sdk_sesv2::error::BuildError> {
    let text = |text: &str| Content::builder().data(text).charset("UTF-8").build();
    let body = Body::builder().text(text(message.text())?).build();
    let simple = Simple::builder().subject(text(message.subject())?).body(body).build();
    SendEmailInput::builder()
        .from_email_address(from)
        .destination(Destination::builder().to_addresses(message.to()).build())
        .content(EmailContent::builder().simple(simple).build())
        .email_tags(tag(message.kind())?)
        .build()
}

/// What SES counts deliveries and complaints by.
fn tag(kind: Kind) -> Result<MessageTag, aws_sdk_sesv2::error::BuildError> {
    MessageTag::builder().name("event").value(kind.as_str()).build()
}

/// What a failed request means. Only the code is kept: SES's own words quote addresses.
fn judge<R>(error: &SdkError<SendEmailError, R>) -> MailError {
    let SdkError::ServiceError(service) = error else {
        return match error {
            SdkError::ConstructionFailure(_) => MailError::Rejected("cannot be built".to_owned()),
            // Without a connection nothing can have arrived.
            SdkError::DispatchFailure(failure) if failure.is_user() => MailError::Throttled("no connection".to_owned()),
            SdkError::TimeoutError(_) => MailError::Unknown("timeout".to_owned()),
            _ => MailError::Unknown("connection".to_owned()),
        };
    };
    let code = || service.err().code().unwrap_or("unknown").to_owned();
    match service.err() {
        SendEmailError::MessageRejected(_) | SendEmailError::BadRequestException(_) => MailError::Rejected(code()),
        SendEmailError::TooManyRequestsException(_) | SendEmailError::LimitExceededException(_) => {
            MailError::Throttled(code())
        }
        SendEmailError::AccountSuspendedException(_)
        | SendEmailError::MailFromDomainNotVerifiedException(_)
        | SendEmailError::NotFoundException(_)
        | SendEmailError::SendingPausedException(_) => MailError::Refused(code()),
        _ => match code().as_str() {
            "ThrottlingException" | "Throttling" | "ServiceUnavailable" => MailError::Throttled(code()),
            "AccessDeniedException" | "UnrecognizedClientException" | "ExpiredTokenException" => {
                MailError::Refused(code())
            }
            _ => MailError::Unknown(code()),
        },
    }
}
