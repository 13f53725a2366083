use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyper::http::HeaderValue;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::message::{Mail, SendEmail, reports};
use crate::access::{Access, Denied, Need};
use crate::endpoint::{Answer, Endpoint, Service, json_answer};
use crate::events::ServiceEvents;
use crate::faults::{FaultKind, Faults};
use crate::log::{Log, Page};

const KEPT: usize = 50_000;

const MEDIA_TYPE: &str = "application/json";

/// An in-process mail service that responds as SES does and sends nothing. Dropping the value ends
/// the server.
pub struct MailServer {
    endpoint: Endpoint,
    outbox: Arc<Outbox>,
}

impl MailServer {
    /// Opens a loopback port and serves there. Needs a Tokio runtime.
    pub async fn start() -> io::Result<Self> {
        Self::serve(Log::new(KEPT)).await
    }

    /// Works like [`MailServer::start`], and keeps messages in a file. At the start it reads
    /// earlier messages from the file.
    pub async fn open(history: &Path) -> io::Result<Self> {
        Self::serve(Log::open(history, KEPT)?).await
    }

    async fn serve(sent: Log<Mail>) -> io::Result<Self> {
        let outbox = Arc::new(Outbox { sent, bus: OnceLock::new() });
        Ok(Self { endpoint: Endpoint::start(Arc::clone(&outbox), Faults::default()).await?, outbox })
    }

    /// Sends the events of bounces and complaints to a bus. Only the first call has an effect.
    pub fn report_to(&self, bus: ServiceEvents) {
        let _ = self.outbox.bus.set(bus);
    }

    /// Skips the first `after` accepted messages, and returns at most `limit` of the following
    /// messages. The newest 50,000 are kept. After a restart at most 20,000 are left.
    #[must_use]
    pub fn sent(&self, after: u64, limit: usize) -> Page<Mail> {
        self.outbox.sent.page(after, limit)
    }

    /// Returns the number of accepted messages that are no longer kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.outbox.sent.dropped()
    }
}

impl Deref for MailServer {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

struct Outbox {
    sent: Log<Mail>,
    bus: OnceLock<ServiceEvents>,
}

/// The part of a request that determines which permissions it needs.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Sender {
    from_email_address: Option<String>,
    configuration_set_name: Option<String>,
}

impl Service for Outbox {
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        if request.method() != Method::POST || request.uri().path() != "/v2/email/outbound-emails" {
            return error(StatusCode::NOT_FOUND, "UnknownOperationException", "only SendEmail is supported");
        }
        let mail = serde_json::from_slice::<SendEmail>(request.body()).map_err(|refused| refused.to_string());
        match mail.and_then(|mail| mail.message(message_id(), now())) {
            Ok(mail) => {
                let (answer, reports) = (json!({"MessageId": mail.message_id}), reports(&mail));
                self.sent.push(mail);
                if let Some(bus) = self.bus.get() {
                    for (detail_type, detail) in reports {
                        bus.send("aws.ses", detail_type, detail).await;
                    }
                }
                json_answer(MEDIA_TYPE, StatusCode::OK, &answer)
            }
            Err(reason) => error(StatusCode::BAD_REQUEST, "BadRequestException", &reason),
        }
    }

    fn refusal(&self, kind: FaultKind, _: &Request<Bytes>) -> Option<Answer> {
        match kind {
            FaultKind::Throttle => {
                Some(error(StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsException", "Maximum sending rate exceeded."))
            }
            FaultKind::Error => Some(error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalServiceException",
                "An internal error occurred.",
            )),
            _ => None,
        }
    }

    /// The permission names the sender's domain, because the emulator does not verify single
    /// addresses.
    fn needs(&self, request: &Request<Bytes>, access: &Access) -> Vec<Need> {
        let read = serde_json::from_slice::<Sender>(request.body()).ok();
        let (sender, set) = read.map(|read| (read.from_email_address, read.configuration_set_name)).unwrap_or_default();
        let sender = sender.unwrap_or_default();
        let domain = sender.rsplit_once('@').map_or("", |(_, domain)| domain.trim_end_matches('>'));
        let set = set.map(|set| format!("configuration-set/{set}"));
        let resources = [Some(format!("identity/{domain}")), set].into_iter().flatten();
        resources.map(|resource| Need::new("ses:SendEmail", access.arn("ses", &resource))).collect()
    }

    fn forbidden(&self, denied: &Denied) -> Answer {
        let mut answer = error(StatusCode::FORBIDDEN, "AccessDeniedException", "");
        *answer.body_mut() = Bytes::from(json!({"Message": denied.to_string()}).to_string()).into();
        answer
    }
}

/// Returns an id in SES's form: time, random number and suffix.
fn message_id() -> String {
    let millis = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    format!("{millis:016x}-{:016x}-000000", fastrand::u64(..))
}

fn now() -> String {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default()
}

fn error(status: StatusCode, code: &'static str, message: &str) -> Answer {
    let mut answer = json_answer(MEDIA_TYPE, status, &json!({"message": message}));
    answer.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(code));
    answer
}
