use std::collections::BTreeSet;
use std::process::Command;

use crate::support::{root, template};
use crate::template::resources;

fn release(arguments: &[&str]) -> String {
    let output = Command::new(root().join(".ci/release")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An alias that a later deployment adds replaces the permissions of all routes. Meanwhile the
/// routes fail. `.ci/same-permissions` compares the permissions that SAM generates.
#[test]
fn the_routes_call_aliases_from_the_first_deployment_on() {
    let plain = template();
    let functions: BTreeSet<&str> = plain.routes.iter().map(|route| route.function.as_str()).collect();
    for (name, lines) in resources("AWS::Serverless::Function") {
        let aliased = lines.contains("\n      AutoPublishAlias: live\n");
        assert_eq!(aliased, functions.contains(&*name), "{name}");
        assert!(!lines.contains("DeploymentPreference"), "{name}: the canary is off by default");
    }
}

#[test]
fn a_canary_shifts_the_traffic_of_every_public_function_and_watches_existing_alarms() {
    let plain = template();
    let alarms = resources("AWS::CloudWatch::Alarm");
    let functions: BTreeSet<&str> = plain.routes.iter().map(|route| route.function.as_str()).collect();
    for (arguments, is_canary) in [(&["Linear10PercentEvery1Minute", "1"], true), (&["AllAtOnce", "1"], false)] {
        let text = release(arguments);
        let released = ::template::Template::parse(&text).unwrap();
        assert_eq!(released.routes, plain.routes);
        for function in &released.functions {
            let id = function.logical_id.as_str();
            let (_, lines) = text.split_once(&format!("\n  {id}:\n")).unwrap();
            let lines: String = lines.lines().take_while(|line| line.starts_with("   ") || line.is_empty()).collect();
            let answers = functions.contains(id);
            assert_eq!(function.environment.get("RELEASE").map(String::as_str), answers.then_some("1"), "{id}");
            assert_eq!(lines.contains("Type: Linear10PercentEvery1Minute"), answers && is_canary, "{id}");
            if answers && is_canary {
                // The template writes out the names of the alarms, because references would be
                // circular.
                let watched: Vec<&str> = lines.split("- !Sub bodega-${Stage}-").skip(1).collect();
                assert!(watched.len() >= 3, "{watched:?}");
                for alarm in watched {
                    let name: String = alarm.chars().take_while(|c| c.is_alphanumeric()).collect();
                    assert!(alarms.contains_key(&name), "{alarm}");
                }
            }
        }
    }
    let refused = Command::new(root().join(".ci/release")).arg("Sometimes").output().unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
}
