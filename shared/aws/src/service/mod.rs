//! Calls of AWS services that need no SDK crate, and of other HTTP services. This module builds,
//! signs, limits, sends and retries a request.
//!
//! An SDK crate for one operation costs tens of seconds of every build. This module has the parts
//! of an SDK that Bodega needs:
//!
//! - endpoints ([`Api`])
//! - Signature Version 4 in headers and in queries
//! - a time limit for each attempt and for the whole call
//! - retries with full jitter
//! - a limit for the size of a response
//!
//! The caller writes the body, reads the response and says which responses are transient.

mod answer;
mod endpoint;
mod sign;

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub use answer::{Response, is_transient};
pub use endpoint::Api;
pub(crate) use endpoint::{Variant, configured, is_of_aws};
pub use sign::Signing;

use crate::connector::{Connector, NoConnection, SendError};
use crate::{ATTEMPT_TIMEOUT, ATTEMPTS, OPERATION_TIMEOUT, SetupError};

const MAX_RESPONSE: usize = 64 * 1024;
/// The header that carries a trace. Signatures do not cover it.
const TRACE_HEADER: &str = "x-amzn-trace-id";

/// An HTTP service at one address. Clones share connections.
#[derive(Debug, Clone)]
pub struct Service {
    connector: Connector,
    base: String,
    signing: Option<Signing>,
    limits: Limits,
}

/// The time limits of a call and its number of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time limit of one attempt, from its start to the head of the response. Each wait for a
    /// further part of the body has the same limit. The whole body has no other time limit than
    /// the call's deadline.
    pub attempt: Duration,
    /// The time limit of the whole call with all attempts and pauses.
    pub total: Duration,
    /// The number of attempts, the first one included.
    pub attempts: u32,
    /// The pause before attempt n+1 is random between zero and `backoff` · 2ⁿ⁻¹ ("full jitter").
    pub backoff: Duration,
}

/// A request, without host and signature.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub method: Method,
    /// The path and the query, percent-encoded. The path begins with `/` and is appended to the
    /// service's address.
    pub path: &'a str,
    /// Headers, with names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body. Attempts share it.
    pub body: Bytes,
    /// The size limit of the response in bytes.
    pub max_response: usize,
}

/// A call without a usable response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct CallError {
    pub failure: Failure,
    pub attempts: u32,
}

/// A reason why an attempt has no usable response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request cannot be built or signed. Every further attempt would fail, too.
    #[error("the request cannot be built or signed: {0}")]
    Invalid(String),
    /// There is no connection. Nothing was sent.
    #[error("no connection: {0}")]
    NotConnected(NoConnection),
    /// There was no response in time. The request may have arrived.
    #[error("timeout")]
    Timeout,
    /// The connection ended before the response did, or the response is damaged. The request may
    /// have arrived.
    #[error("the connection or the response broke off")]
    Broken,
    /// The response is longer than the call allows.
    #[error("the response is longer than {0} bytes")]
    TooLong(usize),
}

impl Failure {
    /// Returns whether the next attempt may succeed.
    const fn is_transient(&self) -> bool {
        matches!(self, Self::NotConnected(_) | Self::Timeout | Self::Broken)
    }

    fn invalid(error: impl std::fmt::Display) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Invalid(cause) => Self::invalid(cause),
            SendError::Connect(cause) => Self::NotConnected(cause),
            SendError::Broken(_) => Self::Broken,
        }
    }
}

impl<'a> Call<'a> {
    /// Creates a request without headers and body. The response may have at most 64 KB.
    #[must_use]
    pub const fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, headers: &[], body: Bytes::new(), max_response: MAX_RESPONSE }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let backoff = Duration::from_millis(200);
        Self { attempt: ATTEMPT_TIMEOUT, total: OPERATION_TIMEOUT, attempts: ATTEMPTS, backoff }
    }
}

impl Limits {
    /// Allows one attempt, for requests that must not be sent twice.
    #[must_use]
    pub const fn once(attempt: Duration) -> Self {
        Self { attempt, total: attempt, attempts: 1, backoff: Duration::ZERO }
    }

    /// Returns the deadline of a call that begins now.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.total
    }

    /// Waits before the next attempt. Returns `false` at once when `attempts` or the deadline allow
    /// no further attempt.
    pub async fn pause(&self, attempts: u32, deadline: Instant) -> bool {
        let pause = self.longest_pause(attempts).mul_f64(fastrand::f64());
        let is_over = attempts >= self.attempts || Instant::now() + pause >= deadline;
        if !is_over {
            sleep(pause).await;
        }
        !is_over
    }

    /// Returns the upper bound of the pause. The bound doubles with each attempt. The pause is
    /// random, so callers that failed at the same time do not retry at the same time.
    fn longest_pause(&self, attempts: u32) -> Duration {
        self.backoff.saturating_mul(2_u32.saturating_pow(attempts.saturating_sub(1)))
    }
}

impl Service {
    /// Creates a service at an address: `http` or `https`, with or without a path. Without
    /// `signing`, its calls are not signed.
    #[must_use]
    pub fn new(connector: Connector, address: &str, signing: Option<Signing>) -> Self {
        let base = address.trim_end_matches('/').to_owned();
        Self { connector, base, signing, limits: Limits::default() }
    }

    /// Creates an AWS service in a region, at `address` or else at AWS's own address.
    pub fn of(
        api: Api,
        region: &str,
        address: Option<&str>,
        credentials: SharedCredentialsProvider,
    ) -> Result<Self, SetupError> {
        let address = address.map_or_else(|| api.address(region, Variant::default()), str::to_owned);
        Ok(Self::new(crate::connector()?, &address, Some(Signing::new(api.signed_as(), region, credentials))))
    }

    /// Creates an AWS service from the SDK's standard variables: region, credentials, endpoint.
    ///
    /// # Errors
    /// [`SetupError::NotSet`] without a region. Otherwise as [`crate::connector()`].
    pub fn from_env(api: Api) -> Result<Self, SetupError> {
        let region = crate::region()?;
        let address = configured(api).unwrap_or_else(|| api.address(&region, Variant::from_env()));
        Self::of(api, &region, Some(&address), crate::credentials())
    }

    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes a call. While the limits allow it, another attempt follows a transient failure or a
    /// response for which `is_transient` is true. Returns the last response, with any status.
    ///
    /// # Errors
    /// [`CallError`] when the last attempt had no usable response.
    pub async fn call(&self, call: &Call<'_>, is_transient: impl Fn(&Response) -> bool) -> Result<Response, CallError> {
        self.call_until(self.limits.deadline(), call, is_transient).await
    }

    /// Like [`Service::call`], with a deadline instead of the limit of the whole call.
    pub async fn call_until(
        &self,
        deadline: Instant,
        call: &Call<'_>,
        is_transient: impl Fn(&Response) -> bool,
    ) -> Result<Response, CallError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let attempt = self.attempt(call, attempts, deadline).await;
            let may_pass = match &attempt {
                Ok(response) => is_transient(response),
                Err(failure) => failure.is_transient(),
            };
            if !may_pass || !self.limits.pause(attempts, deadline).await {
                return attempt.map_err(|failure| CallError { failure, attempts });
            }
            tracing::info!(attempts, "an outbound call is attempted again");
        }
    }

    /// Makes one attempt of a call, and returns the status of the response. Its body is not read.
    ///
    /// # Errors
    /// [`Failure`] without a response in time.
    pub async fn status(&self, call: &Call<'_>) -> Result<u16, Failure> {
        let head = async { Ok(self.connector.send(self.signed(call, SystemTime::now()).await?).await?) };
        let head = timeout(self.limits.attempt, head).await.unwrap_or(Err(Failure::Timeout))?;
        Ok(head.status().as_u16())
    }

    /// Returns a presigned address. Anyone may send the request of `call`, with its headers, to the
    /// address, from the time `from` and for the duration `life`.
    ///
    /// # Errors
    /// [`Failure::Invalid`], also when calls of this service are not signed.
    pub async fn presign(&self, call: &Call<'_>, from: SystemTime, life: Duration) -> Result<String, Failure> {
        let signing = self.signing.as_ref().ok_or_else(|| Failure::invalid("there are no credentials"))?;
        let mut request = self.request(call)?;
        signing.sign_query(&mut request, from, life).await?;
        Ok(request.uri().to_string())
    }

    async fn attempt(&self, call: &Call<'_>, attempts: u32, deadline: Instant) -> Result<Response, Failure> {
        let limit = self.limits.attempt;
        let head = async { Ok(self.connector.send(self.signed(call, SystemTime::now()).await?).await?) };
        let until = deadline.min(Instant::now() + limit);
        let head = timeout_at(until, head).await.unwrap_or(Err(Failure::Timeout))?;
        let whole = Response::read(head, call.max_response, attempts, limit);
        timeout_at(deadline, whole).await.unwrap_or(Err(Failure::Timeout))
    }

    async fn signed(&self, call: &Call<'_>, now: SystemTime) -> Result<Request<SdkBody>, Failure> {
        let mut request = self.request(call)?;
        if let Some(signing) = &self.signing {
            // The trace joins the call to the invocation in X-Ray. AWS also uses it to stop
            // functions that invoke each other in a loop. The SDK sends it, too.
            if let Some(trace) = trace_of_lambda(|name| std::env::var(name).ok()) {
                request.headers_mut().insert(TRACE_HEADER, trace);
            }
            signing.sign_headers(&mut request, &call.body, now).await?;
        }
        Ok(request)
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<SdkBody>, Failure> {
        let mut request = Request::builder().method(&call.method).uri(format!("{}{}", self.base, call.path));
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(SdkBody::from(call.body.clone())).map_err(Failure::invalid)?;
        // The signature covers the host, and its computation panics without a host.
        if request.uri().authority().is_none() {
            return Err(Failure::invalid("the address of the service has no host"));
        }
        Ok(request)
    }
}

/// Returns the trace of the present invocation, or `None` outside of Lambda.
fn trace_of_lambda(variable: impl Fn(&str) -> Option<String>) -> Option<HeaderValue> {
    variable("AWS_LAMBDA_FUNCTION_NAME")?;
    HeaderValue::try_from(variable("_X_AMZN_TRACE_ID")?).ok()
}

#[cfg(test)]
mod tests;
