//! Readers of the request bodies that describe a product or the move of a category.

use http_api::fields::{MAX_AMOUNT, array, boolean, integer, map, money, parsed, text, visible_text};
use http_api::{FieldPatch, Invalid, Object};
use key_schema::change::Change;
use key_schema::id::{MAX_ID_BYTES, ProductId, TaxCategory};
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use key_schema::money::Money;
use key_schema::product::{
    CategoryIndexKey, CategoryPath, MAX_CATEGORY_DEPTH, MAX_STOCK, Product, ProductChanges as _,
};
use key_schema::variant::{MAX_OPTION_VALUE_BYTES, MAX_OPTIONS, Options};

/// Limits in bytes of UTF-8. A page of a hundred products stays far below a Query's limit of 1 MB.
const MAX_NAME: usize = 200;
const MAX_BRAND: usize = 128;
const MAX_PACKAGE_SIZE: usize = 64;
const MAX_SUMMARY: usize = 2000;
const MAX_WEIGHT_GRAMS: u64 = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    name: String,
    brand: String,
    package_size: Option<String>,
    category_path: CategoryPath,
    price: Money,
    summary: Option<String>,
    delivery: Delivery<Option<u64>, Option<bool>, Option<TaxCategory>>,
    variant: Option<(ProductId, Options)>,
    pub stock: u64,
    /// Whether `price` applies only to a new product. An existing product then keeps its price.
    pub keeps_price: bool,
}

impl Draft {
    pub fn into_product(self, id: ProductId) -> Product {
        let Self { name, brand, package_size, category_path, price, summary, delivery, variant, .. } = self;
        let (parent, options) = variant.unzip();
        let Delivery { weight_grams, shippable, tax_category } = delivery;
        Product {
            parent,
            options,
            package_size,
            summary,
            weight_grams,
            // The item stores `shippable` only if it is false.
            shippable: shippable.filter(|shippable| !shippable),
            tax_category,
            ..Product::new(id, name, brand, price, category_path)
        }
    }
}

/// The fields of a product that its delivery and its tax depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Delivery<W, S, T> {
    weight_grams: W,
    shippable: S,
    tax_category: T,
}

impl<W, S, T> Delivery<W, S, T> {
    fn read(weight_grams: Option<W>, shippable: Option<S>, tax_category: Option<T>) -> Option<Self> {
        Some(Self { weight_grams: weight_grams?, shippable: shippable?, tax_category: tax_category? })
    }
}

/// Reads a new product, and its id if the body has one. Otherwise the caller generates the id.
///
/// # Errors
/// [`Invalid`] with an entry for each invalid field.
pub fn new_product(mut body: Object<'_>) -> Result<(Option<ProductId>, Draft), Invalid> {
    let id = body.optional("id", parsed::<ProductId>);
    let parent = body.optional("parent", parsed::<ProductId>);
    let relation = parent.zip(body.optional("options", options));
    draft(body, id, Some(None), relation)
}

/// Reads a product of an import. The id is required, so that a repeated import does not create the
/// product again. The product has a `price` or a `price_if_new`. An import creates no variants.
///
/// # Errors
/// [`Invalid`] with an entry for each invalid field.
pub fn imported_product(mut body: Object<'_>) -> Result<(ProductId, Draft), Invalid> {
    let id = body.required("id", parsed::<ProductId>);
    let price_if_new = body.replaced("price_if_new", money(0..=MAX_AMOUNT));
    let refuse = |_| Err(Invalid::new("cannot be imported: create variants with POST /v1/products"));
    let (parent, options) = (body.optional::<()>("parent", refuse), body.optional::<()>("options", refuse));
    draft(body, id, price_if_new, parent.zip(options).map(|_| (None, None)))
}

type Relation = (Option<ProductId>, Option<Options>);

/// Returns the parent and the options of a variant. A product has both or neither.
fn variant(relation: Relation) -> Result<Option<(ProductId, Options)>, Invalid> {
    match relation {
        (Some(parent), Some(options)) => Ok(Some((parent, options))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Invalid::new("is required for a product with a parent").under("options")),
        (None, Some(_)) => Err(Invalid::new("is required for a product with options").under("parent")),
    }
}

fn options(value: http_api::json::Value<'_>) -> Result<Options, Invalid> {
    let options = map::<String, String>(MAX_OPTIONS, visible_text(1..=MAX_OPTION_VALUE_BYTES))(value)?;
    Options::new(options).map_err(|error| Invalid::new(error.to_string()))
}

fn draft<I>(
    mut body: Object<'_>,
    id: Option<I>,
    price_if_new: Option<Option<Money>>,
    relation: Option<Relation>,
) -> Result<(I, Draft), Invalid> {
    let keeps_price = !matches!(price_if_new, Some(None));
    let name = body.required("name", text(1..=MAX_NAME));
    let brand = body.required("brand", visible_text(1..=MAX_BRAND));
    let package_size = body.optional("package_size", visible_text(1..=MAX_PACKAGE_SIZE));
    let category_path = body.required("category_path", path);
    let price = match price_if_new {
        Some(None) => body.required("price", money(0..=MAX_AMOUNT)),
        other if body.replaced("price", money(0..=MAX_AMOUNT)) == Some(None) => other.flatten(),
        _ => body.refuse("price", "must be left out when `price_if_new` is present"),
    };
    let summary = body.optional("summary", text(1..=MAX_SUMMARY));
    let weight_grams = body.optional("weight_grams", integer(0..=MAX_WEIGHT_GRAMS));
    let shippable = body.optional("shippable", boolean);
    let tax_category = body.optional("tax_category", parsed::<TaxCategory>);
    let delivery = Delivery::read(weight_grams, shippable, tax_category);
    let stock = body.optional("stock", integer(0..=MAX_STOCK));
    let fields = (id, name, brand, package_size, category_path, price, summary, delivery, relation, stock);
    let (id, name, brand, package_size, category_path, price, summary, delivery, relation, stock) =
        body.finish(fields)?;
    let (variant, stock) = (variant(relation)?, stock.unwrap_or(0));
    Ok((id, Draft { name, brand, package_size, category_path, price, summary, delivery, variant, stock, keeps_price }))
}

/// The changes that a client makes to a product.
#[derive(Debug)]
pub struct Edit {
    name: Option<String>,
    brand: Option<String>,
    package_size: FieldPatch<String>,
    pub category_path: Option<CategoryPath>,
    price: Option<Money>,
    summary: FieldPatch<String>,
    delivery: Delivery<FieldPatch<u64>, FieldPatch<bool>, FieldPatch<TaxCategory>>,
}

/// Reads a partial change of a product (JSON Merge Patch, RFC 7396). `null` clears an optional
/// field.
///
/// # Errors
/// [`Invalid`] with an entry for each invalid field, or when the body changes no field.
pub fn edit(mut body: Object<'_>) -> Result<Edit, Invalid> {
    let name = body.replaced("name", text(1..=MAX_NAME));
    let brand = body.replaced("brand", visible_text(1..=MAX_BRAND));
    let package_size = body.changed("package_size", visible_text(1..=MAX_PACKAGE_SIZE));
    let category_path = body.replaced("category_path", path);
    let price = body.replaced("price", money(0..=MAX_AMOUNT));
    let summary = body.changed("summary", text(1..=MAX_SUMMARY));
    let weight_grams = body.changed("weight_grams", integer(0..=MAX_WEIGHT_GRAMS));
    let shippable = body.changed("shippable", boolean);
    let tax_category = body.changed("tax_category", parsed::<TaxCategory>);
    let delivery = Delivery::read(weight_grams, shippable, tax_category);
    let (name, brand, package_size, category_path, price, summary, delivery) =
        body.finish((name, brand, package_size, category_path, price, summary, delivery))?;
    let edit = Edit { name, brand, package_size, category_path, price, summary, delivery };
    if edit.is_empty() { Err(Invalid::new("must change at least one field")) } else { Ok(edit) }
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
        if self.summary.is_given() {
            change = change.summary(&self.summary.apply(None))?;
        }
        if self.delivery.weight_grams.is_given() {
            change = change.weight_grams(&self.delivery.weight_grams.apply(None))?;
        }
        if self.delivery.shippable.is_given() {
            change = change.shippable(&self.delivery.shippable.apply(None).filter(|shippable| !shippable))?;
        }
        if self.delivery.tax_category.is_given() {
            change = change.tax_category(&self.delivery.tax_category.apply(None))?;
        }
        Ok(change)
    }

    const fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.brand.is_none()
            && !self.package_size.is_given()
            && self.category_path.is_none()
            && self.price.is_none()
            && !self.summary.is_given()
            && !self.delivery.weight_grams.is_given()
            && !self.delivery.shippable.is_given()
            && !self.delivery.tax_category.is_given()
    }
}

/// Builds the change that makes a stored product equal to `wanted`.
pub fn overwrite(wanted: &Product, at: Instant) -> Result<Change<Product>, EncodeError> {
    Change::<Product>::visible(at)
        .name(&wanted.name)?
        .brand(&wanted.brand)?
        .package_size(&wanted.package_size)?
        .price(&wanted.price)?
        .summary(&wanted.summary)?
        .weight_grams(&wanted.weight_grams)?
        .shippable(&wanted.shippable)?
        .tax_category(&wanted.tax_category)?
        .enter(&CategoryIndexKey { category_path: &wanted.category_path, id: &wanted.id })
}

pub fn destination(mut body: Object<'_>) -> Result<CategoryPath, Invalid> {
    let to = body.required("to", path);
    body.finish(to)
}

fn path(value: http_api::json::Value<'_>) -> Result<CategoryPath, Invalid> {
    let names = array(1..=MAX_CATEGORY_DEPTH, visible_text(1..=MAX_ID_BYTES))(value)?;
    CategoryPath::new(names).map_err(|error| Invalid::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const WHOLE: &str = r#"{"id":"p1","name":"Ice","brand":"National","package_size":"22 LB",
        "category_path":["GROCERY","ICE"],"price":{"amount":129,"currency":"USD"},"summary":"Cold.","stock":7}"#;

    fn pointers<T: std::fmt::Debug>(read: Result<T, Invalid>) -> Vec<String> {
        read.unwrap_err().errors().iter().map(|error| error.pointer.clone()).collect()
    }

    #[test]
    fn a_new_product_may_omit_its_id_and_its_stock_which_is_then_zero() {
        let (id, draft) = new_product(Object::parse(WHOLE).unwrap()).unwrap();
        assert_eq!((id.unwrap().as_str(), draft.stock), ("p1", 7));
        let least = r#"{"name":"Ice","brand":"N","category_path":["ICE"],"price":{"amount":0,"currency":"USD"}}"#;
        let (id, draft) = new_product(Object::parse(least).unwrap()).unwrap();
        assert_eq!((id, draft.stock), (None, 0));
    }

    #[test]
    fn one_response_lists_every_error_of_a_product() {
        let body =
            r#"{"name":"","category_path":["A",""],"price":{"amount":-1,"currency":"USD"},"stock":-1,"colour":"red"}"#;
        let expected = ["/brand", "/category_path/1", "/colour", "/name", "/price/amount", "/stock"];
        let mut found = pointers(new_product(Object::parse(body).unwrap()));
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_imported_product_needs_an_id() {
        let without = WHOLE.replacen(r#""id":"p1","#, "", 1);
        assert_eq!(pointers(imported_product(Object::parse(&without).unwrap())), ["/id"]);
    }

    #[test]
    fn an_imported_product_has_a_price_or_a_price_if_new() {
        let read = |body: &str| imported_product(Object::parse(body).unwrap());
        let renamed = WHOLE.replace(r#""price":"#, r#""price_if_new":"#);
        let (_, draft) = read(&renamed).unwrap();
        assert_eq!((draft.price, draft.keeps_price), (read(WHOLE).unwrap().1.price, true));
        assert!(!read(WHOLE).unwrap().1.keeps_price);
        let price = r#""price":{"amount":129,"currency":"USD"},"#;
        assert_eq!(pointers(read(&WHOLE.replace(price, ""))), ["/price"]);
        assert_eq!(pointers(read(&renamed.replacen('{', &format!("{{{price}"), 1))), ["/price"]);
        assert_eq!(pointers(read(&renamed.replace("129", "-1"))), ["/price_if_new/amount"]);
        assert_eq!(pointers(new_product(Object::parse(&renamed).unwrap())), ["/price", "/price_if_new"]);
    }

    #[test]
    fn a_path_with_a_too_long_escaped_form_is_refused() {
        let names: Vec<String> = (0..8).map(|_| "#".repeat(100)).collect();
        let body = WHOLE.replace(r#"["GROCERY","ICE"]"#, &format!("{names:?}"));
        assert_eq!(pointers(new_product(Object::parse(&body).unwrap())), ["/category_path"]);
    }

    #[test]
    fn a_change_names_at_least_one_field_and_clears_only_optional_fields() {
        assert_eq!(pointers(edit(Object::parse("{}").unwrap())), [""]);
        assert_eq!(pointers(edit(Object::parse(r#"{"name":null,"stock":1}"#).unwrap())), ["/name", "/stock"]);
        assert!(edit(Object::parse(r#"{"summary":null}"#).unwrap()).is_ok());
    }
}
