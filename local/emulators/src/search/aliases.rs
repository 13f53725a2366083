use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::problem::Problem;

/// The indices of each alias: one or more.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Aliases(BTreeMap<String, BTreeSet<String>>);

impl Aliases {
    pub(super) fn contains(&self, alias: &str) -> bool {
        self.0.contains_key(alias)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns the indices of an alias, or no index if the alias does not exist.
    pub(super) fn indices(&self, alias: &str) -> impl Iterator<Item = &String> {
        self.0.get(alias).into_iter().flatten()
    }

    pub(super) fn add(&mut self, index: &str, alias: &str) {
        self.0.entry(alias.to_owned()).or_default().insert(index.to_owned());
    }

    /// Removes an alias from an index. An alias without an index no longer exists.
    pub(super) fn remove(&mut self, index: &str, alias: &str) -> Result<(), Problem> {
        let indices = self.0.get_mut(alias).ok_or_else(|| Problem::no_such_alias(alias))?;
        if !indices.remove(index) {
            return Err(Problem::no_such_alias(alias));
        }
        if indices.is_empty() {
            self.0.remove(alias);
        }
        Ok(())
    }

    pub(super) fn remove_index(&mut self, index: &str) {
        for indices in self.0.values_mut() {
            indices.remove(index);
        }
        self.0.retain(|_, indices| !indices.is_empty());
    }

    /// Returns the wanted aliases of an index, in the engine's form.
    pub(super) fn of_index(&self, index: &str, wanted: impl Fn(&str) -> bool) -> Value {
        let aliases = self.0.iter().filter(|(alias, indices)| indices.contains(index) && wanted(alias));
        Value::Object(aliases.map(|(alias, _)| (alias.clone(), json!({}))).collect())
    }
}

/// Names, and patterns that end in `*`, separated by commas.
#[derive(Debug)]
pub(super) struct Patterns<'a>(Vec<&'a str>);

impl<'a> Patterns<'a> {
    /// Parses an expression. A `*` is accepted only at the end.
    pub(super) fn parse(expression: &'a str) -> Result<Self, Problem> {
        let patterns: Vec<_> = expression.split(',').collect();
        if patterns.iter().any(|pattern| pattern.is_empty() || pattern.trim_end_matches('*').contains('*')) {
            return Err(Problem::illegal(format!("the expression [{expression}] is not supported")));
        }
        Ok(Self(patterns))
    }

    pub(super) fn match_name(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        })
    }

    pub(super) fn literals(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().copied().filter(|pattern| !pattern.ends_with('*'))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_alias_without_an_index_no_longer_exists() {
        let mut aliases = Aliases::default();
        aliases.add("a-v1", "a");
        aliases.add("a-v2", "a");
        aliases.remove("a-v1", "a").unwrap();
        assert_eq!(aliases.remove("a-v1", "a").unwrap_err().kind, "aliases_not_found_exception");
        assert!(aliases.contains("a"));
        aliases.remove_index("a-v2");
        assert_eq!(aliases, Aliases::default());
    }

    #[test]
    fn a_pattern_is_a_name_or_a_prefix() {
        let patterns = Patterns::parse("a-v*,b").unwrap();
        for (name, matches) in [("a-v1", true), ("a-v", true), ("a", false), ("b", true), ("b1", false)] {
            assert_eq!(patterns.match_name(name), matches, "{name}");
        }
        assert_eq!(patterns.literals().collect::<Vec<_>>(), ["b"]);
        assert!(Patterns::parse("a*b").is_err());
        assert!(Patterns::parse("a,,b").is_err());
    }
}
