//! Reads parts of the template as typed values. Errors contain the path and the line.

use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::Value as Json;

use crate::TemplateError;
use crate::intrinsics::Resolver;
use crate::yaml::{self, Node, Value};

/// A node of the template. Its own intrinsic function has been evaluated. Functions in its children
/// are evaluated when the children are read.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    node: Node,
    path: String,
    resolver: &'a Resolver<'a>,
}

impl<'a> Section<'a> {
    pub(crate) fn root(document: &Node, resolver: &'a Resolver<'a>) -> Self {
        Self { node: document.clone(), path: String::new(), resolver }
    }

    pub(crate) fn line(&self) -> usize {
        self.node.line
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> TemplateError {
        TemplateError::at(self.node.line, &self.path, message)
    }

    /// Returns the section under `key`. Returns `None` if it is missing or is `AWS::NoValue`.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Self>, TemplateError> {
        match &*self.node.value {
            Value::Map(_) => match self.node.child(key) {
                Some(child) => self.below(child, key),
                None => Ok(None),
            },
            _ => Err(self.unexpected("a mapping")),
        }
    }

    /// Returns whether the value under `key` is a literal and not an intrinsic function.
    pub(crate) fn is_literal(&self, key: &str) -> bool {
        self.node.child(key).is_some_and(|child| matches!(*child.value, Value::Scalar { .. }))
    }

    pub(crate) fn require(&self, key: &str) -> Result<Self, TemplateError> {
        self.get(key)?.ok_or_else(|| self.error(format!("{key} is missing")))
    }

    /// Rejects any key that is not in `known`, so that no setting is ignored silently.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), TemplateError> {
        for (key, section) in self.entries()? {
            if !known.contains(&key.as_str()) {
                return Err(section.error("this property is not supported"));
            }
        }
        Ok(())
    }

    pub(crate) fn entries(&self) -> Result<Vec<(String, Self)>, TemplateError> {
        let Value::Map(entries) = &*self.node.value else {
            return Err(self.unexpected("a mapping"));
        };
        let mut sections = Vec::with_capacity(entries.len());
        for (key, child) in entries {
            if let Some(section) = self.below(child, key)? {
                sections.push((key.clone(), section));
            }
        }
        Ok(sections)
    }

    pub(crate) fn items(&self) -> Result<Vec<Self>, TemplateError> {
        let Value::List(items) = &*self.node.value else {
            return Err(self.unexpected("a list"));
        };
        let mut sections = Vec::with_capacity(items.len());
        for (position, child) in items.iter().enumerate() {
            if let Some(section) = self.below(child, &position.to_string())? {
                sections.push(section);
            }
        }
        Ok(sections)
    }

    /// Returns a list of texts. A single text counts as a list of one, as in an IAM statement.
    pub(crate) fn texts(&self) -> Result<Vec<String>, TemplateError> {
        match &*self.node.value {
            Value::Scalar { .. } => Ok(vec![self.text()?]),
            _ => self.items()?.iter().map(Self::text).collect(),
        }
    }

    pub(crate) fn text(&self) -> Result<String, TemplateError> {
        match &*self.node.value {
            Value::Scalar { text, .. } => Ok(text.clone()),
            _ => Err(self.unexpected("a text")),
        }
    }

    /// Evaluates the section's intrinsic functions, and returns it in the JSON form of
    /// [`crate::parse_yaml`].
    pub(crate) fn json(&self) -> Result<Json, TemplateError> {
        match &*self.node.value {
            Value::Map(_) => {
                let entries = self.entries()?;
                let json = entries.iter().map(|(key, section)| Ok((key.clone(), section.json()?)));
                json.collect::<Result<_, _>>().map(Json::Object)
            }
            Value::List(_) => self.items()?.iter().map(Self::json).collect::<Result<_, _>>().map(Json::Array),
            _ => yaml::to_json(&self.node),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, TemplateError> {
        match self.text()?.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(self.error(format!("must be true or false, not {other}"))),
        }
    }

    /// Returns a whole number within `range`. The ranges are AWS's limits.
    pub(crate) fn number<N>(&self, range: RangeInclusive<N>) -> Result<N, TemplateError>
    where
        N: FromStr + PartialOrd + std::fmt::Display,
    {
        let text = self.text()?;
        match text.parse::<N>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.error(format!("must be a number from {} to {}, not {text}", range.start(), range.end()))),
        }
    }

    fn below(&self, child: &Node, key: &str) -> Result<Option<Self>, TemplateError> {
        let path = match self.path.as_str() {
            "" | "Resources" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        let resolved = self.resolver.resolve(child);
        let node = resolved.map_err(|error| error.under(&path))?;
        Ok(node.map(|node| Self { node, path, resolver: self.resolver }))
    }

    fn unexpected(&self, wanted: &str) -> TemplateError {
        self.error(format!("must be {wanted}, not {}", self.node.kind()))
    }
}
