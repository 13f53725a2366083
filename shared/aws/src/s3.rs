//! A bucket of S3: its address, its object names, and the XML of its responses.

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_xml::decode::{Document, XmlDecodeError, try_data};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{SHA256, digest};

use crate::service::{Api, Call, CallError, Failure, Limits, Response, Service, Signing, Variant, configured};
use crate::{SetupError, is_transient};

/// The header with an object's SHA-256 checksum.
pub const CHECKSUM: &str = "x-amz-checksum-sha256";

/// Characters that stay unencoded in an address, by the rules of Signature Version 4.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const IN_PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// A bucket. Clones share connections.
#[derive(Debug, Clone)]
pub struct Bucket {
    service: Service,
    name: String,
}

impl Bucket {
    /// Creates the client of a bucket in a region, at `address` or else at AWS's own address.
    pub fn new(
        name: &str,
        region: &str,
        address: Option<&str>,
        credentials: SharedCredentialsProvider,
    ) -> Result<Self, SetupError> {
        Self::at(&base(name, region, address, Variant::default()), name, region, credentials)
    }

    /// Creates the client of a bucket from the environment: `variable` names the bucket, and the
    /// SDK's variables give region, credentials and endpoint.
    pub fn from_env(variable: &'static str) -> Result<Self, SetupError> {
        let (name, region) = (crate::variable(variable)?, crate::region()?);
        let base = base(&name, &region, configured(Api::S3).as_deref(), Variant::from_env());
        Self::at(&base, &name, &region, crate::credentials())
    }

    fn at(base: &str, name: &str, region: &str, credentials: SharedCredentialsProvider) -> Result<Self, SetupError> {
        let signing = Signing::new(Api::S3.signed_as(), region, credentials);
        Ok(Self { service: Service::new(crate::connector()?, base, Some(signing)), name: name.to_owned() })
    }

    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { service: self.service.with_limits(limits), ..self }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a call. The call's path is the path of an object ([`object`]). For the bucket itself,
    /// it is `/` with a query. The call may be sent several times, so it must be safe to repeat.
    ///
    /// # Errors
    /// [`CallError`]. Its failure is [`Failure::Broken`] also when an object does not match its
    /// checksum.
    pub async fn call(&self, call: &Call<'_>) -> Result<Response, CallError> {
        let response = self.service.call(call, |response| is_passing(call, response)).await?;
        match is_damaged(call, &response) {
            false => Ok(response),
            true => Err(CallError { failure: Failure::Broken, attempts: response.attempts }),
        }
    }

    /// Returns a presigned address, as [`Service::presign`].
    pub async fn presign(&self, call: &Call<'_>, from: SystemTime, life: Duration) -> Result<String, Failure> {
        self.service.presign(call, from, life).await
    }
}

#[must_use]
pub fn object(name: &str) -> String {
    format!("/{}", utf8_percent_encode(name, IN_PATH))
}

#[must_use]
pub fn query(value: &str) -> String {
    utf8_percent_encode(value, UNRESERVED).to_string()
}

#[must_use]
pub fn checksum(body: &[u8]) -> String {
    STANDARD.encode(digest(&SHA256, body))
}

/// Returns the error code of a response, or `None` if its body is not an error document.
#[must_use]
pub fn error_code(response: &Response) -> Option<String> {
    error(std::str::from_utf8(&response.body).ok()?).ok().flatten()
}

fn error(xml: &str) -> Result<Option<String>, XmlDecodeError> {
    let mut document = Document::new(xml);
    let mut root = document.root_element()?;
    if !root.start_el().matches("Error") {
        return Ok(None);
    }
    while let Some(mut tag) = root.next_tag() {
        if tag.start_el().matches("Code") {
            return Ok(Some(try_data(&mut tag)?.into_owned()));
        }
    }
    Ok(None)
}

/// Returns the base address of a bucket. AWS expects the bucket in the host name, unless AWS's
/// certificate would not cover that name. Any other endpoint has one host, so the bucket is in the
/// path.
fn base(bucket: &str, region: &str, address: Option<&str>, variant: Variant) -> String {
    match address {
        Some(address) => format!("{}/{bucket}", address.trim_end_matches('/')),
        None if bucket.contains('.') => format!("{}/{bucket}", Api::S3.address(region, variant)),
        None => format!("https://{bucket}.{}", Api::S3.host(region, variant)),
    }
}

fn is_passing(call: &Call<'_>, response: &Response) -> bool {
    match response.status {
        // S3 may begin the response to a copy with status 200 and then send an error document.
        200 => (call.method == Method::PUT && error_code(response).is_some()) || is_damaged(call, response),
        status => is_transient(status, error_code(response).as_deref()),
    }
}

/// Returns whether an object does not match its checksum. A checksum with a hyphen is made of the
/// checksums of several parts, and is not compared.
fn is_damaged(call: &Call<'_>, response: &Response) -> bool {
    let sum = response.header(CHECKSUM).filter(|sum| !sum.contains('-'));
    call.method == Method::GET && response.status == 200 && sum.is_some_and(|sum| sum != checksum(&response.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &'static str) -> Response {
        Response { status, body: body.into(), ..Response::default() }
    }

    #[test]
    fn the_name_of_a_bucket_is_in_the_host_at_aws_and_in_the_path_elsewhere() {
        let fips = Variant { fips: true, dual_stack: true };
        for (bucket, address, variant, expected) in [
            ("shop", None, Variant::default(), "https://shop.s3.eu-west-1.amazonaws.com"),
            ("shop", None, fips, "https://shop.s3-fips.dualstack.eu-west-1.amazonaws.com"),
            ("shop.example", None, Variant::default(), "https://s3.eu-west-1.amazonaws.com/shop.example"),
            ("shop", Some("http://127.0.0.1:1/"), fips, "http://127.0.0.1:1/shop"),
        ] {
            assert_eq!(base(bucket, "eu-west-1", address, variant), expected);
        }
    }

    #[test]
    fn names_are_encoded_once_and_keep_their_slashes() {
        assert_eq!(object("a b/ä+%~(c)//..;="), "/a%20b/%C3%A4%2B%25~%28c%29//..%3B%3D");
        assert_eq!(query("a b/c&d"), "a%20b%2Fc%26d");
    }

    #[test]
    fn a_response_with_a_transient_error_code_is_transient_even_with_status_200() {
        let error = "<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code><Message>We</Message></Error>";
        for (status, body, again) in [
            (200, "", false),
            (200, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>", false),
            (200, error, true),
            (404, "<Error><Code>NoSuchKey</Code></Error>", false),
            (403, "<Error><Code>AccessDenied</Code></Error>", false),
            (400, "<Error><Message>slow</Message><Code>RequestTimeout</Code></Error>", true),
            (400, "<Error><Code>Throttling</Code></Error>", true),
            (409, "<Error><Code>ConditionalRequestConflict</Code></Error>", false),
            (429, "", true),
            (500, error, true),
            (503, "<Error><Code>SlowDown</Code></Error>", true),
        ] {
            assert_eq!(is_passing(&Call::new(Method::PUT, "/a"), &response(status, body)), again, "{status} {body}");
        }
        // A stored object may itself look like an error document.
        assert!(!is_passing(&Call::new(Method::GET, "/a"), &response(200, error)));
        assert_eq!(error_code(&response(500, error)).as_deref(), Some("InternalError"));
        for body in ["", "Error", "<html><Code>1</Code></html>", "<Error>", "{}"] {
            assert_eq!(error_code(&response(500, body)), None, "{body}");
        }
    }
}
