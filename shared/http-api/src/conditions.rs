//! Under which conditions a request may change something: in which version, and only once.

use std::fmt::Write as _;

use ring::digest::{Context, SHA256};

use crate::content::BODY_LIMIT;
use crate::problem::{Code, Problem};
use crate::request::Request;

/// The longest Idempotency-Key, in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// What a change of something that need not exist yet was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// `If-None-Match: *`: it must not exist.
    Absent,
    /// `If-Match: "3"`: it must exist in this version.
    Version(u64),
}

impl Request<'_> {
    /// The version that the client has seen, from `If-Match: "3"`. An entity tag that was never an answer of ours is version 0, which nothing
    /// ever has: it does not match (RFC 9110, section 13.1.1), and neither does a weak one.
    ///
    /// # Errors
    /// 428 `if_match_missing`; 400 `invalid_header` for what is not one entity tag. A list of tags and `*` are valid HTTP, but a change that
    /// any version may undergo is what If-Match is asked for to prevent.
    pub fn if_match(&self) -> Result<u64, Problem> {
        match self.header("if-match") {
            None => {
                Err(Problem::new(Code::IfMatchMissing, "This change needs If-Match with the ETag of the last answer."))
            }
            Some(tag) if is_entity_tag(tag) => Ok(version(tag).unwrap_or(0)),
            Some(_) => Err(Problem::new(
                Code::InvalidHeader,
                "If-Match must be one strong ETag as given in an answer, such as \"3\".",
            )),
        }
    }

    /// Whether the request shall only create: `If-None-Match: *`.
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

    /// What a PUT that may create was made for: one of If-None-Match and If-Match.
    ///
    /// # Errors
    /// 428 `if_match_missing` without either, 400 `invalid_header` with both or an unreadable one.
    pub fn precondition(&self) -> Result<Precondition, Problem> {
        match (self.if_none_match_any()?, self.header("if-match")) {
            (true, None) => Ok(Precondition::Absent),
            (true, Some(_)) => Err(Problem::new(Code::InvalidHeader, "If-Match and If-None-Match exclude each other.")),
            (false, _) => self.if_match().map(Precondition::Version),
        }
    }

    /// The key that makes a repetition of this request recognisable.
    ///
    /// # Errors
    /// 400 `idempotency_key_missing`; 400 `invalid_header` for anything but 1 to 255 printable ASCII characters.
    pub fn idempotency_key(&self) -> Result<&str, Problem> {
        self.idempotency_key_optional()?
            .ok_or_else(|| Problem::new(Code::IdempotencyKeyMissing, "This needs an Idempotency-Key."))
    }

    /// The same where a key may be given.
    ///
    /// # Errors
    /// 400 `invalid_header` for anything but 1 to 255 printable ASCII characters.
    pub fn idempotency_key_optional(&self) -> Result<Option<&str>, Problem> {
        let printable = |key: &str| {
            (1..=MAX_IDEMPOTENCY_KEY).contains(&key.len()) && key.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        match self.header("idempotency-key") {
            Some(key) if !printable(key) => {
                Err(Problem::new(Code::InvalidHeader, "Idempotency-Key must have 1 to 255 printable ASCII characters."))
            }
            key => Ok(key),
        }
    }

    /// What tells this request from another with the same Idempotency-Key: a SHA-256, in hexadecimal, over route,
    /// path, caller and body.
    ///
    /// # Errors
    /// As [`Request::object`], for the body.
    pub fn fingerprint(&self) -> Result<String, Problem> {
        let body = self.content(BODY_LIMIT)?;
        let path = self.path.iter().flat_map(|(name, value)| [name.as_ref(), value.as_ref()]);
        let mut hash = Context::new(&SHA256);
        for text in [self.route(), self.caller().key(), body].into_iter().chain(path) {
            // Lengths keep ("ab", "c") and ("a", "bc") apart.
            hash.update(&(text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        }
        Ok(hash.finish().as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        }))
    }
}

/// Whether a text is one entity tag (RFC 9110, section 8.8.3).
fn is_entity_tag(text: &str) -> bool {
    let strong = text.strip_prefix("W/").unwrap_or(text);
    let inside = strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| inside.bytes().all(|byte| byte == b'!' || byte >= b'#'))
}

/// The version in a strong entity tag that an answer of ours could have carried.
fn version(tag: &str) -> Option<u64> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let version: u64 = digits.parse().ok()?;
    // `"03"` and `"+3"` were never given out.
    (version.to_string() == digits).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tag_that_we_could_have_given_is_a_version() {
        assert_eq!(version("\"3\""), Some(3));
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
            "\"18446744073709551616\"",
        ] {
            assert_eq!(version(bad), None, "{bad}");
        }
    }
}
