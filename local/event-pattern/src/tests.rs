#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn matches(pattern: &Value) -> bool {
    let event = json!({
        "eventName": "MODIFY",
        "dynamodb": {
            "SizeBytes": 300,
            "Keys": {"PK": {"S": "PRODUCT#7"}},
            "NewImage": {
                "entity": {"S": "Product"}, "note": {"NULL": true}, "empty": {"S": ""},
                "nothing": null, "tags": {"SS": ["red", "blue"]},
                "list": {"L": [{"N": "1"}, {"S": "x"}]},
            },
        },
    });
    Pattern::new(pattern, Dialect::Lambda).unwrap().matches(&event)
}

#[test]
fn each_operator_accepts_and_rejects_values_as_the_guide_says() {
    let name = |test: Value| json!({"eventName": [test]});
    let image = |field: Value| json!({"dynamodb": {"NewImage": field}});
    let size = |test: Value| json!({"dynamodb": {"SizeBytes": [test]}});
    for (pattern, expected) in [
        (name(json!("MODIFY")), true),
        (name(json!("modify")), false),
        (json!({"eventName": ["INSERT", "MODIFY"]}), true),
        (name(json!({"equals-ignore-case": "modify"})), true),
        (name(json!({"prefix": "MOD"})), true),
        (name(json!({"prefix": "OD"})), false),
        (name(json!({"suffix": "IFY"})), true),
        (name(json!({"suffix": "MOD"})), false),
        (name(json!({"anything-but": ["REMOVE"]})), true),
        (name(json!({"anything-but": ["REMOVE", "MODIFY"]})), false),
        (name(json!({"anything-but": "MODIFY"})), false),
        (name(json!({"anything-but": {"prefix": "REM"}})), true),
        (name(json!({"anything-but": {"prefix": "MOD"}})), false),
        (image(json!({"gone": {"S": [{"anything-but": ["x"]}]}})), false),
        (image(json!({"entity": {"S": [{"exists": true}]}})), true),
        (image(json!({"gone": {"S": [{"exists": true}]}})), false),
        (image(json!({"gone": {"S": [{"exists": false}]}})), true),
        (json!({"dynamodb": {"OldImage": {"e": {"S": [{"exists": false}]}}}}), true),
        // `exists` considers only leaf values.
        (json!({"dynamodb": {"NewImage": [{"exists": true}]}}), false),
        (image(json!({"empty": {"S": [""]}})), true),
        (image(json!({"nothing": [null]})), true),
        (image(json!({"entity": {"S": [null]}})), false),
        (image(json!({"note": {"NULL": [true]}})), true),
        (image(json!({"tags": {"SS": ["blue"]}})), true),
        (image(json!({"tags": {"SS": ["green"]}})), false),
        (image(json!({"list": {"L": {"N": ["1"]}}})), true),
        (image(json!({"list": {"L": {"N": ["2"]}}})), false),
        (size(json!(300.0)), true),
        (size(json!({"numeric": ["=", 300]})), true),
        (size(json!({"numeric": [">", 0, "<=", 300]})), true),
        (size(json!({"numeric": [">", 0, "<", 300]})), false),
        (size(json!({"numeric": [">=", 301]})), false),
        // Numbers in DynamoDB's items are JSON strings.
        (image(json!({"list": {"L": {"N": [{"numeric": ["=", 1]}]}}})), false),
        (json!({"eventName": ["MODIFY"], "dynamodb": {"SizeBytes": [1]}}), false),
        (json!({"$or": [{"eventName": ["INSERT"]}, {"dynamodb": {"SizeBytes": [300]}}]}), true),
        (json!({"$or": [{"eventName": ["INSERT"]}, {"dynamodb": {"SizeBytes": [1]}}]}), false),
        (json!({"eventName": ["REMOVE"], "$or": [{"eventName": ["MODIFY"]}]}), false),
        (json!({}), true),
    ] {
        assert_eq!(matches(&pattern), expected, "{pattern}");
    }
}

#[test]
fn a_pattern_that_lambda_refuses_is_refused() {
    for pattern in [
        "",
        "[]",
        "{",
        r#"{"a":"text"}"#,
        r#"{"a":[]}"#,
        r#"{"a":[["x"]]}"#,
        r#"{"a":[{"wildcard":"x*"}]}"#,
        r#"{"a":[{"prefix":5}]}"#,
        r#"{"a":[{}]}"#,
        r#"{"a":[{"prefix":"x","suffix":"y"}]}"#,
        r#"{"a":[{"exists":"yes"}]}"#,
        r#"{"a":[{"numeric":["=" ]}]}"#,
        r#"{"a":[{"numeric":[]}]}"#,
        r#"{"a":[{"numeric":["~",1]}]}"#,
        r#"{"a":[{"anything-but":[]}]}"#,
        r#"{"a":[{"anything-but":[{"prefix":"x"}]}]}"#,
        r#"{"$or":[5]}"#,
    ] {
        assert!(Pattern::read(pattern, Dialect::Lambda).is_err(), "{pattern}");
    }
}

#[test]
fn eventbridge_supports_wildcards_and_nested_operators() {
    let event = json!({"detail-type": "OrderStatusChanged", "detail": {"data": {"from": "paid", "to": "Picking"}}});
    let takes = |test: Value| {
        let pattern = json!({"detail": {"data": {"to": [test]}}});
        Pattern::new(&pattern, Dialect::EventBridge).unwrap().matches(&event)
    };
    for (test, expected) in [
        (json!({"wildcard": "P*ing"}), true),
        (json!({"wildcard": "*i*i*"}), true),
        (json!({"wildcard": "*i*i*i*"}), false),
        (json!({"wildcard": "Picking"}), true),
        (json!({"wildcard": "*"}), true),
        (json!({"wildcard": "*ing*n"}), false),
        (json!({"wildcard": "P\\*ing"}), false),
        (json!({"prefix": {"equals-ignore-case": "pick"}}), true),
        (json!({"suffix": {"equals-ignore-case": "KING"}}), true),
        (json!({"suffix": {"equals-ignore-case": "pick"}}), false),
        (json!({"anything-but": {"prefix": ["x", "Pi"]}}), false),
        (json!({"anything-but": {"suffix": ["x", "y"]}}), true),
        (json!({"anything-but": {"wildcard": "P*"}}), false),
        (json!({"anything-but": {"equals-ignore-case": ["picking"]}}), false),
    ] {
        assert_eq!(takes(test.clone()), expected, "{test}");
    }
}

#[test]
fn eventbridge_refuses_invalid_operators_and_lambda_refuses_those_that_only_eventbridge_has() {
    for test in [
        json!({"wildcard": "a**b"}),
        json!({"wildcard": "a\\b"}),
        json!({"wildcard": 5}),
        json!({"cidr": "10.0.0.0/24"}),
        json!({"prefix": {"prefix": "x"}}),
        json!({"anything-but": {"prefix": []}}),
        json!({"anything-but": {"anything-but": ["x"]}}),
    ] {
        assert!(Pattern::new(&json!({"a": [test]}), Dialect::EventBridge).is_err(), "{test}");
    }
    for test in [json!({"prefix": {"equals-ignore-case": "x"}}), json!({"anything-but": {"prefix": ["x"]}})] {
        assert!(Pattern::new(&json!({"a": [test]}), Dialect::Lambda).is_err(), "{test}");
    }
    assert_eq!(Pattern::read("[]", Dialect::EventBridge).unwrap_err(), PatternError::Json);
}
