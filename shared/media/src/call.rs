//! What a function asks of the bucket itself: to describe, copy and delete one object. Each may be done twice.

use std::time::{Duration, SystemTime};

use aws::{Connector, OPERATION_TIMEOUT};
use aws_smithy_runtime_api::client::http::HttpConnector as _;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use http::Request;
use http_body_util::{BodyExt, Limited};
use tokio::time::{sleep, timeout};

use crate::{Media, MediaError};

/// One connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1000);
/// One attempt of one call. A copy of the largest object takes S3 a fraction of it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// After each attempt, the longest wait in milliseconds before the next: full jitter.
const WAITS: [u64; 4] = [50, 100, 200, 0];
/// For how long the URL of a call is good, which nobody else sees.
const CALL_LIFE: Duration = Duration::from_secs(60);
/// The longest answer that is read: an error, or what S3 says of a copy.
const MAX_ANSWER: usize = 64 * 1024;

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its media type.
    pub content_type: String,
    /// Its length.
    pub bytes: u64,
}

struct Answer {
    status: u16,
    content_type: Option<String>,
    length: Option<u64>,
    body: String,
}

impl Media {
    /// What an object is; `None` when it is not there.
    ///
    /// # Errors
    /// [`MediaError`].
    pub async fn describe(&self, name: &str) -> Result<Option<Described>, MediaError> {
        let answer = self.call("HEAD", name, &[]).await?;
        match (answer.status, answer.content_type, answer.length) {
            (200, Some(content_type), Some(bytes)) => Ok(Some(Described { content_type, bytes })),
            (404, ..) => Ok(None),
            (status, ..) => Err(MediaError::Refused(format!("status {status}"))),
        }
    }

    /// Copies an object with its media type, over another of the name; `false` when it is not there.
    ///
    /// # Errors
    /// [`MediaError`]; after [`MediaError::Unavailable`] it may be copied.
    pub async fn copy(&self, from: &str, to: &str) -> Result<bool, MediaError> {
        // The bucket is the last name of the path, or the first of the host.
        let source = format!("{}/{from}", self.bucket());
        let answer = self.call("PUT", to, &[("x-amz-copy-source", source)]).await?;
        match (answer.status, code(&answer.body)) {
            (200, None) => Ok(true),
            (404, Some("NoSuchKey")) => Ok(false),
            (status, code) => Err(MediaError::Refused(code.map_or_else(|| format!("status {status}"), str::to_owned))),
        }
    }

    /// Deletes an object; one that is not there is as good as deleted.
    ///
    /// # Errors
    /// [`MediaError`]; after [`MediaError::Unavailable`] it may be gone.
    pub async fn delete(&self, name: &str) -> Result<(), MediaError> {
        let answer = self.call("DELETE", name, &[]).await?;
        match (answer.status, code(&answer.body)) {
            (200 | 204, _) => Ok(()),
            (status, code) => Err(MediaError::Refused(code.map_or_else(|| format!("status {status}"), str::to_owned))),
        }
    }

    /// Makes a call until there is an answer that does not say "later", as long as there are attempts and time.
    async fn call(&self, method: &str, name: &str, headers: &[(&'static str, String)]) -> Result<Answer, MediaError> {
        let attempts = async {
            let mut reason = String::new();
            for wait in WAITS {
                let url = self.sign(method, name, headers, SystemTime::now(), CALL_LIFE).await?;
                match timeout(ATTEMPT_TIMEOUT, self.attempt(method, &url, headers)).await {
                    Ok(Ok(answer)) if !is_transient(&answer) => return Ok(answer),
                    Ok(Ok(answer)) => reason = format!("status {}", answer.status),
                    Ok(Err(Failure::Permanent(error))) => return Err(error),
                    Ok(Err(Failure::Transient(what))) => what.clone_into(&mut reason),
                    Err(_) => "timeout".clone_into(&mut reason),
                }
                sleep(Duration::from_millis(wait).mul_f64(fastrand::f64())).await;
            }
            Err(MediaError::Unavailable(reason))
        };
        timeout(OPERATION_TIMEOUT, attempts)
            .await
            .unwrap_or_else(|_| Err(MediaError::Unavailable("timeout".to_owned())))
    }

    async fn attempt(&self, method: &str, url: &str, headers: &[(&'static str, String)]) -> Result<Answer, Failure> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(SdkBody::empty()).map_err(Failure::permanent)?;
        let request: HttpRequest = request.try_into().map_err(Failure::permanent)?;
        let answer = self.connector()?.call(request).await.map_err(|error| match error.is_user() {
            true => Failure::permanent(error),
            false => Failure::Transient("no connection, or it was closed"),
        })?;
        let header = |name: &str| answer.headers().get(name).map(str::to_owned);
        let (content_type, length) = (header("content-type"), header("content-length"));
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|_| Failure::Transient("broken answer"))?.to_bytes();
        let length = length.and_then(|length| length.parse().ok());
        Ok(Answer { status, content_type, length, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn bucket(&self) -> &str {
        let rest = self.base.split_once("://").map_or("", |(_, rest)| rest);
        match rest.split_once('/') {
            Some((_, bucket)) => bucket,
            None => rest.split('.').next().unwrap_or_default(),
        }
    }

    fn connector(&self) -> Result<&Connector, Failure> {
        let made = self.connector.get_or_init(|| {
            let tls = aws::tls().map_err(|error| error.to_string())?;
            Ok(Connector::new(tls, CONNECT_TIMEOUT))
        });
        made.as_ref().map_err(|error| Failure::Permanent(MediaError::Refused(error.clone())))
    }
}

enum Failure {
    /// The next attempt may succeed.
    Transient(&'static str),
    Permanent(MediaError),
}

impl Failure {
    fn permanent(error: impl std::error::Error) -> Self {
        Self::Permanent(MediaError::Refused(error.to_string()))
    }
}

/// Whether an answer says "later". That of a copy may begin well and end as an error.
fn is_transient(answer: &Answer) -> bool {
    answer.status == 429 || answer.status >= 500 || (answer.status == 200 && code(&answer.body).is_some())
}

/// The code of an error.
fn code(body: &str) -> Option<&str> {
    let (_, error) = body.split_once("<Error>")?;
    error.split_once("<Code>")?.1.split_once("</Code>").map(|(code, _)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, content_type: None, length: None, body: body.to_owned() }
    }

    #[test]
    fn what_says_later_is_asked_again_also_where_it_says_so_late() {
        let error = "<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code><Message>We</Message></Error>";
        for (status, body, again) in [
            (200, "", false),
            (200, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>", false),
            (200, error, true),
            (404, "<Error><Code>NoSuchKey</Code></Error>", false),
            (403, "<Error><Code>AccessDenied</Code></Error>", false),
            (429, "", true),
            (500, error, true),
            (503, "<Error><Code>SlowDown</Code></Error>", true),
        ] {
            assert_eq!(is_transient(&answer(status, body)), again, "{status} {body}");
        }
        assert_eq!(code(error), Some("InternalError"));
    }
}
