use std::collections::BTreeMap;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{HeaderMap, Method, Request, header};
use percent_encoding::percent_decode_str;
use ring::digest::{SHA256, digest};

use super::presigned::{Presigned, hex};
use super::problem::Problem;
use super::store::{Kind, MAX_NAME_BYTES, is_name};
use crate::access::Need;

/// The storage classes that the emulator accepts. S3 has further classes.
const CLASSES: [&str; 7] =
    ["STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"];
const MAX_KEYS: usize = 1000;

pub(super) struct Asked {
    pub(super) bucket: String,
    pub(super) call: Call,
}

pub(super) enum Call {
    HeadBucket,
    List(List),
    Get {
        name: String,
        has_checksum: bool,
        /// The ETag of the object that the client has.
        known: Option<String>,
        /// The `Cache-Control` that the response must have.
        cache_control: Option<String>,
    },
    Put {
        name: String,
        kind: Kind,
        new: bool,
    },
    Copy {
        name: String,
        from: Source,
    },
    Delete {
        name: String,
    },
}

pub(super) struct Source {
    pub(super) bucket: String,
    pub(super) name: String,
}

pub(super) struct List {
    pub(super) prefix: String,
    pub(super) start_after: String,
    pub(super) token: Option<String>,
    /// The name after which the list starts, from the token or from `start-after`.
    pub(super) after: String,
    /// Whether names are encoded as in URLs (`encoding-type=url`).
    pub(super) is_encoded: bool,
    pub(super) limit: usize,
}

impl Asked {
    pub(super) fn of(request: &Request<Bytes>) -> Result<Self, Problem> {
        let path = request.uri().path().strip_prefix('/').unwrap_or_default();
        let (bucket, name) = path.split_once('/').unwrap_or((path, ""));
        let (bucket, name) = (decoded(bucket)?, decoded(name)?);
        let mut parameters = parameters(request.uri().query().unwrap_or_default())?;
        // S3 ignores this parameter. It names the SDK's operation.
        parameters.remove("x-id");
        match Presigned::take(&mut parameters) {
            Some(presigned) => presigned.check(request, SystemTime::now())?,
            None if request.headers().contains_key(header::AUTHORIZATION) => {}
            // The response to an unsigned request must not reveal whether an object exists.
            None => return Err(Problem::denied()),
        }
        if name.is_empty() {
            let call = bucket_call(request.method(), parameters)?;
            return Ok(Self { bucket, call });
        }
        let cache_control = match *request.method() {
            Method::GET => parameters.remove("response-cache-control"),
            _ => None,
        };
        if !parameters.is_empty() {
            return Err(Problem::unknown("parameters of an object are not supported"));
        }
        if name.len() > MAX_NAME_BYTES {
            return Err(Problem::long_key());
        }
        if !is_name(&name) {
            return Err(Problem::uri());
        }
        let headers = request.headers();
        let call = match *request.method() {
            Method::GET | Method::HEAD => {
                refuse(headers, &["range", "if-match", "if-unmodified-since"])?;
                let known = headers.get("if-none-match").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
                // A browser sends both headers, and S3 ignores the second one then.
                if known.is_none() {
                    refuse(headers, &["if-modified-since"])?;
                }
                let has_checksum = headers.get("x-amz-checksum-mode").is_some_and(|mode| mode == "ENABLED");
                Call::Get { name, has_checksum, known, cache_control }
            }
            Method::PUT => match source(headers)? {
                Some(from) => copy(name, from, headers)?,
                None => put(name, headers, request.body())?,
            },
            Method::DELETE => {
                refuse(headers, &["if-match"])?;
                Call::Delete { name }
            }
            _ => return Err(Problem::unknown("this method is not supported")),
        };
        Ok(Self { bucket, call })
    }
}

/// Returns the session token in the signed query of a request, or `None` if the signature is
/// missing or invalid.
pub(super) fn signer(request: &Request<Bytes>) -> Option<String> {
    let presigned = Presigned::take(&mut parameters(request.uri().query()?).ok()?)?;
    presigned.check(request, SystemTime::now()).ok()?;
    presigned.token().map(str::to_owned)
}

/// A request with an unsupported method needs `s3:Unknown`, a permission that no function has.
pub(super) fn needs(request: &Request<Bytes>) -> Vec<Need> {
    let mut needs = vec![need(request)];
    if let Ok(Some(source)) = source(request.headers()) {
        needs.push(Need::new("s3:GetObject", format!("arn:aws:s3:::{}/{}", source.bucket, source.name)));
    }
    needs
}

pub(super) fn read(request: &Request<Bytes>) -> Option<Source> {
    if let Ok(Some(source)) = source(request.headers()) {
        return Some(source);
    }
    let (bucket, name) = request.uri().path().strip_prefix('/')?.split_once('/')?;
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD) && !name.is_empty();
    is_read.then(|| Some(Source { bucket: decoded(bucket).ok()?, name: decoded(name).ok()? })).flatten()
}

fn need(request: &Request<Bytes>) -> Need {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
    let path = path.strip_prefix('/').unwrap_or_default();
    let is_object = path.split_once('/').is_some_and(|(_, name)| !name.is_empty());
    let action = match (is_object, request.method()) {
        (false, &Method::GET | &Method::HEAD) => "s3:ListBucket",
        (true, &Method::GET | &Method::HEAD) => "s3:GetObject",
        (true, &Method::PUT) => "s3:PutObject",
        (true, &Method::DELETE) => "s3:DeleteObject",
        _ => "s3:Unknown",
    };
    let resource = if is_object { path } else { path.trim_end_matches('/') };
    Need::new(action, format!("arn:aws:s3:::{resource}"))
}

fn bucket_call(method: &Method, mut parameters: BTreeMap<String, String>) -> Result<Call, Problem> {
    match *method {
        Method::HEAD if parameters.is_empty() => Ok(Call::HeadBucket),
        Method::GET if parameters.remove("list-type").as_deref() == Some("2") => list(parameters).map(Call::List),
        _ => Err(Problem::unknown("only HEAD and ListObjectsV2 are supported for a bucket")),
    }
}

fn list(mut parameters: BTreeMap<String, String>) -> Result<List, Problem> {
    let mut take = |name: &str| parameters.remove(name);
    let prefix = take("prefix").unwrap_or_default();
    let start_after = take("start-after").unwrap_or_default();
    let token = take("continuation-token");
    let limit = take("max-keys").map_or(Ok(MAX_KEYS), |limit| limit.parse());
    let limit = limit.map_err(|_| Problem::argument("Provided max-keys not an integer or within integer range"))?;
    let is_encoded = match take("encoding-type").as_deref() {
        None => false,
        Some("url") => true,
        Some(_) => return Err(Problem::argument("Invalid Encoding Method specified in Request")),
    };
    if !parameters.is_empty() {
        return Err(Problem::unknown("this parameter of a list is not supported"));
    }
    // A token encodes the last name of the previous page. It takes precedence over `start-after`.
    let after = match &token {
        Some(token) => untokened(token).ok_or(Problem::argument("The continuation token provided is incorrect"))?,
        None => start_after.clone(),
    };
    Ok(List { prefix, start_after, token, after, is_encoded, limit: limit.min(MAX_KEYS) })
}

pub(super) fn token(after: &str) -> String {
    STANDARD.encode(after)
}

fn untokened(token: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(token).ok()?).ok()
}

/// Returns the object to copy: `bucket/name`, with or without a leading slash.
fn source(headers: &HeaderMap) -> Result<Option<Source>, Problem> {
    let Some(source) = headers.get("x-amz-copy-source") else { return Ok(None) };
    let bad = Problem::argument("Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
    let source = source.to_str().map_err(|_| bad)?;
    let (bucket, name) = source.strip_prefix('/').unwrap_or(source).split_once('/').ok_or(bad)?;
    Ok(Some(Source { bucket: decoded(bucket)?, name: decoded(name)? }))
}

/// Parses a request for a copy. The copy has the media type of its source.
fn copy(name: String, from: Source, headers: &HeaderMap) -> Result<Call, Problem> {
    let known = |name: &str| !name.starts_with("x-amz-copy-source-") && name != "x-amz-metadata-directive";
    if !headers.keys().all(|name| known(name.as_str())) {
        return Err(Problem::unknown("a copy with conditions or with new metadata is not supported"));
    }
    refuse(headers, &["if-match", "if-none-match", "x-amz-storage-class", "x-amz-tagging"])?;
    Ok(Call::Copy { name, from })
}

fn put(name: String, headers: &HeaderMap, body: &Bytes) -> Result<Call, Problem> {
    refuse(headers, &["if-match", "content-md5", "x-amz-trailer", "x-amz-tagging"])?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // The body of a request with signed chunks has signatures between the data. If the store
    // accepted it, the object would contain the signatures.
    let is_streamed = |sum: &str| sum.starts_with("STREAMING-");
    if headers.contains_key(header::CONTENT_ENCODING) || text("x-amz-content-sha256").is_some_and(is_streamed) {
        return Err(Problem::unknown("an encoding of the body is not supported"));
    }
    if let Some(sum) = text("x-amz-checksum-crc32")
        && sum != crc32(crc32fast::hash(body))
    {
        return Err(Problem::digest());
    }
    let hash = digest(&SHA256, body);
    if let Some(sum) = text("x-amz-content-sha256")
        && sum != "UNSIGNED-PAYLOAD"
        && sum != hex(hash.as_ref())
    {
        return Err(Problem::content_hash());
    }
    let sha256 = text("x-amz-checksum-sha256").map(str::to_owned);
    if sha256.as_ref().is_some_and(|sum| *sum != STANDARD.encode(hash)) {
        return Err(Problem::digest());
    }
    let new = match text("if-none-match") {
        None => false,
        Some("*") => true,
        Some(_) => return Err(Problem::unknown("If-None-Match must be *")),
    };
    let class = text("x-amz-storage-class").unwrap_or("STANDARD");
    let class = CLASSES.into_iter().find(|known| *known == class).ok_or(Problem::class())?.to_owned();
    if !headers.contains_key(header::CONTENT_LENGTH) && !headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(Problem::length());
    }
    let content_type = text("content-type").unwrap_or("binary/octet-stream").to_owned();
    Ok(Call::Put { name, kind: Kind { class, content_type, sha256 }, new })
}

pub(super) fn crc32(sum: u32) -> String {
    STANDARD.encode(sum.to_be_bytes())
}

/// Rejects headers that would change the meaning of the request.
fn refuse(headers: &HeaderMap, unknown: &[&str]) -> Result<(), Problem> {
    if unknown.iter().any(|name| headers.contains_key(*name)) {
        return Err(Problem::unknown("a header you provided implies functionality that is not supported"));
    }
    Ok(())
}

pub(super) fn parameters(query: &str) -> Result<BTreeMap<String, String>, Problem> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(name)?, decoded(&value.replace('+', " "))?))
    });
    pairs.collect()
}

fn decoded(text: &str) -> Result<String, Problem> {
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| Problem::uri())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_request_needs_the_permission_for_its_action_on_the_object_or_the_bucket() {
        for (method, uri, action, resource) in [
            ("PUT", "/b/expired/a%20b.json?x-id=PutObject", "s3:PutObject", "b/expired/a b.json"),
            ("GET", "/b/x", "s3:GetObject", "b/x"),
            ("HEAD", "/b/x", "s3:GetObject", "b/x"),
            ("DELETE", "/b/x", "s3:DeleteObject", "b/x"),
            ("GET", "/b?list-type=2&prefix=x", "s3:ListBucket", "b"),
            ("HEAD", "/b/", "s3:ListBucket", "b"),
            ("POST", "/b?delete", "s3:Unknown", "b"),
        ] {
            let request = Request::builder().method(method).uri(uri).body(Bytes::new()).unwrap();
            assert_eq!(need(&request), Need::new(action, format!("arn:aws:s3:::{resource}")), "{method} {uri}");
        }
    }
}
