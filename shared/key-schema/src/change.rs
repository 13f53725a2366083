//! Typed updates that cannot leave an index key stale.
//!
//! A field that no key depends on has a method on [`Change`]. A field of an index key has none.
//! Other crates change it only by giving the whole index entry ([`IndexEntry`], a struct with every
//! part of the key). [`Change::enter`] writes the entry's fields and its key together. A forgotten
//! part is a missing struct field, and setting the field alone is a missing method. Neither
//! compiles (`tests/compile_fail`).

use std::marker::PhantomData;

use serde::Serialize;
use serde_dynamo::AttributeValue;

use crate::expression::{Step, number, value};
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::{Index, IndexKey};

/// An item's key in an index, with the fields that make it up.
pub trait IndexEntry {
    /// The entity that has this entry.
    type Entity: Entity;

    /// Returns the key in the index.
    ///
    /// # Errors
    /// [`EncodeError::Key`] when a part makes it too long.
    fn index_key(&self) -> Result<IndexKey, EncodeError>;

    /// Returns the fields of the entity that the key depends on and that this entry may change.
    ///
    /// # Errors
    /// [`EncodeError::Value`].
    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError>;
}

/// Changes to one item of an entity.
#[derive(Debug, Clone)]
pub struct Change<E> {
    steps: Vec<Step>,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity> Change<E> {
    /// Creates a change that clients see. It moves `version`, `rev` and `updated_at`.
    #[must_use]
    pub fn visible(at: Instant) -> Self {
        let steps = vec![
            Step::Set("updated_at", AttributeValue::S(at.to_string())),
            Step::Add("version", 1),
            Step::Add("rev", 1),
        ];
        Self { steps, entity: PhantomData }
    }

    /// Creates a change of copied or counted values. It moves only `rev`, so that no editor's
    /// If-Match breaks.
    #[must_use]
    pub fn copied() -> Self {
        Self { steps: vec![Step::Add("rev", 1)], entity: PhantomData }
    }

    /// Makes the update create the item when it is missing.
    #[must_use]
    pub fn or_create(mut self, born: &Born, at: Instant) -> Self {
        self.steps.push(Step::SetIfMissing("entity", AttributeValue::S(E::NAME.into())));
        self.steps.push(Step::SetIfMissing("born", AttributeValue::S(born.to_string())));
        self.steps.push(Step::SetIfMissing("created_at", AttributeValue::S(at.to_string())));
        self
    }

    /// Begins another incarnation of the same key. `born` and `created_at` are new, while `version`
    /// and `rev` continue.
    #[must_use]
    pub(crate) fn reborn(mut self, born: &Born, at: Instant) -> Self {
        self.steps.push(Step::Set("born", AttributeValue::S(born.to_string())));
        self.steps.push(Step::Set("created_at", AttributeValue::S(at.to_string())));
        self
    }

    /// Sets the item's key in an index, and the fields that make it up.
    ///
    /// # Errors
    /// [`EncodeError`] when the key is too long.
    pub fn enter(mut self, entry: &impl IndexEntry<Entity = E>) -> Result<Self, EncodeError> {
        let key = entry.index_key()?;
        self.steps.push(Step::Set(key.index.partition_attribute(), AttributeValue::S(key.partition.into_string())));
        self.steps.push(Step::Set(key.index.sort_attribute(), AttributeValue::S(key.sort.into_string())));
        for (name, value) in entry.fields()? {
            self = self.set_value(name, value);
        }
        Ok(self)
    }

    /// Removes the item from an index.
    #[must_use]
    pub(crate) fn leave(mut self, index: Index) -> Self {
        self.steps.push(Step::Remove(index.partition_attribute()));
        self.steps.push(Step::Remove(index.sort_attribute()));
        self
    }

    /// Returns the steps of the update expression. The last set or removal of an attribute replaces
    /// the earlier ones.
    #[must_use]
    pub fn into_steps(self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::with_capacity(self.steps.len());
        for step in self.steps {
            if let Step::Set(name, _) | Step::Remove(name) = &step {
                steps.retain(|earlier| !matches!(earlier, Step::Set(known, _) | Step::Remove(known) if known == name));
            }
            steps.push(step);
        }
        steps
    }

    pub(crate) fn set(self, name: &'static str, to: impl Serialize) -> Result<Self, EncodeError> {
        let to = value(to)?;
        Ok(self.set_value(name, to))
    }

    fn set_value(mut self, name: &'static str, to: AttributeValue) -> Self {
        // An absent option is an absent attribute, as in an item that is written as a whole.
        self.steps.push(if matches!(to, AttributeValue::Null(_)) { Step::Remove(name) } else { Step::Set(name, to) });
        self
    }

    pub(crate) fn set_entry(mut self, map: &'static str, entry: &str, to: impl Serialize) -> Result<Self, EncodeError> {
        self.steps.push(Step::SetEntry(map, entry.to_owned(), value(to)?));
        Ok(self)
    }

    pub(crate) fn remove_entry(mut self, map: &'static str, entry: &str) -> Self {
        self.steps.push(Step::RemoveEntry(map, entry.to_owned()));
        self
    }

    pub(crate) fn add(mut self, name: &'static str, amount: i64) -> Self {
        self.steps.push(Step::Add(name, amount));
        self
    }

    /// Adds to the attribute of this name, which is data such as a currency.
    pub(crate) fn add_named(mut self, name: &str, amount: i64) -> Self {
        self.steps.push(Step::AddNamed(name.to_owned(), amount));
        self
    }

    pub(crate) fn include(mut self, set: &'static str, member: &str) -> Self {
        self.steps.push(Step::Include(set, member.to_owned()));
        self
    }

    pub(crate) fn exclude(mut self, set: &'static str, member: &str) -> Self {
        self.steps.push(Step::Exclude(set, member.to_owned()));
        self
    }

    pub(crate) fn expire_at(mut self, at: Instant) -> Self {
        self.steps.push(Step::Set("ttl", number(at.as_seconds())));
        self
    }
}

/// Declares an entity: its struct, its name in the table, and a [`Change`] method for each
/// `mutable` field.
///
/// A `fixed` field has no such method. It changes only with an [`IndexEntry`], through
/// functions of this crate, or never.
macro_rules! entity {
    (
        $(#[$doc:meta])*
        $name:ident = $stored:literal {
            fixed { $($(#[$fixed_meta:meta])* $fixed:ident: $fixed_type:ty,)* }
            mutable { $($(#[$mutable_meta:meta])* $mutable:ident: $mutable_type:ty,)* }
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$fixed_meta])* pub $fixed: $fixed_type,)*
            $($(#[$mutable_meta])* pub $mutable: $mutable_type,)*
        }

        const _: () = $crate::item::assert_not_reserved(&[$(stringify!($fixed),)* $(stringify!($mutable),)*]);

        impl $name {
            /// The value of the attribute `entity`.
            pub const ENTITY: &'static str = $stored;
        }

        impl $crate::change::Change<$name> {
            $(
                #[doc = concat!("Sets `", stringify!($mutable), "`.")]
                ///
                /// # Errors
                /// [`EncodeError`](crate::item::EncodeError) when the value has no DynamoDB form.
                pub fn $mutable(self, to: &$mutable_type) -> Result<Self, $crate::item::EncodeError> {
                    self.set(stringify!($mutable), to)
                }
            )*
        }
    };
}
pub(crate) use entity;
