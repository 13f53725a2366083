use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A node of a YAML or JSON document. Unlike `serde_json::Value`, it keeps the order of members.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Null,
    Boolean(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Parses JSON. Returns `None` for a text that is not JSON.
    #[must_use]
    pub fn json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    #[must_use]
    pub fn map<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Map(members.into_iter().map(|(name, node)| (name.to_owned(), node)).collect())
    }

    #[must_use]
    pub fn reference(kind: &str, name: &str) -> Self {
        Self::map([("$ref", format!("#/components/{kind}/{name}").into())])
    }

    /// Returns the schema of a text that is one of these names.
    #[must_use]
    pub fn one_of(names: &[&str]) -> Self {
        let names = names.iter().map(|name| Self::from(*name)).collect();
        Self::map([("type", "string".into()), ("enum", Self::List(names))])
    }

    #[must_use]
    pub fn choice(choices: Vec<Self>) -> Self {
        Self::map([("oneOf", Self::List(choices))])
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members.iter().find(|(known, _)| known == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Adds a member, or replaces it.
    #[must_use]
    pub fn with(mut self, name: &str, node: Self) -> Self {
        if let Self::Map(members) = &mut self {
            members.retain(|(known, _)| known != name);
            members.push((name.to_owned(), node));
        }
        self
    }

    /// Adds a description, unless it is empty.
    #[must_use]
    pub fn about(self, doc: &str) -> Self {
        if doc.is_empty() { self } else { self.with("description", paragraphs(doc).into()) }
    }

    #[must_use]
    pub fn with_examples(self, examples: &[&str]) -> Self {
        let examples: Vec<Self> = examples.iter().filter_map(|json| Self::json(json)).collect();
        if examples.is_empty() { self } else { self.with("examples", Self::List(examples)) }
    }

    /// Returns the schema that also permits `null`.
    #[must_use]
    pub fn or_null(self) -> Self {
        let null = || Self::map([("type", "null".into())]);
        match self.get("type").cloned() {
            Some(kind @ Self::Text(_)) => {
                let names = self.get("enum").cloned();
                let Self::Map(members) = self else { return null() };
                let kind = Self::List(vec![kind, "null".into()]);
                let members = members.into_iter().map(|(name, node)| {
                    let node = if name == "type" { kind.clone() } else { node };
                    (name, node)
                });
                let node = Self::Map(members.collect());
                match names {
                    Some(Self::List(mut names)) => {
                        names.push(Self::Null);
                        node.with("enum", Self::List(names))
                    }
                    _ => node,
                }
            }
            _ => match self {
                Self::Map(members) if members.iter().any(|(name, _)| name == "oneOf") => {
                    let members = members.into_iter().map(|(name, node)| match node {
                        Self::List(mut choices) if name == "oneOf" => {
                            choices.push(null());
                            (name, Self::List(choices))
                        }
                        node => (name, node),
                    });
                    Self::Map(members.collect())
                }
                schema => Self::choice(vec![schema, null()]),
            },
        }
    }
}

/// Joins the lines of each paragraph, and keeps lists and empty lines.
pub fn paragraphs(doc: &str) -> String {
    let mut text = String::new();
    for line in doc.trim().lines() {
        let is_item = line.starts_with("- ") || line.starts_with("| ");
        if line.is_empty() {
            text.push('\n');
        } else if text.is_empty() || text.ends_with('\n') {
            text += line;
        } else if is_item {
            text.push('\n');
            text += line;
        } else {
            text.push(' ');
            text += line.trim_start();
        }
        if line.is_empty() {
            text.push('\n');
        }
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

macro_rules! number {
    ($($number:ty)*) => {
        $(impl From<$number> for Node {
            fn from(number: $number) -> Self {
                Self::Number(number.into())
            }
        })*
    };
}

number! { u8 u16 u32 u64 usize i32 i64 }

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(elements) => serializer.collect_seq(elements),
            Self::Map(members) => serializer.collect_map(members.iter().map(|(name, node)| (name, node))),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Boolean(value))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
                Ok(number.into())
            }

            fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
                Ok(number.into())
            }

            fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
                Ok(serde_json::Number::from_f64(number).map_or(Node::Null, Node::Number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(text.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = elements.next_element()? {
                    list.push(element);
                }
                Ok(Node::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
                let mut map = Vec::new();
                while let Some(member) = members.next_entry()? {
                    map.push(member);
                }
                Ok(Node::Map(map))
            }
        }

        deserializer.deserialize_any(Any)
    }
}
