use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::resources;
use crate::support::{read, root, template};

#[test]
fn every_alarm_has_a_line_of_instructions_and_notifies_the_operators() {
    let runbook = read(&root().join("docs/operations/runbook.md"));
    let (_, section) = runbook.split_once("\n## Alarms\n").unwrap();
    let described: BTreeSet<String> = section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` | ")?.0.to_owned()))
        .collect();
    let alarms = resources("AWS::CloudWatch::Alarm");
    assert_eq!(alarms.keys().cloned().collect::<BTreeSet<_>>(), described, "the alarms of docs/operations/runbook.md");
    for (name, lines) in alarms {
        assert!(lines.contains("AlarmActions: [!Ref Alarms]") && lines.contains("TreatMissingData: "), "{name}");
        assert!(lines.contains(&format!("AlarmName: !Sub bodega-${{Stage}}-{name}\n")), "{name}");
        // CloudWatch refuses an alarm with more than ten metrics, and then the stack's update
        // fails.
        assert!(lines.matches("MetricStat: ").count() <= 10, "{name} has more than ten metrics");
    }
}

/// Tests technique T11 of `docs/patterns.md`.
#[test]
fn the_dashboard_shows_the_api_the_table_the_stream_and_the_cost_of_each_route() {
    let dashboard = resources("AWS::CloudWatch::Dashboard").remove("Dashboard").unwrap();
    let (_, body) = dashboard.split_once("DashboardBody: !Sub |\n").unwrap();
    let body: Json = serde_json::from_str(body).unwrap();
    let widgets = body["widgets"].as_array().unwrap();
    for metric in [
        "5xx",
        "Latency",
        "ReadCapacity",
        "WriteCapacity",
        "IteratorAge",
        "Quarantined",
        "ReadThrottleEvents",
        "WriteThrottleEvents",
    ] {
        let shows = |widget: &&Json| {
            let metrics = widget["properties"]["metrics"].to_string();
            metrics.contains(&format!("\"{metric}\"")) || metrics.contains(&format!("MetricName=\\\"{metric}\\\""))
        };
        assert!(widgets.iter().any(|widget| shows(&widget)), "no widget shows {metric}");
    }
}

/// Tests technique S8 of `docs/patterns.md`.
#[test]
fn the_bus_has_an_archive_of_every_event() {
    let archives = resources("AWS::Events::Archive");
    let [(name, archive)] = archives.iter().collect::<Vec<_>>()[..] else { panic!("{archives:?}") };
    assert!(archive.contains("SourceArn: !GetAtt Bus.Arn"), "{name}");
    assert!(archive.contains("RetentionDays: !Ref EventRetentionDays"), "{name}");
    // The archive must contain all events, so it has no pattern.
    assert!(!archive.contains("EventPattern"), "{name}");
}

#[test]
fn every_function_has_alarms_for_errors_and_throttles() {
    let alarms: String = resources("AWS::CloudWatch::Alarm").into_values().collect();
    for name in resources("AWS::Serverless::Function").into_keys() {
        for metric in ["Errors", "Throttles"] {
            let measures = |line: &str| {
                let function = line.split_once("Name: FunctionName, Value: ").map(|(_, value)| value);
                let named = |word: &str| word == name;
                line.contains(&format!("MetricName: {metric},"))
                    && function.is_some_and(|value| value.split(|c: char| !c.is_alphanumeric()).any(named))
            };
            assert!(alarms.lines().any(measures), "no alarm has the metric {metric} of {name}");
        }
    }
}

#[test]
fn every_record_that_a_consumer_sets_aside_raises_an_alarm() {
    let quarantine = resources("AWS::CloudWatch::Alarm").remove("Quarantine").unwrap();
    let functions = resources("AWS::Serverless::Function");
    let sinks = |function: &str| {
        let line = functions[function].lines().find_map(|line| line.trim().strip_prefix("SINKS: "));
        line.unwrap().to_owned()
    };
    // An unreadable record reaches no sink, so the metric counts it under the consumer's name. This
    // name consists of the names of the consumer's sinks.
    for consumer in [sinks("StreamSearch"), sinks("StreamEvents")] {
        assert!(quarantine.contains(&format!("{{Name: Consumer, Value: {consumer}}}")), "{consumer}");
    }
    let all = sinks("StreamEvents");
    let all = all.split('\'').find(|part| part.starts_with("search,")).unwrap();
    assert!(all.split(',').count() >= 4, "{all}");
    for sink in all.split(',') {
        assert!(quarantine.contains(&format!("{{Name: Sink, Value: {sink}}}")), "{sink}");
    }
}

#[test]
fn a_mapping_that_discards_batches_or_is_disabled_raises_an_alarm() {
    let mut alarms = resources("AWS::CloudWatch::Alarm");
    let given_up = alarms.remove("GivenUp").unwrap();
    for stream in template().streams {
        let mapping = resources("AWS::Lambda::EventSourceMapping").remove(&stream.logical_id).unwrap();
        // Without this setting, Lambda sends no metrics of an event source mapping.
        assert!(mapping.contains("MetricsConfig: {Metrics: [EventCount]}"), "{}", stream.logical_id);
        for metric in ["OnFailureDestinationDeliveredEventCount", "DroppedEventCount"] {
            let measures = |line: &str| line.contains(metric) && line.contains(&format!("!Ref {}", stream.logical_id));
            assert!(given_up.lines().any(measures), "{metric} of {}", stream.logical_id);
        }
    }
    // Each consumer sends a heartbeat metric under the names of its sinks. A disabled mapping sends
    // no heartbeat to its consumer, so the metric is missing and the consumer's alarm fires.
    let functions = resources("AWS::Serverless::Function");
    for (alarm, function) in [("SearchHeartbeat", "StreamSearch"), ("EventsHeartbeat", "StreamEvents")] {
        let sinks = functions[function].lines().find_map(|line| line.trim().strip_prefix("SINKS: ")).unwrap();
        let alarm = alarms.remove(alarm).unwrap();
        assert!(alarm.contains("MetricName: Heartbeat") && alarm.contains("TreatMissingData: breaching"), "{alarm}");
        assert!(alarm.contains(&format!("{{Name: Consumer, Value: {sinks}}}")), "{alarm}");
    }
}

#[test]
fn a_failure_of_a_managed_service_of_the_stack_raises_an_alarm() {
    let alarms: String = resources("AWS::CloudWatch::Alarm").into_values().collect();
    for metric in [
        "ClusterStatus.red",
        "FreeStorageSpace",
        "ClusterIndexWritesBlocked",
        "Reputation.BounceRate",
        "Reputation.ComplaintRate",
        "4xx",
        "UnknownIssuers",
    ] {
        assert!(alarms.contains(&format!("MetricName: {metric}")), "{metric}");
    }
    let filter = resources("AWS::Logs::MetricFilter").remove("ThrottledRequests").unwrap();
    let name = "MetricName: !Sub 'ThrottledRequests-${Stage}'";
    assert!(filter.contains(r#"$.status = "429""#) && filter.contains(name) && alarms.contains(name));
    // The metric filter reads the access log, where the status is a text.
    let api = resources("AWS::Serverless::HttpApi").remove("HttpApi").unwrap();
    assert!(api.contains(r#""status":"$context.status""#));
}

/// One customer can cause 503 `throttled`, by conflicts on the customer's own items.
#[test]
fn throttled_requests_raise_no_alarm_of_faults() {
    let alarm = resources("AWS::CloudWatch::Alarm").remove("ApiFaults").unwrap();
    assert!(alarm.contains("100 * (faults - FILL(throttled, 0)) / requests"), "{alarm}");
    let throttled = alarm.lines().find(|line| line.contains("{Id: throttled, ")).unwrap();
    // `observe::throttled` of the crate http-api publishes this metric. Its stage is from `STAGE`.
    let metric = "{Namespace: Bodega, MetricName: Throttled, Dimensions: [{Name: Stage, Value: !Ref Stage}]}";
    assert!(throttled.contains(metric), "{throttled}");
    assert!(read(&root().join("template.yaml")).contains("        STAGE: !Ref Stage\n"));
}

#[test]
fn the_api_limits_the_rate_of_requests() {
    let api = resources("AWS::Serverless::HttpApi").remove("HttpApi").unwrap();
    let (_, settings) = api.split_once("      DefaultRouteSettings:\n").unwrap();
    for needed in ["ThrottlingRateLimit: !Ref RequestsPerSecond", "ThrottlingBurstLimit: !Ref RequestBurst"] {
        assert!(settings.contains(needed), "{needed}");
    }
    let text = read(&root().join("template.yaml"));
    let parameter = |name: &str| -> u32 {
        let (_, after) = text.split_once(&format!("\n  {name}:\n")).unwrap();
        let default = after.lines().find_map(|line| line.trim().strip_prefix("Default: ")).unwrap();
        default.parse().unwrap()
    };
    // One write of a guest cart's lines costs at most 6 write units, and everybody may send it.
    let (_, routes) = api.split_once("      RouteSettings:\n").unwrap();
    let limit = "{ThrottlingRateLimit: !Ref GuestCartsPerSecond, ThrottlingBurstLimit: !Ref GuestCartsPerSecond}";
    let limited: BTreeSet<&str> = routes.lines().filter_map(|line| line.trim().strip_suffix(limit)).collect();
    let writes = template().routes.into_iter().map(|route| route.to_string());
    let writes = writes.filter(|route| route.contains(" /v1/carts") && !route.starts_with("GET "));
    assert_eq!(
        limited,
        writes.map(|route| format!("{route}: ")).collect::<BTreeSet<_>>().iter().map(|route| &**route).collect()
    );
    assert!(parameter("GuestCartsPerSecond") * 6 * 4 <= parameter("MaxWriteUnits"));
    let (rate, burst) = (parameter("RequestsPerSecond"), parameter("RequestBurst"));
    assert!(
        (1..=10_000).contains(&rate) && (1..=5_000).contains(&burst),
        "{rate} and {burst} must be at least 1 and within the default quotas of an account"
    );
}
