//! The request bodies that describe a product.

use http_api::contract::rules::{Integer, MoneyIn, Named, PRICE, Text, integer, money, named, text, visible_text};
use http_api::contract::{Body, BodyFields, Context, Fields, ObjectSchema, Rule as _, RuleSchema as _, Schemas};
use http_api::fields::MAX_AMOUNT;
use http_api::{FieldPatch, Invalid, Object};
use key_schema::change::Change;
use key_schema::id::{ProductId, TaxCategory};
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::money::Money;
use key_schema::product::{CategoryIndexKey, CategoryPath, MAX_STOCK, Product, ProductChanges as _};
use key_schema::variant::Options;

// A page of a hundred products stays far below a Query's limit of 1 MB.
pub const NAME: Named<Text> = named("ProductName", "1 to 200 bytes.", text(1..=200));
pub const BRAND: Named<Text> = named("Brand", "1 to 128 bytes.", visible_text(1..=128));
pub const PACKAGE_SIZE: Named<Text> = named("PackageSize", "1 to 64 bytes.", visible_text(1..=64));
pub const SUMMARY: Named<Text> = named("Summary", "A line or two, 1 to 2000 bytes.", text(1..=2000));
pub const WEIGHT: Named<Integer<u64>> =
    named("WeightGrams", "The weight of one piece in grams, for the price of shipping.", integer(0..=1_000_000));
pub const COMPARE_AT: MoneyIn = money(
    1..=MAX_AMOUNT,
    "CompareAt",
    "A former price, which a shop can show crossed out. It has no effect on orders. Responses have it only while it \
        is above the price.",
);
pub const PIECES: Named<Integer<u64>> = named("Pieces", "Pieces in stock.", integer(0..=MAX_STOCK));

#[derive(Debug, Body)]
#[body(check(parent, options) = are_together)]
pub struct NewProduct {
    /// The default is a new UUIDv7.
    pub id: Option<ProductId>,
    /// The product of which this product is a variant. It never changes.
    #[field(left_out)]
    parent: Option<ProductId>,
    /// The options of a variant, which never change. They are required with a `parent`, and refused
    /// without it.
    #[field(left_out)]
    options: Option<Options>,
    #[field(flatten)]
    label: Label,
    #[field(rule = PRICE)]
    price: Money,
    #[field(flatten)]
    goods: Goods,
}

/// A line of an import. It changes all fields of an existing product except its stock.
// The id is required, so that a repeated import does not create the product again.
#[derive(Debug, Body)]
pub struct ImportedProduct {
    id: ProductId,
    #[field(flatten)]
    _no_variant: NoVariant,
    #[field(flatten)]
    label: Label,
    #[field(flatten)]
    price: ImportedPrice,
    #[field(flatten)]
    goods: Goods,
}

#[derive(Debug, Body)]
struct Label {
    #[field(rule = NAME, example = "Ice 22 LB")]
    name: String,
    #[field(rule = BRAND, example = "Private")]
    brand: String,
    #[field(rule = PACKAGE_SIZE, example = "22 LB")]
    package_size: Option<String>,
    category_path: CategoryPath,
}

#[derive(Debug, Body)]
struct Goods {
    #[field(rule = COMPARE_AT, left_out)]
    compare_at: Option<Money>,
    #[field(rule = SUMMARY, example = "Ice for coolers and drinks.")]
    summary: Option<String>,
    #[field(rule = WEIGHT, example = 9979)]
    weight_grams: Option<u64>,
    /// Whether the product is sent to the customer, true by default.
    shippable: Option<bool>,
    /// The category of goods for tax, `standard` by default.
    #[field(example = "standard")]
    tax_category: Option<TaxCategory>,
    /// The initial stock in pieces.
    #[field(rule = PIECES, default, example = 50)]
    stock: u64,
}

/// A product has both a parent and options, or neither.
fn are_together(parent: &Option<ProductId>, options: &Option<Options>) -> Result<(), Invalid> {
    match (parent, options) {
        (Some(_), None) => Err(Invalid::new("is required for a product with a parent").under("options")),
        (None, Some(_)) => Err(Invalid::new("is required for a product with options").under("parent")),
        _ => Ok(()),
    }
}

/// Refuses the fields of a variant, because an import creates no variants.
#[derive(Debug)]
struct NoVariant;

impl BodyFields for NoVariant {
    fn read_fields(object: &mut Object<'_>, _: &Context<'_>) -> Option<Self> {
        let refuse = |_| Err(Invalid::new("cannot be imported: create variants with POST /v1/products"));
        let (parent, options) = (object.optional::<()>("parent", refuse), object.optional::<()>("options", refuse));
        parent.zip(options).map(|_| Self)
    }
}

impl Fields for NoVariant {
    fn describe(_: &mut ObjectSchema, _: &mut Schemas) {}
}

/// The price of an imported product.
#[derive(Debug)]
struct ImportedPrice {
    price: Money,
    is_only_if_new: bool,
}

impl BodyFields for ImportedPrice {
    fn read_fields(object: &mut Object<'_>, context: &Context<'_>) -> Option<Self> {
        let if_new = object.replaced("price_if_new", |value| PRICE.read(value, context));
        if if_new == Some(None) {
            let price = object.required("price", |value| PRICE.read(value, context))?;
            return Some(Self { price, is_only_if_new: false });
        }
        if object.replaced("price", |value| PRICE.read(value, context)) != Some(None) {
            return object.refuse("price", "must be left out when `price_if_new` is present");
        }
        Some(Self { price: if_new.flatten()?, is_only_if_new: true })
    }
}

impl Fields for ImportedPrice {
    fn describe(object: &mut ObjectSchema, schemas: &mut Schemas) {
        let doc = "Required without `price_if_new`, and refused with it.";
        object.field("price", doc, PRICE.schema(schemas), false, PRICE.example());
        let doc = "The price of a new product. An existing product keeps its own price.";
        object.field("price_if_new", doc, PRICE.schema(schemas), false, None);
    }
}

impl NewProduct {
    /// Returns the product and its stock.
    pub fn into_product(self, id: ProductId) -> (Product, u64) {
        let Self { parent, options, label, price, goods, .. } = self;
        let stock = goods.stock;
        (Product { parent, options, ..product(id, label, price, goods) }, stock)
    }
}

impl ImportedProduct {
    /// Returns the product, its stock, and whether an existing product keeps its price.
    pub fn into_product(self) -> (Product, u64, bool) {
        let Self { id, label, price: ImportedPrice { price, is_only_if_new }, goods, .. } = self;
        let stock = goods.stock;
        (product(id, label, price, goods), stock, is_only_if_new)
    }
}

fn product(id: ProductId, label: Label, price: Money, goods: Goods) -> Product {
    let Label { name, brand, package_size, category_path } = label;
    let Goods { compare_at, summary, weight_grams, shippable, tax_category, stock: _ } = goods;
    Product {
        package_size,
        compare_at,
        summary,
        weight_grams,
        // The item stores `shippable` only if it is false.
        shippable: shippable.filter(|shippable| !shippable),
        tax_category,
        ..Product::new(id, name, brand, price, category_path)
    }
}

#[derive(Debug, Body)]
#[body(name = "ProductPatch", not_empty)]
pub struct Edit {
    #[field(rule = NAME, not_null, example = "Ice 22 LB")]
    name: Option<String>,
    #[field(rule = BRAND, not_null, left_out)]
    brand: Option<String>,
    #[field(rule = PACKAGE_SIZE, left_out)]
    package_size: FieldPatch<String>,
    #[field(not_null, left_out)]
    pub category_path: Option<CategoryPath>,
    #[field(rule = PRICE, not_null, example = {"amount": 149, "currency": "USD"})]
    price: Option<Money>,
    #[field(rule = COMPARE_AT, left_out)]
    compare_at: FieldPatch<Money>,
    #[field(rule = SUMMARY, example = null)]
    summary: FieldPatch<String>,
    #[field(rule = WEIGHT, left_out)]
    weight_grams: FieldPatch<u64>,
    /// Whether the product is sent to the customer, true by default.
    #[field(left_out)]
    shippable: FieldPatch<bool>,
    /// The category of goods for tax, `standard` by default.
    #[field(left_out)]
    tax_category: FieldPatch<TaxCategory>,
}

impl Edit {
    /// Builds the change to the stored product. A new category also changes the product's index
    /// key.
    pub fn into_change(self, id: &ProductId, at: Instant) -> Result<Change<Product>, EncodeError> {
        let mut change = Change::<Product>::visible(at);
        if let Some(name) = &self.name {
            change = change.name(name)?;
        }
        if let Some(brand) = &self.brand {
            change = change.brand(brand)?;
        }
        if self.package_size.is_given() {
            change = change.package_size(&self.package_size.apply(None))?;
        }
        if let Some(category_path) = &self.category_path {
            change = change.enter(&CategoryIndexKey { category_path, id })?;
        }
        if let Some(price) = &self.price {
            change = change.price(price)?;
        }
        if self.compare_at.is_given() {
            change = change.compare_at(&self.compare_at.apply(None))?;
        }
        if self.summary.is_given() {
            change = change.summary(&self.summary.apply(None))?;
        }
        if self.weight_grams.is_given() {
            change = change.weight_grams(&self.weight_grams.apply(None))?;
        }
        if self.shippable.is_given() {
            change = change.shippable(&self.shippable.apply(None).filter(|shippable| !shippable))?;
        }
        if self.tax_category.is_given() {
            change = change.tax_category(&self.tax_category.apply(None))?;
        }
        Ok(change)
    }
}

/// Builds the change that makes a stored product equal to `wanted`.
pub fn overwrite(wanted: &Product, at: Instant) -> Result<Change<Product>, EncodeError> {
    Change::<Product>::visible(at)
        .name(&wanted.name)?
        .brand(&wanted.brand)?
        .package_size(&wanted.package_size)?
        .price(&wanted.price)?
        .compare_at(&wanted.compare_at)?
        .summary(&wanted.summary)?
        .weight_grams(&wanted.weight_grams)?
        .shippable(&wanted.shippable)?
        .tax_category(&wanted.tax_category)?
        .enter(&CategoryIndexKey { category_path: &wanted.category_path, id: &wanted.id })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http_api::Caller;
    use http_api::contract::FromBody;
    use http_api::json::Value;

    use super::*;

    const WHOLE: &str = r#"{"id":"p1","name":"Ice","brand":"National","package_size":"22 LB",
        "category_path":["GROCERY","ICE"],"price":{"amount":129,"currency":"USD"},"summary":"Cold.","stock":7}"#;

    fn read<T: FromBody>(body: &str) -> Result<T, Invalid> {
        T::read(Value::parse(body).unwrap(), &Context::new(&Caller::Anonymous))
    }

    fn new_product(body: &str) -> Result<(Product, u64), Invalid> {
        let id = ProductId::new("p1").unwrap();
        read::<NewProduct>(body).map(|new| new.into_product(id))
    }

    fn pointers<T: std::fmt::Debug>(read: Result<T, Invalid>) -> Vec<String> {
        read.unwrap_err().errors().iter().map(|error| error.pointer.clone()).collect()
    }

    #[test]
    fn a_new_product_may_omit_its_id_and_its_stock_which_is_then_zero() {
        assert_eq!(read::<NewProduct>(WHOLE).unwrap().id, ProductId::new("p1").ok());
        assert_eq!(new_product(WHOLE).unwrap().1, 7);
        let least = r#"{"name":"Ice","brand":"N","category_path":["ICE"],"price":{"amount":0,"currency":"USD"}}"#;
        assert_eq!(read::<NewProduct>(least).unwrap().id, None);
        assert_eq!(new_product(least).unwrap().1, 0);
    }

    #[test]
    fn one_response_lists_every_error_of_a_product() {
        let body =
            r#"{"name":"","category_path":["A",""],"price":{"amount":-1,"currency":"USD"},"stock":-1,"colour":"red"}"#;
        let expected = ["/brand", "/category_path/1", "/colour", "/name", "/price/amount", "/stock"];
        let mut found = pointers(new_product(body));
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_imported_product_needs_an_id() {
        let without = WHOLE.replacen(r#""id":"p1","#, "", 1);
        assert_eq!(pointers(read::<ImportedProduct>(&without)), ["/id"]);
    }

    #[test]
    fn an_imported_product_has_a_price_or_a_price_if_new() {
        let read = |body: &str| read::<ImportedProduct>(body).map(ImportedProduct::into_product);
        let renamed = WHOLE.replace(r#""price":"#, r#""price_if_new":"#);
        let (product, stock, _) = read(WHOLE).unwrap();
        assert_eq!(read(&renamed).unwrap(), (product.clone(), stock, true));
        assert_eq!(read(WHOLE).unwrap(), (product, stock, false));
        let price = r#""price":{"amount":129,"currency":"USD"},"#;
        assert_eq!(pointers(read(&WHOLE.replace(price, ""))), ["/price"]);
        assert_eq!(pointers(read(&renamed.replacen('{', &format!("{{{price}"), 1))), ["/price"]);
        assert_eq!(pointers(read(&renamed.replace("129", "-1"))), ["/price_if_new/amount"]);
        assert_eq!(pointers(new_product(&renamed)), ["/price", "/price_if_new"]);
    }

    #[test]
    fn a_path_with_a_too_long_escaped_form_is_refused() {
        let names: Vec<String> = (0..8).map(|_| "#".repeat(100)).collect();
        let body = WHOLE.replace(r#"["GROCERY","ICE"]"#, &format!("{names:?}"));
        assert_eq!(pointers(new_product(&body)), ["/category_path"]);
    }

    #[test]
    fn a_change_names_at_least_one_field_and_clears_only_optional_fields() {
        assert_eq!(pointers(read::<Edit>("{}")), [""]);
        assert_eq!(pointers(read::<Edit>(r#"{"name":null,"stock":1}"#)), ["/name", "/stock"]);
        assert!(read::<Edit>(r#"{"summary":null}"#).is_ok());
    }
}
