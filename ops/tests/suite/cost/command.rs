//! Tests of the command: its files and its errors.

use std::fs;
use std::process::{Command, Output};

use ops::cost::profile::EXAMPLE;
use serde_json::Value;

/// Runs `ops cost` without any environment.
fn cost(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ops")).arg("cost").args(arguments).env_clear().output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs the command with a profile. Returns its exit status and standard error.
fn with_profile(profile: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.toml");
    fs::write(&path, profile).unwrap();
    let output = cost(&["--profile", path.to_str().unwrap()]);
    (output.status.code(), said(&output))
}

#[test]
fn the_example_profile_is_valid() {
    let printed = cost(&["--example-profile"]);
    assert_eq!(printed.status.code(), Some(0), "{}", said(&printed));
    assert_eq!(String::from_utf8(printed.stdout).unwrap().trim_end(), EXAMPLE.trim_end());
    let (status, said) = with_profile(EXAMPLE);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn an_invalid_profile_is_a_usage_error_that_names_the_wrong_value() {
    let order = "[routes]\n\"POST /v1/orders\"";
    for (profile, part) in [
        (format!("{order} = -1"), "expected a number of requests"),
        (format!("{order} = 1.5"), "expected a number of requests"),
        (format!("{order} = \"many\""), "expected a number of requests"),
        (format!("{order} = 100_000_000_001"), "must be between 0 and 100000000000"),
        (format!("{order} = 9_223_372_036_854_775_807"), "must be between"),
        (format!("{order} = 99_999_999_999_999_999_999"), "the profile"),
        (format!("{order} = {{ per_hour = 9_223_372_036_854_775_807 }}"), "must be between"),
        (format!("{order} = {{ per_day = 9_223_372_036_854_775_807 }}"), "must be between"),
        (format!("{order} = {{ per_hour = 1, per_day = 1 }}"), "needs one of per_month, per_day and per_hour"),
        (format!("{order} = {{}}"), "needs one of"),
        (format!("{order} = {{ per_day = 1, duration_ms = 900_001 }}"), "must be between 1 and 900000"),
        ("[routes]\n\"POST /v1/order\" = 1".to_owned(), "did you mean \"POST /v1/orders\""),
        ("[routes]\n\"every minute: Janitor\" = 1".to_owned(), "there is no route"),
        ("hours_per_month = 0".to_owned(), "hours_per_month"),
        ("region = \"mars-1\"".to_owned(), "us-east-1"),
        ("colour = \"red\"".to_owned(), "unknown field `colour`"),
        ("[parameters]\nSearchService = \"solr\"".to_owned(), "SearchService"),
        ("[parameters]\nSearchInstanceType = \"x.search\"".to_owned(), "search.x.search"),
        ("[storage]\ntable_mb = 9_999_999_999".to_owned(), "storage.table_mb"),
        ("[capacity]\ntarget_percent = 0".to_owned(), "capacity.target_percent"),
        (
            "[[operations]]\nname = \"x\"\nper_day = 1\nwrite_bytes = [999_999]".to_owned(),
            "must be between 1 and 409600",
        ),
        ("[[operations]]\nname = \"x\"\nper_day = 1\nread_bytes = [0]".to_owned(), "must be between 1"),
        ("not a profile".to_owned(), "the profile"),
    ] {
        let (status, said) = with_profile(&profile);
        assert_eq!(status, Some(2), "{profile}: {said}");
        assert!(said.contains(part), "{profile}: {said}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, log) = (folder.path().join("missing"), folder.path().join("access.jsonl"));
    fs::write(&log, "{\"route\":\"POST /v1/orders\",\"latency_ms\":\"12\"}\nno JSON\n").unwrap();
    let (missing, log) = (missing.to_str().unwrap(), log.to_str().unwrap());
    for (arguments, status, part) in [
        (vec!["--profile", missing], 2, "missing cannot be read"),
        (vec!["--prices", missing], 2, "missing cannot be read"),
        (vec!["--access-logs", log], 2, "--covers-hours"),
        (vec!["--access-logs", log, "--covers-hours", "0"], 2, "0 is not in"),
        (vec!["--access-logs", log, "--covers-hours", "1"], 2, "line 2"),
        (vec!["--region", "mars-1"], 2, "eu-central-1"),
        (vec!["--csv", folder.path().to_str().unwrap()], 1, "cannot be written"),
    ] {
        let output = cost(&arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(part), "{arguments:?}: {}", said(&output));
    }
}

#[test]
fn an_access_log_becomes_a_bill_as_text_json_csv_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let line = r#"{"request_id":"a=","route":"POST /v1/orders","status":"201","latency_ms":"40","error":"-"}"#;
    let line = format!("{line}\n");
    fs::write(at("log"), line.repeat(100)).unwrap();
    let (log, csv, html) = (at("log"), at("bill.csv"), at("bill.html"));
    let arguments = [
        "--access-logs",
        &log,
        "--covers-hours",
        "1",
        "--csv",
        &csv,
        "--html",
        &html,
        "--json",
        "--region",
        "eu-central-1",
    ];
    let output = cost(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = report["lines"].as_array().unwrap();
    let of = |item: &str| lines.iter().find(|line| line["route"] == "POST /v1/orders" && line["item"] == item).unwrap();
    assert_eq!(of("invocations")["milli_quantity"], 73_000_000, "100 an hour in 730 hours");
    assert_eq!(report["region"], "eu-central-1");
    assert!(report["unconfirmed"].as_array().unwrap().iter().any(|one| one["price"] == "dynamodb.writes"));
    let sum: i64 = lines.iter().map(|line| line["nano_dollars"].as_i64().unwrap()).sum();
    assert_eq!(report["total_nano_dollars"], sum);
    let rows = fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), lines.len() + 1);
    // Sums the dollars of the file, which have nine decimal places.
    let dollars = rows.lines().skip(1).map(|row| row.rsplit(',').nth(1).unwrap().replace('.', ""));
    assert_eq!(dollars.map(|nano| nano.parse::<i64>().unwrap()).sum::<i64>(), sum);
    assert!(fs::read_to_string(&html).unwrap().contains("POST /v1/orders"));
    let text = cost(&["--access-logs", &log, "--covers-hours", "1"]);
    assert!(String::from_utf8(text.stdout).unwrap().contains("dollars a month in us-east-1"));
}
