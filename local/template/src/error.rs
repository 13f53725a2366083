//! The one error of this crate: what is wrong with a template, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// A template that cannot be used. Reads as one line: `template.yaml:41: Orders.Timeout: …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TemplateError {
    file: Option<PathBuf>,
    line: Option<usize>,
    path: String,
    message: String,
}

impl TemplateError {
    pub(crate) fn at(line: usize, path: &str, message: impl Into<String>) -> Self {
        Self { file: None, line: Some(line), path: path.to_owned(), message: message.into() }
    }

    pub(crate) fn unreadable(error: &std::io::Error) -> Self {
        Self { file: None, line: None, path: String::new(), message: format!("cannot be read: {error}") }
    }

    /// Begins the message with the name of the file.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Says where in the template a fault below stands that knows only its line.
    pub(crate) fn under(mut self, path: &str) -> Self {
        if self.path.is_empty() {
            path.clone_into(&mut self.path);
        }
        self
    }

    /// The line, counted from 1, where the fault stands.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(out, "{}:", file.display())?;
        }
        if let Some(line) = self.line {
            write!(out, "{line}:")?;
        }
        if self.file.is_some() || self.line.is_some() {
            out.write_str(" ")?;
        }
        if !self.path.is_empty() {
            write!(out, "{}: ", one_line(&self.path))?;
        }
        out.write_str(&one_line(&self.message))
    }
}

/// What is quoted from a template may have several lines.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
