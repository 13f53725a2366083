//! What a command has to say at its end.

use std::fmt::{self, Display};

use serde::Serialize;
use serde_json::Value;

/// The end of a command: a summary for people and for programs, and whether anything is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    text: String,
    json: Value,
    clean: bool,
}

impl Outcome {
    /// A summary; `clean` if nothing is wrong and nothing is left.
    pub fn new(summary: &(impl Display + Serialize), clean: bool) -> Self {
        // A summary is a struct of numbers and texts; were one not, its text would still be there.
        let json = serde_json::to_value(summary).unwrap_or(Value::Null);
        Self { text: summary.to_string(), json, clean }
    }

    /// What is written to standard output.
    #[must_use]
    pub fn render(&self, json: bool) -> String {
        if json { self.json.to_string() } else { self.text.trim_end().to_owned() }
    }

    /// The exit status: 0, or 1 if something is wrong or left.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        if self.clean { 0 } else { 1 }
    }
}

/// The content of an object, to be shown: the JSON that it is, or its text where it cannot be read as JSON (broken off, or nested too deep).
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
