//! Tests of parsing a report with any content.

use key_schema::id::CounterName;
use key_schema::instant::Instant;
use proptest::prelude::*;
use serde_json::{Value, json};
use splitter::report::{Hot, Report, window};

use crate::watch::{minute, name, partition};

/// A sample response with every member that AWS documents
/// (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetInsightRuleReport.html>).
/// The label of the key, the statistic and `RuleAttributes` are from the example of
/// `aws cloudwatch get-insight-rule-report`. Times have the form of the JSON protocol.
const DOCUMENTED: &str = include_str!("../documented/get-insight-rule-report.json");

/// Returns the start of a minute of the documented response.
fn documented(number: i64) -> Instant {
    Instant::EPOCH.plus_seconds(1_795_129_200 + 60 * number)
}

fn hot(report: &Value, now: Instant) -> Vec<(CounterName, Instant)> {
    let report: Report = serde_json::from_value(report.clone()).unwrap();
    let counters = report.hot(now).into_iter().filter_map(|(hot, minute)| match hot {
        Hot::Counter(name) => Some((name, minute)),
        Hot::Stock(_) => None,
    });
    counters.collect()
}

fn contributor(keys: &Value, at: &Value, value: &Value) -> Value {
    json!({"Keys": keys, "Datapoints": [{"Timestamp": at, "ApproximateValue": value}]})
}

#[test]
fn a_documented_report_gives_the_last_hot_minute_of_each_counter() {
    let report = serde_json::from_str(DOCUMENTED).unwrap();
    let expected = [(name("a#b"), documented(0)), (name("product:1082185"), documented(1))];
    assert_eq!(hot(&report, documented(2)), expected);
    assert_eq!(hot(&report, documented(1)), expected);
    // At minute 6 only the first hot minute is outside the window. At minute 7 both are.
    assert_eq!(hot(&report, documented(6)), [(name("product:1082185"), documented(1))]);
    assert_eq!(hot(&report, documented(7)), []);
    // A point from the future is ignored.
    assert_eq!(
        hot(&report, documented(0).plus_seconds(59)),
        [(name("a#b"), documented(0)), (name("product:1082185"), documented(0))]
    );
}

#[test]
fn an_invalid_entry_of_a_report_is_ignored_and_hides_no_other_entry() {
    let (hot_key, at, now) = (partition("views", false), json!(minute(0).as_seconds()), minute(1));
    let head = partition("views", true);
    let good = contributor(&json!([hot_key]), &at, &json!(10.0));
    let many = json!(1e9);
    let bad = [
        Value::Null,
        json!("x"),
        json!({}),
        json!({"Keys": "x"}),
        json!({"Keys": [hot_key], "Datapoints": [{"Timestamp": "now", "ApproximateValue": 10}]}),
        json!({"Keys": [hot_key], "Datapoints": null}),
        json!({"Keys": [hot_key]}),
        contributor(&json!([]), &at, &many),
        contributor(&json!([hot_key, "SHARD"]), &at, &many),
        contributor(&json!([head]), &at, &many),
        contributor(&json!([hot_key.to_lowercase()]), &at, &many),
        contributor(&json!([format!("{hot_key}#0")]), &at, &many),
        contributor(&json!([format!("X{hot_key}")]), &at, &many),
        contributor(&json!([format!("{head}#0")]), &at, &many),
        contributor(&json!([format!("{head}#00000000000000000064")]), &at, &many),
        contributor(&json!([format!("{head}#-0000000000000000001")]), &at, &many),
        contributor(&json!(["COUNTER##00000000000000000000"]), &at, &many),
        contributor(&json!(["COUNTER#%zz#00000000000000000000"]), &at, &many),
        contributor(&json!([""]), &at, &many),
        contributor(&json!([hot_key]), &json!(1e300), &many),
        contributor(&json!([hot_key]), &json!(-1e300), &many),
        contributor(&json!([hot_key]), &json!(0), &many),
        contributor(&json!([hot_key]), &at, &json!(-5.0)),
    ];
    for bad in &bad {
        assert_eq!(hot(&json!({"Contributors": [bad]}), now), [], "{bad}");
        assert_eq!(hot(&json!({"Contributors": [bad, good]}), now), [(name("views"), minute(0))], "{bad}");
    }
    for nothing in [json!({}), json!({"Contributors": []}), json!({"KeyLabels": 1})] {
        assert_eq!(hot(&nothing, now), [], "{nothing}");
    }
}

#[test]
fn the_counter_of_invoices_is_never_split() {
    let keys = json!([partition("invoices", false)]);
    let report = json!({"Contributors": [contributor(&keys, &json!(minute(0).as_seconds()), &json!(10))]});
    assert_eq!(hot(&report, minute(1)), []);
}

#[test]
fn a_window_has_the_last_five_whole_minutes_and_the_current_minute() {
    let at = minute(9).as_seconds();
    assert_eq!(window(minute(9)), (at - 300, at));
    assert_eq!(window(minute(9).plus_seconds(59)), (at - 300, at + 59));
}

proptest! {
    #[test]
    fn the_name_of_a_counter_can_be_read_from_the_key_of_every_shard(text in "\\PC{1,40}") {
        let Ok(name) = CounterName::new(text.as_str()) else { return Ok(()) };
        let keys = json!([partition(&text, false)]);
        let report = json!({"Contributors": [contributor(&keys, &json!(minute(0).as_seconds()), &json!(10))]});
        prop_assert_eq!(hot(&report, minute(1)), [(name, minute(0))]);
    }
}
