//! Stored items: the attributes that every item of the table has, and the decoder for items from
//! reads and from the stream.

use std::collections::HashMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_dynamo::AttributeValue;
pub use serde_dynamo::Item;

use crate::id::Born;
use crate::instant::Instant;
use crate::key::{Index, IndexKey, Key, KeyError, is_index_attribute, logged, shown};

/// The names of attributes that belong to the model. If a field of an entity has one of these
/// names, the entity does not compile (see [`assert_not_reserved`]).
pub const RESERVED: [&str; 10] =
    ["PK", "SK", "entity", "version", "rev", "born", "created_at", "updated_at", "ttl", CAUSE];

/// The attribute with the id of the request that last wrote the item. With this id operators find
/// the log lines of that request and of its effects.
///
/// No entity has this attribute, so readers of entities do not see it. It changes only together
/// with other attributes, and never causes a write of its own.
pub const CAUSE: &str = "req";

/// The value of [`CAUSE`] in an item that an operator imported. It tells consumers of the stream
/// that the item is not new.
pub const IMPORTED: &str = "ops-import";

/// Returns whether an attribute belongs to the model: a [`RESERVED`] attribute, or a key attribute
/// of an index.
#[must_use]
pub fn is_reserved(attribute: &str) -> bool {
    is_index_attribute(attribute) || RESERVED.contains(&attribute)
}

/// Fails the build when an entity's field has the name of an attribute of the model.
// Constant evaluation has no iterators, so the loops split the slices.
#[allow(clippy::indexing_slicing)]
pub const fn assert_not_reserved(fields: &[&str]) {
    let mut fields = fields;
    while let [field, other_fields @ ..] = fields {
        assert!(!is_index_attribute(field), "a field has the name of an index's key attribute");
        let mut names: &[&str] = &RESERVED;
        while let [name, other_names @ ..] = names {
            assert!(!same(field.as_bytes(), name.as_bytes()), "a field has the name of a reserved attribute");
            names = other_names;
        }
        fields = other_fields;
    }
}

#[allow(clippy::indexing_slicing)]
const fn same(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([first, a_rest @ ..], [second, b_rest @ ..]) = (a, b) {
        if *first != *second {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    a.is_empty() && b.is_empty()
}

/// The attributes that every item has in addition to the entity's own fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The number of changes that clients see, from 1. It is the ETag.
    #[serde(deserialize_with = "counted")]
    pub version: u64,
    /// The number of writes, from 1, including writes that leave `version` unchanged. It orders the
    /// states of copies and search documents. The `rev` of a key with copies or search documents
    /// never restarts.
    #[serde(deserialize_with = "counted")]
    pub rev: u64,
    /// The time-ordered id that the item gets at its creation. If the item is deleted and created
    /// again under the same key, the new item is another incarnation with another `born`.
    pub born: Born,
    /// The creation time of this incarnation.
    pub created_at: Instant,
    /// The time of the last change that clients see.
    pub updated_at: Instant,
}

/// The names of the attributes of [`Meta`].
const META: [&str; 5] = ["version", "rev", "born", "created_at", "updated_at"];

/// The maximum `version` and `rev` of an item. The search engine's versions are signed 64-bit
/// numbers. The engine would refuse a whole bulk request because of one document with a larger
/// version.
pub const MAX_COUNT: u64 = i64::MAX.unsigned_abs();

fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let count = u64::deserialize(deserializer)?;
    if count > MAX_COUNT { Err(D::Error::custom(format!("{count} is above {MAX_COUNT}"))) } else { Ok(count) }
}

impl Meta {
    /// Creates the attributes of a new item, at version 1.
    #[must_use]
    pub const fn new(born: Born, at: Instant) -> Self {
        Self { version: 1, rev: 1, born, created_at: at, updated_at: at }
    }
}

/// A kind of item. Its keys depend only on its fields and its [`Meta`], so a write of the whole
/// item always writes the right keys.
pub trait Entity: Serialize + DeserializeOwned {
    /// The value of the attribute `entity`.
    const NAME: &'static str;

    fn key(&self) -> Result<Key, KeyError>;

    /// Returns the item's keys in the indexes. An item that does not qualify for a sparse index has
    /// no key there.
    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        let _ = meta;
        Ok(Vec::new())
    }

    /// Returns the time of expiry. From then on readers hide the item, and DynamoDB may remove it.
    fn expires(&self) -> Option<Instant> {
        None
    }

    /// Returns whether the item has expired at `now`, even if DynamoDB has not removed it yet.
    fn is_expired(&self, now: Instant) -> bool {
        self.expires().is_some_and(|at| at <= now)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// The common attributes.
    pub meta: Meta,
    pub data: T,
}

impl<T> std::ops::Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The attribute `entity` is missing or not a string.
    #[error("the item has no entity attribute")]
    NoEntity,
    #[error("the item is a {found}, not a {expected}")]
    OtherEntity {
        expected: &'static str,
        /// The entity of the item.
        found: String,
    },
    /// The schema has no entity of that name.
    #[error("unknown entity {0}")]
    UnknownEntity(String),
    /// An attribute is missing or has a wrong type.
    #[error("malformed {entity} {key}: {why}")]
    Malformed {
        entity: String,
        /// The item's key, as [`shown`] returns it.
        key: String,
        /// The path of the attribute, the type of its value and the fault, without the value.
        why: String,
        /// The item's key as [`logged`] returns it, and `why` without names that are data, such as names
        /// that a client chose.
        logged: String,
    },
}

impl DecodeError {
    #[must_use]
    pub fn malformed(entity: &str, item: &Item, why: &str) -> Self {
        Self::at(entity, item, [why, why])
    }

    fn at(entity: &str, item: &Item, [why, without_data]: [&str; 2]) -> Self {
        let [key, logged] = match key_of(item) {
            Some(key) => [shown(&key), logged(&key)],
            None => ["without a key", "without a key"].map(str::to_owned),
        };
        let logged = format!("{logged}: {without_data}");
        Self::Malformed { entity: entity.to_owned(), key, why: why.to_owned(), logged }
    }

    /// Returns the message for a function's log, which must not identify a person.
    #[must_use]
    pub fn for_log(&self) -> String {
        match self {
            Self::Malformed { entity, logged, .. } => format!("malformed {entity} {logged}"),
            other => other.to_string(),
        }
    }
}

/// Returns the fault of an unreadable item: the attribute, such as `price.amount`, the type of its
/// value, and the message of Serde without the value. `fault` decodes an item and returns that message.
/// The second text has `*` for each name that is data.
///
/// A value has the fault if an item with only that value has it, and an item with an empty map or
/// list in its place has not. So a program needs no second decoder of each entity that records paths.
fn why(item: &Item, fault: &dyn Fn(Item) -> Option<String>) -> [String; 2] {
    let Some(error) = fault(item.clone()) else { return ["it cannot be read", "it cannot be read"].map(str::to_owned) };
    let fault_of = |path: &[Step], value: AttributeValue| match nested(path, value) {
        AttributeValue::M(map) => fault(Item::from(map)),
        _ => None,
    };
    let faulty = |path: &[Step], value: AttributeValue| fault_of(path, value).as_ref() == Some(&error);
    let whole = AttributeValue::M(item.clone().into_inner());
    let (mut path, mut value) = (Vec::new(), &whole);
    loop {
        let (empty, children): (_, Vec<(Step, &AttributeValue)>) = match value {
            AttributeValue::M(map) => {
                (AttributeValue::M(HashMap::new()), map.iter().map(|(name, value)| (Step::Name(name), value)).collect())
            }
            AttributeValue::L(list) => (
                AttributeValue::L(Vec::new()),
                list.iter().enumerate().map(|(at, value)| (Step::At(at), value)).collect(),
            ),
            _ => break,
        };
        if faulty(&path, empty) {
            break;
        }
        let found = children.into_iter().find(|(step, child)| {
            path.push(*step);
            let is_faulty = faulty(&path, (*child).clone());
            path.pop();
            is_faulty
        });
        let Some((step, child)) = found else { break };
        path.push(step);
        value = child;
    }
    // An entry of a map has the same fault under the empty name. A field of that name is unknown, and
    // the field itself is missing. No field and no id has that name.
    let is_field = |at: usize| {
        let mut renamed = path.clone();
        if let Some(step) = renamed.get_mut(at) {
            *step = Step::Name("");
        }
        fault_of(&renamed, value.clone()).is_none_or(|found| {
            found != error && ["unknown field ``", "missing field `"].iter().any(|start| found.starts_with(start))
        })
    };
    let logged = path.iter().enumerate().map(|(at, step)| match step {
        // The attributes of an item come from the schema.
        Step::Name(_) if at > 0 && !is_field(at) => Step::Name("*"),
        step => *step,
    });
    let (logged, message) = (logged.collect::<Vec<_>>(), without_value(&error));
    if path.is_empty() {
        return [message.clone(), message];
    }
    [&path, &logged].map(|path| format!("{} is {}: {message}", shown_path(path), type_name(value)))
}

/// A step from a map to a value, or from a list to an element.
#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    At(usize),
}

/// Returns maps and lists that have the value at the path, and nothing else.
fn nested(path: &[Step], value: AttributeValue) -> AttributeValue {
    path.iter().rev().fold(value, |value, step| match step {
        Step::Name(name) => AttributeValue::M(HashMap::from([((*name).to_owned(), value)])),
        Step::At(_) => AttributeValue::L(vec![value]),
    })
}

fn shown_path(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::At(at) => text.push_str(&format!("[{at}]")),
            Step::Name(name) if text.is_empty() => text.push_str(name),
            Step::Name(name) => text.push_str(&format!(".{name}")),
        }
    }
    text
}

const fn type_name(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "a string",
        AttributeValue::N(_) => "a number",
        AttributeValue::B(_) => "binary",
        AttributeValue::Bool(_) => "a boolean",
        AttributeValue::Null(_) => "null",
        AttributeValue::M(_) => "a map",
        AttributeValue::L(_) => "a list",
        AttributeValue::Ss(_) => "a set of strings",
        AttributeValue::Ns(_) => "a set of numbers",
        AttributeValue::Bs(_) => "a set of binary values",
    }
}

/// Removes the value from an error message of Serde.
///
/// `invalid type: string "x", expected u64` becomes `invalid type, expected u64`. A message without
/// `, expected`, such as one about a malformed number, is cut before its first quote. The name of a
/// missing field comes from the type, so it stays.
fn without_value(text: &str) -> String {
    if let Some(name) = text.strip_prefix("missing field `") {
        return format!("{} is missing", name.trim_end_matches('`'));
    }
    match text.rsplit_once(", expected ") {
        Some((found, expected)) => {
            let kind = found.split([':', '`']).next().unwrap_or_default().trim_end();
            format!("{kind}, expected {expected}")
        }
        None => text.split(['"', '\'', '`']).next().unwrap_or_default().trim_end().to_owned(),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("a value cannot be stored: {0}")]
    Value(#[from] serde_dynamo::Error),
    /// The item is larger than DynamoDB's limit of 400 KB.
    #[error("an item of {0} bytes is larger than DynamoDB's limit of 409600")]
    TooLarge(usize),
    /// A number does not fit into the type of its attribute.
    #[error("a number is too large to be stored")]
    Overflow,
}

/// DynamoDB's limit of an item's size, attribute names included.
pub const MAX_ITEM_BYTES: usize = 400 * 1024;

impl<T: Entity> Stored<T> {
    /// Creates a new item at version 1.
    #[must_use]
    pub const fn new(data: T, born: Born, at: Instant) -> Self {
        Self { meta: Meta::new(born, at), data }
    }

    /// Encodes the whole item: keys, index keys, common attributes and the entity's own attributes.
    ///
    /// # Errors
    /// [`EncodeError`] for a key over the limits, a value without a DynamoDB form, or an item over
    /// 400 KB.
    pub fn to_item(&self) -> Result<Item, EncodeError> {
        let mut item: Item = serde_dynamo::to_item(&self.data)?;
        let meta: Item = serde_dynamo::to_item(&self.meta)?;
        let attributes = item.inner_mut();
        attributes.extend(meta.into_inner());
        let key = self.data.key()?;
        attributes.insert("PK".into(), AttributeValue::S(key.pk.into_string()));
        attributes.insert("SK".into(), AttributeValue::S(key.sk.into_string()));
        for index_key in self.data.index_keys(&self.meta)? {
            attributes.insert(
                index_key.index.partition_attribute().into(),
                AttributeValue::S(index_key.partition.into_string()),
            );
            attributes.insert(index_key.index.sort_attribute().into(), AttributeValue::S(index_key.sort.into_string()));
        }
        if let Some(at) = self.data.expires() {
            attributes.insert("ttl".into(), AttributeValue::N(at.as_seconds().to_string()));
        }
        attributes.insert("entity".into(), AttributeValue::S(T::NAME.into()));
        let bytes = size(&item);
        if bytes > MAX_ITEM_BYTES { Err(EncodeError::TooLarge(bytes)) } else { Ok(item) }
    }
}

/// The result type of a read: a whole entity, a projection of an entity, or one of several
/// entities.
pub trait FromItem: Sized {
    fn from_item(item: Item) -> Result<Self, DecodeError>;
}

impl<T: Entity> FromItem for Stored<T> {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let found = entity_name(&item)?;
        if found != T::NAME {
            return Err(DecodeError::OtherEntity { expected: T::NAME, found: found.to_owned() });
        }
        // An item is decoded in two passes: the common attributes, then the entity's own. The second
        // pass ignores the attributes of the first.
        let meta = common(T::NAME, &item)?;
        let data = decode(T::NAME, item)?;
        Ok(Self { meta, data })
    }
}

fn common(entity: &str, item: &Item) -> Result<Meta, DecodeError> {
    let attributes = META.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    read(Item::from(attributes.collect::<HashMap<_, _>>()))
        .map_err(|_| malformed(entity, item, &|item| read::<Meta>(item).err().map(|error| error.to_string())))
}

/// An item of any entity, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw {
    pub entity: String,
    pub item: Item,
}

impl FromItem for Raw {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        Ok(Self { entity: entity_name(&item)?.to_owned(), item })
    }
}

pub fn entity_name(item: &Item) -> Result<&str, DecodeError> {
    match item.get("entity") {
        Some(AttributeValue::S(name)) => Ok(name),
        _ => Err(DecodeError::NoEntity),
    }
}

/// Decodes attributes into a type. The error names the entity, the key, the attribute and the type
/// of its value.
pub fn decode<T: DeserializeOwned>(entity: &str, item: Item) -> Result<T, DecodeError> {
    read(item.clone())
        .map_err(|_| malformed(entity, &item, &|item| read::<T>(item).err().map(|error| error.to_string())))
}

/// The only place that decodes `T`, so a program contains the decoder once.
#[inline(never)]
fn read<T: DeserializeOwned>(item: Item) -> Result<T, serde_dynamo::Error> {
    serde_dynamo::from_item(item)
}

fn malformed(entity: &str, item: &Item, fault: &dyn Fn(Item) -> Option<String>) -> DecodeError {
    let [why, logged] = why(item, fault);
    DecodeError::at(entity, item, [&why, &logged])
}

/// Returns the key of a stored or streamed item. Returns `None` when PK or SK is not a valid key.
pub fn key_of(item: &Item) -> Option<Key> {
    match (item.get("PK"), item.get("SK")) {
        (Some(AttributeValue::S(pk)), Some(AttributeValue::S(sk))) => {
            Some(Key { pk: crate::key::PartitionKey::new(pk).ok()?, sk: crate::key::SortKey::new(sk).ok()? })
        }
        _ => None,
    }
}

/// Returns the item's size as DynamoDB counts it for limits and capacity.
///
/// Names and texts count with their bytes of UTF-8. A number takes about one byte for two digits,
/// plus one byte. A list or map takes three bytes, and one byte in addition to the size of each
/// element. (Developer Guide, "DynamoDB item sizes and formats".)
#[must_use]
pub fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_size(value)).sum()
}

fn value_size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number_size(number),
        AttributeValue::B(bytes) => bytes.len(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
        AttributeValue::M(map) => 3 + map.iter().map(|(name, value)| name.len() + value_size(value) + 1).sum::<usize>(),
        AttributeValue::L(list) => 3 + list.iter().map(|value| value_size(value) + 1).sum::<usize>(),
        AttributeValue::Ss(set) => set.iter().map(String::len).sum(),
        AttributeValue::Ns(set) => set.iter().map(|number| number_size(number)).sum(),
        AttributeValue::Bs(set) => set.iter().map(Vec::len).sum(),
    }
}

fn number_size(number: &str) -> usize {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    digits.div_ceil(2) + 1 + usize::from(number.starts_with('-'))
}

/// Returns the size of the item's entry in an index, or `None` if the item is not in the index.
#[must_use]
pub fn index_entry_size(item: &Item, index: Index) -> Option<usize> {
    let keys = [index.partition_attribute(), index.sort_attribute()];
    if keys.iter().any(|key| item.get(*key).is_none()) {
        return None;
    }
    let of = |name: &str| item.get(name).map_or(0, |value| name.len() + value_size(value));
    Some(keys.iter().chain(["PK", "SK"].iter()).chain(index.projected()).map(|name| of(name)).sum())
}

/// An enum of several entities that may hold this one ([`one_of!`]).
pub trait MayBe<T>: Sized {
    /// Takes the item out of the slot, if it is of this entity.
    fn take_from(slot: &mut Option<Self>) -> Option<Stored<T>>;
}

/// Takes the first item of an entity out of the items that a BatchGet has found.
pub fn take<T, I: MayBe<T>>(found: &mut [Option<I>]) -> Option<Stored<T>> {
    found.iter_mut().find_map(I::take_from)
}

/// Declares an enum of the entities that a read may return, such as the entities of one item
/// collection. An item of another entity is an error. A program contains the decoders of these
/// entities only.
#[macro_export]
macro_rules! one_of {
    ($(#[$attribute:meta])* $visibility:vis enum $items:ident { $($name:ident)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)]
        $visibility enum $items {
            $($name($crate::item::Stored<$name>),)*
        }

        $(impl $crate::item::MayBe<$name> for $items {
            fn take_from(slot: &mut Option<Self>) -> Option<$crate::item::Stored<$name>> {
                match slot.take() {
                    Some(Self::$name(item)) => Some(item),
                    #[allow(unreachable_patterns, reason = "an enum may have one variant")]
                    other => {
                        *slot = other;
                        None
                    }
                }
            }
        })*

        impl $crate::item::FromItem for $items {
            fn from_item(item: $crate::item::Item) -> Result<Self, $crate::item::DecodeError> {
                let found = $crate::item::entity_name(&item)?;
                $(if found == <$name as $crate::item::Entity>::NAME {
                    return $crate::item::Stored::from_item(item).map(Self::$name);
                })*
                Err($crate::item::DecodeError::OtherEntity {
                    expected: stringify!($($name)|*),
                    found: found.to_owned(),
                })
            }
        }
    };
}

/// Declares that a struct is read from the items of an entity. The struct needs only some of the
/// attributes, such as the attributes that an index carries.
#[macro_export]
macro_rules! view {
    ($view:ident of $entity:ident) => {
        impl $crate::item::FromItem for $view {
            fn from_item(item: $crate::item::Item) -> Result<Self, $crate::item::DecodeError> {
                let expected = <$entity as $crate::item::Entity>::NAME;
                let found = $crate::item::entity_name(&item)?;
                if found != expected {
                    return Err($crate::item::DecodeError::OtherEntity { expected, found: found.to_owned() });
                }
                $crate::item::decode(expected, item)
            }
        }
    };
}
