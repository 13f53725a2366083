use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::Value;

/// The result of a command: a summary as text and as JSON, and whether anything is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    text: String,
    json: Value,
    clean: bool,
}

impl Outcome {
    /// Creates the result from a summary. `clean` means that nothing is wrong and nothing is left
    /// to do.
    pub fn new(summary: &(impl Display + Serialize), clean: bool) -> Self {
        // A summary consists of numbers and texts, so the conversion cannot fail. The summary as
        // text remains in any case.
        let json = serde_json::to_value(summary).unwrap_or(Value::Null);
        Self { text: summary.to_string(), json, clean }
    }

    #[must_use]
    pub fn render(&self, json: bool) -> String {
        if json { self.json.to_string() } else { self.text.trim_end().to_owned() }
    }

    /// Returns the exit status: 0, or 1 if something is wrong or left to do.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        if self.clean { 0 } else { 1 }
    }
}

/// The content of an object for display: JSON, or the text if it is not valid JSON (truncated, or
/// nested too deeply).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Shown {
    Json(Value),
    Text(String),
}

impl Shown {
    pub(crate) fn new(body: &[u8]) -> Self {
        serde_json::from_slice(body).map_or_else(|_| Self::Text(String::from_utf8_lossy(body).into_owned()), Self::Json)
    }
}

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(value) => write!(f, "{value:#}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}
