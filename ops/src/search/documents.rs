//! What the index shall hold for an item, by the rule that the stream's consumer has.

use key_schema::entity::AnyEntity;
use key_schema::item::{DecodeError, Entity as _, FromItem as _, Item, key_of};
use key_schema::key::Key;
use key_schema::order::Order;
use key_schema::product::Product;
use key_schema::{order, product};
use search_index::{BulkOperation, Collection, OrderDocument, ProductDocument, StoredSource, document_id};

use crate::error::OpsError;

/// An item that is searched for, with what the index shall hold.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) key: Key,
    pub(crate) operation: BulkOperation,
}

impl Expected {
    /// Whether searches shall find it.
    pub(crate) fn is_live(&self) -> bool {
        !self.operation.is_tombstone()
    }
}

/// The entity whose items a collection holds.
pub(crate) const fn entity(collection: Collection) -> &'static str {
    match collection {
        Collection::Products => Product::NAME,
        Collection::Orders => Order::NAME,
    }
}

/// What the index shall hold for an item; `None` if it is not searched for.
///
/// # Errors
/// When the item is not what its entity says.
pub(crate) fn expected(item: Item) -> Result<Option<Expected>, OpsError> {
    let Some(key) = key_of(&item) else { return Ok(None) };
    let entity = match AnyEntity::from_item(item) {
        Ok(entity) => entity,
        Err(DecodeError::UnknownEntity(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let id = document_id(key.pk.as_str(), key.sk.as_str());
    let Some(operation) = stream::documents::written(id, &entity) else { return Ok(None) };
    Ok(Some(Expected { key, operation: operation? }))
}

/// The key of the item that a document was made from; `None` if no item can have made it: it cannot be read, or lies under another id.
pub(crate) fn source(collection: Collection, id: &str, stored: &StoredSource) -> Option<Key> {
    let key = match collection {
        Collection::Products => {
            let document = stored.clone().document::<ProductDocument>().ok()?.document?;
            product::edit(&document.id.parse().ok()?).ok()?.key().clone()
        }
        Collection::Orders => {
            let document = stored.clone().document::<OrderDocument>().ok()?.document?;
            order::head(&document.id.parse().ok()?).ok()?.key().clone()
        }
    };
    (document_id(key.pk.as_str(), key.sk.as_str()) == id).then_some(key)
}
