//! Stored items: an item decodes to at most one entity. The entity is the same after it is encoded
//! and decoded again.

use key_schema::entity::AnyEntity;
use key_schema::index::INDEXES;
use key_schema::item::{FromItem as _, Item, MAX_ITEM_BYTES, entity_name, index_entry_size, key_of, size};

pub fn check(input: &[u8]) {
    let Ok(item) = serde_json::from_slice::<Item>(input) else { return };
    let bytes = size(&item);
    assert!(INDEXES.iter().filter_map(|index| index_entry_size(&item, *index)).all(|entry| entry <= bytes));
    let Ok(entity) = AnyEntity::from_item(item.clone()) else { return };
    assert_eq!(entity_name(&item).ok(), Some(entity.name()));
    // The encoder refuses an item or a key that is too large.
    let Ok(written) = entity.to_item() else { return };
    assert!(size(&written) <= MAX_ITEM_BYTES && key_of(&written).is_some(), "{written:?}");
    let again = AnyEntity::from_item(written.clone()).expect("a stored item can be read");
    assert_eq!(again, entity);
    assert_eq!(again.to_item().expect("a decoded item can be encoded"), written);
}
