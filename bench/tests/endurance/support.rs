#![allow(dead_code, reason = "each test uses its part")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::replay::{Shop, compare, record};
use key_schema::instant::Instant;
use key_schema::item::{Meta, Stored};
use key_schema::revocation;
use key_schema::session::Session;
use local::{Log, Options, System};
use serde_json::{Value, json};
use template::Template;

/// Starts a system on the embedded table. `SEARCH_ENDPOINT` can name its search engine. The stream
/// keeps all records.
pub async fn start() -> System {
    start_with(options()).await
}

/// Starts a system on the embedded table and search engine. Both support faults.
pub async fn start_embedded() -> System {
    start_with(Options { search_endpoint: None, ..options() }).await
}

async fn start_with(options: Options) -> System {
    System::start(options).await.unwrap()
}

fn options() -> Options {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_bench"));
    let template = Some(root().join("template.yaml"));
    Options {
        template,
        log: Log::Off,
        environments: 3,
        keeps_stream: true,
        // Only the embedded table removes expired items on request.
        table_endpoint: None,
        streams_endpoint: None,
        ..Options::from_environment(program)
    }
}

pub async fn stop(system: System) {
    system.shutdown().await;
}

pub fn template() -> Template {
    Template::read(&root().join("template.yaml")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub struct Clients {
    base: String,
    http: reqwest::Client,
    staff: String,
    tokens: Box<dyn Fn(&str) -> String + Send + Sync>,
    pub orders: Mutex<Vec<String>>,
    pub calls: AtomicU64,
}

/// A response. A call without a response has the status 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub raw: Vec<u8>,
    pub etag: Option<String>,
    pub location: Option<String>,
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }
}

/// Returns an `If-Match` header with the version of this response.
pub fn if_match(found: &Answer) -> [(&'static str, String); 1] {
    [("if-match", format!("\"{}\"", found.body["version"]))]
}

impl Clients {
    pub fn new(system: &System) -> Self {
        Self::of(system, (0..16).map(|n| format!("c{n}")))
    }

    /// Makes clients for staff and for these customers.
    pub fn of(system: &System, customers: impl Iterator<Item = String>) -> Self {
        let tokens: std::collections::BTreeMap<String, String> =
            customers.map(|id| (id.clone(), system.token(&id, &[]))).collect();
        Self {
            base: system.url(),
            http: reqwest::Client::new(),
            staff: system.token("staff", &["staff".to_owned()]),
            tokens: Box::new(move |id| tokens[id].clone()),
            orders: Mutex::default(),
            calls: AtomicU64::new(0),
        }
    }

    pub async fn staff(&self, method: &str, path: &str, headers: &[(&str, String)], body: Option<&Value>) -> Answer {
        self.call(Some(&self.staff), method, path, headers, body).await
    }

    pub async fn customer(
        &self,
        id: &str,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Option<&Value>,
    ) -> Answer {
        let token = (self.tokens)(id);
        self.call(Some(&token), method, path, headers, body).await
    }

    /// Calls a `/_local` route, which must succeed.
    pub async fn local(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.call(None, method, path, &[], body).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        answer.body
    }

    pub async fn fault(&self, fault: Value) {
        self.local("POST", "/_local/faults", Some(&fault)).await;
    }

    /// Returns all items of a `/_local` list, from all its pages.
    pub async fn all(&self, path: &str) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.local("GET", &format!("{path}{cursor}"), None).await;
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("?cursor={next}"),
                None => return items,
            }
        }
    }

    async fn call(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Option<&Value>,
    ) -> Answer {
        if path.starts_with("/v1/") {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let mut request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.base));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let Ok(answer) = request.send().await else { return Answer::default() };
        let status = answer.status().as_u16();
        let header = |name| Some(String::from_utf8_lossy(answer.headers().get(name)?.as_bytes()).into_owned());
        let (etag, location) = (header("etag"), header("location"));
        // A response that ends early counts as no response.
        let Ok(raw) = answer.bytes().await else { return Answer::default() };
        let body = serde_json::from_slice(&raw).unwrap_or_default();
        Answer { status, body, raw: raw.to_vec(), etag, location }
    }
}

/// Waits until the consumers have processed the stream. Then asserts that the search index, the
/// events and the derived items match the table and the stream.
pub async fn assert_equal_to_table(system: &System, context: &str) {
    let shop = Shop::of(system).await.unwrap();
    shop.drain().await.unwrap();
    let recorded = record(system, &template(), &shop).await.unwrap();
    let compared = compare(&shop, &recorded).await.unwrap();
    println!("{} records\n{compared}", recorded.len());
    assert!(compared.is_equal(), "{context}\n{compared}");
}

/// Puts a session into the table. DynamoDB may remove it, because it expired long ago.
pub async fn ended_session(system: &System, id: &str) {
    let now = Instant::now();
    let session = Session {
        sign_in: None,
        id: id.parse().unwrap(),
        customer_id: "c0".parse().unwrap(),
        expires_at: now.plus_seconds(-60 - revocation::LIFETIME_SECONDS),
        device: "Laptop".into(),
    };
    // The session starts after the customer's creation, because the archive skips earlier sessions.
    let session = Stored { meta: Meta::new(format!("born-{id}").parse().unwrap(), now), data: session };
    let item = serde_json::to_value(session.to_item().unwrap()).unwrap();
    let credential = format!("{}/20260101/us-east-1/dynamodb/aws4_request", system.access_key());
    // The write fails while the table throttles. That is acceptable.
    let _ = reqwest::Client::new()
        .post(system.table_url())
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", "DynamoDB_20120810.PutItem")
        .header("x-amz-date", "20260101T000000Z")
        .header("authorization", format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"))
        .body(json!({"TableName": system.table(), "Item": item}).to_string())
        .send()
        .await;
}

pub fn products(count: usize) -> String {
    let mut csv = "product_id,department,brand,product_category,product_type,package_size\n".to_owned();
    for n in 1..=count {
        writeln!(csv, "{n},GROCERY,Private,AISLE {},THING {n},{n} OZ", n % 7).unwrap();
    }
    csv
}

pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}
