//! The documents of the indices, and their ids.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A product, as customers search for it.
///
/// All fields come from the product's own item, so the item's `rev` orders all writes of the
/// document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductDocument {
    pub id: String,
    /// The name, the field with the highest weight in a search.
    pub name: String,
    /// The brand. It is also a facet.
    pub brand: String,
    /// The size of the package, as printed. Searches do not match it.
    pub package_size: Option<String>,
    /// The names of the categories, outermost first. Their words are searched.
    pub category_path: Vec<String>,
    /// The category and all its ancestors, outermost first, each in the form that its URL has. That
    /// form joins the names by `~` and writes every byte outside `A-Z a-z 0-9 -` as `_HH`, so every
    /// path has its own form. The field is a filter and a facet.
    pub category: Vec<String>,
    /// The price in minor units of `price_currency`.
    pub price_amount: i64,
    /// ISO 4217 code.
    pub price_currency: String,
    /// A former price above the price, in minor units of `price_currency`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compare_at_amount: Option<i64>,
    /// One or two sentences about the product. May be empty.
    pub summary: String,
    /// The id of the first picture.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thumbnail: Option<String>,
    /// Whether the product can be bought now.
    pub in_stock: bool,
    /// The sum of all ratings, 1 to 5 each. With `rating_count` it gives the exact average, which a
    /// float cannot hold.
    pub rating_sum: u64,
    pub rating_count: u64,
    /// The time of creation: RFC 3339 UTC with milliseconds.
    pub created_at: String,
    /// The item's `version`, which is the ETag for clients.
    pub version: u64,
    /// The parent, if the product is a variant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<String>,
    /// The values of a variant's options, sorted by option name. Their words are searched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub options: Vec<String>,
    /// The parent's id, or the product's own id if it is no variant. A result has one hit for each
    /// group.
    pub group: String,
    /// Whether the product is sold only as variants. Then searches find only the variants.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub has_variants: bool,
    /// Always `false`. A removed product is a tombstone ([`crate::BulkOperation::tombstone`]).
    pub deleted: bool,
}

/// An order, as staff search for it. It contains the customer's id but no name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderDocument {
    pub id: String,
    /// The short number that people read out.
    pub number: String,
    /// The client's number for the order.
    pub reference: Option<String>,
    pub customer_id: String,
    pub store_id: Option<String>,
    pub status: String,
    /// The total in minor units of `total_currency`.
    pub total_amount: i64,
    /// ISO 4217 code.
    pub total_currency: String,
    /// The time of placing: RFC 3339 UTC with milliseconds.
    pub placed_at: String,
    /// The country to which the order is sent, a code of ISO 3166-1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_country: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_city: Option<String>,
    pub line_count: u64,
    /// The item's `version`, which is the ETag for clients.
    pub version: u64,
    /// Always `false`. A removed order is a tombstone ([`crate::BulkOperation::tombstone`]).
    pub deleted: bool,
}

/// A kind of document. Each kind has its own index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collection {
    Products,
    Orders,
}

impl Collection {
    pub const ALL: [Self; 2] = [Self::Products, Self::Orders];

    /// Returns the name, which is the part of an index's name after the prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::Products => "products",
            Self::Orders => "orders",
        }
    }
}

pub trait SearchDocument: Serialize + DeserializeOwned {
    const COLLECTION: Collection;
}

impl SearchDocument for ProductDocument {
    const COLLECTION: Collection = Collection::Products;
}

impl SearchDocument for OrderDocument {
    const COLLECTION: Collection = Collection::Orders;
}

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

/// Returns the `_id` of the document for the item with this key.
///
/// It is a hash, because the engine limits an id to 512 bytes, while a key has up to 3,072.
pub fn document_id(partition_key: &str, sort_key: &str) -> String {
    key_schema::key::hash(partition_key, sort_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_id_is_a_hash_of_both_key_parts_and_their_lengths() {
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
