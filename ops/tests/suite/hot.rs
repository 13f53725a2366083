//! Tests of `ops hot`.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use emulators::contributors::InsightServer;
use fixture::TestTable;
use key_schema::instant::Instant;
use key_schema::registry;
use ops::hot::{ADVICE, Hot, InsightReport, advice};
use serde_json::{Value, json};

/// The response of CloudWatch that the splitter's tests use, too.
const DOCUMENTED: &str = include_str!("../../../functions/splitter/tests/documented/get-insight-rule-report.json");

fn report(contributors: &Value) -> InsightReport {
    serde_json::from_value(json!({"Contributors": contributors})).unwrap()
}

fn contributor(keys: &[&str], value: f64) -> Value {
    json!({"Keys": keys, "ApproximateAggregateValue": value, "Datapoints": []})
}

#[test]
fn hot_keys_are_looked_up_and_the_hottest_is_first() {
    let table = report(&json!([
        contributor(&["PRODUCT#tea"], 10.0),
        contributor(&["EMAIL#ann@example.com", "EMAIL"], 7.0),
        contributor(&["COUNTER#invoices"], 3.4),
        contributor(&["IDEMPOTENCY#ann#gift-for-bob", "IDEMPOTENCY"], 1.0),
        contributor(&["ORDER#o1"], 0.0),
    ]));
    let index = report(&json!([
        contributor(&["STATUS#pending#02"], 40.0),
        contributor(&["PLACE#Hidden land#0", "Hidden city#ann"], 1.0),
    ]));
    let hot = Hot::new([("table".to_owned(), table.clone()), ("GSI2".to_owned(), index), ("table".to_owned(), table)]);
    let found: Vec<(u64, &str, &str)> =
        hot.keys.iter().map(|key| (key.throttled, key.place.as_str(), key.key.as_str())).collect();
    assert_eq!(found[..2], [(40, "GSI2", "STATUS#pending#02"), (20, "table", "PRODUCT#tea")]);
    assert!(found[2].2.starts_with("EMAIL#<") && found[2].2.ends_with("> EMAIL"), "{found:?}");
    assert_eq!((found.len(), found[3]), (6, (6, "table", "COUNTER#invoices")));
    assert!(found[4].2.starts_with("IDEMPOTENCY#<") && found[5].2.starts_with("PLACE#<"), "{found:?}");
    assert!(["gift", "Hidden"].iter().all(|text| !hot.to_string().contains(text)), "{found:?}");
    assert_eq!(hot.keys[0].patterns, [key_schema::order::BY_STATUS.id]);
    assert!(hot.keys[1].patterns.contains(&key_schema::product::PAGE.id), "{:?}", hot.keys[1].patterns);
    assert!(hot.keys[1].help.contains("the sales of a product") && hot.keys[3].help.contains("invoices"));
    assert!(!hot.to_string().contains("ann@example.com") && hot.to_string().ends_with("6 keys were throttled\n"));
    // The report in AWS's documentation.
    let documented: InsightReport = serde_json::from_str(DOCUMENTED).unwrap();
    let keys = Hot::new([("table".to_owned(), documented)]).keys;
    assert!(
        keys.iter().any(|key| key.patterns.contains(&key_schema::counter::ADD.id) && key.help.contains("splitter")),
        "{keys:?}"
    );
}

#[test]
fn each_advice_is_about_a_key_of_an_access_pattern() {
    let of = |key: &str| {
        key.split(' ').map(|word| word.split(['#', ',', ';']).next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let known: BTreeSet<String> = registry::all().flat_map(|pattern| of(pattern.key)).collect();
    for (prefix, help) in ADVICE {
        assert!(known.contains(prefix), "{prefix}");
        assert_eq!(advice(&format!("{prefix}#x")), help);
    }
    assert!(advice("SESSION#x").contains("MaxWriteUnits"));
}

async fn run(table: &TestTable, insights: &InsightServer, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("hot").args(arguments).env_clear();
    for (name, value) in [
        ("AWS_ENDPOINT_URL_DYNAMODB", table.endpoint()),
        ("AWS_ENDPOINT_URL_CLOUDWATCH", insights.url()),
        ("AWS_ACCESS_KEY_ID", table.access_key()),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_REGION", "us-east-1"),
        ("TABLE_NAME", table.name()),
    ] {
        command.env(name, value);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn throttled_keys_are_read_from_cloudwatch() {
    let table = TestTable::create().await;
    let throttles = table.count_throttles();
    let insights = InsightServer::start(throttles.clone()).await.unwrap();
    let output = run(&table, &insights, &[]).await;
    assert!(output.status.success() && output.stdout.starts_with(b"no key was throttled"), "{output:?}");
    let minute = Instant::now().as_seconds() - 30 * 60;
    for _ in 0..5 {
        throttles.record_at("WALLET#ann", minute);
    }
    let output = run(&table, &insights, &["--json"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let hot: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The emulator has one rule for the table, and one for each index.
    assert_eq!((&hot["keys"][0]["key"], &hot["keys"][0]["throttled"]), (&json!("WALLET#ann"), &json!(5)));
    assert_eq!(hot["keys"].as_array().unwrap().len(), 1, "a key of the table is not listed for the indexes: {hot}");
    let output = run(&table, &insights, &["--minutes", "10"]).await;
    assert!(output.status.success(), "{output:?}");
    let output = run(&table, &insights, &["--report", "none.json", "--place", "GSI4"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
