//! The conditions of a change: If-Match, If-None-Match and the Idempotency-Key.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ring::digest::{Context, SHA256};

use crate::content::BODY_LIMIT;
use crate::problem::{Code, Problem};
use crate::request::Request;
use crate::response::DIGEST_BYTES;

/// The maximum length of an Idempotency-Key in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// The precondition of a change that may also create the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// `If-None-Match: *`: the record must not exist.
    Absent,
    /// `If-Match: "3"`: the record must exist in this version.
    Version(u64),
}

impl Request<'_> {
    /// Returns the version that the client has seen, from `If-Match: "3"`.
    ///
    /// For an entity tag that this API never issues, the version is 0. No item has version 0, so
    /// such a tag never matches.
    ///
    /// # Errors
    /// - 428 `if_match_missing`.
    /// - 412 `version_mismatch` for a weak tag, which never matches (RFC 9110, section 13.1.1).
    ///   Some proxies and compressing servers make the API's tags weak.
    /// - 400 `invalid_header` when the value is not one entity tag. HTTP also allows a list of tags
    ///   and `*`, but a change must name the one version that it is based on.
    pub fn if_match(&self) -> Result<u64, Problem> {
        match self.header("if-match") {
            None => Err(Problem::new(
                Code::IfMatchMissing,
                "This change needs If-Match with the ETag of the last response.",
            )),
            Some(tag) if is_entity_tag(tag) && tag.starts_with("W/") => Err(Problem::new(
                Code::VersionMismatch,
                "If-Match has a weak ETag, which never matches. Send the ETag without W/, such as \"3\".",
            )),
            Some(tag) if is_entity_tag(tag) => Ok(version(tag).unwrap_or(0)),
            Some(_) => Err(Problem::new(
                Code::InvalidHeader,
                "If-Match must be one strong ETag from a response, such as \"3\".",
            )),
        }
    }

    /// Returns the version in If-Match, or `None` if staff send `If-Match: *`, which means any
    /// version. With a version, a customer with frequent changes could delay a change by staff.
    pub fn if_match_or_any(&self) -> Result<Option<u64>, Problem> {
        let any = self.caller().is_staff() && self.header("if-match") == Some("*");
        if any { Ok(None) } else { self.if_match().map(Some) }
    }

    /// Returns the version in If-Match, or `None` without the header.
    pub fn if_match_optional(&self) -> Result<Option<u64>, Problem> {
        self.header("if-match").map(|_| self.if_match()).transpose()
    }

    /// Returns whether If-None-Match names the current ETag of the resource. The comparison ignores
    /// the mark of a weak tag (RFC 9110, section 13.1.2).
    pub(crate) fn has_seen(&self, tag: &str) -> bool {
        let tags = self.header("if-none-match").unwrap_or_default();
        tags.trim() == "*" || tags.split(',').any(|seen| seen.trim().trim_start_matches("W/") == tag)
    }

    /// Returns whether the request has `If-None-Match: *`. Such a request may create a record, but
    /// not replace one.
    ///
    /// # Errors
    /// 400 `invalid_header` for any other value.
    pub fn if_none_match_any(&self) -> Result<bool, Problem> {
        match self.header("if-none-match") {
            None => Ok(false),
            Some("*") => Ok(true),
            Some(_) => Err(Problem::new(Code::InvalidHeader, "If-None-Match must be *.")),
        }
    }

    /// Returns the precondition of a PUT that may create a record: either If-None-Match or
    /// If-Match.
    ///
    /// # Errors
    /// 428 `if_match_missing` with neither header. 400 `invalid_header` with both headers, or with
    /// an unreadable one.
    pub fn precondition(&self) -> Result<Precondition, Problem> {
        match (self.if_none_match_any()?, self.header("if-match")) {
            (true, None) => Ok(Precondition::Absent),
            (true, Some(_)) => {
                Err(Problem::new(Code::InvalidHeader, "Send either If-Match or If-None-Match, not both."))
            }
            (false, _) => self.if_match().map(Precondition::Version),
        }
    }

    /// Returns the Idempotency-Key of a request that needs one.
    ///
    /// # Errors
    /// 400 `idempotency_key_missing`, and the errors of [`Request::idempotency_key_optional`].
    pub fn idempotency_key(&self) -> Result<&str, Problem> {
        self.idempotency_key_optional()?
            .ok_or_else(|| Problem::new(Code::IdempotencyKeyMissing, "This request needs an Idempotency-Key."))
    }

    /// Returns the Idempotency-Key of a request that may have one.
    ///
    /// # Errors
    /// 400 `invalid_header` for anything but 1 to 255 printable ASCII characters. A comma is
    /// refused, too, because API Gateway joins the values of two headers with a comma.
    pub fn idempotency_key_optional(&self) -> Result<Option<&str>, Problem> {
        let printable = |key: &str| {
            (1..=MAX_IDEMPOTENCY_KEY).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        match self.header("idempotency-key") {
            Some(key) if !printable(key) => {
                Err(Problem::new(Code::InvalidHeader, "Idempotency-Key must have 1 to 255 printable ASCII characters."))
            }
            Some(key) if key.contains(',') => Err(Problem::new(
                Code::InvalidHeader,
                "There must be one Idempotency-Key header, and its value must not contain a comma.",
            )),
            key => Ok(key),
        }
    }

    /// Returns a fingerprint that distinguishes this request from other requests with the same
    /// Idempotency-Key. It is a hexadecimal SHA-256 over route, path, caller and body.
    ///
    /// # Errors
    /// 413 `body_too_large`. 400 `malformed_json` when the body is not UTF-8.
    pub fn fingerprint(&self) -> Result<String, Problem> {
        self.fingerprint_with(self.content(BODY_LIMIT)?)
    }

    /// Like [`Request::fingerprint`], for bodies that are equal as JSON: neither spaces, nor the sequence of
    /// members, nor the spelling of a number matter.
    pub fn fingerprint_of_meaning(&self) -> Result<String, Problem> {
        let body = self.content(BODY_LIMIT)?;
        match serde_json::from_str(body) {
            Ok(value) => self.fingerprint_with(&canonical(&value)),
            Err(_) => self.fingerprint_with(body),
        }
    }

    fn fingerprint_with(&self, body: &str) -> Result<String, Problem> {
        let path = self.path.iter().flat_map(|(name, value)| [name.as_ref(), value.as_ref()]);
        let mut hash = Context::new(&SHA256);
        for text in [self.route(), self.caller().key(), body].into_iter().chain(path) {
            // The lengths make ("ab", "c") differ from ("a", "bc").
            hash.update(&(text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        Ok(hash.finish().as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }))
    }
}

/// Returns a text that equal JSON values have in common.
fn canonical(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            let member =
                |(name, value): (&String, &Value)| format!("{}:{}", Value::from(name.as_str()), canonical(value));
            format!("{{{}}}", sorted.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Array(entries) => format!("[{}]", entries.iter().map(canonical).collect::<Vec<_>>().join(",")),
        // Whole numbers are equal to their decimal spelling.
        Value::Number(number) => match number.as_f64() {
            Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < 1e15 => format!("{whole:.0}"),
            _ => number.to_string(),
        },
        value => value.to_string(),
    }
}

/// Returns whether a text is one entity tag (RFC 9110, section 8.8.3).
fn is_entity_tag(text: &str) -> bool {
    let strong = text.strip_prefix("W/").unwrap_or(text);
    let inside = strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| inside.bytes().all(|byte| byte == b'!' || byte >= b'#'))
}

/// Returns the version in a strong entity tag: `"<version>"` or `"<version>.<digest>"`. Returns
/// `None` for a tag that this API never issues.
fn version(tag: &str) -> Option<u64> {
    let inside = tag.strip_prefix('"')?.strip_suffix('"')?;
    let (digits, digest) = inside.split_once('.').map_or((inside, None), |(digits, digest)| (digits, Some(digest)));
    let is_digest = |text: &str| {
        text.len() == 2 * DIGEST_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !digest.is_none_or(is_digest) {
        return None;
    }
    let version: u64 = digits.parse().ok()?;
    // The API never issues `"03"` or `"+3"`.
    (version.to_string() == digits).then_some(version)
}

/// Attempts a change of the given version. `None` means any version, as in
/// [`Request::if_match_or_any`]. Such an attempt is repeated after each 412. Each attempt must read
/// its items again.
///
/// # Errors
/// The error of an attempt. 503 after too many conflicts with other changes.
#[cfg(feature = "table")]
pub async fn change_version<T, F>(version: Option<u64>, mut attempt: impl FnMut() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>>,
{
    let attempt = || {
        let result = attempt();
        async move {
            match result.await {
                Err(problem) if version.is_none() && problem.code() == Code::VersionMismatch => Ok(None),
                result => result.map(Some),
            }
        }
    };
    table::retry_on_conflict(attempt).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tag_that_the_api_issues_is_a_version() {
        assert_eq!(version("\"3\""), Some(3));
        assert_eq!(version("\"3.0123456789abcdef\""), Some(3));
        assert_eq!(version("\"18446744073709551615\""), Some(u64::MAX));
        for bad in [
            "3",
            "*",
            "W/\"3\"",
            "\"03\"",
            "\"+3\"",
            "\"\"",
            "\"",
            "\"3\", \"4\"",
            "\"-1\"",
            "\"3.\"",
            "\"3.0123456789ABCDEF\"",
            "\"d0123456789abcdef\"",
            "\"18446744073709551616\"",
        ] {
            assert_eq!(version(bad), None, "{bad}");
        }
    }
}
