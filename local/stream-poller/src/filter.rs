//! Filter criteria of an event source mapping: the
//! [filter rule syntax](https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html)
//! of Lambda, which is EventBridge's without wildcards and addresses.

use serde_json::{Map, Value};

/// Longest pattern that Lambda takes, in characters.
const MAX_PATTERN: usize = 4096;
/// Most patterns that a mapping can have.
const MAX_PATTERNS: usize = 10;

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Not JSON.
    #[error("it is not JSON")]
    Json,
    /// A mapping has at most ten patterns of 4,096 characters.
    #[error("a mapping has at most {MAX_PATTERNS} patterns of {MAX_PATTERN} characters")]
    TooLong,
    /// The value at this field is neither an object of fields nor a list of what it may be.
    #[error("the value of `{0}` must be an object or a list")]
    Shape(String),
    /// No such operator, or not with such a value.
    #[error("`{0}` is no operator with its value")]
    Operator(String),
}

/// The patterns of one mapping. A record passes when one of them matches it, or there are none.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Fields>);

/// Matches an object when each named field matches and, for each `$or`, one alternative.
#[derive(Debug, Clone, Default)]
struct Fields {
    fields: Vec<(String, Rule)>,
    alternatives: Vec<Vec<Fields>>,
}

#[derive(Debug, Clone)]
enum Rule {
    /// The field is an object that matches.
    Object(Fields),
    /// The field is a value that one of these tests takes.
    Value(Vec<Test>),
}

#[derive(Debug, Clone)]
enum Test {
    Exactly(Value),
    EqualsIgnoreCase(String),
    Prefix(String),
    Suffix(String),
    Exists(bool),
    AnythingBut(Vec<Test>),
    Numeric(Vec<(Comparison, f64)>),
}

#[derive(Debug, Clone, Copy)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Filter {
    /// Reads the patterns of a mapping, each a JSON text.
    ///
    /// # Errors
    /// [`FilterError`] for what Lambda would refuse.
    pub fn new<T: AsRef<str>>(patterns: &[T]) -> Result<Self, FilterError> {
        if patterns.len() > MAX_PATTERNS {
            return Err(FilterError::TooLong);
        }
        let read = |pattern: &T| {
            let text = pattern.as_ref();
            if text.chars().count() > MAX_PATTERN {
                return Err(FilterError::TooLong);
            }
            match text.parse() {
                Ok(Value::Object(fields)) => Fields::read(&fields),
                _ => Err(FilterError::Json),
            }
        };
        patterns.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a record in its event form is delivered.
    #[must_use]
    pub fn matches(&self, event: &Value) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(event))
    }
}

impl Fields {
    fn read(pattern: &Map<String, Value>) -> Result<Self, FilterError> {
        let mut read = Self::default();
        for (name, value) in pattern {
            match value {
                Value::Array(alternatives) if name == "$or" => {
                    let objects = alternatives.iter().map(|alternative| match alternative {
                        Value::Object(fields) => Self::read(fields),
                        _ => Err(FilterError::Shape(name.clone())),
                    });
                    read.alternatives.push(objects.collect::<Result<_, _>>()?);
                }
                Value::Object(fields) => {
                    let rule = Rule::Object(Self::read(fields)?);
                    read.fields.push((name.clone(), rule));
                }
                Value::Array(tests) if !tests.is_empty() => {
                    let tests = tests.iter().map(Test::read).collect::<Result<_, _>>()?;
                    read.fields.push((name.clone(), Rule::Value(tests)));
                }
                _ => return Err(FilterError::Shape(name.clone())),
            }
        }
        Ok(read)
    }

    /// A field of what is no object is missing, which `exists: false` takes.
    fn matches(&self, value: &Value) -> bool {
        self.fields.iter().all(|(name, rule)| rule.matches(value.get(name)))
            && self.alternatives.iter().all(|any| any.iter().any(|fields| fields.matches(value)))
    }
}

impl Rule {
    fn matches(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Object(fields), Some(Value::Array(items))) => items.iter().any(|item| fields.matches(item)),
            (Self::Object(fields), value) => fields.matches(value.unwrap_or(&Value::Null)),
            (Self::Value(tests), value) => tests.iter().any(|test| test.takes(value)),
        }
    }
}

impl Test {
    fn read(value: &Value) -> Result<Self, FilterError> {
        let Value::Object(operator) = value else {
            return match value {
                Value::Array(_) => Err(FilterError::Shape("a list in a list".to_owned())),
                scalar => Ok(Self::Exactly(scalar.clone())),
            };
        };
        let mut operators = operator.iter();
        let (Some((name, operand)), None) = (operators.next(), operators.next()) else {
            return Err(FilterError::Operator(value.to_string()));
        };
        let test = match (name.as_str(), operand) {
            ("prefix", Value::String(text)) => Some(Self::Prefix(text.clone())),
            ("suffix", Value::String(text)) => Some(Self::Suffix(text.clone())),
            ("equals-ignore-case", Value::String(text)) => Some(Self::EqualsIgnoreCase(text.to_lowercase())),
            ("exists", Value::Bool(wanted)) => Some(Self::Exists(*wanted)),
            ("anything-but", Value::Array(list)) if !list.is_empty() => {
                let scalars = list.iter().all(|item| !item.is_object());
                let tests = list.iter().map(Self::read).collect::<Result<_, _>>()?;
                scalars.then_some(Self::AnythingBut(tests))
            }
            ("anything-but", Value::Object(inner)) if !inner.contains_key("anything-but") => {
                Some(Self::AnythingBut(vec![Self::read(operand)?]))
            }
            ("anything-but", Value::String(_) | Value::Number(_)) => {
                Some(Self::AnythingBut(vec![Self::read(operand)?]))
            }
            ("numeric", Value::Array(terms)) => comparisons(terms).map(Self::Numeric),
            _ => None,
        };
        test.ok_or_else(|| FilterError::Operator(name.clone()))
    }

    /// Whether the field holds such a value; of a list, one of its values. As in EventBridge only
    /// leaves count: for `exists` an object is no value.
    fn takes(&self, value: Option<&Value>) -> bool {
        let leaves = match value {
            None | Some(Value::Object(_)) => &[],
            Some(Value::Array(items)) => items.as_slice(),
            Some(scalar) => std::slice::from_ref(scalar),
        };
        match self {
            Self::Exists(wanted) => leaves.is_empty() != *wanted,
            test => leaves.iter().any(|leaf| test.takes_leaf(leaf)),
        }
    }

    fn takes_leaf(&self, leaf: &Value) -> bool {
        match (self, leaf) {
            (Self::Exactly(Value::Number(wanted)), Value::Number(number)) => wanted.as_f64() == number.as_f64(),
            (Self::Exactly(wanted), leaf) => wanted == leaf,
            (Self::AnythingBut(tests), leaf) => !leaf.is_object() && !tests.iter().any(|test| test.takes_leaf(leaf)),
            (Self::EqualsIgnoreCase(wanted), Value::String(text)) => text.to_lowercase() == *wanted,
            (Self::Prefix(prefix), Value::String(text)) => text.starts_with(prefix.as_str()),
            (Self::Suffix(suffix), Value::String(text)) => text.ends_with(suffix.as_str()),
            // Numbers only: an attribute `{"N": "5"}` holds a string, and Lambda does not compare it.
            (Self::Numeric(terms), Value::Number(number)) => {
                number.as_f64().is_some_and(|number| terms.iter().all(|(term, bound)| term.holds(number, *bound)))
            }
            _ => false,
        }
    }
}

/// `["=", 5]` or a range such as `[">", 0, "<=", 5]`.
fn comparisons(terms: &[Value]) -> Option<Vec<(Comparison, f64)>> {
    let (pairs, []) = terms.as_chunks::<2>() else {
        return None;
    };
    let read = |[sign, bound]: &[Value; 2]| {
        let comparison = match sign.as_str()? {
            "=" => Comparison::Equal,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        };
        Some((comparison, bound.as_f64()?))
    };
    (1..=2).contains(&pairs.len()).then(|| pairs.iter().map(read).collect())?
}

impl Comparison {
    fn holds(self, number: f64, bound: f64) -> bool {
        match self {
            Self::Equal => number == bound,
            Self::Less => number < bound,
            Self::LessOrEqual => number <= bound,
            Self::Greater => number > bound,
            Self::GreaterOrEqual => number >= bound,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

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
        Filter::new(&[pattern.to_string()]).unwrap().matches(&event)
    }

    #[test]
    fn each_operator_takes_and_leaves_what_the_guide_says() {
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
            // Only leaves exist.
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
            // Numbers of items are strings.
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
    fn one_of_several_patterns_is_enough_and_none_takes_everything() {
        let event = json!({"eventName": "REMOVE"});
        let filter = |patterns: &[&str]| Filter::new(patterns).unwrap().matches(&event);
        assert!(filter(&[]));
        assert!(filter(&[r#"{"eventName":["X"]}"#, r#"{"eventName":["REMOVE"]}"#]));
        assert!(!filter(&[r#"{"eventName":["X"]}"#]));
    }

    #[test]
    fn what_lambda_refuses_is_refused() {
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
            assert!(Filter::new(&[pattern]).is_err(), "{pattern}");
        }
        let long = format!(r#"{{"a":["{}"]}}"#, "x".repeat(MAX_PATTERN));
        assert_eq!(Filter::new(&[long]).unwrap_err(), FilterError::TooLong);
        assert!(Filter::new(&["{}"; 11]).is_err());
    }
}
