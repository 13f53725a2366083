//! Typed updates that cannot leave an outdated index key.
//!
//! A `mutable` field on which no key depends has a method on [`Change`]. A field of an index key
//! has no method of its own. It changes only together with the index entry ([`IndexEntry`], a
//! struct with every part of the key). [`Change::enter`] writes the entry's fields and its key
//! together. Code that forgets a part of the key, or that sets a field of the key alone, does not
//! compile. The documentation of `key_schema` has an example of each.

use std::marker::PhantomData;

use serde_dynamo::AttributeValue;

use crate::expression::Step;
use crate::id::Born;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity};
use crate::key::IndexKey;

/// An item's key in an index, with the fields that make it up.
pub trait IndexEntry {
    type Entity: Entity;

    fn index_key(&self) -> Result<IndexKey, EncodeError>;

    /// Returns the fields that the key depends on and that this entry may change.
    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError>;
}

#[derive(Debug, Clone)]
pub struct Change<E> {
    pub(crate) steps: Vec<Step>,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity> Change<E> {
    /// Creates a change that clients see. It updates `version`, `rev` and `updated_at`.
    #[must_use]
    pub fn visible(at: Instant) -> Self {
        let steps = vec![
            Step::Set("updated_at", AttributeValue::S(at.to_string())),
            Step::Add("version", 1),
            Step::Add("rev", 1),
        ];
        Self { steps, entity: PhantomData }
    }

    /// Creates a change of copied or counted values. It updates `rev` but not `version`, which
    /// If-Match compares. So an editor's If-Match still matches.
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

    /// Sets the item's key in an index, and the fields that the key depends on.
    pub fn enter(mut self, entry: &impl IndexEntry<Entity = E>) -> Result<Self, EncodeError> {
        let key = entry.index_key()?;
        self.steps.push(Step::Set(key.index.partition_attribute(), AttributeValue::S(key.partition.into_string())));
        self.steps.push(Step::Set(key.index.sort_attribute(), AttributeValue::S(key.sort.into_string())));
        for (name, value) in entry.fields()? {
            self = self.set_value(name, value);
        }
        Ok(self)
    }

    /// Returns the steps of the update expression. The last set or removal of an attribute replaces
    /// the earlier sets and removals of that attribute.
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

    pub(crate) fn set_value(mut self, name: &'static str, to: AttributeValue) -> Self {
        // A `None` removes the attribute. A put of the whole item would not store the attribute
        // either.
        self.steps.push(if matches!(to, AttributeValue::Null(_)) { Step::Remove(name) } else { Step::Set(name, to) });
        self
    }
}

/// Declares an entity: its struct, its name in the table, and a [`Change`] method for each
/// `mutable` field.
///
/// The methods are in the trait that `by` names. A `fixed` field has no method. Only an
/// [`IndexEntry`] or a function of the schema crate can change it.
#[macro_export]
macro_rules! entity {
    (
        $(#[$doc:meta])*
        $name:ident = $stored:literal {
            fixed { $($(#[$fixed_meta:meta])* $fixed:ident: $fixed_type:ty,)* }
            mutable $(by $changes:ident)? { $($(#[$mutable_meta:meta])* $mutable:ident: $mutable_type:ty,)* }
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

        $crate::entity!(@changes $name $($changes)? { $($mutable: $mutable_type,)* });
    };
    (@changes $name:ident {}) => {};
    (@changes $name:ident $changes:ident { $($mutable:ident: $mutable_type:ty,)* }) => {
        #[doc = concat!("The changes of single fields of [`", stringify!($name), "`].")]
        // Each method takes a reference, so a `String` is passed as `&String`.
        #[allow(clippy::ptr_arg)]
        pub trait $changes: Sized {
            $(
                #[doc = concat!("Sets `", stringify!($mutable), "`.")]
                fn $mutable(self, to: &$mutable_type) -> Result<Self, $crate::item::EncodeError>;
            )*
        }

        impl $changes for $crate::change::Change<$name> {
            $(
                fn $mutable(self, to: &$mutable_type) -> Result<Self, $crate::item::EncodeError> {
                    $crate::prelude::ChangeFields::set(self, stringify!($mutable), to)
                }
            )*
        }
    };
}
