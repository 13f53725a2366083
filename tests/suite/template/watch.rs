use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::resources;
use crate::support::{read, root, template};

const RUNBOOK: &str = "docs/operations/runbook.md";

/// Returns the sections of the runbook by the name in their address.
fn sections() -> BTreeMap<String, String> {
    sections_of(RUNBOOK)
}

fn sections_of(page: &str) -> BTreeMap<String, String> {
    let runbook = read(&root().join(page));
    let section = |text: &str| {
        let (title, body) = text.split_once('\n').unwrap();
        let name = title.to_lowercase().replace(' ', "-");
        (name, body.to_owned())
    };
    runbook.split("\n## ").skip(1).map(section).collect()
}

/// Returns the sections that the rows of a table name, by the first cell of the row.
fn index(table: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let (cell, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let (_, address) = rest.split_once("](")?;
        Some((cell.to_owned(), address.split(')').next()?.to_owned()))
    };
    table.lines().filter_map(row).collect()
}

/// A tired operator reads a section to its end, so a section has commands and says when it is over.
#[test]
fn every_symptom_and_every_alarm_leads_to_a_section_with_commands_and_an_end() {
    let sections = sections();
    let (symptoms, alarms) = (index(&sections["symptoms"]), index(&sections["alarms"]));
    for word in ["paid twice", "hangs", "gone", "wrong price", "stock", "by mistake", "money back", "all stored data"] {
        assert!(symptoms.keys().any(|symptom| symptom.contains(word)), "{word}");
    }
    for address in symptoms.values().chain(alarms.values()) {
        let Some(name) = address.strip_prefix('#') else { continue };
        let section = sections.get(name).unwrap_or_else(|| panic!("there is no section {name}"));
        assert!(section.contains("```sh\n") && section.contains("\n**Over when** "), "{name}");
    }
    let runbook = read(&root().join(RUNBOOK));
    assert!(runbook.len() <= 25_000, "{} bytes", runbook.len());
}

#[test]
fn every_alarm_names_its_section_of_the_runbook_and_notifies_the_operators() {
    let index = index(&sections()["alarms"]);
    let addresses: BTreeMap<String, String> = index
        .iter()
        .flat_map(|(alarms, address)| alarms.split(", ").map(move |alarm| (alarm.replace('`', ""), address.clone())))
        .collect();
    let alarms = resources("AWS::CloudWatch::Alarm");
    assert_eq!(alarms.keys().collect::<Vec<_>>(), addresses.keys().collect::<Vec<_>>(), "the alarms of {RUNBOOK}");
    for (name, lines) in alarms {
        assert!(lines.contains("AlarmActions: [!Ref Alarms]") && lines.contains("TreatMissingData: "), "{name}");
        assert!(lines.contains(&format!("AlarmName: !Sub bodega-${{Stage}}-{name}\n")), "{name}");
        let description = lines.lines().find_map(|line| line.trim().strip_prefix("AlarmDescription: ")).unwrap();
        let (page, name_of_section) = addresses[&name].split_once('#').unwrap();
        let page = if page.is_empty() { RUNBOOK.to_owned() } else { format!("docs/operations/{page}") };
        let section = sections_of(&page)[name_of_section].clone();
        assert!(description.ends_with(&format!("See {page}#{name_of_section}")), "{name}: {description}");
        assert!(section.contains(&format!("`{name}`")), "the section of {name} does not explain it");
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
        "ClusterStatus.yellow",
        "JVMMemoryPressure",
        "CPUUtilization",
        "Nodes",
        "AutomatedSnapshotFailure",
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

/// Without the last two fields, the log does not say why the gateway refused a request or a token.
#[test]
fn the_access_log_says_why_a_request_failed_and_needs_no_entry_of_its_own_in_the_log_policy() {
    let api = resources("AWS::Serverless::HttpApi").remove("HttpApi").unwrap();
    for field in ["$context.integrationErrorMessage", "$context.error.message", "$context.authorizer.error"] {
        assert!(api.contains(&format!(":\"{field}\"")), "{field}");
    }
    let logs = resources("AWS::Logs::LogGroup").remove("AccessLogs").unwrap();
    assert!(logs.contains("LogGroupName: !Sub /aws/vendedlogs/"), "{logs}");
}

/// With two nodes, one node alone is no majority, so the loss of a node stops the domain.
#[test]
fn a_search_domain_for_customers_survives_the_loss_of_a_node() {
    let domain = resources("AWS::OpenSearchService::Domain").remove("SearchDomain").unwrap();
    assert!(domain.contains("{AvailabilityZoneCount: 3}"), "{domain}");
    let text = read(&root().join("template.yaml"));
    let (_, parameter) = text.split_once("\n  SearchInstances:\n").unwrap();
    let allowed = parameter.lines().find_map(|line| line.trim().strip_prefix("AllowedValues: ")).unwrap();
    let allowed: Vec<u32> = allowed.trim_matches(['[', ']']).split(", ").map(|one| one.parse().unwrap()).collect();
    assert!(allowed.iter().all(|nodes| *nodes == 1 || nodes % 3 == 0), "{allowed:?}");
    assert!(read(&root().join("samconfig.toml")).contains("\"SearchInstances=3\""));
}

/// One customer can cause 503 `throttled`, by conflicts on the customer's own items.
#[test]
fn throttled_requests_raise_no_alarm_of_faults() {
    let mut alarms = resources("AWS::CloudWatch::Alarm");
    let result = "100 * (faults - FILL(throttled, 0)) / requests";
    for (name, result) in [("ApiFaults", result), ("ApiFaultsAtLowTraffic", "faults - FILL(throttled, 0)")] {
        let alarm = alarms.remove(name).unwrap();
        assert!(alarm.contains(result), "{alarm}");
        let throttled = alarm.lines().find(|line| line.contains("{Id: throttled, ")).unwrap();
        // `observe::throttled` of the crate http-api publishes this metric. Its stage is from `STAGE`.
        let metric = "{Namespace: Bodega, MetricName: Throttled, Dimensions: [{Name: Stage, Value: !Ref Stage}]}";
        assert!(throttled.contains(metric), "{throttled}");
    }
    assert!(read(&root().join("template.yaml")).contains("        STAGE: !Ref Stage\n"));
}

/// The first alarm needs 20 requests in a minute, which are 100 in five minutes.
#[test]
fn failed_requests_raise_an_alarm_at_any_traffic() {
    let mut alarms = resources("AWS::CloudWatch::Alarm");
    assert!(alarms.remove("ApiFaults").unwrap().contains("IF(requests >= 20, "));
    let low = alarms.remove("ApiFaultsAtLowTraffic").unwrap();
    assert!(low.contains("IF(requests < 100, ") && low.matches("Period: 300").count() == 3, "{low}");
}

#[test]
fn a_slow_import_raises_no_alarm_of_latency() {
    let alarm = resources("AWS::CloudWatch::Alarm").remove("ApiLatency").unwrap();
    assert!(alarm.contains("IF(slow - slow_imports >= 5, "), "{alarm}");
    assert!(alarm.contains("'FILL(percent_slow_imports * imports / 100, 0)'"), "{alarm}");
    let route = template().routes.into_iter().find(|route| route.path == "/v1/products/import").unwrap();
    // `observe::line` of the crate http-api publishes this metric.
    let function = route.function.to_lowercase();
    let name = format!("{{Name: Function, Value: {function}}}, {{Name: Route, Value: {route}}}, {{Name: Stage, ");
    for id in ["percent_slow_imports", "imports"] {
        let metric = alarm.lines().find(|line| line.contains(&format!("{{Id: {id}, "))).unwrap();
        assert!(metric.contains(&name), "{metric}");
    }
}

/// CloudFormation rolls the deployment back at any other statistic (API reference, PutMetricAlarm).
#[test]
fn every_alarm_has_a_statistic_that_alarms_accept() {
    let mut found = 0;
    for (name, alarm) in resources("AWS::CloudWatch::Alarm") {
        for stat in alarm.split("{Stat: ").skip(1).map(|rest| rest.trim_start_matches('\'')) {
            let known = ["Average", "Maximum", "Minimum", "SampleCount", "Sum", "p9", "PR(2000:60000)"];
            assert!(known.iter().any(|known| stat.starts_with(known)), "{name}: {stat}");
            found += 1;
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn every_queue_of_jobs_raises_an_alarm_before_its_messages_expire() {
    let alarms = resources("AWS::CloudWatch::Alarm");
    for mapping in template().queue_mappings {
        let name = mapping.queue.rsplit(':').next().unwrap().to_owned();
        let age = |lines: &&String| {
            lines.contains("MetricName: ApproximateAgeOfOldestMessage\n")
                && lines.contains(&format!("!GetAtt {name}.QueueName"))
        };
        assert!(alarms.values().any(|lines| age(&lines)), "{name}");
    }
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
    // Everybody may send these writes. One write of a guest cart's lines costs at most 6 write units.
    let (_, routes) = api.split_once("      RouteSettings:\n").unwrap();
    let limit = "{ThrottlingRateLimit: !Ref GuestCartsPerSecond, ThrottlingBurstLimit: !Ref GuestCartsPerSecond}";
    let limited: BTreeSet<&str> = routes.lines().filter_map(|line| line.trim().strip_suffix(limit)).collect();
    let writes = template().routes.into_iter().map(|route| route.to_string());
    let is_guests = |route: &str| route.contains(" /v1/carts") || route.contains(" /v1/guest/");
    let writes = writes.filter(|route| is_guests(route) && !route.starts_with("GET "));
    assert_eq!(
        limited,
        writes.map(|route| format!("{route}: ")).collect::<BTreeSet<_>>().iter().map(|route| &**route).collect()
    );
    // Settings that name a missing route make the deployment fail.
    let upgrade = read(&root().join("docs/operations/upgrade.md"));
    assert!(upgrade.contains("## Routes with limits of their own") && upgrade.contains("Unable to find Route by key"));
    assert!(parameter("GuestCartsPerSecond") * 6 * 4 <= parameter("MaxWriteUnits"));
    let (rate, burst) = (parameter("RequestsPerSecond"), parameter("RequestBurst"));
    assert!(
        (1..=10_000).contains(&rate) && (1..=5_000).contains(&burst),
        "{rate} and {burst} must be at least 1 and within the default quotas of an account"
    );
}
