//! What a command has to say at its end.

use std::fmt::Display;

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
