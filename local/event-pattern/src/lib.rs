//! Event patterns, which select events for a rule of EventBridge or a filter of a Lambda event
//! source mapping.
//!
//! Both services use the language of
//! [EventBridge](https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html).
//! Lambda's [filters](https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html)
//! support only a part of it. [`Pattern::read`] rejects operators that its [`Dialect`] lacks. It
//! rejects the operator `cidr` in both dialects, because no pattern of Bodega needs it.

use serde_json::{Map, Value};

/// The service whose language a pattern uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Filter criteria of an event source mapping.
    Lambda,
    /// The event pattern of a rule. It supports all operators of Lambda, and wildcards. Some
    /// operators also accept lists or case-insensitive operands.
    EventBridge,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is not a JSON object")]
    Json,
    /// The value of this field is neither an object of fields nor a list of allowed values.
    #[error("the value of `{0}` must be an object or a list")]
    Shape(String),
    /// The operator does not exist, or does not accept its value.
    #[error("the operator `{0}` does not exist or does not accept its value")]
    Operator(String),
}

#[derive(Debug, Clone)]
pub struct Pattern(Fields);

impl Pattern {
    pub fn read(text: &str, dialect: Dialect) -> Result<Self, PatternError> {
        let value: Value = text.parse().map_err(|_| PatternError::Json)?;
        Self::new(&value, dialect)
    }

    pub fn new(pattern: &Value, dialect: Dialect) -> Result<Self, PatternError> {
        match pattern {
            Value::Object(fields) => Fields::read(fields, dialect).map(Self),
            _ => Err(PatternError::Json),
        }
    }

    #[must_use]
    pub fn matches(&self, event: &Value) -> bool {
        self.0.matches(event)
    }
}

/// A pattern for an object. It matches if each named field matches, and if at least one alternative
/// of each `$or` matches.
#[derive(Debug, Clone, Default)]
struct Fields {
    fields: Vec<(String, Rule)>,
    alternatives: Vec<Vec<Fields>>,
}

#[derive(Debug, Clone)]
enum Rule {
    Object(Fields),
    Value(Vec<Test>),
}

#[derive(Debug, Clone)]
enum Test {
    Exactly(Value),
    EqualsIgnoreCase(String),
    Prefix(String),
    Suffix(String),
    PrefixIgnoreCase(String),
    SuffixIgnoreCase(String),
    Wildcard(Vec<Piece>),
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

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    /// Any number of arbitrary characters.
    Any,
}

impl Fields {
    fn read(pattern: &Map<String, Value>, dialect: Dialect) -> Result<Self, PatternError> {
        let mut read = Self::default();
        for (name, value) in pattern {
            match value {
                Value::Array(alternatives) if name == "$or" => {
                    let objects = alternatives.iter().map(|alternative| match alternative {
                        Value::Object(fields) => Self::read(fields, dialect),
                        _ => Err(PatternError::Shape(name.clone())),
                    });
                    read.alternatives.push(objects.collect::<Result<_, _>>()?);
                }
                Value::Object(fields) => {
                    let rule = Rule::Object(Self::read(fields, dialect)?);
                    read.fields.push((name.clone(), rule));
                }
                Value::Array(tests) if !tests.is_empty() => {
                    let tests = tests.iter().map(|test| Test::read(test, dialect)).collect::<Result<_, _>>()?;
                    read.fields.push((name.clone(), Rule::Value(tests)));
                }
                _ => return Err(PatternError::Shape(name.clone())),
            }
        }
        Ok(read)
    }

    /// If the value is not an object, all fields are missing, so `exists: false` matches.
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
    fn read(value: &Value, dialect: Dialect) -> Result<Self, PatternError> {
        let Value::Object(operator) = value else {
            return match value {
                Value::Array(_) => Err(PatternError::Shape("a list in a list".to_owned())),
                scalar => Ok(Self::Exactly(scalar.clone())),
            };
        };
        let mut operators = operator.iter();
        let (Some((name, operand)), None) = (operators.next(), operators.next()) else {
            return Err(PatternError::Operator(value.to_string()));
        };
        let test = match (name.as_str(), operand) {
            ("prefix", Value::String(text)) => Some(Self::Prefix(text.clone())),
            ("suffix", Value::String(text)) => Some(Self::Suffix(text.clone())),
            ("equals-ignore-case", Value::String(text)) => Some(Self::EqualsIgnoreCase(text.to_lowercase())),
            ("exists", Value::Bool(wanted)) => Some(Self::Exists(*wanted)),
            ("numeric", Value::Array(terms)) => comparisons(terms).map(Self::Numeric),
            ("anything-but", but) => Self::read_excluded(but, dialect)?.map(Self::AnythingBut),
            (name, operand) if dialect == Dialect::EventBridge => Self::read_more(name, operand),
            _ => None,
        };
        test.ok_or_else(|| PatternError::Operator(name.clone()))
    }

    /// Reads an operator that only EventBridge supports.
    fn read_more(name: &str, operand: &Value) -> Option<Self> {
        let ignoring_case = || match operand.as_object()?.iter().next()? {
            (inner, Value::String(text)) if inner == "equals-ignore-case" && operand.as_object()?.len() == 1 => {
                Some(text.to_lowercase())
            }
            _ => None,
        };
        match name {
            "prefix" => ignoring_case().map(Self::PrefixIgnoreCase),
            "suffix" => ignoring_case().map(Self::SuffixIgnoreCase),
            "wildcard" => pieces(operand.as_str()?).map(Self::Wildcard),
            _ => None,
        }
    }

    /// Reads the operand of `anything-but`: one value, several values, or one operator. In
    /// EventBridge, that operator may have a list of operands.
    fn read_excluded(but: &Value, dialect: Dialect) -> Result<Option<Vec<Self>>, PatternError> {
        match but {
            Value::String(_) | Value::Number(_) => Ok(Some(vec![Self::read(but, dialect)?])),
            Value::Array(list) if !list.is_empty() && list.iter().all(|item| !item.is_object()) => {
                list.iter().map(|item| Self::read(item, dialect)).collect::<Result<_, _>>().map(Some)
            }
            Value::Object(inner) if !inner.contains_key("anything-but") => match inner.iter().next() {
                Some((name, Value::Array(operands)))
                    if dialect == Dialect::EventBridge
                        && inner.len() == 1
                        && name != "numeric"
                        && !operands.is_empty() =>
                {
                    let one = |operand: &Value| {
                        let operator = Map::from_iter([(name.clone(), operand.clone())]);
                        Self::read(&Value::Object(operator), dialect)
                    };
                    operands.iter().map(one).collect::<Result<_, _>>().map(Some)
                }
                _ => Ok(Some(vec![Self::read(but, dialect)?])),
            },
            _ => Ok(None),
        }
    }

    /// If the value is a list, one passing element is enough. As in EventBridge, `exists` ignores
    /// objects and considers only leaf values.
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
            (Self::PrefixIgnoreCase(prefix), Value::String(text)) => text.to_lowercase().starts_with(prefix.as_str()),
            (Self::SuffixIgnoreCase(suffix), Value::String(text)) => text.to_lowercase().ends_with(suffix.as_str()),
            (Self::Wildcard(pieces), Value::String(text)) => fits(pieces, text),
            // Only JSON numbers match. The value in DynamoDB's `{"N": "5"}` is a string, and
            // Lambda does not convert it.
            (Self::Numeric(terms), Value::Number(number)) => {
                number.as_f64().is_some_and(|number| terms.iter().all(|(term, bound)| term.holds(number, *bound)))
            }
            _ => false,
        }
    }
}

/// Reads `["=", 5]` or a range such as `[">", 0, "<=", 5]`.
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

/// `*` matches any text. `\*` matches a star, and `\\` matches a backslash. Two stars in a row are
/// invalid.
fn pieces(pattern: &str) -> Option<Vec<Piece>> {
    let mut pieces = vec![];
    let mut literal = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                if pieces.last() == Some(&Piece::Any) {
                    return None;
                }
                pieces.push(Piece::Any);
            }
            '\\' => literal.push(characters.next().filter(|next| ['*', '\\'].contains(next))?),
            other => literal.push(other),
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Some(pieces)
}

/// A literal between two stars matches its first occurrence. A later occurrence cannot help,
/// because the second star skips any text. A literal at the end of the pattern must match the end
/// of the text.
fn fits(pieces: &[Piece], text: &str) -> bool {
    match pieces {
        [] => text.is_empty(),
        [Piece::Any] => true,
        [Piece::Literal(literal), rest @ ..] => {
            text.strip_prefix(literal.as_str()).is_some_and(|text| fits(rest, text))
        }
        [Piece::Any, Piece::Literal(literal)] => text.ends_with(literal.as_str()),
        [Piece::Any, Piece::Literal(literal), rest @ ..] => {
            text.split_once(literal.as_str()).is_some_and(|(_, text)| fits(rest, text))
        }
        [Piece::Any, rest @ ..] => fits(rest, text),
    }
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
mod tests;
