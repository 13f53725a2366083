use serde_json::{Map, Value};

use super::problem::Problem;

/// An object that is being read. The caller reads keys one by one, and [`Strict::finish`] rejects
/// unread keys. Otherwise the emulator would ignore options that have an effect in OpenSearch.
pub(super) struct Strict<'a> {
    /// Name of the object, for error messages.
    what: &'a str,
    object: &'a Map<String, Value>,
    read_keys: Vec<&'static str>,
}

impl<'a> Strict<'a> {
    pub(super) fn new(what: &'a str, value: &'a Value) -> Result<Self, Problem> {
        let object = value.as_object().ok_or_else(|| Problem::parsing(format!("[{what}] must be an object")))?;
        Ok(Self { what, object, read_keys: Vec::new() })
    }

    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.read_keys.push(key);
        self.object.get(key)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, Problem> {
        self.read(key, "a string", Value::as_str)
    }

    pub(super) fn number(&mut self, key: &'static str) -> Result<Option<u64>, Problem> {
        self.read(key, "a whole number that is not negative", Value::as_u64)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, Problem> {
        self.read(key, "a boolean", Value::as_bool)
    }

    pub(super) fn list(&mut self, key: &'static str) -> Result<Option<&'a Vec<Value>>, Problem> {
        self.read(key, "an array", Value::as_array)
    }

    pub(super) fn required_text(&mut self, key: &'static str) -> Result<&'a str, Problem> {
        self.text(key)?.ok_or_else(|| Problem::parsing(format!("[{}] requires [{key}]", self.what)))
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        as_type: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let what = self.what;
        self.value(key)
            .map(|value| as_type(value).ok_or_else(|| Problem::parsing(format!("[{what}] [{key}] must be {expected}"))))
            .transpose()
    }

    /// Rejects the object if it has an unread key.
    pub(super) fn finish(self) -> Result<(), Problem> {
        match self.object.keys().find(|key| !self.read_keys.contains(&key.as_str())) {
            Some(key) => Err(Problem::parsing(format!("[{}] does not support [{key}]", self.what))),
            None => Ok(()),
        }
    }
}

pub(super) fn only_entry<'a>(what: &str, value: &'a Value) -> Result<(&'a str, &'a Value), Problem> {
    let mut entries = value.as_object().into_iter().flatten();
    match (entries.next(), entries.next()) {
        (Some((key, value)), None) => Ok((key, value)),
        _ => Err(Problem::parsing(format!("[{what}] must be an object with one key"))),
    }
}

pub(super) fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        value => std::slice::from_ref(value),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn the_error_names_an_unread_key() {
        let value = json!({"size": 1, "explain": true});
        let mut object = Strict::new("search", &value).unwrap();
        assert_eq!(object.number("size").unwrap(), Some(1));
        assert_eq!(object.finish().unwrap_err().reason, "[search] does not support [explain]");
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let value = json!({"size": -1});
        assert!(Strict::new("search", &value).unwrap().number("size").is_err());
        assert!(only_entry("query", &json!({"a": 1, "b": 2})).is_err());
        assert!(only_entry("query", &json!({})).is_err());
    }
}
