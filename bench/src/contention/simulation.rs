//! Simulated time: the real code of the orders function, against a table in this process that has
//! DynamoDB's limits.
//!
//! The runtime has one thread and a paused clock. When every client waits, the clock jumps to the
//! end of the earliest wait. So the waits of the code, of its SDK and of the table cost no time,
//! and the computing costs no simulated time. All random numbers come from one seed, so two runs
//! give the same figures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use emulators::table::{Counts, LimitedTable, Model, Schema};
use http_api::sample::Call;
use http_api::{Keys, Services, SettingsCache};
use http_body_util::BodyExt as _;
use key_schema::cursor::Cursors;
use key_schema::id::ProductId;
use key_schema::instant::Instant as Moment;
use key_schema::product::{self, ReshardReason};
use key_schema::settings::Known;
use orders::App;
use serde_json::{Value, json};
use table::Table;
use template::Template;
use tokio::time::Instant;

use crate::BenchError;
use crate::examples::{customer, customer_id, item, product as example, stored};
use crate::loaded::{CURSOR_KEYS, NAME};

/// The simulated time begins at 2026-01-01T00:00:00Z. Orders have ids that follow from this time.
const BEGIN: i64 = 1_767_225_600;
/// The wait before a retry, if the response does not specify one.
const PAUSE: Duration = Duration::from_millis(500);
/// If this many requests do not place the order, the simulation fails.
const TRIES: u64 = 500;
/// The time for which a fixed number of shards stays, on the machine's clock.
const FIXED_SECONDS: i64 = 24 * 60 * 60;
/// The code of a response to a transaction or write that conflicted.
const CONFLICT: &[u8] = b"TransactionConflict";
/// As in the functions ([`aws::config`]).
const ATTEMPTS: u32 = 4;

/// Runs `work` in simulated time, on a thread of its own, with all random numbers from `seed`.
pub(super) fn simulated<T: Send>(
    seed: u64,
    work: impl AsyncFnOnce() -> Result<T, BenchError> + Send,
) -> Result<T, BenchError> {
    let run = || {
        fastrand::seed(seed);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(work())
    };
    std::thread::scope(|scope| scope.spawn(run).join()).map_err(|_| wrong!("the simulation panicked"))?
}

/// A shop in simulated time.
pub(super) struct Simulation {
    table: Arc<LimitedTable>,
    begun: Instant,
    /// Requests of the buyers that conflicted with a transaction in progress.
    conflicts: Arc<AtomicU64>,
}

/// A client of the shop, with a function environment of its own. It sends one request at a time.
pub(super) struct Buyer {
    app: App,
    routes: http_api::Routes<App>,
    customer: String,
}

impl Simulation {
    /// Creates an empty shop.
    pub(super) fn open(model: Model, has_stream: bool) -> Result<Self, BenchError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let definition = Template::read(&path)?.table;
        let mut request = definition.create_table_request(NAME);
        if let Some(members) = request.as_object_mut().filter(|_| !has_stream) {
            members.remove("StreamSpecification");
        }
        let indexes = definition.indexes.into_iter().map(|index| (index.name, index.key.partition)).collect();
        let schema = Schema { key: vec![definition.key.partition, definition.key.sort], indexes };
        let table = Arc::new(LimitedTable::create(&request, schema, model)?);
        Ok(Self { table, begun: Instant::now(), conflicts: Arc::default() })
    }

    pub(super) fn counts(&self) -> Counts {
        self.table.counts()
    }

    pub(super) fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    pub(super) const fn limited(&self) -> &Arc<LimitedTable> {
        &self.table
    }

    /// Returns the present moment.
    pub(super) fn now(&self) -> Moment {
        let passed = i64::try_from(self.begun.elapsed().as_secs()).unwrap_or_default();
        Moment::EPOCH.plus_seconds(BEGIN + passed)
    }

    /// Returns a new client of the table, for a function that is not a buyer's.
    pub(super) fn client(&self) -> Table {
        self.client_of(Arc::default())
    }

    /// Returns a new client of the table, which counts its conflicts.
    fn client_of(&self, conflicts: Arc<AtomicU64>) -> Table {
        let timeouts = TimeoutConfig::builder().operation_timeout(aws::OPERATION_TIMEOUT).build();
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
            .endpoint_url("http://table")
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
            .timeout_config(timeouts)
            .http_client(InProcess { table: Arc::clone(&self.table), conflicts })
            .build();
        Table::new(Client::from_conf(config), NAME.to_owned())
    }

    /// Creates the customer with this number, and returns a client who orders for this customer.
    pub(super) fn buyer(&self, number: u64) -> Result<Buyer, BenchError> {
        let id = customer_id(number)?;
        let stored = json!({"TableName": NAME, "Item": item(customer(id.clone(), number)?, 0)?});
        let response = self.table.forward("PutItem", stored.to_string().as_bytes());
        if !response.status().is_success() {
            return Err(wrong!("the response to PutItem is {}", response.status()));
        }
        let services = Services {
            settings: SettingsCache::unchanging(Known::default()),
            random: |bytes| {
                fastrand::fill(bytes);
                Ok(())
            },
            ..Services::new(self.client_of(Arc::clone(&self.conflicts)), Keys::known(Cursors::new(CURSOR_KEYS)?))
        };
        Ok(Buyer { app: App::new(services), routes: orders::routes(), customer: id.to_string() })
    }

    /// Creates a product with a stock in so many shards. If the number is fixed, orders cannot raise it.
    pub(super) async fn sell(
        &self,
        id: &ProductId,
        pieces: u64,
        shards: u32,
        is_fixed: bool,
    ) -> Result<(), BenchError> {
        let table = self.client();
        let refused = || wrong!("{id} was not created");
        let create = product::create(&stored(example(id.clone())?, 0), pieces, &[])?;
        table.transact(&create).await?.map_err(|_| refused())?;
        if shards > 1 || is_fixed {
            let first = table.get(&product::stock(id)?).await?.ok_or_else(refused)?;
            // Busy orders do not raise a number that was changed just now, or later.
            let at = if is_fixed { Moment::now().plus_seconds(FIXED_SECONDS) } else { self.now() };
            let grow = product::grow(&first, shards, ReshardReason::Asked, at)?;
            table.transact(&grow).await?.map_err(|_| refused())?;
        }
        Ok(())
    }

    /// Returns the pieces in all shards.
    pub(super) async fn pieces(&self, id: &ProductId) -> Result<u64, BenchError> {
        let table = self.client();
        let first = table.get(&product::stock(id)?).await?.ok_or_else(|| wrong!("{id} has no stock"))?;
        let further = match product::further_shards(&first)? {
            Some(read) => table.batch_get(&read).await?,
            None => Vec::new(),
        };
        let missing = || wrong!("a shard of {id} is missing");
        further.into_iter().try_fold(first.available, |sum, shard| Ok(sum + shard.ok_or_else(missing)?.available))
    }
}

/// The end of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Placed { id: String, retries: u64 },
    SoldOut,
}

impl Buyer {
    /// Orders one piece of each product. After 503, the client waits and repeats the request with
    /// the same idempotency key.
    pub(super) async fn order(&self, shop: &Simulation, products: &[&ProductId]) -> Result<Outcome, BenchError> {
        let lines: Vec<_> = products.iter().map(|id| json!({"product_id": id, "quantity": 1})).collect();
        // Staff places the order, because a customer has a limit of unpaid orders.
        let body = json!({"customer_id": self.customer, "lines": lines, "placed_at": shop.now().to_string()});
        let key = format!("{:032x}", fastrand::u128(..));
        let call = Call::new("POST /v1/orders").staff("bench").header("idempotency-key", &key).json(&body);
        for retries in 0..TRIES {
            let answer = call.send(&self.routes, &self.app).await;
            match answer.status {
                201 => {
                    let id = answer.body.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    return Ok(Outcome::Placed { id, retries });
                }
                409 if answer.code() == Some("insufficient_stock") => return Ok(Outcome::SoldOut),
                503 => {
                    let seconds = answer.header("retry-after").and_then(|value| value.parse().ok());
                    tokio::time::sleep(seconds.map_or(PAUSE, Duration::from_secs)).await;
                }
                other => return Err(wrong!("the response to an order is {other}: {}", answer.body)),
            }
        }
        Err(wrong!("an order was not placed in {TRIES} requests"))
    }
}

/// Sends the SDK's requests to the table in this process.
#[derive(Clone)]
struct InProcess {
    table: Arc<LimitedTable>,
    conflicts: Arc<AtomicU64>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InProcess")
    }
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { table, conflicts } = self.clone();
        HttpConnectorFuture::new(async move {
            let target = request.headers().get("x-amz-target").unwrap_or_default();
            let response = table.answer(target, request.body().bytes().unwrap_or_default()).await;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| ConnectorError::other(error.into(), None))?.to_bytes();
            let is_conflict = |window: &[u8]| window == CONFLICT;
            if head.status.is_client_error() && body.windows(CONFLICT.len()).any(is_conflict) {
                conflicts.fetch_add(1, Ordering::Relaxed);
            }
            let status = head.status.as_u16().try_into();
            Ok(HttpResponse::new(
                status.map_err(|_| ConnectorError::other("an invalid status".into(), None))?,
                SdkBody::from(body),
            ))
        })
    }
}

impl HttpClient for InProcess {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
