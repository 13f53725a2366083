use key_schema::entity::AnyEntity;
use key_schema::item::{DecodeError, Entity as _, FromItem as _, Item, key_of};
use key_schema::key::Key;
use key_schema::order::Order;
use key_schema::product::Product;
use key_schema::{order, product};
use search_index::{BulkOperation, Collection, OrderDocument, ProductDocument, StoredSource, document_id};

use crate::error::OpsError;

/// The key of an item, with the operation that writes its expected document.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) key: Key,
    pub(crate) operation: BulkOperation,
}

impl Expected {
    /// Returns whether searches must find the item.
    pub(crate) fn is_live(&self) -> bool {
        !self.operation.is_tombstone()
    }
}

pub(crate) const fn entity(collection: Collection) -> &'static str {
    match collection {
        Collection::Products => Product::NAME,
        Collection::Orders => Order::NAME,
    }
}

/// Returns the expected document of an item, or `None` if items of its kind have no document.
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

/// Returns the key of the item that a document was made from. Returns `None` if the document cannot
/// be read, or if its id does not belong to its key.
pub(crate) fn source(collection: Collection, id: &str, stored: &StoredSource) -> Option<Key> {
    let key = match collection {
        Collection::Products => {
            let document = stored.clone().document::<ProductDocument>().ok()?.document?;
            product::read_for_update(&document.id.parse().ok()?).ok()?.key().clone()
        }
        Collection::Orders => {
            let document = stored.clone().document::<OrderDocument>().ok()?.document?;
            order::head(&document.id.parse().ok()?).ok()?.key().clone()
        }
    };
    (document_id(key.pk.as_str(), key.sk.as_str()) == id).then_some(key)
}
