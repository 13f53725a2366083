//! Code that the tests share: one running system, the repository's files and `openapi.yaml`.

mod bodies;
pub mod client;
pub mod emulator;
pub mod openapi;
pub mod schema;
pub mod shop;
pub mod subset;
pub mod table;
pub mod trial;
pub mod world;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use emulators::table::{Model, Times};
use local::{Log, Options, System};
use serde_json::Value as Json;
use template::{Deployment, Template};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub use table::put_item;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static SYSTEM: OnceCell<System> = OnceCell::const_new();

/// Runs a test against the system that all tests of this program share. The first test starts it.
/// Each test uses ids that no other test uses.
///
/// The functions exit when this program exits, because this program serves their Runtime API.
pub fn with_system<T>(test: impl AsyncFnOnce(&'static System) -> T) -> T {
    RUNTIME.block_on(async {
        let system = SYSTEM.get_or_init(start).await;
        let result = test(system).await;
        all_was_granted(system).await;
        result
    })
}

/// Runs a test against its own system, so that no other test can interfere.
pub fn with_own_system<T>(test: impl AsyncFnOnce(&System) -> T) -> T {
    RUNTIME.block_on(async {
        let system = start().await;
        let result = test(&system).await;
        all_was_granted(&system).await;
        system.shutdown().await;
        result
    })
}

/// Runs a test against its own system, in which every transaction on the table takes `time`.
pub fn with_slow_transactions<T>(time: Duration, test: impl AsyncFnOnce(&System) -> T) -> T {
    RUNTIME.block_on(async {
        let limits = Model { times: Times::of_transactions(time), ..Model::default() };
        let system = started(Options { limits: Some(limits), ..options() }).await;
        let result = test(&system).await;
        system.shutdown().await;
        result
    })
}

/// Runs a test against its own system, which this template defines. The test does not fail
/// if the system denies an action of a function.
pub fn with_template<T>(template: &Path, test: impl AsyncFnOnce(&System) -> T) -> T {
    RUNTIME.block_on(async {
        let system = started(Options { template: Some(template.to_owned()), ..options() }).await;
        let result = test(&system).await;
        system.shutdown().await;
        result
    })
}

/// Runs a test against its own system, in which one parameter of the template has this value.
pub fn with_parameter<T>(name: &str, value: &str, test: impl AsyncFnOnce(&System) -> T) -> T {
    RUNTIME.block_on(async {
        let parameters = vec![(name.to_owned(), value.to_owned())];
        let system = started(Options { parameters, ..options() }).await;
        let result = test(&system).await;
        all_was_granted(&system).await;
        system.shutdown().await;
        result
    })
}

async fn start() -> System {
    started(options()).await
}

fn options() -> Options {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_bodega-under-test"));
    Options {
        template: Some(template_path()),
        log: Log::Problems,
        // Concurrent clients need several processes of each function.
        environments: 4,
        ..Options::from_environment(program)
    }
}

/// Fails if the system denied an action of a function.
async fn all_was_granted(system: &System) {
    let report = client::Call::new("GET", "/_local/grants").send(system).await.expect(200).body;
    for function in report["functions"].as_array().unwrap() {
        assert!(function["denied"].as_array().unwrap().is_empty(), "{}: {}", function["function"], function["denied"]);
    }
}

async fn started(options: Options) -> System {
    System::start(options).await.unwrap_or_else(|error| panic!("the system does not start: {error}"))
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the template, with the defaults of its parameters.
pub fn template() -> Template {
    // The template is read once, because some tests need it in hundreds of cases.
    static READ: LazyLock<Template> = LazyLock::new(|| Template::read(&template_path()).unwrap());
    READ.clone()
}

/// Returns the template of a deployment that sends webhooks.
pub fn template_with_webhooks() -> Template {
    let secret = |name: &str| format!("arn:aws:secretsmanager:eu-central-1:123456789012:secret:{name}");
    let deployment = Deployment::new("eu-central-1", "123456789012")
        .parameter("SearchEndpoint", "http://127.0.0.1:9200")
        .parameter("SearchArn", "arn:aws:es:eu-central-1:123456789012:domain/local")
        .parameter("CursorKeysSecret", secret("cursors"))
        .parameter("EmailCodeKeysSecret", secret("codes"))
        .parameter("WebhookKeysSecret", secret("webhooks"))
        .parameter("MailFrom", "shop@example.com")
        .parameter("MailIdentity", "example.com");
    Template::read_for(&template_path(), &deployment).unwrap()
}

pub fn template_path() -> PathBuf {
    root().join("template.yaml")
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn read_json(path: &Path) -> Json {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Waits until the stream's consumers have processed all earlier writes and the search finds them.
pub async fn drain(system: &System) {
    // The timeout is long, because the stream also contains the records of other tests.
    let drained = client::Call::new("POST", "/_local/drain?timeout_s=300").send(system).await;
    assert_eq!(drained.status, 200, "{}", drained.body);
}

/// Advances the clocks of all functions that have routes. An advance by more than 30 seconds
/// expires their caches of sign-ins and settings.
pub async fn clocks_ahead(system: &System, seconds: i64) {
    let template = template();
    let names: std::collections::BTreeSet<&str> = template.routes.iter().map(|route| route.function.as_str()).collect();
    for name in names {
        let fault = serde_json::json!({ "target": format!("function:{name}"), "kind": "clock", "seconds": seconds });
        client::Call::new("POST", "/_local/faults").json(&fault).send(system).await.expect(204);
    }
}
