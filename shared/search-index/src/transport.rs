//! One HTTP call to the engine: bounded in time and size, signed where the endpoint wants it, and
//! attempted again while the engine is busy.
//!
//! Every call of this client may be made twice without harm: reads are reads, and writes carry an
//! external version. So every transient failure is retried, whatever the method.

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::{Instant, sleep, timeout_at};

use crate::config::{Limits, SearchConfig, Signing};
use crate::error::SearchError;

/// The longest answer that is read. A page of 1,000 hits or the outcomes of a full bulk request stay
/// far below.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Transport {
    connector: SharedHttpConnector,
    endpoint: Uri,
    limits: Limits,
    signing: Option<Signing>,
}

/// What is asked. `path` begins with `/` and may hold a query string.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// What the engine said, other than "later".
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub body: Vec<u8>,
}

impl Transport {
    pub(crate) fn new(config: &SearchConfig) -> Self {
        // The read timeout is left to `Limits::attempt`, which also covers the answer's body.
        let settings = HttpConnectorSettings::builder().connect_timeout(config.limits.connect).build();
        let builder = Connector::builder().connector_settings(settings);
        // Loading the root certificates is most of what building a TLS connector costs.
        let connector = if config.is_encrypted() {
            builder.tls_provider(Provider::Rustls(CryptoMode::Ring)).build()
        } else {
            builder.build_http()
        };
        Self {
            connector: SharedHttpConnector::new(connector),
            endpoint: config.endpoint.clone(),
            limits: config.limits,
            signing: config.signing.clone(),
        }
    }

    /// When a call that begins now must have ended.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.limits.total
    }

    /// Makes the call, again and again while the engine answers 429, 502, 503, 504 or nothing,
    /// until the attempts or the time are used up.
    pub(crate) async fn call(&self, call: &Call<'_>, deadline: Instant) -> Result<Answer, SearchError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reason = match self.attempt(call, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Permanent(error)) => return Err(error),
                Err(Failure::Transient(reason)) => reason,
            };
            tracing::debug!(attempts, reason, "search call failed");
            if !self.pause(attempts, deadline).await {
                return Err(SearchError::Unavailable { attempts, reason });
            }
        }
    }

    /// Waits before the next attempt; `false` if there is to be none.
    pub(crate) async fn pause(&self, attempts: u32, deadline: Instant) -> bool {
        if attempts >= self.limits.attempts {
            return false;
        }
        let pause = full_jitter(self.limits.backoff, attempts);
        if Instant::now() + pause >= deadline {
            return false;
        }
        sleep(pause).await;
        true
    }

    async fn attempt(&self, call: &Call<'_>, deadline: Instant) -> Result<Answer, Failure> {
        let deadline = deadline.min(Instant::now() + self.limits.attempt);
        timeout_at(deadline, self.exchange(call))
            .await
            .unwrap_or_else(|_| Err(Failure::Transient("no answer in time".to_owned())))
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Answer, Failure> {
        let request = self.request(call).await.map_err(Failure::Permanent)?;
        let response = self.connector.call(request).await.map_err(Failure::from_connector)?;
        let status = StatusCode::from_u16(response.status().as_u16())
            .map_err(|error| Failure::Permanent(SearchError::Answer(error.to_string())))?;
        if is_transient(status.as_u16()) {
            return Err(Failure::Transient(format!("status {}", status.as_u16())));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Failure::Permanent(SearchError::Answer(format!("longer than {MAX_ANSWER_BYTES} bytes")))
            } else {
                Failure::Transient("the answer broke off".to_owned())
            }
        })?;
        Ok(Answer { status, body: body.to_bytes().into() })
    }

    async fn request(
        &self,
        call: &Call<'_>,
    ) -> Result<aws_smithy_runtime_api::client::orchestrator::HttpRequest, SearchError> {
        let mut parts = self.endpoint.clone().into_parts();
        parts.path_and_query = Some(call.path.parse().map_err(bad_request)?);
        let uri = Uri::from_parts(parts).map_err(bad_request)?;
        let mut request = Request::builder().method(&call.method).uri(uri);
        if !call.body.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, call.content_type);
        }
        let mut request = request.body(SdkBody::from(call.body.clone())).map_err(bad_request)?;
        if let Some(signing) = &self.signing {
            add_signature(&mut request, &call.body, signing).await?;
        }
        request.try_into().map_err(bad_request)
    }
}

async fn add_signature(request: &mut Request<SdkBody>, body: &[u8], signing: &Signing) -> Result<(), SearchError> {
    let credentials = signing.credentials.provide_credentials().await.map_err(bad_request)?;
    let identity = credentials.into();
    let mut settings = SigningSettings::default();
    // Serverless requires the body's hash as a header; the Service accepts it.
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let params = SigningParams::builder()
        .identity(&identity)
        .region(&signing.region)
        .name(signing.service)
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .map_err(bad_request)?
        .into();
    let uri = request.uri().to_string();
    let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let signable = SignableRequest::new(request.method().as_str(), uri, headers, SignableBody::Bytes(body))
        .map_err(bad_request)?;
    let (instructions, _signature) = sign(signable, &params).map_err(bad_request)?.into_parts();
    instructions.apply_to_request_http1x(request);
    Ok(())
}

fn bad_request(error: impl std::error::Error) -> SearchError {
    SearchError::Request(error.to_string())
}

/// Whether a status, of an answer or of one item of a bulk answer, says "later".
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// A random pause between nothing and `base` · 2ⁿ⁻¹ after the nth attempt: callers that failed
/// together do not come back together.
fn full_jitter(base: Duration, attempts: u32) -> Duration {
    let ceiling = base.saturating_mul(2u32.saturating_pow(attempts.saturating_sub(1)));
    ceiling.mul_f64(fastrand::f64())
}

enum Failure {
    /// The next attempt may succeed.
    Transient(String),
    Permanent(SearchError),
}

impl Failure {
    fn from_connector(error: ConnectorError) -> Self {
        if error.is_user() {
            Self::Permanent(SearchError::Request(error.to_string()))
        } else if error.is_timeout() {
            Self::Transient("no connection in time".to_owned())
        } else {
            Self::Transient("no connection, or it was closed".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use aws_credential_types::Credentials;
    use aws_credential_types::provider::SharedCredentialsProvider;

    use super::*;

    async fn headers_of(config: SearchConfig) -> impl Fn(&str) -> String {
        headers_with(config, Method::POST, b"{}\n").await
    }

    async fn headers_with(config: SearchConfig, method: Method, body: &[u8]) -> impl Fn(&str) -> String {
        let call = Call { method, path: "/_bulk", content_type: "application/x-ndjson", body: body.to_vec() };
        let request = Transport::new(&config).request(&call).await.unwrap();
        move |name| request.headers().get(name).unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_call_to_serverless_has_the_hash_of_its_body_and_no_signed_length() {
        let credentials = Credentials::new("AKID", "secret", None, None, "test");
        let config = SearchConfig::new("http://example.com", "bodega").unwrap().with_signing(Signing {
            service: "aoss",
            region: "eu-central-1".to_owned(),
            credentials: SharedCredentialsProvider::new(credentials),
        });
        let header = headers_with(config, Method::GET, b"").await;
        let authorization = header("authorization");
        assert!(authorization.contains("/eu-central-1/aoss/aws4_request"), "{authorization}");
        assert!(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date,"), "{authorization}");
        // The hash of nothing, which AWS asks for where there is no body.
        assert_eq!(header("x-amz-content-sha256"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[tokio::test]
    async fn a_signed_call_names_caller_region_and_service_and_covers_the_body() {
        let credentials = Credentials::new("AKID", "secret", Some("token".to_owned()), None, "test");
        let config = SearchConfig::new("http://example.com", "bodega").unwrap().with_signing(Signing {
            service: "es",
            region: "eu-central-1".to_owned(),
            credentials: SharedCredentialsProvider::new(credentials),
        });
        let header = headers_of(config).await;
        let authorization = header("authorization");
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/"), "{authorization}");
        assert!(authorization.contains("/eu-central-1/es/aws4_request"), "{authorization}");
        let signed = "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token";
        assert!(authorization.contains(signed), "{authorization}");
        // printf '{}\n' | sha256sum
        assert_eq!(header("x-amz-content-sha256"), "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356");
        assert_eq!(header("x-amz-security-token"), "token");
    }

    #[tokio::test]
    async fn a_call_without_signing_carries_no_authorization() {
        let header = headers_of(SearchConfig::new("http://example.com", "bodega").unwrap()).await;
        assert_eq!(header("authorization"), "");
        assert_eq!(header("content-type"), "application/x-ndjson");
    }

    #[test]
    fn a_pause_never_exceeds_its_doubling_ceiling() {
        let base = Duration::from_millis(50);
        for (attempts, ceiling) in [(1, 50), (2, 100), (3, 200), (40, u64::from(u32::MAX) * 50)] {
            for _ in 0..100 {
                assert!(full_jitter(base, attempts) <= Duration::from_millis(ceiling));
            }
        }
    }
}
