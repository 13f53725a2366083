//! Sends every field of every request body at and beyond its bounds in `openapi.yaml`. Also tries
//! wrong types, missing fields and unknown fields.
//!
//! The tests write nothing. A request with a valid value also has an unknown field, so it is
//! refused too. The response must then name only the unknown field.

use futures::StreamExt as _;
use local::System;
use regex::Regex;
use serde_json::{Map, Value as Json, json};

use crate::support::client::Call;
use crate::support::openapi::{Operation, api};
use crate::support::schema::EACH_BY_ITSELF;
use crate::support::with_system;

/// Pointers of the errors of rules over several fields. A valid value of one field can break them.
const COMBINED: [&str; 3] = ["/lines/0/discounts", "/options", "/parent"];
/// A field that no body has.
const UNKNOWN: &str = "no_such_field";
const CONCURRENCY: usize = 8;

/// A value and the pointers of the errors that it must cause. A valid value has no pointers.
struct Trial {
    value: Json,
    wrong: Vec<String>,
}

#[test]
fn every_body_is_refused_beyond_its_described_bounds_and_not_within_them() {
    let mut trials = Vec::new();
    for operation in api().operations().filter(|operation| !operation.is_signed()) {
        let Some(schema) = operation.body().map(|body| api().follow(body)) else { continue };
        // A body with a discriminator is tried in each of its forms.
        let forms = schema.get("discriminator").and_then(|_| schema["oneOf"].as_array()).map(Vec::as_slice);
        let forms = forms.unwrap_or_else(|| std::slice::from_ref(schema)).iter().map(|form| api().follow(form));
        let objects = forms.filter(|form| form["type"] == "object");
        trials.extend(objects.flat_map(trials_of).map(|trial| (operation, trial)));
    }
    // The loop above must have made trials.
    assert!(trials.len() > 500, "{}", trials.len());
    let failures = with_system(async |system| {
        let runs = trials.into_iter().map(|(operation, trial)| run(system, operation, trial));
        let failures = futures::stream::iter(runs).buffer_unordered(CONCURRENCY).filter_map(std::future::ready);
        failures.collect::<Vec<String>>().await
    });
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

async fn run(system: &System, operation: Operation<'_>, trial: Trial) -> Option<String> {
    let Trial { mut value, mut wrong } = trial;
    let is_valid = wrong.is_empty();
    if is_valid {
        value[UNKNOWN] = json!(1);
        wrong = vec![format!("/{UNKNOWN}")];
    }
    let answer = call(operation).json(&value).send(system).await;
    let mut pointers = answer.pointers();
    pointers.retain(|pointer| !is_valid || !COMBINED.contains(pointer));
    if answer.status == 422 && answer.body["code"] == "invalid_body" && pointers == wrong {
        return None;
    }
    let mut shown = value.to_string();
    shown.truncate(shown.floor_char_boundary(200));
    Some(format!("{} with {shown} is not refused for {wrong:?}: {} {}", operation.key(), answer.status, answer.body))
}

/// Returns a staff call of the operation, with ids that need not exist and with every required
/// header.
fn call(operation: Operation<'_>) -> Call {
    let path = operation.path.split('/').map(|segment| if segment.starts_with('{') { "bounds" } else { segment });
    let mut call = Call::new(operation.method, &path.collect::<Vec<_>>().join("/")).staff();
    let takes = |name: &str| operation.parameters().any(|parameter| parameter["name"] == name);
    if takes("If-None-Match") {
        call = call.header("If-None-Match", "*");
    } else if takes("If-Match") {
        call = call.header("If-Match", "\"1\"");
    }
    for secret in ["Cart-Token", "Order-Token"].into_iter().filter(|name| takes(name)) {
        call = call.header(secret, "bounds");
    }
    if takes("Idempotency-Key") {
        call = call.header("Idempotency-Key", "bounds");
    }
    call
}

fn trials_of(schema: &Json) -> Vec<Trial> {
    let schema = api().follow(schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let (first, others) = choices.split_first().unwrap();
        if others.iter().all(|other| other["type"] == "null") {
            let values = trials_of(first).into_iter().filter(|trial| !trial.value.is_null());
            return values.chain([right(Json::Null)]).collect();
        }
        // A value that another alternative may take is not wrong.
        let is_other = |value: &Json| {
            others.iter().map(|other| &api().follow(other)["type"]).any(|kind| match value {
                Json::Object(_) => kind == "object",
                Json::String(_) => kind == "string",
                _ => false,
            })
        };
        return trials_of(first).into_iter().filter(|trial| !is_other(&trial.value)).collect();
    }
    if let Some(choices) = schema["enum"].as_array() {
        let wrongs = [json!("neither"), json!(1), Json::Null].map(wrong);
        return choices.iter().cloned().map(right).chain(wrongs).collect();
    }
    let (kind, nullable) = match &schema["type"] {
        Json::Array(kinds) => (kinds[0].as_str().unwrap(), kinds.contains(&json!("null"))),
        kind => (kind.as_str().unwrap(), false),
    };
    let mut trials = match kind {
        "object" => objects(schema),
        "array" => arrays(schema),
        "string" => texts(schema),
        "integer" => integers(schema),
        "boolean" => [right(json!(false))].into_iter().chain([json!("true"), json!(1)].map(wrong)).collect(),
        other => panic!("no body has a {other}"),
    };
    trials.push(if nullable { right(Json::Null) } else { wrong(Json::Null) });
    trials
}

fn right(value: Json) -> Trial {
    Trial { value, wrong: Vec::new() }
}

fn wrong(value: Json) -> Trial {
    Trial { value, wrong: vec![String::new()] }
}

/// Returns a valid value of minimal size.
fn sample(schema: &Json) -> Json {
    let schema = api().follow(schema);
    let required = || schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    match (schema["examples"].get(0), schema.get("properties")) {
        (Some(Json::Object(example)), _) => {
            // The country of the example requires a postal code.
            let code = ["postal_code"].into_iter().filter(|name| example.contains_key(*name));
            required().chain(code).map(|name| (name.to_owned(), example[name].clone())).collect()
        }
        (Some(example), _) => example.clone(),
        (None, Some(properties)) => required().map(|name| (name.to_owned(), sample(&properties[name]))).collect(),
        (None, None) if schema["type"] == "array" => json!(vec![sample(&schema["items"]); fewest(schema)]),
        (None, None) if schema["type"] == "object" => json!({}),
        (None, None) if schema["type"] == "string" => json!("x"),
        (None, None) => schema["minimum"].clone(),
    }
}

/// Returns the number of elements of the smallest sample of an array.
fn fewest(schema: &Json) -> usize {
    usize::try_from(schema["minItems"].as_u64().unwrap_or(1)).unwrap()
}

fn objects(schema: &Json) -> Vec<Trial> {
    let sample = match sample(schema) {
        Json::Object(sample) => sample,
        other => panic!("{other} is no object"),
    };
    let with = |name: &str, value: Json| {
        let mut object: Map<String, Json> = sample.clone();
        object.insert(name.to_owned(), value);
        Json::Object(object)
    };
    let mut trials = vec![wrong(json!("text")), wrong(json!([])), wrong(json!(true))];
    if schema.get("properties").is_none() {
        // The schema is a map, and the client chooses its names.
        match &schema["additionalProperties"] {
            value @ Json::Object(_) => trials.extend(trials_of(value).into_iter().map(|trial| Trial {
                value: json!({ UNKNOWN: trial.value }),
                wrong: trial.wrong.into_iter().map(|pointer| format!("/{UNKNOWN}{pointer}")).collect(),
            })),
            _ => trials.push(right(json!({ UNKNOWN: 1 }))),
        }
        return trials;
    }
    trials.push(Trial { value: with(UNKNOWN, json!(1)), wrong: vec![format!("/{UNKNOWN}")] });
    for name in sample.keys() {
        let mut without = sample.clone();
        without.remove(name);
        trials.push(Trial { value: without.into(), wrong: vec![format!("/{name}")] });
    }
    // The format of a postal code depends on the country.
    let fields = schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| *name != "postal_code");
    for (name, field) in fields {
        trials.extend(trials_of(field).into_iter().map(|trial| Trial {
            value: with(name, trial.value),
            wrong: trial.wrong.into_iter().map(|pointer| format!("/{name}{pointer}")).collect(),
        }));
    }
    trials
}

fn arrays(schema: &Json) -> Vec<Trial> {
    let item = api().follow(&schema["items"]);
    let mut trials = vec![wrong(json!("text")), wrong(json!({}))];
    let may_be_empty = schema["minItems"].as_u64().unwrap_or(0) == 0;
    trials.push(if may_be_empty { right(json!([])) } else { wrong(json!([])) });
    if item["type"] == "string" && item.get("pattern").is_none() && item.get("enum").is_none() {
        let most = usize::try_from(schema["maxItems"].as_u64().unwrap()).unwrap();
        // The elements must differ where the schema says so.
        let texts = |count: usize| (0..count).map(|number| format!("x{number}")).collect::<Vec<_>>();
        trials.extend([right(json!(texts(most))), wrong(json!(texts(most + 1)))]);
    }
    if schema["uniqueItems"] == true {
        trials.push(wrong(json!([sample(item), sample(item)])));
    }
    if schema[EACH_BY_ITSELF] == true {
        return trials;
    }
    let count = fewest(schema);
    trials.extend(trials_of(item).into_iter().map(|trial| Trial {
        value: json!(vec![trial.value; count]),
        wrong: (0..count).flat_map(|at| trial.wrong.iter().map(move |pointer| format!("/{at}{pointer}"))).collect(),
    }));
    trials
}

fn texts(schema: &Json) -> Vec<Trial> {
    let mut trials = vec![wrong(json!(7)), wrong(json!(["text"])), wrong(json!({}))];
    let pattern = schema["pattern"].as_str().map(|pattern| Regex::new(pattern).unwrap());
    if pattern.is_some_and(|pattern| pattern.is_match("neither")) {
        // The field is an id that the client chooses.
        trials.extend(["a/b", "a?b", "50%", "a\\b", ".", ".."].map(|text| wrong(json!(text))));
    } else if ["format", "pattern"].iter().any(|rule| schema.get(rule).is_some()) {
        trials.push(wrong(json!("neither")));
        return trials;
    }
    let low = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap();
    let high = usize::try_from(schema["maxLength"].as_u64().unwrap()).unwrap();
    // Only email addresses have a minimum of three characters.
    let text = |length: usize| if low == 3 { format!("a@{}", "b".repeat(length - 2)) } else { "x".repeat(length) };
    trials.extend([right(json!(text(low))), right(json!(text(high))), wrong(json!(text(high + 1)))]);
    // The bounds are in bytes, and `é` has two.
    trials.push(wrong(json!(text(high - 1) + "é")));
    trials.extend(["x\u{0}y@z", "x\u{7f}y@z", "x\u{85}y@z"].map(|text| wrong(json!(text))));
    if low > 0 {
        trials.push(wrong(json!("x".repeat(low - 1))));
    }
    trials
}

fn integers(schema: &Json) -> Vec<Trial> {
    let bounds = ["minimum", "maximum"].map(|bound| schema[bound].as_i64().unwrap());
    let beyond = [json!(bounds[0] - 1), json!(bounds[1] + 1), json!(1.5), json!("1"), json!(u64::MAX)];
    let excluded = schema["not"].get("const").cloned();
    bounds.map(|bound| right(json!(bound))).into_iter().chain(beyond.into_iter().chain(excluded).map(wrong)).collect()
}
