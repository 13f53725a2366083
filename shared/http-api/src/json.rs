//! A strict JSON reader that copies as little as possible.
//!
//! `serde_json::Value` is too lenient for an order's body. It keeps the last of two members with
//! the same name, and it turns an integer beyond 64 bits into the nearest float. [`Value`] refuses
//! duplicate names, and reads such an integer as [`Value::OtherNumber`]. `serde_json` limits
//! nesting to 128 levels.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON value. Texts without escapes borrow from the document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Value<'a> {
    /// `null`, or an absent value.
    #[default]
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number that fits an `i64` or a `u64`, and is written without fraction and exponent.
    Integer(i128),
    /// Any other number, without its value. [`texts_of`] returns the text of such a number.
    OtherNumber,
    Text(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    /// An object. Each name occurs once.
    Object(Members<'a>),
}

/// The members of an object, by name.
pub type Members<'a> = BTreeMap<Cow<'a, str>, Value<'a>>;

/// A reason why a text is refused as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is not JSON by RFC 8259, has an unpaired surrogate in a string, or is nested too
    /// deeply.
    #[error("not valid JSON at line {line}, column {column}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
    },
    /// An object has two members with the same name. RFC 8259 does not define which of them counts.
    #[error("not usable: an object has two members with the same name, at line {line}, column {column}")]
    DuplicateName {
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
    },
    /// The text is valid JSON, but a number is beyond the range of 64-bit floats, such as `1e400`.
    #[error("a number is out of range")]
    NumberOutOfRange,
}

impl<'a> Value<'a> {
    /// Parses one JSON document.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong and, unless a number is out of range, where. It repeats no
    /// part of the text.
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            if error.is_data() {
                // The visitor below accepts every type, so its only error is a duplicate name.
                ParseError::DuplicateName { line, column }
            } else if error.to_string().starts_with("number out of range") {
                // serde_json has no category for this error. A test checks its text.
                ParseError::NumberOutOfRange
            } else {
                ParseError::Syntax { line, column }
            }
        })
    }

    /// Returns the text of a string, or `None` for anything else.
    #[must_use]
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the members of an object. For anything else the result is empty.
    #[must_use]
    pub fn into_members(self) -> Members<'a> {
        match self {
            Self::Object(members) => members,
            _ => Members::new(),
        }
    }
}

/// Reads the document's member `array`, which is an array of objects. Returns the original text of
/// `member` in each object. Callers use this function for numbers that must keep every digit.
///
/// The result has `None` for an element without that member. The result is unspecified for a
/// document that [`Value::parse`] refuses.
#[must_use]
pub fn texts_of<'a>(document: &'a str, array: &str, member: &str) -> Vec<Option<&'a str>> {
    type Raw<'a> = BTreeMap<String, &'a RawValue>;
    let whole: Raw<'a> = serde_json::from_str(document).unwrap_or_default();
    let elements: Vec<&'a RawValue> =
        whole.get(array).and_then(|array| serde_json::from_str(array.get()).ok()).unwrap_or_default();
    let text = |element: &&'a RawValue| {
        let members: Raw<'a> = serde_json::from_str(element.get()).ok()?;
        members.get(member).map(|value| value.get())
    };
    elements.iter().map(text).collect()
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::OtherNumber)
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = elements.next_element()? {
            all.push(element);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut all = Members::new();
        while let Some(name) = members.next_key::<Name<'de>>()? {
            let value = members.next_value()?;
            if all.insert(name.0, value).is_some() {
                return Err(de::Error::custom("a member is named twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

/// A member's name, borrowed if possible. Deserializing a `Cow` never borrows.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(AnyValue)? {
            Value::Text(name) => Ok(Self(name)),
            _ => Err(de::Error::custom("a name is a string")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Value<'_> {
        Value::Text(text.into())
    }

    #[test]
    fn a_document_is_read_with_its_texts_borrowed() {
        let document = r#"{"a":[1,-2,true,null],"b":{"c":"plain"}}"#;
        let members = Value::parse(document).unwrap().into_members();
        assert_eq!(
            members.get("a"),
            Some(&Value::Array(vec![Value::Integer(1), Value::Integer(-2), Value::Boolean(true), Value::Null]))
        );
        let inner = members.get("b").cloned().unwrap().into_members();
        assert!(matches!(inner.get("c"), Some(Value::Text(Cow::Borrowed("plain")))));
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(Value::parse(r#""a\n\u00e4\ud83d\ude00""#), Ok(text("a\nä😀")));
    }

    #[test]
    fn integers_keep_all_their_digits_and_other_numbers_are_not_integers() {
        assert_eq!(Value::parse("18446744073709551615"), Ok(Value::Integer(u64::MAX.into())));
        assert_eq!(Value::parse("-9223372036854775808"), Ok(Value::Integer(i64::MIN.into())));
        for other in
            ["18446744073709551616", "-9223372036854775809", "1.0", "1e2", "0.1", "1E400e".trim_end_matches('e')]
        {
            let read = Value::parse(other);
            assert!(matches!(read, Ok(Value::OtherNumber) | Err(ParseError::NumberOutOfRange)), "{other}: {read:?}");
        }
        assert_eq!(Value::parse("1e400"), Err(ParseError::NumberOutOfRange));
        assert_eq!(Value::parse(r#"{"a":[-1e999]}"#), Err(ParseError::NumberOutOfRange));
    }

    #[test]
    fn a_name_given_twice_is_refused_at_every_depth_even_when_escaped() {
        for document in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert!(matches!(Value::parse(document), Err(ParseError::DuplicateName { .. })), "{document}");
        }
        assert!(Value::parse(r#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }

    #[test]
    fn numbers_in_an_array_are_returned_as_they_are_written() {
        let document =
            r#"{"a":1,"points":[{"v":1.50},{"\u0076" : 12345678901234567890123456789012345678},{},7,{"v":"x"},[1]]}"#;
        let digits = "12345678901234567890123456789012345678";
        let expected = [Some("1.50"), Some(digits), None, None, Some("\"x\""), None];
        assert_eq!(texts_of(document, "points", "v"), expected);
        for other in ["[]", "{}", r#"{"points":1}"#, "{"] {
            assert_eq!(texts_of(other, "points", "v"), [], "{other}");
        }
    }

    #[test]
    fn invalid_json_is_a_syntax_error() {
        let deep = "[".repeat(100_000);
        for document in [
            "",
            " ",
            "{",
            "{}x",
            "{'a':1}",
            "[1,]",
            "nul",
            "NaN",
            "01",
            "+1",
            r#""\ud800""#,
            r#""\udc00x""#,
            "\"\n\"",
            &deep,
        ] {
            assert!(matches!(Value::parse(document), Err(ParseError::Syntax { .. })), "{document:.20}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(document in any::<String>()) {
            let _ = Value::parse(&document);
        }

        #[test]
        fn every_string_survives_writing_and_parsing(content in any::<String>()) {
            let document = serde_json::to_string(&content).unwrap();
            prop_assert_eq!(Value::parse(&document), Ok(text(&content)));
        }
    }
}
