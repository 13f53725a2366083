use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{cases, route_key};
use crate::support::{template, template_with_webhooks};

/// This route needs an upload to a URL that is valid only for minutes, so its sample is a refusal.
/// `pictures.rs` tests a success.
const OF_AN_UPLOAD: &str = "PUT /v1/products/{id}/content/uploads/{upload}";

/// A signature of the payment provider is valid for five minutes, so this route's sample is a refusal, too.
const OF_THE_PROVIDER: &str = "POST /v1/webhooks/stripe";

#[test]
fn every_route_has_one_sample_with_a_successful_response() {
    let cases = cases();
    let good = cases.iter().filter(|case| case.expected.status.is_some_and(|status| status < 400));
    let mut of: Vec<&str> = good.filter_map(|case| route_key(&case.event)).collect();
    of.sort_unstable();
    let mut routes: BTreeSet<String> = template().routes.iter().map(ToString::to_string).collect();
    assert!(routes.remove(OF_AN_UPLOAD) && routes.remove(OF_THE_PROVIDER));
    assert_eq!(of, Vec::from_iter(&routes));
}

#[test]
fn every_kind_of_event_that_a_function_without_routes_gets_has_a_sample() {
    let template = template_with_webhooks();
    let mut kinds = BTreeSet::new();
    for schedule in &template.schedules {
        kinds.insert((schedule.function.as_str(), "Scheduled Event".to_owned()));
    }
    for stream in &template.streams {
        kinds.extend(["INSERT", "MODIFY", "REMOVE"].map(|kind| (stream.function.as_str(), kind.to_owned())));
    }
    for rule in &template.rules {
        for target in &rule.targets {
            let queue = template.queue_mappings.iter().find(|mapping| mapping.queue == target.arn);
            let function = template.functions.iter().find(|function| function.arn == target.arn);
            let function = queue.map(|mapping| &mapping.function).or(function.map(|function| &function.logical_id));
            let either = rule.pattern["$or"].as_array().into_iter().flatten();
            let types = [&rule.pattern].into_iter().chain(either).filter_map(|part| part["detail-type"].as_array());
            kinds.extend(types.flatten().map(|kind| (function.unwrap().as_str(), kind.as_str().unwrap().to_owned())));
        }
    }
    let cases = cases();
    let own = cases.iter().filter(|case| !case.name.contains("-generated-"));
    let samples: BTreeSet<(&str, String)> = own
        .flat_map(|case| kinds_in(&case.event).into_iter().map(|kind| (case.expected.function.as_str(), kind)))
        .collect();
    assert_eq!(kinds.difference(&samples).collect::<Vec<_>>(), Vec::<&(&str, String)>::new());
}

/// Returns the detail types of an event from a bus, directly or in messages of a queue. For records
/// of the stream, returns the kinds of change.
fn kinds_in(event: &Json) -> Vec<String> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let in_record = |record: &Json| match record["body"].as_str() {
        Some(body) => text(&serde_json::from_str::<Json>(body).ok()?["detail-type"]),
        None => text(&record["eventName"]),
    };
    let records = event["Records"].as_array().into_iter().flatten();
    text(&event["detail-type"]).into_iter().chain(records.filter_map(in_record)).collect()
}
