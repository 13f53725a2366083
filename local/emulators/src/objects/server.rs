use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;
use hyper::http::HeaderValue;
use hyper::{HeaderMap, Request, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::task::spawn_blocking;

use super::Error;
use super::cors::{self, CorsRule};
use super::problem::{Piece, Problem, element, xml_answer};
use super::request::{Asked, Call, List, crc32, needs, read, signer, token};
use super::store::{Kind, ListPage, ObjectPage, Properties, Store};
use crate::access::{self, Access, Denied, Need};
use crate::endpoint::{Answer, Endpoint, Service, plain};
use crate::faults::{FaultKind, Faults};

/// Characters to percent-encode in an encoded list: all except letters, digits and these five.
const IN_LISTS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*').remove(b'/');

/// An in-process object store that responds as S3 does. Dropping the value ends the server.
pub struct ObjectServer {
    endpoint: Endpoint,
    store: Arc<Store>,
    cors: Arc<OnceLock<Cors>>,
}

type Cors = BTreeMap<String, Vec<CorsRule>>;

impl ObjectServer {
    /// Opens a loopback port and serves the buckets with these names. Each bucket keeps its objects
    /// in a subfolder of `data`. Without a folder the objects are in memory.
    ///
    /// Needs a Tokio runtime. Blocks while it reads the folder.
    pub async fn start(data: Option<&Path>, buckets: &[String]) -> Result<Self, Error> {
        let store = Arc::new(Store::open(data, buckets)?);
        let cors = Arc::default();
        let service = Arc::new(Handler { store: Arc::clone(&store), cors: Arc::clone(&cors) });
        Ok(Self { endpoint: Endpoint::start(service, Faults::default()).await?, store, cors })
    }

    /// Sets the CORS rules of the buckets for web pages. Only the first call has an effect.
    pub fn set_cors_rules(&self, rules: BTreeMap<String, Vec<CorsRule>>) {
        let _ = self.cors.set(rules);
    }

    /// Returns at most `limit` of the bucket's objects whose names come after `after`.
    pub fn list(&self, bucket: &str, after: Option<&str>, limit: usize) -> Result<ObjectPage, Error> {
        self.store.list(bucket, "", after.unwrap_or_default(), limit).map(Into::into)
    }

    /// Returns the body of an object, or `None` if it does not exist. Reads a file if there is a
    /// folder.
    pub fn get(&self, bucket: &str, name: &str) -> Result<Option<Bytes>, Error> {
        Ok(self.store.get(bucket, name)?.map(|(_, body)| body))
    }

    /// Writes a file if there is a folder.
    pub fn put(&self, bucket: &str, name: &str, body: Bytes) -> Result<(), Error> {
        let kind = Kind { class: "STANDARD".to_owned(), content_type: "application/json".to_owned(), sha256: None };
        self.store.put(bucket, name, &body, kind, false).map(|_| ())
    }
}

impl Deref for ObjectServer {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

struct Handler {
    store: Arc<Store>,
    cors: Arc<OnceLock<Cors>>,
}

impl Handler {
    /// Returns the CORS rules of the bucket in the path, or none if the bucket does not exist.
    fn rules(&self, request: &Request<Bytes>) -> &[CorsRule] {
        let bucket = request.uri().path().split('/').nth(1).unwrap_or_default();
        self.cors.get().and_then(|cors| cors.get(bucket)).map_or(&[], Vec::as_slice)
    }
}

impl Service for Handler {
    async fn answer(&self, request: Request<Bytes>) -> Answer {
        let rules = self.rules(&request);
        if let Some(answer) = cors::preflight(rules, &request) {
            return answer;
        }
        let shared = cors::share(rules, &request);
        let store = Arc::clone(&self.store);
        // File access would block the runtime, so it runs on a separate thread.
        let answer =
            spawn_blocking(move || Asked::of(&request).and_then(|asked| done(&store, asked, request.body()))).await;
        let mut answer = answer.unwrap_or_else(|_| Err(Problem::internal())).unwrap_or_else(Problem::answer);
        answer.headers_mut().extend(shared);
        answer
    }

    fn refusal(&self, kind: FaultKind, request: &Request<Bytes>) -> Option<Answer> {
        let problem = match kind {
            FaultKind::Throttle => Problem::throttled(),
            FaultKind::Error => Problem::internal(),
            FaultKind::Conflict if request.headers().contains_key(header::IF_NONE_MATCH) => Problem::conflict(),
            _ => return None,
        };
        Some(problem.answer())
    }

    fn caller<'r>(&'r self, request: &'r Request<Bytes>) -> Option<Cow<'r, str>> {
        access::caller(request.headers()).map(Cow::Borrowed).or_else(|| signer(request).map(Cow::Owned))
    }

    fn needs(&self, request: &Request<Bytes>, _: &Access) -> Vec<Need> {
        let mut needs = needs(request);
        let missing =
            read(request).filter(|object| matches!(self.store.describe(&object.bucket, &object.name), Ok(None)));
        needs.extend(missing.map(|object| Need::new("s3:ListBucket", format!("arn:aws:s3:::{}", object.bucket))));
        needs
    }

    fn forbidden(&self, _: &Denied) -> Answer {
        Problem::denied().answer()
    }
}

fn done(store: &Store, asked: Asked, body: &Bytes) -> Result<Answer, Problem> {
    let Asked { bucket, call } = asked;
    match call {
        Call::HeadBucket if store.has(&bucket) => Ok(plain(StatusCode::OK)),
        Call::HeadBucket => Err(Problem::no_bucket()),
        Call::List(list) => {
            let page = store.list(&bucket, &list.prefix, &list.after, list.limit)?;
            Ok(listed(&bucket, &list, &page))
        }
        Call::Get { name, has_checksum, known, cache_control } => {
            let (properties, body) = store.get(&bucket, &name)?.ok_or(Problem::no_key())?;
            let is_known = known.is_some_and(|known| known == "*" || known == properties.etag);
            let mut answer = plain(if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK });
            describe(&properties, has_checksum, answer.headers_mut());
            if let Some(value) = cache_control.and_then(|value| HeaderValue::try_from(value).ok()) {
                answer.headers_mut().insert(header::CACHE_CONTROL, value);
            }
            if !is_known {
                *answer.body_mut() = body.into();
            }
            Ok(answer)
        }
        Call::Put { name, kind, new } => {
            if store.put(&bucket, &name, body, kind, new)? {
                Ok(plain(StatusCode::OK))
            } else {
                Err(Problem::precondition())
            }
        }
        Call::Copy { name, from } => {
            let (Properties { class, content_type, sha256, .. }, body) =
                store.get(&from.bucket, &from.name)?.ok_or(Problem::no_key())?;
            store.put(&bucket, &name, &body, Kind { class, content_type, sha256 }, false)?;
            let copied = store.describe(&bucket, &name)?.ok_or(Problem::internal())?;
            let fields = [("LastModified", rfc3339(copied.modified())), ("ETag", copied.etag)];
            let fields = fields.map(|(name, value)| element(name, &[value.as_str().into()]));
            Ok(xml_answer(StatusCode::OK, &element("CopyObjectResult", &fields)))
        }
        Call::Delete { name } => {
            store.delete(&bucket, &name)?;
            Ok(plain(StatusCode::NO_CONTENT))
        }
    }
}

fn describe(properties: &Properties, has_checksum: bool, headers: &mut HeaderMap) {
    let class = Some(&properties.class).filter(|class| *class != "STANDARD").cloned();
    let described = [
        ("content-type", Some(properties.content_type.clone())),
        ("etag", Some(properties.etag.clone())),
        ("last-modified", Some(httpdate::fmt_http_date(properties.modified()))),
        // S3 omits the header for the default class.
        ("x-amz-storage-class", class),
    ];
    let checksum = match &properties.sha256 {
        Some(sum) => ("x-amz-checksum-sha256", Some(sum.clone())),
        None => ("x-amz-checksum-crc32", Some(crc32(properties.crc32))),
    };
    let checksums = [checksum, ("x-amz-checksum-type", Some("FULL_OBJECT".to_owned()))];
    let described = described.into_iter().chain(checksums.into_iter().filter(|_| has_checksum));
    for (name, value) in described {
        // All values are ASCII, because they come from headers or from this code. So no header is
        // skipped.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
}

fn listed(bucket: &str, list: &List, page: &ListPage) -> Answer {
    let text = |name, value: &str| element(name, &[value.into()]);
    let shown = |name: &str| match list.is_encoded {
        true => utf8_percent_encode(name, IN_LISTS).to_string().replace("%20", "+"),
        false => name.to_owned(),
    };
    let mut result = vec![
        text("Name", bucket),
        text("Prefix", &shown(&list.prefix)),
        text("KeyCount", &page.items.len().to_string()),
        text("MaxKeys", &list.limit.to_string()),
        text("IsTruncated", if page.more { "true" } else { "false" }),
    ];
    if !list.start_after.is_empty() {
        result.push(text("StartAfter", &shown(&list.start_after)));
    }
    if list.is_encoded {
        result.push(text("EncodingType", "url"));
    }
    result.extend(list.token.as_ref().map(|token| text("ContinuationToken", token)));
    if let Some((last, _)) = page.items.last().filter(|_| page.more) {
        result.push(text("NextContinuationToken", &token(last)));
    }
    result.extend(page.items.iter().map(|(name, properties)| contents(&shown(name), properties)));
    xml_answer(StatusCode::OK, &element("ListBucketResult", &result))
}

fn contents(name: &str, properties: &Properties) -> Piece {
    let fields = [
        ("Key", name),
        ("LastModified", &rfc3339(properties.modified())),
        ("ETag", &properties.etag),
        ("Size", &properties.size.to_string()),
        ("StorageClass", &properties.class),
    ];
    element("Contents", &fields.map(|(name, value)| element(name, &[value.into()])))
}

fn rfc3339(at: SystemTime) -> String {
    OffsetDateTime::from(at).format(&Rfc3339).unwrap_or_default()
}
