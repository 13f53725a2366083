//! What the index holds, and how a document is named.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A product as customers search for it.
///
/// Everything here comes from the product's own item, so that the item's `rev` orders all writes
/// of the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductDocument {
    /// The product's id.
    pub id: String,
    /// Its name, the field that counts most in a search.
    pub name: String,
    /// Its brand; also a facet.
    pub brand: String,
    /// Size of the package, as printed; shown, not searched.
    pub package_size: Option<String>,
    /// Names of its categories, outermost first; searched by word.
    pub category_path: Vec<String>,
    /// The category and every one above it, outermost first, each in the form that its URL has (names joined by `~`, every byte
    /// outside `A-Z a-z 0-9 -` written `_HH`), in which no name can be mistaken for two; filtered by, and a facet.
    pub category: Vec<String>,
    /// Price in minor units of `price_currency`.
    pub price_amount: i64,
    /// ISO 4217 code.
    pub price_currency: String,
    /// A sentence or two about it; may be empty.
    pub summary: String,
    /// Whether any of it can be bought now.
    #[serde(default)]
    pub in_stock: bool,
    /// The sum of all ratings, 1 to 5 each. With `rating_count` an exact average; a float would not be one.
    #[serde(default)]
    pub rating_sum: u64,
    /// The number of ratings.
    #[serde(default)]
    pub rating_count: u64,
    /// When it was created: RFC 3339 UTC with milliseconds.
    pub created_at: String,
    /// The item's `version`, which clients know as the ETag.
    pub version: u64,
    /// `false`; a removed product is a tombstone ([`crate::BulkOperation::tombstone`]).
    pub deleted: bool,
}

/// An order as staff search for it. It names the customer by id alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderDocument {
    /// The order's id.
    pub id: String,
    /// The reference that the order was placed with.
    pub reference: Option<String>,
    /// Whose order it is.
    pub customer_id: String,
    /// The store it was placed in.
    pub store_id: Option<String>,
    /// Where it stands in its life.
    pub status: String,
    /// Total in minor units of `total_currency`.
    pub total_amount: i64,
    /// ISO 4217 code.
    pub total_currency: String,
    /// When it was placed: RFC 3339 UTC with milliseconds.
    pub placed_at: String,
    /// Number of its lines.
    pub line_count: u64,
    /// The item's `version`, which clients know as the ETag.
    pub version: u64,
    /// `false`; a removed order is a tombstone ([`crate::BulkOperation::tombstone`]).
    pub deleted: bool,
}

/// A kind of document; each has an index of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collection {
    /// [`ProductDocument`]s.
    Products,
    /// [`OrderDocument`]s.
    Orders,
}

impl Collection {
    /// All collections.
    pub const ALL: [Self; 2] = [Self::Products, Self::Orders];

    /// Its name, the last part of its index's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::Orders => "orders",
        }
    }
}

/// A document that is indexed in a collection.
pub trait SearchDocument: Serialize + DeserializeOwned {
    /// The collection it belongs to.
    const COLLECTION: Collection;
}

impl SearchDocument for ProductDocument {
    const COLLECTION: Collection = Collection::Products;
}

impl SearchDocument for OrderDocument {
    const COLLECTION: Collection = Collection::Orders;
}

/// What remains of a removed document.
#[derive(Debug, Serialize)]
pub(crate) struct Tombstone<'a> {
    deleted: bool,
    deleted_at: &'a str,
}

impl<'a> Tombstone<'a> {
    pub(crate) fn new(deleted_at: &'a str) -> Self {
        Self { deleted: true, deleted_at }
    }
}

/// The `_id` of the document of the item with this key.
///
/// A hash, because the engine limits an id to 512 bytes while a key has up to 3,072.
pub fn document_id(partition_key: &str, sort_key: &str) -> String {
    key_schema::key::hash(partition_key, sort_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_id_is_the_hash_of_both_key_parts_behind_their_lengths() {
        // printf '\0\0\0\0\0\0\0\11PRODUCT#1\0\0\0\0\0\0\0\7PRODUCT' | sha256sum
        assert_eq!(
            document_id("PRODUCT#1", "PRODUCT"),
            "0c7ae61c41248dad4f56b277ae28d9dd07690def91a8b257acf3137e87a23790"
        );
    }

    #[test]
    fn keys_that_concatenate_alike_have_different_document_ids() {
        assert_ne!(document_id("ab", "c"), document_id("a", "bc"));
    }
}
