//! Verifies requests that have a signature in their query. Clients send such requests to a URL that
//! a function has created.
//!
//! A signature in the headers comes from a function, so the store does not verify it. The store
//! verifies a signature in the query as S3 does. It checks the date, the expiry, and the Signature
//! Version 4 over method, path, query and signed headers. In this emulator the secret access key
//! equals the access key id.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::{HeaderMap, Request};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::problem::Problem;

/// Characters to percent-encode in a canonical request: all except letters, digits and these four.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SIGNATURE: &str = "X-Amz-Signature";
/// Maximum lifetime of a URL, in seconds: a week.
const MAX_LIFE: u64 = 7 * 24 * 60 * 60;
/// Maximum difference between the clocks of signer and store.
const SKEW: Duration = Duration::from_secs(15 * 60);

pub(super) struct Presigned(BTreeMap<String, String>);

impl Presigned {
    /// Removes the signature's parameters from a request's parameters. Returns `None`, and removes
    /// nothing, if the request has no `X-Amz-Algorithm`.
    pub(super) fn take(parameters: &mut BTreeMap<String, String>) -> Option<Self> {
        parameters.contains_key("X-Amz-Algorithm").then(|| {
            let all = parameters.clone();
            parameters.retain(|name, _| !name.starts_with("X-Amz-"));
            Self(all)
        })
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.0.get("X-Amz-Security-Token").map(String::as_str)
    }

    /// Rejects a request that differs from the signed request, has expired, or is not valid yet.
    pub(super) fn check(&self, request: &Request<Bytes>, now: SystemTime) -> Result<(), Problem> {
        let get = |name: &str| self.0.get(name).map(String::as_str).ok_or(Problem::query());
        let (date, signed) = (get("X-Amz-Date")?, get("X-Amz-SignedHeaders")?);
        if get("X-Amz-Algorithm")? != ALGORITHM {
            return Err(Problem::query());
        }
        let life = get("X-Amz-Expires")?.parse().ok().filter(|life| (1..=MAX_LIFE).contains(life));
        let life = Duration::from_secs(life.ok_or(Problem::query())?);
        let (key, scope) = get("X-Amz-Credential")?.split_once('/').ok_or(Problem::query())?;
        let [day, region, "s3", "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
            return Err(Problem::query());
        };
        let at = instant(date).filter(|_| date.starts_with(day)).ok_or(Problem::query())?;
        let canonical = canonical(request, &self.0, signed)?;
        let hash = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
        let text = format!("{ALGORITHM}\n{date}\n{scope}\n{hash}");
        let secret = [day, region, "s3", "aws4_request"].into_iter().fold(format!("AWS4{key}").into_bytes(), hmac);
        let signature = unhex(get(SIGNATURE)?).ok_or(Problem::signature())?;
        if verify(&Key::new(HMAC_SHA256, &secret), text.as_bytes(), &signature).is_err() {
            return Err(Problem::signature());
        }
        if now > at + life {
            return Err(Problem::expired());
        }
        if at > now + SKEW {
            return Err(Problem::early());
        }
        all_signed(request.headers(), signed)
    }
}

/// Rejects `x-amz-` headers that the signature does not cover, as S3 does.
fn all_signed(headers: &HeaderMap, signed: &str) -> Result<(), Problem> {
    let is_signed = |name: &str| signed.split(';').any(|signed| signed == name);
    let is_own = |name: &&str| name.starts_with("x-amz-");
    if headers.keys().map(|name| name.as_str()).filter(is_own).all(is_signed) && is_signed("host") {
        Ok(())
    } else {
        Err(Problem::unsigned())
    }
}

fn canonical(request: &Request<Bytes>, query: &BTreeMap<String, String>, signed: &str) -> Result<String, Problem> {
    let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let mut pairs: Vec<(String, String)> = query
        .iter()
        .filter(|(name, _)| *name != SIGNATURE)
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort();
    let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut headers = String::new();
    for name in signed.split(';') {
        // Every signed header must be present. So the store refuses an upload without the signed
        // `content-length`, such as an upload in chunks.
        let values: Vec<&str> =
            request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        if values.is_empty() {
            return Err(Problem::signature());
        }
        headers.push_str(&format!("{name}:{}\n", values.join(",").trim()));
    }
    let (method, path) = (request.method(), request.uri().path());
    Ok(format!("{method}\n{path}\n{}\n{headers}\n{signed}\nUNSIGNED-PAYLOAD", query.join("&")))
}

fn hmac(key: Vec<u8>, text: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, &key), text.as_bytes()).as_ref().to_vec()
}

fn instant(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let part = |text: &str, from, to| text.get(from..to).map(str::to_owned);
    let date = [part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?].join("-");
    let time = [part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?].join(":");
    OffsetDateTime::parse(&format!("{date}T{time}Z"), &Rfc3339).ok().map(Into::into)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Tests the example of S3's documentation, "Authenticating Requests: Using Query Parameters".
    #[test]
    fn the_computed_signature_equals_the_signature_in_the_documentation() {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let uri = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE\
                   %2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                   &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host";
        let request =
            Request::builder().uri(uri).header("host", "examplebucket.s3.amazonaws.com").body(Bytes::new()).unwrap();
        let query = super::super::request::parameters(request.uri().query().unwrap()).unwrap();
        let text = canonical(&request, &query, "host").unwrap();
        let hash = hex(digest(&SHA256, text.as_bytes()).as_ref());
        assert_eq!(hash, "3bfa292879f6447bbcda7001decf97f4a54dc650c8942174ae0a9121cf58ad04");
        let text = format!("{ALGORITHM}\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n{hash}");
        let key = ["20130524", "us-east-1", "s3", "aws4_request"];
        let key = key.into_iter().fold(format!("AWS4{secret}").into_bytes(), hmac);
        assert_eq!(hex(&hmac(key, &text)), "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
    }
}
