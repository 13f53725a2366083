//! Checks the media type and the size of a request's body, and reads the body.

use crate::body::Object;
use crate::contract::{BodyFields, Context};
use crate::event::Body;
use crate::json::texts_of;
use crate::problem::{Code, Problem};
use crate::request::Request;

/// The default limit of a body's size in bytes.
pub const BODY_LIMIT: usize = 256 * 1024;
/// The largest size limit of any route in bytes. Only the import of products has this limit.
pub const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
const JSON: &[&str] = &["application/json", "application/merge-patch+json"];
const NDJSON: &[&str] = &["application/x-ndjson", "application/ndjson", "application/jsonl"];

impl Request<'_> {
    /// Reads the body as a JSON object of at most [`BODY_LIMIT`] bytes.
    ///
    /// # Errors
    /// 415 `unsupported_media_type` or `unsupported_content_encoding`, 413 `body_too_large`, 400
    /// `malformed_json`, 422 `invalid_body`.
    pub fn object(&self) -> Result<Object<'_>, Problem> {
        Object::parse(self.json_text()?)
    }

    /// Reads the body as the type of the route's declaration.
    ///
    /// # Errors
    /// As [`Request::object`], and 422 `invalid_body` with every error of the body.
    pub fn body<T: BodyFields>(&self) -> Result<T, Problem> {
        self.document(self.json_text()?)
    }

    /// Reads a document of the body, such as one of its [`Request::lines`], as the type of the
    /// route's declaration.
    ///
    /// # Errors
    /// 400 `malformed_json`, and 422 `invalid_body` with every error of the document.
    pub fn document<T: BodyFields>(&self, text: &str) -> Result<T, Problem> {
        let mut object = Object::parse(text)?;
        let read = T::read_fields(&mut object, &Context::new(self.caller()));
        Ok(object.finish(read)?.complete()?)
    }

    /// Reads the body as [`Request::body`] does. A [`Decimal`](key_schema::metric::Decimal) has the
    /// text of `member` in the elements of `array`.
    ///
    /// # Errors
    /// As [`Request::body`].
    pub fn body_with_numbers<T: BodyFields>(&self, array: &str, member: &str) -> Result<T, Problem> {
        let mut object = self.object()?;
        let numbers = texts_of(self.content(BODY_LIMIT)?, array, member);
        let read = T::read_fields(&mut object, &Context::new(self.caller()).with_numbers(&numbers));
        Ok(object.finish(read)?.complete()?)
    }

    /// Checks that the request has no body, or an empty JSON object.
    ///
    /// # Errors
    /// 422 `invalid_body`, 413 `body_too_large`, 400 `malformed_json`.
    pub fn refuse_body(&self) -> Result<(), Problem> {
        match self.content(BODY_LIMIT)?.trim() {
            "" | "{}" => Ok(()),
            _ => Err(Problem::new(Code::InvalidBody, "The request must have no body.")),
        }
    }

    /// Returns the body as the client wrote it, so that a handler can store it. This method accepts
    /// the same media types and sizes as [`Request::object`].
    pub fn json_text(&self) -> Result<&str, Problem> {
        self.expect_type(JSON)?;
        self.content(BODY_LIMIT)
    }

    /// Returns the lines of a newline-delimited JSON body of at most `limit` bytes. Each line has
    /// its number in the body, counted from one. Blank lines are left out. [`Request::document`]
    /// reads a line.
    ///
    /// # Errors
    /// 415 `unsupported_media_type`. 413 `body_too_large`. 400 `malformed_json` when the body is
    /// not UTF-8.
    pub fn lines(&self, limit: usize) -> Result<impl Iterator<Item = (usize, &str)>, Problem> {
        self.expect_type(NDJSON)?;
        let content = self.content(limit)?;
        Ok((1..).zip(content.lines()).filter(|(_, line)| !line.trim().is_empty()))
    }

    pub(crate) fn content(&self, limit: usize) -> Result<&str, Problem> {
        match &self.body {
            Body::Text(text) if text.is_empty() => Ok(text),
            _ if self.is_encoded() => Err(Problem::new(
                Code::UnsupportedContentEncoding,
                "The body must not be compressed. Send it without Content-Encoding.",
            )),
            Body::Text(text) if text.len() <= limit => Ok(text),
            Body::Text(_) | Body::TooLarge => {
                Err(Problem::new(Code::BodyTooLarge, format!("The body must have at most {limit} bytes.")))
            }
            Body::Unreadable => Err(Problem::new(Code::MalformedJson, "The body is not UTF-8.")),
        }
    }

    fn is_encoded(&self) -> bool {
        self.header("content-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
    }

    /// Checks the Content-Type. A request without this header is accepted (RFC 9110, section 8.3,
    /// allows that).
    fn expect_type(&self, accepted: &[&str]) -> Result<(), Problem> {
        match self.header("content-type") {
            Some(given) if !is_media_type(given, accepted) => {
                Err(Problem::new(Code::UnsupportedMediaType, format!("The body must be {}.", accepted.join(" or "))))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a Content-Type is an accepted media type in any letter case, with or without
/// `charset=utf-8`. Another charset is refused, because JSON is UTF-8.
fn is_media_type(given: &str, accepted: &[&str]) -> bool {
    let mut parts = given.split(';').map(str::trim);
    let named = parts.next().is_some_and(|name| accepted.iter().any(|accepted| accepted.eq_ignore_ascii_case(name)));
    let foreign_charset = parts.filter_map(|parameter| parameter.split_once('=')).any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset") && !value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    named && !foreign_charset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_matches_only_as_a_whole_but_may_have_parameters() {
        for good in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\"; x=y"] {
            assert!(is_media_type(good, JSON), "{good}");
        }
        for bad in
            ["", "text/plain", "application/jsonp", "application/json, text/plain", "application/json; charset=latin1"]
        {
            assert!(!is_media_type(bad, JSON), "{bad}");
        }
    }
}
