//! The indices: their names and definitions.
//!
//! A collection is known by its alias, `<prefix>-products`; the documents lie in the index behind
//! it, `<prefix>-products-v1`. A rebuild fills the next index, which gets its mapping from the same
//! template, and moves the alias.
//!
//! Words are reduced by their plural only. A stemmer proper would cut `chocolate` to `chocol` but the
//! misspelt `choclate` to `choclat`, further apart than any forgiveness for mistakes reaches.

use serde_json::{Value, json};

use crate::document::Collection;
use crate::error::SearchError;

/// The alias that every read and write goes through.
pub(crate) fn alias(prefix: &str, collection: Collection) -> String {
    format!("{prefix}-{}", collection.name())
}

/// The index that is created when there is none.
pub(crate) fn first_index(prefix: &str, collection: Collection) -> String {
    format!("{prefix}-{}-v1", collection.name())
}

/// The body of the index template: settings and mapping of every index of the collection.
pub(crate) fn template(prefix: &str, collection: Collection) -> Result<Value, SearchError> {
    let definition = match collection {
        Collection::Products => include_str!("indices/products.json"),
        Collection::Orders => include_str!("indices/orders.json"),
    };
    let definition: Value =
        serde_json::from_str(definition).map_err(|error| SearchError::Request(error.to_string()))?;
    Ok(json!({
        "index_patterns": [format!("{}-v*", alias(prefix, collection))],
        "template": definition,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::document::{OrderDocument, ProductDocument, Tombstone};

    #[test]
    fn the_template_of_a_collection_covers_its_indices_and_no_others() {
        let template = template("bodega", Collection::Products).unwrap();
        assert_eq!(template["index_patterns"], json!(["bodega-products-v*"]));
        assert!(first_index("bodega", Collection::Products).starts_with("bodega-products-v"));
        assert_eq!(template["template"]["mappings"]["dynamic"], "strict");
    }

    #[test]
    fn the_mapping_has_exactly_the_fields_of_documents_and_tombstones() {
        let product = ProductDocument {
            id: String::new(),
            name: String::new(),
            brand: String::new(),
            package_size: None,
            category_path: Vec::new(),
            category: Vec::new(),
            price_amount: 0,
            price_currency: String::new(),
            summary: String::new(),
            created_at: String::new(),
            version: 1,
            deleted: false,
        };
        let order = OrderDocument {
            id: String::new(),
            reference: None,
            customer_id: String::new(),
            store_id: None,
            status: String::new(),
            total_amount: 0,
            total_currency: String::new(),
            placed_at: String::new(),
            line_count: 0,
            version: 1,
            deleted: false,
        };
        let tombstone = serde_json::to_value(Tombstone::new("")).unwrap();
        for (collection, document) in [
            (Collection::Products, serde_json::to_value(product).unwrap()),
            (Collection::Orders, serde_json::to_value(order).unwrap()),
        ] {
            let mut fields: Vec<_> = [&document, &tombstone]
                .into_iter()
                .flat_map(|value| value.as_object().unwrap().keys().cloned())
                .collect();
            fields.sort_unstable();
            fields.dedup();
            let template = template("bodega", collection).unwrap();
            let mapped: Vec<_> =
                template["template"]["mappings"]["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(mapped, fields);
        }
    }
}
