use std::fmt;
use std::path::{Path, PathBuf};

/// An error in a template. The message is one line: `template.yaml:41: Orders.Timeout: …`.
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

    /// Adds the file's name to the start of the message.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Adds the path in the template to an error that has only a line.
    pub(crate) fn under(mut self, path: &str) -> Self {
        if self.path.is_empty() {
            path.clone_into(&mut self.path);
        }
        self
    }

    /// Returns the line of the error, counted from 1.
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

/// Joins the lines of a text, because quoted parts of a template may have several lines.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
