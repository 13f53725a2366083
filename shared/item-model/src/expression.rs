//! Conditions and updates as data, and their text in DynamoDB's expression language.
//!
//! Attribute names and values are always placeholders. So neither a reserved word nor input from a
//! client can change the meaning of an expression.

use serde::Serialize;
use serde_dynamo::AttributeValue;

use crate::instant::Instant;
use crate::item::{EncodeError, Meta};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expression {
    pub text: String,
    /// `#0` → attribute name.
    pub names: Vec<(String, String)>,
    /// `:0` → value.
    pub values: Vec<(String, AttributeValue)>,
}

#[derive(Debug, Default)]
pub struct Placeholders {
    names: Vec<(String, String)>,
    values: Vec<(String, AttributeValue)>,
}

impl Placeholders {
    /// Returns the placeholder of an attribute name. The same name always has the same placeholder.
    pub fn name(&mut self, name: &str) -> String {
        if let Some((placeholder, _)) = self.names.iter().find(|(_, known)| known == name) {
            return placeholder.clone();
        }
        let placeholder = format!("#{}", self.names.len());
        self.names.push((placeholder.clone(), name.to_owned()));
        placeholder
    }

    pub fn value(&mut self, value: AttributeValue) -> String {
        let placeholder = format!(":{}", self.values.len());
        self.values.push((placeholder.clone(), value));
        placeholder
    }

    #[must_use]
    #[allow(clippy::type_complexity)]
    pub fn finish(self) -> (Vec<(String, String)>, Vec<(String, AttributeValue)>) {
        (self.names, self.values)
    }
}

pub fn value<T: Serialize>(value: T) -> Result<AttributeValue, serde_dynamo::Error> {
    serde_dynamo::to_attribute_value(value)
}

#[must_use]
pub fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Returns the lower bound for conditions on `expires_at`: an item has not expired at `now` if its
/// `expires_at` is at least this value. An item that expires exactly at `now` has expired.
///
/// Conditions compare `expires_at`, not the time to live. Readers hide items by `expires_at` too
/// ([`crate::item::Entity::is_expired`]). The time to live has only whole seconds, so it could give
/// another result.
#[must_use]
pub fn first_alive(now: Instant) -> AttributeValue {
    AttributeValue::S(now.plus_millis(1).to_string())
}

#[derive(Debug, Clone, PartialEq)]
pub enum Compare {
    /// The attribute does not exist.
    Lacks,
    Is(AttributeValue),
    AtLeast(AttributeValue),
    Below(AttributeValue),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    Exists,
    NotExists,
    Has(&'static str),
    Lacks(&'static str),
    Is(&'static str, AttributeValue),
    /// The attribute has another value or is absent. Add [`Condition::Exists`] if the item must
    /// exist.
    IsNot(&'static str, AttributeValue),
    AtLeast(&'static str, AttributeValue),
    Below(&'static str, AttributeValue),
    /// The comparison holds for an attribute whose name comes from data.
    Named(String, Compare),
    HasEntry(&'static str, String),
    /// The map or set attribute has fewer entries than this number. False if the attribute is
    /// absent.
    FewerEntries(&'static str, usize),
    /// The set attribute has this member. False if the attribute is absent.
    Contains(&'static str, AttributeValue),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Condition {
    /// Requires that the item has the version that the client named.
    #[must_use]
    pub fn version(version: u64) -> Self {
        Self::Is("version", number(version))
    }

    /// Requires that the item has the same `version` and the same `born` as when it was read. An
    /// item that was deleted and created again has another `born`, but may have the same `version`.
    pub fn unchanged(read: &Meta) -> Result<Self, EncodeError> {
        Ok(Self::version(read.version).and(Self::Is("born", value(&read.born)?)))
    }

    /// Requires that a counter is below a limit. An absent counter is zero.
    #[must_use]
    pub fn count_below(name: &'static str, limit: u64) -> Self {
        Self::Lacks(name).or(Self::Below(name, number(limit)))
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::All(mut all) => {
                all.push(other);
                Self::All(all)
            }
            one => Self::All(vec![one, other]),
        }
    }

    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Any(mut any) => {
                any.push(other);
                Self::Any(any)
            }
            one => Self::Any(vec![one, other]),
        }
    }

    pub fn render(&self, with: &mut Placeholders) -> String {
        let mut compare = |name: &str, operator: &str, value: &AttributeValue| {
            let name = with.name(name);
            format!("{name} {operator} {}", with.value(value.clone()))
        };
        match self {
            Self::Exists => format!("attribute_exists({})", with.name("PK")),
            Self::NotExists => format!("attribute_not_exists({})", with.name("PK")),
            Self::Has(name) => format!("attribute_exists({})", with.name(name)),
            Self::Lacks(name) => format!("attribute_not_exists({})", with.name(name)),
            Self::Is(name, value) => compare(name, "=", value),
            Self::IsNot(name, value) => compare(name, "<>", value),
            Self::AtLeast(name, value) => compare(name, ">=", value),
            Self::Below(name, value) => compare(name, "<", value),
            Self::Named(name, Compare::Lacks) => format!("attribute_not_exists({})", with.name(name)),
            Self::Named(name, Compare::Is(value)) => compare(name, "=", value),
            Self::Named(name, Compare::AtLeast(value)) => compare(name, ">=", value),
            Self::Named(name, Compare::Below(value)) => compare(name, "<", value),
            Self::HasEntry(map, entry) => format!("attribute_exists({}.{})", with.name(map), with.name(entry)),
            Self::FewerEntries(map, limit) => format!("size({}) < {}", with.name(map), with.value(number(limit))),
            Self::Contains(set, member) => format!("contains({}, {})", with.name(set), with.value(member.clone())),
            Self::All(parts) => Self::join(parts, " AND ", with),
            Self::Any(parts) => Self::join(parts, " OR ", with),
        }
    }

    fn join(parts: &[Self], operator: &str, with: &mut Placeholders) -> String {
        let parts: Vec<String> = parts.iter().map(|part| part.render(with)).collect();
        format!("({})", parts.join(operator))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Set(&'static str, AttributeValue),
    /// Give the attribute this value unless the attribute already exists.
    SetIfMissing(&'static str, AttributeValue),
    SetEntry(&'static str, String, AttributeValue),
    Remove(&'static str),
    RemoveEntry(&'static str, String),
    /// Add to a number. A missing number counts as 0.
    Add(&'static str, i64),
    /// Add to a number in an attribute whose name comes from data. A missing number counts as 0.
    AddNamed(String, i64),
    /// Add the text to the set of strings. A missing set counts as empty.
    Include(&'static str, String),
    /// Remove the text from the set of strings. If the set becomes empty, DynamoDB removes the
    /// attribute.
    Exclude(&'static str, String),
}

pub fn render_update(steps: &[Step], with: &mut Placeholders) -> String {
    let (mut set, mut remove, mut add, mut delete) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Set(name, value) => {
                let name = with.name(name);
                set.push(format!("{name} = {}", with.value(value.clone())));
            }
            Step::SetIfMissing(name, value) => {
                let name = with.name(name);
                set.push(format!("{name} = if_not_exists({name}, {})", with.value(value.clone())));
            }
            Step::SetEntry(map, entry, value) => {
                let path = format!("{}.{}", with.name(map), with.name(entry));
                set.push(format!("{path} = {}", with.value(value.clone())));
            }
            Step::Remove(name) => remove.push(with.name(name)),
            Step::RemoveEntry(map, entry) => remove.push(format!("{}.{}", with.name(map), with.name(entry))),
            Step::Add(name, amount) => {
                let name = with.name(name);
                add.push(format!("{name} {}", with.value(number(amount))));
            }
            Step::AddNamed(name, amount) => {
                let name = with.name(name);
                add.push(format!("{name} {}", with.value(number(amount))));
            }
            Step::Include(set, member) => {
                let name = with.name(set);
                add.push(format!("{name} {}", with.value(AttributeValue::Ss(vec![member.clone()]))));
            }
            Step::Exclude(set, member) => {
                let name = with.name(set);
                delete.push(format!("{name} {}", with.value(AttributeValue::Ss(vec![member.clone()]))));
            }
        }
    }
    [("SET", set), ("REMOVE", remove), ("ADD", add), ("DELETE", delete)]
        .into_iter()
        .filter(|(_, clauses)| !clauses.is_empty())
        .map(|(word, clauses)| format!("{word} {}", clauses.join(", ")))
        .collect::<Vec<_>>()
        .join(" ")
}
