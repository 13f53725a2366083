//! Refusals: writes with a condition that does not hold. A refusal is not an error, because only
//! the caller knows the meaning of the refusal.

use std::ops::Deref;

use item_model::item::{FromItem, Item};

use crate::error::TableError;

/// An action with a condition that does not hold. `A` is the type of the action's name, and is `()`
/// for a single write.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal<A = ()> {
    /// The caller's name of the action.
    pub action: A,
    /// The current item, if there is one.
    pub item: Option<Item>,
}

impl<A> Refusal<A> {
    /// Returns the current item as an entity, if there is one.
    pub fn stored<T: FromItem>(&self) -> Result<Option<T>, TableError> {
        Ok(self.item.clone().map(T::from_item).transpose()?)
    }
}

/// The refused actions of a transaction, in the order of the transaction's actions. The transaction
/// wrote nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusals<A>(Vec<Refusal<A>>);

impl<A: PartialEq> Refusals<A> {
    #[must_use]
    pub fn names(&self, action: A) -> bool {
        self.iter().any(|refusal| refusal.action == action)
    }

    /// Returns whether only this action was refused.
    #[must_use]
    pub fn only(&self, action: A) -> bool {
        self.iter().all(|refusal| refusal.action == action)
    }

    #[must_use]
    pub fn of(&self, action: A) -> Option<&Refusal<A>> {
        self.iter().find(|refusal| refusal.action == action)
    }
}

impl<A> Deref for Refusals<A> {
    type Target = [Refusal<A>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<A> FromIterator<Refusal<A>> for Refusals<A> {
    fn from_iter<I: IntoIterator<Item = Refusal<A>>>(refusals: I) -> Self {
        Self(refusals.into_iter().collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use item_model::item::DecodeError;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Count(usize);

    impl FromItem for Count {
        fn from_item(item: Item) -> Result<Self, DecodeError> {
            Ok(Self(item.len()))
        }
    }

    #[test]
    fn refusals_are_found_by_the_name_of_their_action() {
        let item = Item::default();
        let refusals: Refusals<_> =
            [("stock", Some(item)), ("key", None)].map(|(action, item)| Refusal { action, item }).into_iter().collect();
        assert!(refusals.names("stock") && refusals.names("key") && !refusals.names("order"));
        assert!(!refusals.only("stock") && !refusals.only("order"));
        assert_eq!(refusals.of("stock").unwrap().stored::<Count>().unwrap(), Some(Count(0)));
        assert_eq!(refusals.of("key").unwrap().stored::<Count>().unwrap(), None);
        assert_eq!(refusals.of("order"), None);
        let one: Refusals<_> = refusals.iter().take(1).cloned().collect();
        assert!(one.only("stock") && !one.only("key"));
    }
}
