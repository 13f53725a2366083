use key_schema::id::ProductId;
use key_schema::money::Money;
use key_schema::variant::{Options, Variant};
use serde::Serialize;

use super::thumbnail;

#[derive(Debug, Serialize)]
pub struct VariantView<'a> {
    id: &'a ProductId,
    name: &'a str,
    options: &'a Options,
    price: Money,
    thumbnail: Option<String>,
    /// Whether customers can buy at least one piece.
    pub in_stock: bool,
}

impl<'a> From<&'a Variant> for VariantView<'a> {
    fn from(variant: &'a Variant) -> Self {
        let Variant { product_id, name, options, price, in_stock, .. } = variant;
        let thumbnail = thumbnail(product_id, variant.thumbnail.as_ref());
        Self { id: product_id, name, options, price: *price, thumbnail, in_stock: *in_stock }
    }
}
