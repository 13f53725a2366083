//! Reads a JSON object field by field, so that one response lists all errors of the object. The
//! derive [`Body`](crate::contract::Body) writes these calls for a struct.

use std::borrow::Cow;

use crate::json::{Members, ParseError, Value};
use crate::problem::{Code, FieldError, Problem};

/// The maximum number of errors in one response. Further errors are dropped, so that a hostile body
/// cannot cause a huge response.
const MAX_ERRORS: usize = 100;

/// A JSON object that is being read field by field.
///
/// If a field has an error, the method that reads the field records the error and returns `None`.
/// The handler then reads the other fields. At the end [`Object::finish`] returns either all fields
/// or all errors.
#[derive(Debug)]
pub struct Object<'a> {
    unread: Members<'a>,
    errors: Invalid,
}

/// The change that a request makes to an optional field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPatch<T> {
    /// The field was not given. It stays unchanged.
    Keep,
    /// The field was given as `null`. It is removed.
    Clear,
    Set(T),
}

/// The errors of a body. There is at least one, and each has a pointer into the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(Vec<FieldError>);

impl<'a> Object<'a> {
    pub(crate) const fn new(members: Members<'a>) -> Self {
        Self { unread: members, errors: Invalid::none() }
    }

    /// Parses a document that must be an object.
    ///
    /// # Errors
    /// - 400 `malformed_json` when the document is not JSON.
    /// - 422 `invalid_body` when it is JSON but not an object, or contains a number beyond the
    ///   range of 64-bit floats.
    pub fn parse(document: &'a str) -> Result<Self, Problem> {
        match Value::parse(document) {
            Ok(value) => Ok(value.object()?),
            Err(error @ ParseError::NumberOutOfRange) => Err(Invalid::new(error.to_string()).into()),
            Err(error) => Err(Problem::new(Code::MalformedJson, format!("The body is {error}."))),
        }
    }

    /// Reads a field that must be present and not `null`.
    pub fn required<T>(&mut self, name: &str, read: impl FnOnce(Value<'a>) -> Result<T, Invalid>) -> Option<T> {
        match self.unread.remove(name) {
            Some(value) => self.keep(name, read(value)),
            None => self.refuse(name, "is missing"),
        }
    }

    /// Reads a field that may be missing. `null` counts as a missing field.
    pub fn optional<T>(&mut self, name: &str, read: impl FnOnce(Value<'a>) -> Result<T, Invalid>) -> Option<Option<T>> {
        match self.unread.remove(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => self.keep(name, read(value)).map(Some),
        }
    }

    /// Reads a field of a partial change. A missing field means "unchanged", and `null` is refused.
    pub fn replaced<T>(&mut self, name: &str, read: impl FnOnce(Value<'a>) -> Result<T, Invalid>) -> Option<Option<T>> {
        match self.unread.remove(name) {
            None => Some(None),
            Some(value) => self.keep(name, read(value)).map(Some),
        }
    }

    /// Reads a field of a partial change. `null` clears it (JSON Merge Patch, RFC 7396).
    pub fn changed<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value<'a>) -> Result<T, Invalid>,
    ) -> Option<FieldPatch<T>> {
        match self.unread.remove(name) {
            None => Some(FieldPatch::Keep),
            Some(Value::Null) => Some(FieldPatch::Clear),
            Some(value) => self.keep(name, read(value)).map(FieldPatch::Set),
        }
    }

    /// Records an error at a field, for a rule over several fields. Always returns `None`, so that
    /// a reader can end with this call.
    pub fn refuse<T>(&mut self, name: &str, detail: impl Into<Cow<'static, str>>) -> Option<T> {
        self.errors.add(Invalid::new(detail).under(name));
        None
    }

    /// Records the errors of a rule over several fields.
    pub fn add(&mut self, invalid: Invalid) {
        self.errors.add(invalid);
    }

    /// Returns the fields, if the object is valid. They are `None` if the reader of one has failed.
    ///
    /// # Errors
    /// The errors of all readers, and one error for each member of the object that no reader has
    /// read.
    pub fn finish<T>(mut self, fields: Option<T>) -> Result<T, Invalid> {
        let unknown: Vec<_> = std::mem::take(&mut self.unread).into_keys().take(MAX_ERRORS).collect();
        for name in unknown {
            self.refuse::<()>(&name, "is not a field of this object");
        }
        match fields {
            Some(fields) if self.errors.0.is_empty() => Ok(fields),
            Some(_) => Err(self.errors),
            None => Err(self.errors.or_incomplete()),
        }
    }

    fn keep<T>(&mut self, name: &str, read: Result<T, Invalid>) -> Option<T> {
        read.map_err(|invalid| self.errors.add(invalid.under(name))).ok()
    }
}

impl<T> FieldPatch<T> {
    pub fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    pub const fn is_given(&self) -> bool {
        !matches!(self, Self::Keep)
    }
}

impl Invalid {
    /// Creates an error at the value that is being read.
    #[must_use]
    pub fn new(detail: impl Into<Cow<'static, str>>) -> Self {
        Self(vec![FieldError::new("", detail)])
    }

    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Moves the errors one level deeper, below the name of a member or the index of an element.
    #[must_use]
    pub fn under(mut self, token: &str) -> Self {
        // RFC 6901, section 3: `~` and `/` inside a token are escaped, `~` first.
        let token = token.replace('~', "~0").replace('/', "~1");
        for error in &mut self.0 {
            error.pointer = format!("/{token}{}", error.pointer);
        }
        self
    }

    /// Adds the errors of `other`, up to 100 in total.
    pub fn add(&mut self, other: Self) {
        let room = MAX_ERRORS.saturating_sub(self.0.len());
        self.0.extend(other.0.into_iter().take(room));
    }

    /// Returns `value`, or the errors if there are any.
    pub(crate) fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    #[must_use]
    pub fn errors(&self) -> &[FieldError] {
        &self.0
    }

    /// Adds an error if there is none, so that the response lists at least one. A field can be
    /// missing without an error only if the handler did not read it through the object.
    fn or_incomplete(self) -> Self {
        if self.0.is_empty() { Self::new("is incomplete") } else { self }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::new(Code::InvalidBody, "The body is invalid. `errors` lists each problem.").errors(invalid.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fields::{array, integer, text};

    fn pointers(invalid: &Invalid) -> Vec<&str> {
        invalid.errors().iter().map(|error| error.pointer.as_str()).collect()
    }

    #[test]
    fn the_fields_of_a_valid_object_are_returned() {
        let mut body = Object::parse(r#"{"name":"Ann","age":null,"place":{"city":"Ulm"}}"#).unwrap();
        let name = body.required("name", text(1..=5));
        let age = body.optional("age", integer(0..=150_u8));
        let city = body.optional("place", |place| {
            let mut place = place.object()?;
            let city = place.required("city", text(1..=5));
            place.finish(city)
        });
        assert_eq!(body.finish(name.zip(age).zip(city)), Ok((("Ann".to_owned(), None), Some("Ulm".to_owned()))));
    }

    #[test]
    fn all_errors_are_reported_together_each_with_its_pointer() {
        let mut body =
            Object::parse(r#"{"name":7,"lines":[{"n":1},{"n":0},{"n":2,"m/~":1}],"extra":1,"place":{"city":""}}"#)
                .unwrap();
        let name = body.required("name", text(1..=5));
        let email = body.required("email", text(1..=5));
        let lines = body.required(
            "lines",
            array(1..=3, |line| {
                let mut line = line.object()?;
                let n = line.required("n", integer(1..=9_u8));
                line.finish(n)
            }),
        );
        let city = body.optional("place", |place| {
            let mut place = place.object()?;
            let city = place.required("city", text(1..=5));
            place.finish(city)
        });
        let invalid = body.finish(name.zip(email).zip(lines).zip(city)).unwrap_err();
        assert_eq!(pointers(&invalid), ["/name", "/email", "/lines/1/n", "/lines/2/m~1~0", "/place/city", "/extra"]);
    }

    #[test]
    fn null_is_refused_only_for_required_and_replaced_fields() {
        let mut body = Object::parse(r#"{"a":null,"b":null,"c":null,"d":null}"#).unwrap();
        assert_eq!(body.optional("a", text(1..=5)), Some(None));
        assert_eq!(body.changed("b", text(1..=5)), Some(FieldPatch::Clear));
        assert_eq!(body.changed("x", text(1..=5)), Some(FieldPatch::Keep));
        assert_eq!(body.replaced("c", text(1..=5)), None);
        assert_eq!(body.required("d", text(1..=5)), None);
        assert_eq!(pointers(&body.finish(Some(())).unwrap_err()), ["/c", "/d"]);
    }

    #[test]
    fn a_change_is_applied_to_the_earlier_value() {
        assert_eq!(FieldPatch::Keep.apply(Some(1)), Some(1));
        assert_eq!(FieldPatch::Clear.apply(Some(1)), None);
        assert_eq!(FieldPatch::Set(2).apply(Some(1)), Some(2));
    }

    #[test]
    fn an_error_of_a_rule_over_several_fields_points_to_the_responsible_field() {
        let mut body = Object::parse(r#"{"from":"b","to":"b"}"#).unwrap();
        let from = body.required("from", text(1..=5));
        let to = body.required("to", text(1..=5));
        if from == to {
            body.refuse::<()>("to", "must differ from `from`");
        }
        assert_eq!(pointers(&body.finish(from.zip(to)).unwrap_err()), ["/to"]);
    }

    #[test]
    fn a_body_that_is_not_an_object_is_invalid_and_a_body_that_is_not_json_is_malformed() {
        for document in ["[]", "null", "1", r#""{}""#, "1e400", r#"{"a":1e999}"#] {
            assert_eq!(Object::parse(document).unwrap_err().code(), Code::InvalidBody, "{document}");
        }
        for document in ["", "{", "{}{}", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#] {
            assert_eq!(Object::parse(document).unwrap_err().code(), Code::MalformedJson, "{document}");
        }
    }

    #[test]
    fn a_response_lists_at_most_100_errors() {
        let document = format!("{{{}}}", (0..5000).map(|n| format!("\"f{n}\":1")).collect::<Vec<_>>().join(","));
        let invalid = Object::parse(&document).unwrap().finish(Some(())).unwrap_err();
        assert_eq!(invalid.errors().len(), MAX_ERRORS);
    }
}
