//! Tests a system that is killed and started again on the same data.
//!
//! After the restart, subscribers finish their unfinished work. On a full disk, no client gets a
//! success for a write that is lost.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reqwest::{Client, Method};
use serde_json::{Value, json};

const BODEGA: &str = env!("CARGO_BIN_EXE_bodega");

/// A folder for one test. Dropping the value removes the folder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("bodega-restart-{:016x}", fastrand::u64(..))))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A running system. Dropping the value kills the process without an orderly shutdown.
struct Running {
    child: Child,
    url: String,
    staff: String,
    http: Client,
}

impl Running {
    fn start(data: &Path) -> Self {
        Self::start_as(Command::new(BODEGA), data)
    }

    /// Starts a system that can write no file larger than `blocks`, as if the disk were small.
    fn start_on_small_disk(data: &Path, blocks: u32) -> Self {
        let mut shell = Command::new("sh");
        // By default, the signal for a too large file would end the process. When it is ignored,
        // the write fails, as on a full disk.
        shell
            .args(["-c", r#"trap '' XFSZ; ulimit -f "$1"; shift; exec "$@""#, "sh"])
            .arg(blocks.to_string())
            .arg(BODEGA);
        Self::start_as(shell, data)
    }

    fn start_as(mut command: Command, data: &Path) -> Self {
        command.args(["--port", "0", "--quiet", "--log", "off", "--data"]).arg(data);
        command.env_remove("AWS_ENDPOINT_URL_DYNAMODB").env_remove("SEARCH_ENDPOINT");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("ready: ").unwrap().to_owned();
        let token = Command::new(BODEGA).args(["token", "--sub", "s", "--group", "staff", "--data"]).arg(data).output();
        let staff = String::from_utf8(token.unwrap().stdout).unwrap().trim().to_owned();
        Self { child, url, staff, http: Client::new() }
    }

    async fn call(&self, method: Method, path: &str, header: (&str, &str), body: &Value) -> (u16, Value) {
        let call = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.staff);
        let answer = call.header(header.0, header.1).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call(Method::POST, path, ("x-none", ""), &body).await
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let (status, page) = self.call(Method::GET, path, ("x-none", ""), &Value::Null).await;
        assert_eq!((status, &page["next_cursor"]), (200, &Value::Null), "{path}: {page}");
        page["items"].as_array().unwrap().clone()
    }

    async fn fault(&self, function: &str, kind: &str) {
        let fault = json!({"target": format!("function:{function}"), "kind": kind});
        assert_eq!(self.post("/_local/faults", fault).await.0, 204);
    }

    async fn drained(&self) -> Value {
        let (status, drained) = self.post("/_local/drain", Value::Null).await;
        assert_eq!(status, 200, "{drained}");
        drained
    }

    async fn paid_order(&self) -> String {
        let tea = json!({
            "id": "tea", "name": "Tea", "brand": "Leaf", "category_path": ["Drinks"],
            "price": {"amount": 349, "currency": "USD"}, "stock": 50,
        });
        assert_eq!(self.post("/v1/products", tea).await.0, 201);
        let ann = json!({"id": "ann", "email": "ann@example.com", "username": "ann", "name": "Ann"});
        assert_eq!(self.post("/v1/customers", ann).await.0, 201);
        let order = json!({"customer_id": "ann", "lines": [{"product_id": "tea", "quantity": 1}]});
        let placed = self.call(Method::POST, "/v1/orders", ("idempotency-key", "1"), &order).await;
        assert_eq!(placed.0, 201, "{}", placed.1);
        let id = placed.1["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/orders/{id}/status");
        let paid = self.call(Method::POST, &path, ("if-match", "\"1\""), &json!({"to": "paid"})).await;
        assert_eq!(paid.0, 200, "{}", paid.1);
        id
    }

    async fn picked(&self) -> Vec<String> {
        let (_, page) = self.call(Method::GET, "/v1/picking", ("x-none", ""), &Value::Null).await;
        let jobs = page["jobs"].as_array().unwrap();
        jobs.iter().map(|job| job["order_id"].as_str().unwrap().to_owned()).collect()
    }

    async fn subjects(&self) -> Vec<String> {
        let mails = self.items("/_local/mail").await;
        let mut subjects: Vec<String> = mails.iter().map(|mail| mail["subject"].as_str().unwrap().to_owned()).collect();
        subjects.sort();
        subjects
    }

    async fn events(&self) -> Vec<String> {
        let events = self.items("/_local/events").await;
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn told() -> [String; 2] {
    ["Your order".to_owned(), "Your order is paid".to_owned()]
}

#[tokio::test]
async fn deliveries_in_progress_at_a_kill_are_repeated_at_the_next_start() {
    let folder = Folder::new();
    let first = Running::start(&folder.0);
    first.fault("Fulfilment", "throttle").await;
    first.fault("Notifier", "throttle").await;
    let order = first.paid_order().await;
    // The consumer processes the records, but the subscribers stay throttled.
    let mut message = String::new();
    for _ in 0..60 {
        let (status, waiting) = first.post("/_local/drain?timeout_s=1", Value::Null).await;
        assert_eq!(status, 504, "{waiting}");
        message = waiting["message"].as_str().unwrap().to_owned();
        if message.contains(": 0 records") && first.events().await.len() == 2 {
            break;
        }
    }
    assert!(message.contains(": 0 records and 2 deliveries"), "{message}");
    assert!(first.subjects().await.is_empty() && first.picked().await.is_empty());
    drop(first);

    let second = Running::start(&folder.0);
    second.drained().await;
    assert_eq!((second.picked().await, second.subjects().await), (vec![order.clone()], told().to_vec()));
    drop(second);

    // A third system has no unfinished work. It still shows the published events and the messages.
    let third = Running::start(&folder.0);
    assert_eq!(third.drained().await.get("failures"), None);
    assert_eq!(third.events().await, ["OrderPlaced", "OrderStatusChanged"]);
    assert_eq!(third.subjects().await, told());
}

#[tokio::test]
async fn given_up_deliveries_survive_a_restart_and_succeed_after_a_redrive() {
    let folder = Folder::new();
    let first = Running::start(&folder.0);
    assert!(first.items("/_local/failures").await.is_empty());
    assert_eq!(first.post("/_local/failures/redrive", Value::Null).await, (200, json!({"redriven": 0})));
    first.fault("Notifier", "error").await;
    first.paid_order().await;
    assert_eq!(first.drained().await["failures"], 2);
    let failures = first.items("/_local/failures").await;
    for failure in &failures {
        assert_eq!((&failure["queue"], &failure["for"]), (&json!("NotifierFailures"), &json!("Notifier")));
        assert_eq!(failure["message"]["body"]["requestContext"]["condition"], "RetriesExhausted", "{failure}");
    }
    drop(first);

    let second = Running::start(&folder.0);
    assert_eq!(second.drained().await["failures"], 2);
    assert_eq!(second.items("/_local/failures").await, failures);
    assert!(second.subjects().await.is_empty());
    assert_eq!(second.post("/_local/failures/redrive", Value::Null).await, (200, json!({"redriven": 2})));
    assert_eq!(second.drained().await.get("failures"), None);
    assert_eq!(second.subjects().await, told());
    assert!(second.items("/_local/failures").await.is_empty());
}

/// A page of stream records has at most 1 MB. With the largest items, such a page has only a few
/// records.
#[tokio::test]
async fn an_unread_stream_of_large_records_is_read_at_the_next_start() {
    const ITEMS: usize = 60;
    let folder = Folder::new();
    let first = Running::start(&folder.0);
    first.fault("StreamSearch", "throttle").await;
    first.fault("StreamEvents", "throttle").await;
    let (_, environment) = first.call(Method::GET, "/_local/environment", ("x-none", ""), &Value::Null).await;
    let text = "x".repeat(390_000);
    for number in 0..ITEMS {
        let id = format!("big-{number:02}");
        let item = json!({
            "PK": {"S": format!("PRODUCT#{id}")}, "SK": {"S": "PRODUCT"}, "entity": {"S": "Product"},
            "version": {"N": "1"}, "rev": {"N": "1"}, "born": {"S": "01a1fefc-eda8-72a1-8462-9bcc551cd51e"},
            "created_at": {"S": "2026-01-01T00:00:00.000Z"}, "updated_at": {"S": "2026-01-01T00:00:00.000Z"},
            "id": {"S": id}, "name": {"S": "Big"}, "brand": {"S": "b"}, "category_path": {"L": [{"S": "A"}]},
            "price": {"M": {"amount": {"N": "1"}, "currency": {"S": "USD"}}}, "summary": {"S": text},
        });
        let put = first
            .http
            .post(environment["AWS_ENDPOINT_URL_DYNAMODB"].as_str().unwrap())
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", "DynamoDB_20120810.PutItem")
            .header("x-amz-date", "20260101T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
                SignedHeaders=host, Signature=0",
            )
            .body(json!({"TableName": environment["TABLE_NAME"], "Item": item}).to_string());
        let answer = put.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }
    drop(first);

    let second = Running::start(&folder.0);
    second.drained().await;
    let indexed = second.items("/_local/index/products").await;
    assert_eq!(indexed.len(), ITEMS);
    assert!(second.items("/_local/quarantine").await.is_empty());
}

/// Size of the largest file that the system may write, in the blocks of `ulimit -f`. A block has
/// 512 or 1,024 bytes, depending on the shell. A few hundred products fit.
#[cfg(unix)]
const SMALL: u32 = 4_096;

#[cfg(unix)]
#[tokio::test]
async fn no_acknowledged_write_is_lost_on_a_full_disk_and_writes_succeed_with_more_room() {
    const LINES: usize = 50;
    let product = |number: usize| {
        json!({
            "id": format!("thing-{number:05}"), "name": "x".repeat(200), "brand": "Private",
            "category_path": ["GROCERY"],
            "price": {"amount": 129, "currency": "USD"}, "stock": 1,
        })
    };
    let folder = Folder::new();
    let full = Running::start_on_small_disk(&folder.0, SMALL);
    let (mut kept, mut asked, mut refused) = (Vec::new(), 0, 0);
    // The test writes until the disk is full, and then once more.
    while refused < 2 && asked < 20_000 {
        let lines: String = (asked..asked + LINES).map(|number| format!("{}\n", product(number))).collect();
        let call = full.http.post(format!("{}/v1/products/import", full.url)).bearer_auth(&full.staff);
        let answer = call.header("content-type", "application/x-ndjson").body(lines).send().await.unwrap();
        let (status, answer): (u16, Value) = (answer.status().as_u16(), answer.json().await.unwrap_or_default());
        assert!(status == 200 || status >= 500, "{status} {answer}");
        let results = answer["results"].as_array().map(Vec::as_slice).unwrap_or_default();
        let created = |result: &&Value| result["status"] == "created";
        kept.extend(results.iter().filter(created).map(|result| result["id"].as_str().unwrap().to_owned()));
        refused += usize::from(results.len() < LINES || !results.iter().all(|result| created(&result)));
        asked += LINES;
    }
    assert!(refused == 2 && !kept.is_empty(), "{} of {asked} remain", kept.len());
    let first = format!("/v1/products/{}", kept[0]);
    assert_eq!(full.call(Method::GET, &first, ("x-none", ""), &Value::Null).await.0, 200);
    drop(full);

    let roomy = Running::start(&folder.0);
    for id in &kept {
        let (status, found) =
            roomy.call(Method::GET, &format!("/v1/products/{id}/numbers"), ("x-none", ""), &Value::Null).await;
        assert_eq!((status, &found["stock"]), (200, &json!(1)), "{id}: {found}");
    }
    let more = roomy.post("/v1/products", product(asked)).await;
    assert_eq!(more.0, 201, "{}", more.1);
    let drained = roomy.drained().await;
    // A product whose request failed may exist all the same. But then it must be complete and
    // indexed.
    let indexed = drained["index"]["products"].as_u64().unwrap();
    assert!(indexed > kept.len().try_into().unwrap() && indexed <= (asked + 1).try_into().unwrap(), "{drained}");
    assert_eq!(drained["quarantined"], 0, "{drained}");
}
