//! Tests the policies of `ops/policies`: `ops` runs under them and needs all their permissions.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::{AttributeValue, Tag};
use emulators::access::{Access, Report, Rule};
use emulators::contributors::InsightServer;
use emulators::events::EventBusServer;
use emulators::objects::ObjectServer;
use emulators::search::SearchGate;
use emulators::table::FaultProxy;
use fixture::seed;
use key_schema::instant::Instant;
use key_schema::month::Month;
use key_schema::order::OrderStatus;
use key_schema::shard::Shards;
use ops::Items;
use ops::migrate::MigrateOptions;
use ops::shards::{ShardsOptions, change};
use serde_json::Value;

use crate::archive::{ID, delivered, expire};
use crate::redrive::{aside, given_up};
use crate::retire::large;
use crate::shop::{Bucket, Shop};
use crate::things::product;

const REGION: &str = "us-east-1";
const ACCOUNT: &str = "000000000000";
const SEARCH: &str = "arn:aws:es:us-east-1:000000000000:domain/shop";
const BUS: &str = "shop";
const FAILED: &str = "failed-records";
const ARCHIVE: &str = "archive";

/// Returns the policy of a group of commands.
fn policy(group: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("policies/{group}.json"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_of_deployments_lists_every_policy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(folder.join("../docs/operations/deploy.md")).unwrap();
    for entry in std::fs::read_dir(folder.join("policies")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let group = name.strip_suffix(".json").unwrap();
        let row = format!("| `ops {group}` | [{name}](../../ops/policies/{name}) |");
        assert!(page.contains(&row), "{row}");
    }
}

/// A shop, and an operator with the policy of one group of commands.
struct Operator {
    shop: Shop,
    failed: Bucket,
    archive: Bucket,
    access: Arc<Access>,
    environment: BTreeMap<&'static str, String>,
    _insights: InsightServer,
    proxy: FaultProxy,
    _bus: EventBusServer,
    _gate: SearchGate,
}

impl Operator {
    async fn of(group: &str) -> Self {
        let shop = Shop::open().await;
        let access = Arc::new(Access::new(REGION, ACCOUNT, [(group.to_owned(), rules(&shop, group))]));
        let proxy = FaultProxy::start(shop.table.endpoint()).await.unwrap();
        proxy.enforce(Arc::clone(&access));
        let insights = InsightServer::start(shop.table.count_throttles()).await.unwrap();
        insights.enforce(Arc::clone(&access));
        let bus = EventBusServer::start(&[BUS.to_owned()]).await.unwrap();
        bus.enforce(Arc::clone(&access));
        let objects = Arc::new(ObjectServer::start(None, &[FAILED.to_owned(), ARCHIVE.to_owned()]).await.unwrap());
        objects.enforce(Arc::clone(&access));
        let gate = SearchGate::start(&shop.endpoint, SEARCH, group, Arc::clone(&access)).await.unwrap();
        let environment = [
            ("AWS_ENDPOINT_URL_DYNAMODB", proxy.url()),
            ("AWS_ENDPOINT_URL_CLOUDWATCH", insights.url()),
            ("AWS_ENDPOINT_URL_EVENTBRIDGE", bus.url()),
            ("AWS_ENDPOINT_URL_S3", objects.url()),
            ("AWS_ACCESS_KEY_ID", shop.table.access_key()),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            // The endpoints identify the caller by this token.
            ("AWS_SESSION_TOKEN", group),
            ("AWS_REGION", REGION),
            ("TABLE_NAME", shop.table.name()),
            ("METRICS_TABLES", "monthly"),
            ("SEARCH_ENDPOINT", gate.url()),
            ("SEARCH_INDEX_PREFIX", &shop.prefix),
            ("BUS_NAME", BUS),
            ("FAILED_RECORDS_BUCKET", FAILED),
            ("ARCHIVE_BUCKET", ARCHIVE),
        ];
        let environment = environment.map(|(name, value)| (name, value.to_owned())).into();
        let (failed, archive) = (Bucket::of(&objects, FAILED), Bucket::of(&objects, ARCHIVE));
        Self { shop, failed, archive, access, environment, _insights: insights, proxy, _bus: bus, _gate: gate }
    }

    /// Runs a command and asserts its exit status.
    async fn run(&self, command: &str, status: i32) {
        let environment = self.environment.clone();
        let arguments: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let given =
            move || Command::new(env!("CARGO_BIN_EXE_ops")).args(arguments).env_clear().envs(environment).output();
        let output = tokio::task::spawn_blocking(given).await.unwrap().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert_eq!(output.status.code(), Some(status), "ops {command}: {said}\n{:?}", self.report().denied);
    }

    /// Returns a client of the table with the operator's permissions.
    fn client(&self) -> Client {
        let (key, token) = (self.shop.table.access_key(), self.environment["AWS_SESSION_TOKEN"].clone());
        let config = self.shop.table.client().config().to_builder().endpoint_url(self.proxy.url());
        Client::from_conf(
            config.credentials_provider(Credentials::new(key, "local", Some(token), None, "test")).build(),
        )
    }

    fn report(&self) -> Report {
        self.access.report().remove(0)
    }

    /// Asserts that no call was refused and that every permission was used.
    fn assert_exact_permissions(&self) {
        let Report { grants, denied, .. } = self.report();
        assert!(denied.is_empty(), "{denied:?}");
        let unused: Vec<String> = grants
            .into_iter()
            .filter(|grant| grant.used == 0)
            .map(|grant| format!("{} on {}", grant.action, grant.resource))
            .collect();
        assert!(unused.is_empty(), "granted and never used:\n{}", unused.join("\n"));
    }
}

fn rules(shop: &Shop, group: &str) -> Vec<Rule> {
    let names = [
        ("<Region>", REGION),
        ("<Account>", ACCOUNT),
        ("<TableName>", shop.table.name()),
        ("<SearchArn>", SEARCH),
        ("<SearchIndexPrefix>", &shop.prefix),
        ("<FailedRecordsBucket>", FAILED),
        ("<ArchiveBucket>", ARCHIVE),
        ("<BusName>", BUS),
    ];
    let text = names.iter().fold(policy(group), |text, (name, value)| text.replace(name, value));
    assert!(!text.contains('<'), "{text}");
    let policy: Value = serde_json::from_str(&text).unwrap();
    let texts = |value: &Value| match value {
        Value::Array(texts) => texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect(),
        text => vec![text.as_str().unwrap().to_owned()],
    };
    let mut rules = Vec::new();
    for statement in policy["Statement"].as_array().unwrap() {
        assert_eq!(statement["Effect"], "Allow", "{statement}");
        for action in texts(&statement["Action"]) {
            for resource in texts(&statement["Resource"]) {
                let sid = statement["Sid"].as_str().map(str::to_owned);
                rules.push(Rule { sid, allow: true, action: action.clone(), resource });
            }
        }
    }
    rules
}

#[tokio::test(flavor = "multi_thread")]
async fn search_commands_run_under_their_policy() {
    let operator = Operator::of("search").await;
    let shop = &operator.shop;
    shop.put_and_deliver(&product("tea", 1)).await;
    operator.run("search status", 0).await;
    operator.run("search probe", 0).await;
    // The consumer does not get the record of this change.
    shop.put(&product("ice", 1)).await;
    operator.run("search reconcile --dry-run --settle 0", 1).await;
    operator.run("search reconcile --settle 0", 0).await;
    operator.run("search rebuild --collection products", 0).await;
    operator.run("search rebuild --collection orders --restored", 0).await;
    operator.run("search prune", 0).await;
    operator.run("search purge", 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn redrive_commands_run_under_their_policy() {
    let operator = Operator::of("redrive").await;
    let shop = &operator.shop;
    // The batch has every kind of record that a consumer of the stream may fail to process.
    let mut records = Vec::new();
    for sample in ["order-placed", "order-cancelled", "product", "product-renamed", "session-expired", "stock"] {
        let read = |name: String| -> Value {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../events").join(name);
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        for seed in read(format!("stream-events-{sample}.expected.json"))["seed"].as_array().unwrap() {
            if let Some(item) = seed.get("item") {
                shop.put_image(item).await;
            }
        }
        records.append(read(format!("stream-events-{sample}.json"))["Records"].as_array_mut().unwrap());
    }
    let record = shop.put(&product("tea", 1)).await;
    operator.failed.put("quarantine/2017-01-01/e1-search.json", &aside("search", &record));
    operator.failed.put("aws/lambda/mapping/batch", &given_up("shop-StreamEvents-1", &records));
    operator.run("redrive list", 0).await;
    operator.run("redrive show aws/lambda/mapping/batch", 0).await;
    // This replay restores a lost alias, and needs the permission for that.
    shop.lose_write_alias().await;
    operator.run("redrive replay --all", 0).await;
    operator.run("redrive replay quarantine/2017-01-01/e1-search.json", 1).await;
    operator.failed.put("quarantine/2017-01-01/e1-search.json", &aside("search", &record));
    operator.run("redrive discard --yes --all", 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_and_archive_commands_run_under_their_policies() {
    let operator = Operator::of("orders").await;
    delivered(&operator.shop).await;
    // This order has more lines than fit in one transaction.
    large(&operator.shop, "large").await;
    operator.run("order show large", 0).await;
    operator.run("order show c1 --json", 0).await;
    operator.run("order show nobody", 1).await;
    operator.run("orders retire --older-than 31 --grace 0 --dry-run", 0).await;
    operator.run("orders retire --older-than 31 --grace 0", 0).await;
    operator.assert_exact_permissions();

    let operator = Operator::of("archive").await;
    delivered(&operator.shop).await;
    ops::orders::retire(&operator.shop.table.table(), &crate::archive::options(false)).await.unwrap();
    expire(&operator.shop, &operator.archive).await;
    operator.run("archive list --day 2017-01-01", 0).await;
    let name = operator.archive.names().await.remove(0);
    operator.run(&format!("archive show {name}"), 0).await;
    operator.run(&format!("archive restore --order {ID}"), 0).await;
    operator.run(&format!("archive restore {name}"), 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_and_migrate_commands_run_under_their_policies() {
    let operator = Operator::of("verify").await;
    let table = &operator.shop.table;
    crate::verify::world::fill(table).await;
    crate::verify::variants::shirts(table).await;
    operator.run("verify --settle 0", 0).await;
    // The list of variants gets an entry without a variant, which the repair deletes.
    for (pk, sk) in [("PRODUCT#shirt-M", "PRODUCT"), ("STOCK#shirt-M#main#00000000000000000000", "STOCK")] {
        table.delete_at(pk, sk).await;
    }
    table.set("PRODUCT#tea", "PRODUCT", "GSI2SK", AttributeValue::S("LOST".to_owned())).await;
    table.set("PRODUCT#tea", "PRODUCT#STATS", "rating_sum", AttributeValue::N("1".to_owned())).await;
    table.delete_at("EMAIL#bob@example.com", "EMAIL").await;
    table.set("USERNAME#ann", "USERNAME", "customer_id", AttributeValue::S("nobody".to_owned())).await;
    operator.run("verify --settle 0", 1).await;
    // The claim of a missing profile is only reported.
    operator.run("verify --settle 0 --fix", 1).await;
    operator.run("verify --settle 0 --json --segments 1 --entity Order", 0).await;
    operator.assert_exact_permissions();

    let operator = Operator::of("migrate").await;
    crate::migrate::old(&operator.shop, 1).await;
    operator.run("migrate list", 0).await;
    operator.run("migrate status", 0).await;
    // The command may have no migrations. The test runs its own in the same way.
    let items = Items::new(operator.client(), operator.shop.table.name().to_owned());
    let options = MigrateOptions { dry_run: false, segments: 2, max_read_units: None, max_write_units: Some(10) };
    for migration in crate::migrate::MIGRATIONS {
        assert_eq!(ops::migrate::run_migration(&items, migration, &options).await.unwrap().migrated, 1);
    }
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn customer_commands_run_under_their_policy() {
    let operator = Operator::of("customer").await;
    operator.shop.table.sign_up("c1").await;
    let session = seed::session("s1", "c1", Instant::now().plus_seconds(60));
    operator.shop.put(&crate::things::with_meta(session, 1)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c1.json").display().to_string();
    operator.run(&format!("customer export c1 --to {file}"), 0).await;
    operator.run(&format!("customer export c1 --to {file}"), 2).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn item_commands_run_under_their_policy() {
    let mut operator = Operator::of("item").await;
    operator.shop.put(&product("tea", 1)).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, serde_json::to_string(&product("tea", 1).to_item().unwrap()).unwrap()).unwrap();
    operator.run("item show PRODUCT#tea PRODUCT", 0).await;
    operator.run("item put PRODUCT#tea PRODUCT --set name={\"S\":\"Tea\"}", 0).await;
    operator.run("item put PRODUCT#tea PRODUCT", 2).await;
    operator.run("item delete PRODUCT#tea PRODUCT --dry-run", 0).await;
    operator.run("item delete PRODUCT#tea PRODUCT", 0).await;
    let put = format!("item put PRODUCT#tea PRODUCT --file {}", file.path().display());
    operator.run(&put, 0).await;
    operator.run("item delete PRODUCT#tea PRODUCT", 0).await;
    // A line of an export has the item in `Item`. A shop without a search engine has no endpoint.
    let line = serde_json::json!({ "Item": product("tea", 1).to_item().unwrap() });
    std::fs::write(&file, line.to_string()).unwrap();
    operator.environment.insert("SEARCH_ENDPOINT", String::new());
    operator.run(&put, 0).await;
    operator.run("item show PRODUCT#tea PRODUCT", 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn export_and_import_commands_run_under_their_policies() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("shop").display().to_string();
    let operator = Operator::of("export").await;
    crate::verify::world::fill(&operator.shop.table).await;
    operator.run(&format!("export --to {to}"), 0).await;
    operator.assert_exact_permissions();

    let operator = Operator::of("feed").await;
    crate::verify::world::fill(&operator.shop.table).await;
    operator.shop.table.sell(seed::product("shirt", seed::usd(900)), 0).await;
    operator.shop.table.vary("shirt", seed::product("shirt-m", seed::usd(900)), "M", 3).await;
    operator.run(&format!("feed --to {to}-feed --id feed_1"), 0).await;
    operator.assert_exact_permissions();

    let operator = Operator::of("import").await;
    operator.run(&format!("import {to} --dry-run"), 0).await;
    operator.run(&format!("import {to} --entity Product"), 0).await;
    operator.run(&format!("import {to} --partition PRODUCT#tee"), 1).await;
    operator.run(&format!("import {to} --with-rights --max-write-units 100000"), 0).await;
    operator.run(&format!("analytics {to} --to {to}-tables"), 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_command_runs_under_its_policy() {
    let operator = Operator::of("doctor").await;
    operator.run("doctor", 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shards_command_runs_under_its_policy() {
    let operator = Operator::of("shards").await;
    operator.shop.put(&crate::things::order("o1", OrderStatus::Paid, 1)).await;
    operator.shop.put(&seed::stored(seed::product("tea", seed::usd(129)))).await;
    operator.shop.put(&seed::stored(seed::stock("tea".parse().unwrap(), 100))).await;
    for number in [2, 4, 1] {
        operator.run(&format!("shards --stock tea --to {number}"), 0).await;
    }
    operator.run("shards", 0).await;
    operator.run("shards --index orders.by-status --to 8 --dry-run", 0).await;
    // The command would wait for functions with earlier settings. The test runs the same steps
    // without waits.
    let items = Items::new(operator.client(), operator.shop.table.name().to_owned());
    let scan = MigrateOptions { dry_run: false, segments: 1, max_read_units: None, max_write_units: None };
    let list = &key_schema::order::BY_STATUS;
    let options = ShardsOptions { list, to: Shards(8), wait: Duration::ZERO, scan };
    assert!(change(&items, &options).await.unwrap().is_complete());
    operator.run("shards --index orders.by-status --to 8 --json", 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rotate_command_runs_under_its_policy() {
    let operator = Operator::of("rotate").await;
    let (table, present) = (&operator.shop.table, Month::of(Instant::now()));
    let expired = present.plus(-5).table(table.name());
    for month in [present.plus(-1), present] {
        table.add_table(&month.table(table.name())).await;
    }
    table.add_table(&expired).await;
    let protect = table.client().update_table().table_name(&expired).deletion_protection_enabled(true);
    protect.send().await.unwrap();
    let client = table.client();
    let main = client.describe_table().table_name(table.name()).send().await.unwrap().table.unwrap();
    let tag = Tag::builder().key("team").value("shop").build().unwrap();
    client.tag_resource().resource_arn(main.table_arn.unwrap()).tags(tag).send().await.unwrap();
    operator.run("rotate --dry-run", 1).await;
    operator.run("rotate", 0).await;
    operator.run("rotate --dry-run --json", 0).await;
    operator.assert_exact_permissions();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hot_command_runs_under_its_policy() {
    let operator = Operator::of("hot").await;
    operator.run("hot --json", 0).await;
    operator.assert_exact_permissions();
}
