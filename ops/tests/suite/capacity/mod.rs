//! Tests of `ops capacity`.

pub mod service;

use std::collections::BTreeMap;
use std::process::{Command, Output};

use ops::capacity::{Bounds, Kind, Mode, Report, Series, Simulated, parse, simulate};
use ops::cost::money::Nano;
use ops::cost::prices::Prices;
use serde_json::{Value, json};

use service::Service;

/// A response with the members of the API reference (`GetMetricData`), in the JSON protocol.
const DOCUMENTED: &str = include_str!("get-metric-data.json");
const START: i64 = 1_795_564_800;

/// Returns a series that begins at midnight, with this number of units per second in each minute.
fn series(kind: Kind, units_a_second: impl IntoIterator<Item = u64>) -> Series {
    let minutes = (0..).zip(units_a_second).map(|(minute, units)| (START + 60 * minute, units * 120));
    Series { place: "table".to_owned(), kind, minutes: minutes.collect() }
}

fn simulated(units: &[u64], min: u64, max: u64) -> Simulated {
    let series = series(Kind::Writes, units.iter().copied());
    let end = START + 60 * i64::try_from(units.len()).unwrap();
    simulate(&series, (START, end), Bounds { min, max }, 70)
}

/// Returns a constant load for this number of minutes.
fn load(minutes: usize, units: u64) -> Vec<u64> {
    vec![units; minutes]
}

/// The example of AWS has 100 units and a target of 70 percent. The capacity rises when the load
/// exceeds 70 units, and falls when the load is below 50 units.
#[test]
fn the_capacity_follows_the_thresholds_of_the_documentation() {
    let hours = |units: u64| simulated(&load(240, units), 100, 1_000).unit_hours;
    assert_eq!((hours(70), hours(50)), (400, 400));
    // A load of 71 units needs a capacity of 102. The first hour begins with 100, but an hour is
    // billed at its highest capacity.
    assert_eq!(hours(71), 4 * 102);
    let falls = |units: u64| simulated(&[load(60, 140), load(240, units)].concat(), 100, 1_000).unit_hours;
    // The first minutes of the next hour still have the capacity of 200 units.
    assert_eq!(falls(99), 200 + 200 + 3 * 142);
    assert_eq!(falls(101), 5 * 200);
}

#[test]
fn one_busy_minute_does_not_raise_the_capacity_and_is_served_by_unused_capacity() {
    let spike = [load(30, 10), load(1, 400), load(29, 10)].concat();
    // The spike exceeds the capacity by 300 units a second for a minute. The unused capacity of the
    // last 5 minutes serves this excess.
    assert_eq!(simulated(&spike, 100, 1_000), Simulated { unit_hours: 100, ..Simulated::default() });
    let larger = [load(30, 10), load(1, 601), load(29, 10)].concat();
    let throttled = simulated(&larger, 100, 1_000);
    assert_eq!((throttled.unit_hours, throttled.throttled_minutes, throttled.throttled_units), (100, 1, 60));
}

#[test]
fn a_rise_is_throttled_until_the_capacity_has_grown() {
    let throttled = simulated(&[load(5, 10), load(55, 500)].concat(), 20, 1_000);
    // The alarm needs two minutes. The new capacity begins three minutes after the second minute.
    assert_eq!((throttled.throttled_minutes, throttled.unit_hours), (4, 715));
    let bounded = simulated(&[load(5, 10), load(55, 500)].concat(), 20, 400);
    assert_eq!((bounded.throttled_minutes, bounded.unit_hours), (55, 400));
}

/// `UpdateTable` permits four decreases a day at any time. Each further decrease must be an hour
/// after the last decrease. Each of these five peaks leads to a decrease after 15 quiet minutes.
#[test]
fn the_fifth_decrease_of_a_day_waits_for_an_hour() {
    let peaks = [load(5, 700), load(15, 70)].concat().repeat(5);
    // The first four decreases are in the first 80 minutes, and the fifth is in the third hour.
    let with_a_fifth = simulated(&[peaks, load(200, 70)].concat(), 100, 1_000).unit_hours;
    assert_eq!(with_a_fifth, 3 * 1_000 + 2 * 100);
    let four = [load(5, 700), load(15, 70)].concat().repeat(4);
    let without_a_fifth = simulated(&[four, load(220, 70)].concat(), 100, 1_000).unit_hours;
    assert_eq!(without_a_fifth, 2 * 1_000 + 3 * 100);
}

fn report(minutes: &[u64]) -> Report {
    let series = [Kind::Reads, Kind::Writes].map(|kind| series(kind, minutes.iter().copied()));
    Report::new(&series, &Prices::built_in("us-east-1").unwrap(), 70).unwrap()
}

#[test]
fn steady_traffic_is_cheaper_provisioned_and_bursts_are_cheaper_on_demand() {
    let even = report(&load(8 * 1_440, 70));
    assert_eq!((even.recommended, even.hours), (Mode::Provisioned, 192), "{even}");
    // 70 units a second for 730 hours: reads at 0.125 and writes at 0.625 dollars a million.
    assert_eq!(even.on_demand, Nano(70 * 3_600 * 730 * (125 + 625)));
    // 100 units for 730 hours, at 0.00013 and 0.00065 dollars an hour.
    assert_eq!(even.provisioned, Nano(100 * 730 * (130_000 + 650_000)));
    let expected = [
        ("CapacityMode", "provisioned"),
        ("CapacityTarget", "70"),
        ("InitialReadCapacity", "100"),
        ("InitialWriteCapacity", "100"),
        ("ReadCapacity", "100,100"),
        ("WriteCapacity", "100,100"),
    ];
    assert_eq!(even.parameters, expected.map(|(name, value)| (name, value.to_owned())).into());
    assert!(!even.to_string().contains("WEAK"), "{even}");

    let rare = report(&[load(60, 100), load(1_380, 0)].concat().repeat(8));
    assert_eq!(rare.recommended, Mode::OnDemand, "{rare}");
    assert_eq!(rare.parameters, BTreeMap::from([("CapacityMode", "on-demand".to_owned())]));

    // The recommendation from a series of a few hours is marked as weak.
    assert!(report(&load(120, 70)).to_string().contains("WEAK: the data cover 2 hours"));
    // Provisioned capacity would be cheaper, but it would throttle requests.
    let steep = report(&[load(720, 10), load(720, 200)].concat().repeat(8));
    assert!(
        steep.recommended == Mode::OnDemand && steep.to_string().contains("requests would have been throttled"),
        "{steep}"
    );
}

/// The lower bound serves the quietest hour. A table that starts with it throttles the day's traffic.
#[test]
fn a_provisioned_table_starts_with_the_present_use() {
    let night_and_day = |last: u64| [load(7 * 1_440, 70), load(120, 50), load(90, last)].concat();
    for (last, initial) in [(50, "72"), (56, "80"), (70, "100")] {
        let report = report(&night_and_day(last));
        assert_eq!(report.recommended, Mode::Provisioned, "{report}");
        assert_eq!(report.parameters["WriteCapacity"], "72,100", "{report}");
        assert_eq!(report.parameters["InitialWriteCapacity"], initial, "{report}");
    }
}

#[test]
fn metrics_from_the_api_and_from_the_cli_give_the_same_series() {
    let api = parse(DOCUMENTED).unwrap();
    let mut value: Value = serde_json::from_str(DOCUMENTED).unwrap();
    for result in value["MetricDataResults"].as_array_mut().unwrap() {
        for time in result["Timestamps"].as_array_mut().unwrap() {
            let minute = (time.as_i64().unwrap() - START) / 60;
            *time = json!(format!("2026-11-25T00:{minute:02}:00+00:00"));
        }
    }
    assert_eq!(parse(&value.to_string()).unwrap(), api);
    let of = |place: &str, kind| api.iter().find(|series| series.place == place && series.kind == kind).unwrap();
    assert_eq!(of("table", Kind::Reads).minutes, BTreeMap::from([(START, 25), (START + 120, 240)]));
    assert_eq!(of("GSI3", Kind::Writes).minutes, BTreeMap::new());
}

#[test]
fn invalid_metrics_are_refused() {
    let with = |change: fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(DOCUMENTED).unwrap();
        change(&mut value);
        parse(&value.to_string()).unwrap_err().to_string()
    };
    for (change, said) in [
        ((|value| value["NextToken"] = json!("more")) as fn(&mut Value), "only the first page"),
        (|value| value["MetricDataResults"][0]["Id"] = json!("m1"), "unknown id \"m1\": use the queries"),
        (|value| value["MetricDataResults"] = json!([]), "no data point"),
        (|value| value["MetricDataResults"][0]["Values"][0] = json!(-1.0), "-1 is not a number of units"),
        (|value| value["MetricDataResults"][0]["Timestamps"][0] = json!("yesterday"), "not a time in UTC"),
        (|value| *value = json!([]), "the metrics: "),
    ] {
        let error = with(change);
        assert!(error.contains(said), "{error}");
    }
}

/// Runs `ops capacity` with endpoints that this service serves.
async fn ops(service: &Service, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("capacity").args(arguments).env_clear();
    for name in ["AWS_ENDPOINT_URL_CLOUDWATCH", "AWS_ENDPOINT_URL_CLOUDFORMATION"] {
        command.env(name, service.url());
    }
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("TABLE_NAME", "shop"),
    ] {
        command.env(name, value);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn page(id: &str, minutes: std::ops::Range<i64>, next: Option<&str>) -> String {
    let times: Vec<i64> = minutes.map(|minute| START + 60 * minute).collect();
    let values = vec![4_200.0; times.len()];
    let result = json!({"Id": id, "Label": id, "Values": values, "Timestamps": times, "StatusCode": "PartialData"});
    json!({"MetricDataResults": [result], "NextToken": next, "Messages": []}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_pages_of_metrics_are_read_from_cloudwatch_and_the_stack_is_updated() {
    let updated =
        "<UpdateStackResponse><UpdateStackResult><StackId>x</StackId></UpdateStackResult></UpdateStackResponse>";
    let answers = [
        (200, page("table_writes", 0..600, Some("more"))),
        (200, page("table_writes", 600..1_200, None)),
        (200, updated.to_owned()),
    ];
    let service = Service::start(answers).await;
    let output = ops(&service, &["--apply", "--stack", "bodega-prod", "--json"]).await;
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&said["hours"], &said["recommended"], &said["updated"]),
        (&json!(20), &json!("provisioned"), &json!("bodega-prod"))
    );
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("bodega-prod: CapacityMode=provisioned"), "{shown}");
    let asked = service.asked();
    let first: Value = serde_json::from_str(&asked[0].body).unwrap();
    assert_eq!(asked[0].target.as_deref(), Some("GraniteServiceVersion20100801.GetMetricData"));
    assert_eq!(first["MetricDataQueries"].as_array().unwrap().len(), 8);
    assert_eq!(first["EndTime"].as_i64().unwrap() - first["StartTime"].as_i64().unwrap(), 14 * 86_400);
    let second: Value = serde_json::from_str(&asked[1].body).unwrap();
    assert_eq!((first.get("NextToken"), &second["NextToken"]), (None, &json!("more")));
    let form: BTreeMap<String, String> =
        reqwest::Url::parse(&format!("http://x/?{}", asked[2].body)).unwrap().query_pairs().into_owned().collect();
    assert_eq!((form["Action"].as_str(), form["StackName"].as_str()), ("UpdateStack", "bodega-prod"));
    let given = |name: &str| {
        let (key, _) = form.iter().find(|(_, value)| *value == name).unwrap();
        let member = key.strip_suffix("ParameterKey").unwrap();
        form.get(&format!("{member}ParameterValue")).map(String::as_str)
    };
    assert_eq!((given("CapacityMode"), given("CapacityTarget")), (Some("provisioned"), Some("70")));
    // GSI1 to GSI3 consumed nothing.
    assert_eq!(given("WriteCapacity"), Some("100,100,1,1,1,1,1,1"));
    // Parameters that do not concern the capacity keep their values.
    assert_eq!(given("CursorKeysSecret"), None);
    assert_eq!(
        form.values().filter(|value| *value == "true").count(),
        1 + form.keys().filter(|key| key.ends_with("UsePreviousValue")).count()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_update_and_an_unreachable_service_are_reported() {
    let refusal = "<ErrorResponse><Error><Code>ValidationError</Code>\
        <Message>No updates are to be performed.</Message></Error></ErrorResponse>";
    let metrics = (200, page("table_writes", 0..120, None));
    let service = Service::start([metrics, (400, refusal.to_owned())]).await;
    let output = ops(&service, &["--apply", "--stack", "s"]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("No updates are to be performed."), "{said}");

    let denied = json!({"__type": "com.amazon.coral.service#AccessDeniedException"}).to_string();
    let output = ops(&Service::start([(400, denied)]).await, &[]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("AccessDeniedException"), "{said}");
    let output = ops(&Service::start([]).await, &["--print-queries"]).await;
    let queries: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(queries[7]["Id"], "gsi3_writes");
    assert_eq!(
        queries[7]["MetricStat"]["Metric"]["Dimensions"][1],
        json!({"Name": "GlobalSecondaryIndexName", "Value": "GSI3"})
    );
}
