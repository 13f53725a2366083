//! Checks values against the schemas of `openapi.yaml`. The check supports the part of JSON Schema
//! 2020-12 that `openapi.yaml` uses, and panics on any other keyword.

use regex::Regex;
use serde_json::Value as Json;

use super::openapi::Api;

/// Keywords that only inform readers.
const ANNOTATIONS: [&str; 6] = ["description", "discriminator", "examples", "default", EACH_BY_ITSELF, "x-line"];

/// Marks an array that the server accepts or refuses element by element. An invalid element does
/// not make the body invalid.
pub const EACH_BY_ITSELF: &str = "x-each-by-itself";

/// Returns the schema violations of a value, each with its position.
///
/// If `closed`, a member that `properties` does not name is also a violation, unless the schema has
/// `additionalProperties`. So a test can require that a response has only documented members.
pub fn breaches(api: &Api, schema: &Json, value: &Json, closed: bool) -> Vec<String> {
    let mut checker = Checker { api, closed, breaches: Vec::new() };
    checker.check(schema, value, "");
    checker.breaches
}

struct Checker<'a> {
    api: &'a Api,
    closed: bool,
    breaches: Vec<String>,
}

impl Checker<'_> {
    fn check(&mut self, schema: &Json, value: &Json, place: &str) {
        for (keyword, rule) in schema.as_object().unwrap() {
            if let Err(breach) = self.keyword(schema, keyword, rule, value, place) {
                self.breaches.push(format!("{place}: {breach}"));
            }
        }
        if let Json::Object(members) = value
            && self.closed
            && schema.get("properties").is_some()
            && schema.get("additionalProperties").is_none()
        {
            let unknown = members.keys().filter(|name| schema["properties"].get(name).is_none());
            self.breaches.extend(unknown.map(|name| format!("{place}/{name}: is not documented")));
        }
    }

    fn keyword(&mut self, schema: &Json, keyword: &str, rule: &Json, value: &Json, place: &str) -> Result<(), String> {
        let must = |holds: bool| if holds { Ok(()) } else { Err(format!("{value} breaks {keyword} {rule}")) };
        let number = rule.as_i64();
        match keyword {
            _ if ANNOTATIONS.contains(&keyword) => Ok(()),
            "$ref" => {
                self.check(self.api.follow(schema), value, place);
                Ok(())
            }
            "type" => match rule {
                Json::Array(kinds) => must(kinds.iter().any(|kind| is_of(value, kind.as_str().unwrap()))),
                kind => must(is_of(value, kind.as_str().unwrap())),
            },
            "allOf" => {
                // The parts describe one value, so each part names only some of its members.
                rule.as_array().unwrap().iter().for_each(|part| {
                    let closed = std::mem::replace(&mut self.closed, false);
                    self.check(part, value, place);
                    self.closed = closed;
                });
                Ok(())
            }
            "enum" => must(value.is_null() || rule.as_array().unwrap().contains(value)),
            "const" => must(rule == value),
            "not" => must(!breaches(self.api, rule, value, false).is_empty()),
            "oneOf" => {
                let fits = |choice: &&Json| breaches(self.api, choice, value, self.closed).is_empty();
                must(rule.as_array().unwrap().iter().filter(fits).count() == 1)
            }
            "format" => match (rule.as_str().unwrap(), value) {
                ("date-time", Json::String(text)) => must(text.parse::<key_schema::instant::Instant>().is_ok()),
                ("date", Json::String(text)) => {
                    must(format!("{text}T00:00:00Z").parse::<key_schema::instant::Instant>().is_ok())
                }
                ("uuid", Json::String(text)) => {
                    must(pattern("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$").is_match(text))
                }
                ("int64", Json::Number(number)) => must(number.is_i64()),
                ("date-time" | "date" | "uuid" | "int64" | "uri-reference", _) => Ok(()),
                (format, _) => panic!("the format {format} is not supported"),
            },
            "minLength" | "maxLength" => match value {
                Json::String(text) => {
                    let length = i64::try_from(text.chars().count()).ok();
                    must(if keyword == "minLength" { length >= number } else { length <= number })
                }
                _ => Ok(()),
            },
            "pattern" => match value {
                Json::String(text) => must(pattern(rule.as_str().unwrap()).is_match(text)),
                _ => Ok(()),
            },
            "minimum" | "maximum" => match value.as_f64() {
                Some(value) if keyword == "minimum" => must(value >= rule.as_f64().unwrap()),
                Some(value) => must(value <= rule.as_f64().unwrap()),
                None => Ok(()),
            },
            "minItems" | "maxItems" => match value {
                Json::Array(items) => {
                    let count = i64::try_from(items.len()).ok();
                    must(if keyword == "minItems" { count >= number } else { count <= number })
                }
                _ => Ok(()),
            },
            "uniqueItems" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                let mut repeated =
                    items.filter(|(at, item)| value.as_array().is_some_and(|all| all[..*at].contains(item)));
                must(repeated.next().is_none())
            }
            "minProperties" | "maxProperties" => match value {
                Json::Object(members) => {
                    let count = i64::try_from(members.len()).ok();
                    must(if keyword == "minProperties" { count >= number } else { count <= number })
                }
                _ => Ok(()),
            },
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(rule, item, &format!("{place}/{index}"));
                }
                Ok(())
            }
            "required" => match value {
                Json::Object(members) => {
                    must(rule.as_array().unwrap().iter().all(|name| members.contains_key(name.as_str().unwrap())))
                }
                _ => Ok(()),
            },
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(name) {
                        self.check(rule, member, &format!("{place}/{name}"));
                    }
                }
                Ok(())
            }
            "additionalProperties" => {
                let named = |name: &String| schema.get("properties").is_some_and(|known| known.get(name).is_some());
                for (name, member) in value.as_object().into_iter().flatten().filter(|(name, _)| !named(name)) {
                    match rule {
                        Json::Bool(allowed) => must(*allowed)?,
                        rule => self.check(rule, member, &format!("{place}/{name}")),
                    }
                }
                Ok(())
            }
            other => panic!("the keyword {other} is not supported"),
        }
    }
}

fn is_of(value: &Json, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other} is not supported"),
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

#[test]
fn each_violation_of_a_schema_is_reported_with_its_json_pointer() {
    use serde_json::json;

    let api = Api(json!({"components": {"schemas": {"Id": {"type": "string", "minLength": 1, "maxLength": 3}}}}));
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"$ref": "#/components/schemas/Id"},
            "counts": {"type": "array", "maxItems": 2, "items": {"type": "integer", "minimum": 0, "not": {"const": 7}}},
            "kind": {"oneOf": [{"enum": ["a", "b"]}, {"type": "integer"}]},
            "at": {"type": ["string", "null"], "format": "date-time"},
        },
    });
    let places = |value: Json, closed: bool| -> Vec<String> {
        let breaches = breaches(&api, &schema, &value, closed);
        let mut places: Vec<_> = breaches.iter().map(|breach| breach.split(':').next().unwrap().to_owned()).collect();
        places.sort();
        places
    };
    assert_eq!(places(json!({"id": "äöü", "counts": [0, 1], "kind": "b", "at": null}), true), Vec::<String>::new());
    assert_eq!(places(json!({"id": "", "x": 1}), false), ["/id"]);
    assert_eq!(places(json!({"id": "a", "x": 1}), true), ["/x"]);
    assert_eq!(
        places(json!({"counts": [7, -1, 1.5], "kind": "c", "at": "today"}), false),
        ["", "/at", "/counts", "/counts/0", "/counts/1", "/counts/2", "/kind"]
    );
}
