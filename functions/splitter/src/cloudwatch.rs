//! The one call to CloudWatch: `GetInsightRuleReport`, in its JSON protocol, signed here.
//!
//! A crate of the SDK for it would bring a second serialization and compression for calls that are never made. Reading a report changes nothing, so
//! it is asked again after every failure that may pass.

use std::time::{Duration, SystemTime};

use aws::Connector;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::http::HttpConnector as _;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use http::{Request, header};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde_json::json;
use table::Backoff;
use tokio::time::timeout;

use crate::report::{MAX_CONTRIBUTORS, PERIOD_SECONDS, Report};

/// One attempt, from connecting to the last byte of the answer.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// Several times what a hundred of the longest keys take.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The operation, by the name that the service has in this protocol.
const TARGET: &str = "GraniteServiceVersion20100801.GetInsightRuleReport";
const MEDIA_TYPE: &str = "application/x-amz-json-1.0";
/// The service, as signatures name it.
const SERVICE: &str = "monitoring";

/// There is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The call cannot be made, or is refused: so will the next.
    #[error("CloudWatch gives no report: {0}")]
    Refused(String),
    /// CloudWatch did not answer, or was busy, until the time was used up.
    #[error("CloudWatch cannot be reached: {0}")]
    Unavailable(String),
}

/// What an attempt ends with that did not succeed.
enum Failure {
    /// The next may.
    Passing(String),
    Lasting(String),
}

/// The error of the JSON protocol.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default, rename = "__type")]
    kind: String,
}

/// CloudWatch in one region.
#[derive(Debug)]
pub struct CloudWatch {
    connector: Connector,
    endpoint: String,
    region: String,
    credentials: SharedCredentialsProvider,
}

impl CloudWatch {
    /// From the environment: `AWS_REGION`, the SDK's variables of credentials, and `AWS_ENDPOINT_URL_CLOUDWATCH` where it is another one.
    ///
    /// # Errors
    /// [`aws::SetupError`].
    pub fn from_env() -> Result<Self, aws::SetupError> {
        let region = aws::variable("AWS_REGION")?;
        let endpoint = aws::variable("AWS_ENDPOINT_URL_CLOUDWATCH").unwrap_or_else(|_| endpoint(&region));
        let credentials = SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new());
        Ok(Self::new(aws::connector()?, endpoint, region, credentials))
    }

    /// At an address without a path.
    #[must_use]
    pub fn new(connector: Connector, endpoint: String, region: String, credentials: SharedCredentialsProvider) -> Self {
        Self { connector, endpoint, region, credentials }
    }

    /// The contributors of a rule that counted most from one time to another, in seconds since 1970, minute by minute.
    ///
    /// # Errors
    /// [`ReportError`].
    pub async fn report(&self, rule: &str, (from, to): (i64, i64)) -> Result<Report, ReportError> {
        let body = json!({
            "RuleName": rule,
            "StartTime": from,
            "EndTime": to,
            "Period": PERIOD_SECONDS,
            "MaxContributorCount": MAX_CONTRIBUTORS,
        })
        .to_string();
        let mut backoff = Backoff::new();
        loop {
            let attempt = timeout(ATTEMPT_TIMEOUT, self.attempt(&body)).await;
            match attempt.unwrap_or_else(|_| Err(Failure::Passing("no answer in time".to_owned()))) {
                Ok(report) => return Ok(report),
                Err(Failure::Lasting(reason)) => return Err(ReportError::Refused(reason)),
                Err(Failure::Passing(reason)) => {
                    tracing::debug!(reason, "no report of throttled keys");
                    if !backoff.wait().await {
                        return Err(ReportError::Unavailable(reason));
                    }
                }
            }
        }
    }

    async fn attempt(&self, body: &str) -> Result<Report, Failure> {
        let request = self.signed(body).await?;
        let answer = self.connector.call(request).await.map_err(|error| {
            let reason = if error.is_timeout() { "no connection in time" } else { "no connection, or it was closed" };
            if error.is_user() { Failure::Lasting(error.to_string()) } else { Failure::Passing(reason.to_owned()) }
        })?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
        let body = body.map_err(|_| Failure::Passing("the answer broke off".to_owned()))?.to_bytes();
        if status == 200 {
            return serde_json::from_slice(&body).map_err(|error| Failure::Lasting(format!("not a report: {error}")));
        }
        let Refusal { kind } = serde_json::from_slice(&body).unwrap_or_default();
        let code = kind.rsplit('#').next().unwrap_or_default();
        let reason = format!("status {status} {code}");
        let is_passing = status == 429 || status >= 500 || code.starts_with("Throttling");
        Err(if is_passing { Failure::Passing(reason) } else { Failure::Lasting(reason) })
    }

    async fn signed(&self, body: &str) -> Result<HttpRequest, Failure> {
        let request = Request::post(format!("{}/", self.endpoint.trim_end_matches('/')))
            .header(header::CONTENT_TYPE, MEDIA_TYPE)
            .header("x-amz-target", TARGET);
        let mut request = request.body(SdkBody::from(body)).map_err(lasting)?;
        let credentials = self.credentials.provide_credentials().await.map_err(lasting)?;
        let identity = credentials.into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(lasting)?
            .into();
        let uri = request.uri().to_string();
        let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let body = SignableBody::Bytes(body.as_bytes());
        let signable = SignableRequest::new(request.method().as_str(), uri, headers, body).map_err(lasting)?;
        let (instructions, _) = sign(signable, &params).map_err(lasting)?.into_parts();
        instructions.apply_to_request_http1x(&mut request);
        request.try_into().map_err(lasting)
    }
}

/// Where CloudWatch is in a region. (AWS General Reference, "Amazon CloudWatch endpoints and quotas".)
fn endpoint(region: &str) -> String {
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://monitoring.{region}.{suffix}")
}

fn lasting(error: impl std::error::Error) -> Failure {
    Failure::Lasting(error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use aws_credential_types::Credentials;

    use super::*;

    #[tokio::test]
    async fn a_call_names_the_operation_and_is_signed_for_the_service() {
        let credentials = Credentials::new("AKID", "secret", Some("token".to_owned()), None, "test");
        let credentials = SharedCredentialsProvider::new(credentials);
        let cloudwatch = CloudWatch::new(
            aws::connector().unwrap(),
            "http://localhost:1".to_owned(),
            "eu-central-1".to_owned(),
            credentials,
        );
        let Ok(request) = cloudwatch.signed("{}").await else { panic!("it can be signed") };
        let header = |name| request.headers().get(name).unwrap_or_default().to_owned();
        assert_eq!((request.method(), request.uri()), ("POST", "http://localhost:1/"));
        assert_eq!(header("x-amz-target"), "GraniteServiceVersion20100801.GetInsightRuleReport");
        assert_eq!(header("content-type"), "application/x-amz-json-1.0");
        assert_eq!(header("x-amz-security-token"), "token");
        let authorization = header("authorization");
        assert!(authorization.contains("/eu-central-1/monitoring/aws4_request"), "{authorization}");
        let signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,";
        assert!(authorization.contains(signed), "{authorization}");
    }

    #[test]
    fn every_partition_of_aws_has_its_own_suffix() {
        assert_eq!(endpoint("eu-central-1"), "https://monitoring.eu-central-1.amazonaws.com");
        assert_eq!(endpoint("cn-north-1"), "https://monitoring.cn-north-1.amazonaws.com.cn");
    }
}
