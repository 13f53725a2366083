//! Compares a response with an expectation that may name only some of the response's members.

use serde_json::Value as Json;

/// As an expected value, this text matches any value that is present.
const ANY: &str = "<any>";

/// Returns the differences between `found` and `wanted`, each with its position.
///
/// `found` must have every member of `wanted`, with an equal value. Further members of an object do
/// not matter. Lists must have the same length.
pub fn differences(wanted: &Json, found: &Json) -> Vec<String> {
    let mut differences = Vec::new();
    compare(wanted, found, "", &mut differences);
    differences
}

fn compare(wanted: &Json, found: &Json, place: &str, differences: &mut Vec<String>) {
    match (wanted, found) {
        (Json::String(text), _) if text == ANY => {}
        (Json::Object(wanted), Json::Object(found)) => {
            for (name, wanted) in wanted {
                match found.get(name) {
                    Some(found) => compare(wanted, found, &format!("{place}/{name}"), differences),
                    None => differences.push(format!("{place}/{name} is missing")),
                }
            }
        }
        (Json::Array(wanted), Json::Array(found)) if wanted.len() == found.len() => {
            for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                compare(wanted, found, &format!("{place}/{index}"), differences);
            }
        }
        _ if wanted == found => {}
        _ => differences.push(format!("{place} is {found}, not {wanted}")),
    }
}

#[test]
fn expected_members_must_be_equal_and_further_members_are_ignored() {
    use serde_json::json;

    let found = json!({"a": 1, "b": [{"c": 2, "d": 3}], "e": null});
    for wanted in
        [json!({}), json!({"a": 1}), json!({"b": [{"c": 2}], "e": null}), json!({"a": "<any>", "b": ["<any>"]})]
    {
        assert_eq!(differences(&wanted, &found), Vec::<String>::new(), "{wanted}");
    }
    for (wanted, difference) in [
        (json!({"a": 2}), "/a is 1, not 2"),
        (json!({"f": "<any>"}), "/f is missing"),
        (json!({"b": [{"c": 3}]}), "/b/0/c is 2, not 3"),
        (json!({"b": []}), r#"/b is [{"c":2,"d":3}], not []"#),
    ] {
        assert_eq!(differences(&wanted, &found), [difference]);
    }
}
