//! The names and definitions of the indices.
//!
//! The documents of a collection are in an index such as `<prefix>-products-v1`. It has these
//! aliases:
//!
//! | alias | points to | used by |
//! | --- | --- | --- |
//! | `<prefix>-products` | the one index that is read | every search |
//! | `<prefix>-products-write-v1` | `<prefix>-products-v1`, while it accepts writes | every write |
//!
//! Outside of a rebuild one index has both aliases. A rebuild fills the next index, which gets its
//! mapping from the collection's index template.
//!
//! # Why each written index has its own write alias
//!
//! OpenSearch does not accept a write through an alias of several indices. If an index has just
//! been deleted, a write that names it directly would create it again, with a guessed mapping.
//!
//! A bulk operation can prevent this only with `require_alias`: its target must then be an alias.
//! (The setting `action.auto_create_index` would prevent it too, but OpenSearch Serverless has no
//! cluster settings.) So each written index has its own write alias, which disappears together with
//! the index. A writer that still uses a removed index gets a 404, looks up the targets again, and
//! loses no write.
//!
//! # Stemming
//!
//! The analyzer removes only plural endings. A full stemmer turns `chocolate` into `chocol`, but
//! the misspelt `choclate` into `choclat`. Fuzzy matching does not match these two stems.

use serde_json::{Value, json};

use crate::document::Collection;
use crate::error::SearchError;

pub(crate) fn alias(prefix: &str, collection: Collection) -> String {
    format!("{prefix}-{}", collection.name())
}

/// Returns the name of the index with this number. The first number is 1.
pub(crate) fn name(prefix: &str, collection: Collection, number: u64) -> String {
    format!("{}-v{number}", alias(prefix, collection))
}

/// Returns a pattern for all indices of the collection. It may also match indices with a longer
/// prefix.
pub(crate) fn pattern(prefix: &str, collection: Collection) -> String {
    format!("{}-v*", alias(prefix, collection))
}

pub(crate) fn write_alias(prefix: &str, collection: Collection, number: u64) -> String {
    format!("{}-write-v{number}", alias(prefix, collection))
}

/// Returns collection and number of an index, or `None` for any other name.
pub(crate) fn parse(prefix: &str, index: &str) -> Option<(Collection, u64)> {
    let parsed = Collection::ALL.into_iter().find_map(|collection| {
        let number = index.strip_prefix(&alias(prefix, collection))?.strip_prefix("-v")?;
        Some((collection, number.parse().ok()?))
    })?;
    // `v01` and `v+1` parse as 1, but are not names that [`name`] returns.
    (name(prefix, parsed.0, parsed.1) == index).then_some(parsed)
}

/// Returns the body of the index template: settings and mapping of every index of the collection.
pub(crate) fn template(prefix: &str, collection: Collection) -> Result<Value, SearchError> {
    Ok(json!({
        "index_patterns": [pattern(prefix, collection)],
        "template": definition(collection)?,
    }))
}

pub(crate) fn mapping(collection: Collection) -> Result<Value, SearchError> {
    Ok(definition(collection)?.get_mut("mappings").map(Value::take).unwrap_or_default())
}

fn definition(collection: Collection) -> Result<Value, SearchError> {
    let definition = match collection {
        Collection::Products => include_str!("indices/products.json"),
        Collection::Orders => include_str!("indices/orders.json"),
    };
    serde_json::from_str(definition).map_err(|error| SearchError::Request(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::bulk::BulkOperation;
    use crate::document::{OrderDocument, ProductDocument};

    #[test]
    fn the_template_of_a_collection_covers_its_indices_and_no_others() {
        let template = template("bodega", Collection::Products).unwrap();
        assert_eq!(template["index_patterns"], json!(["bodega-products-v*"]));
        assert!(name("bodega", Collection::Products, 12).starts_with("bodega-products-v"));
        assert!(!write_alias("bodega", Collection::Products, 12).starts_with("bodega-products-v"));
        assert_eq!(template["template"]["mappings"]["dynamic"], "strict");
    }

    #[test]
    fn only_names_of_our_indices_are_parsed_as_indices() {
        for number in [1, 7, 120] {
            let index = name("bodega", Collection::Orders, number);
            assert_eq!(parse("bodega", &index), Some((Collection::Orders, number)));
        }
        for other in [
            "bodega-products",
            "bodega-products-v",
            "bodega-products-v01",
            "bodega-products-v+1",
            "bodega-products-v1/x",
            "bodega-products-v1-products-v1",
            "bodega-products-write-v1",
            "other-products-v1",
        ] {
            assert_eq!(parse("bodega", other), None, "{other}");
        }
    }

    #[test]
    fn the_mapping_has_exactly_the_fields_of_documents_and_tombstones() {
        let product = ProductDocument {
            id: String::new(),
            name: String::new(),
            brand: String::new(),
            package_size: None,
            thumbnail: Some(String::new()),
            category_path: Vec::new(),
            category: Vec::new(),
            price_amount: 0,
            price_currency: String::new(),
            compare_at_amount: Some(0),
            summary: String::new(),
            in_stock: false,
            rating_sum: 0,
            rating_count: 0,
            created_at: String::new(),
            parent: Some(String::new()),
            options: vec![String::new()],
            group: String::new(),
            has_variants: true,
            version: 1,
            deleted: false,
        };
        let order = OrderDocument {
            id: String::new(),
            number: String::new(),
            reference: None,
            customer_id: String::new(),
            store_id: None,
            destination_country: Some(String::new()),
            destination_city: Some(String::new()),
            status: String::new(),
            total_amount: 0,
            total_currency: String::new(),
            placed_at: String::new(),
            line_count: 0,
            version: 1,
            deleted: false,
        };
        for document in [
            BulkOperation::index(String::new(), 1, &product).unwrap(),
            BulkOperation::index(String::new(), 1, &order).unwrap(),
        ] {
            let tombstone = BulkOperation::tombstone(document.collection(), String::new(), 1, "").unwrap();
            let mut fields: Vec<_> = [&document, &tombstone]
                .into_iter()
                .flat_map(|operation| operation.fields().unwrap().into_iter().map(|(name, _)| name))
                .collect();
            fields.sort_unstable();
            fields.dedup();
            let mapping = mapping(document.collection()).unwrap();
            let mapped: Vec<_> = mapping["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(mapped, fields);
        }
    }
}
