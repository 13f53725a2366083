//! Products: summary, stock, review statistics and content, each on an item of its own.
//!
//! What changes at another pace lies apart, so that a sale or a review never breaks an editor's If-Match and a list page never
//! reads content. In the partition `PRODUCT#<id>` the sort keys are `CONTENT`, `PRODUCT`, `PRODUCT#STATS`, `PRODUCT#STOCK` and
//! `REVIEW#<customer>`: one Query between `PRODUCT` and `PRODUCT$` gives everything that a product page shows, without content
//! and reviews.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, IndexEntry, entity};
use crate::encoding::{Part as _, encode};
use crate::entity::AnyEntity;
use crate::expression::{Condition, number, value};
use crate::id::{Born, CustomerId, ProductId, check};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};
use crate::shard::Shards;

/// The shards of each top category's list. A top category is a low-cardinality value: alone it would be a hot partition.
pub const CATEGORY_SHARDS: Shards = Shards(4);
/// How deep a category path may be.
pub const MAX_CATEGORY_DEPTH: usize = 8;
/// How long a category path may be as key text, so that a path and an id fit one sort key, and the cursor that holds both fits
/// [`MAX_CURSOR_BYTES`](crate::cursor::MAX_CURSOR_BYTES).
pub const MAX_CATEGORY_BYTES: usize = 580;
/// The most pieces that a stock can hold, and that one adjustment can move.
pub const MAX_STOCK: u64 = 1_000_000_000_000;

/// A category by its names from the top: 1 to 8 of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CategoryPath(Vec<String>);

/// Why names are not a category path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CategoryError {
    /// No name, or more than [`MAX_CATEGORY_DEPTH`].
    #[error("must have 1 to {MAX_CATEGORY_DEPTH} names")]
    Depth,
    /// A name breaks the rule of ids.
    #[error("each name {0}")]
    Name(#[from] crate::id::IdError),
    /// Over [`MAX_CATEGORY_BYTES`] with every special byte escaped.
    #[error("the path is too long")]
    TooLong,
    /// The text is not a category path in a URL: see [`CategoryPath::from_segment`].
    #[error("must be names joined by `~`, with every byte outside A-Z a-z 0-9 - written _HH")]
    Segment,
}

impl CategoryPath {
    /// Takes names from the top.
    ///
    /// # Errors
    /// [`CategoryError`].
    pub fn new(names: Vec<String>) -> Result<Self, CategoryError> {
        if names.is_empty() || names.len() > MAX_CATEGORY_DEPTH {
            return Err(CategoryError::Depth);
        }
        for name in &names {
            check(name)?;
        }
        let path = Self(names);
        if path.key_text().len() > MAX_CATEGORY_BYTES { Err(CategoryError::TooLong) } else { Ok(path) }
    }

    /// Reads the form that a URL carries: names joined by `~`, and inside a name every byte outside `A-Z a-z 0-9 -` written `_HH`.
    ///
    /// # Errors
    /// [`CategoryError::Segment`] for any other spelling, so that one category has one address.
    pub fn from_segment(segment: &str) -> Result<Self, CategoryError> {
        let names = segment.split('~').map(decode_segment).collect::<Option<Vec<_>>>().ok_or(CategoryError::Segment)?;
        Self::new(names)
    }

    /// The form that a URL carries.
    #[must_use]
    pub fn to_segment(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|name| encode_segment(name)).collect();
        names.join("~")
    }

    /// The names from the top.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The category above, if this is not a top one.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        (!above.is_empty()).then(|| Self(above.to_vec()))
    }

    /// This category and those above it, from the top.
    pub fn lineage(&self) -> impl Iterator<Item = Self> {
        (1..=self.0.len()).filter_map(|depth| self.0.get(..depth)).map(|names| Self(names.to_vec()))
    }

    /// The names as key text.
    #[must_use]
    pub fn key_text(&self) -> String {
        self.0.iter().map(|name| encode(name)).collect::<Vec<_>>().join("#")
    }

    fn top(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

fn encode_segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("_{byte:02X}"));
        }
    }
    out
}

fn decode_segment(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'_' {
            let (digits, tail) = tail.split_at_checked(2)?;
            rest = tail;
            out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        } else if byte.is_ascii_alphanumeric() || byte == b'-' {
            out.push(byte);
        } else {
            return None;
        }
    }
    let name = String::from_utf8(out).ok()?;
    // `_41` for `A`, or lower-case digits, would be a second address.
    (encode_segment(&name) == text).then_some(name)
}

impl TryFrom<Vec<String>> for CategoryPath {
    type Error = CategoryError;

    fn try_from(names: Vec<String>) -> Result<Self, CategoryError> {
        Self::new(names)
    }
}

impl From<CategoryPath> for Vec<String> {
    fn from(path: CategoryPath) -> Self {
        path.0
    }
}

impl fmt::Display for CategoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" / "))
    }
}

entity! {
    /// What lists and search show of a product. A product that is taken out of the catalogue is *retired*: its item stays, without
    /// index keys, so that `rev` never restarts and a late stream record can never outrank a newer one.
    Product = "Product" {
        keyed {
            /// The product.
            id: ProductId,
            /// Where it stands; part of the category list's key.
            category_path: CategoryPath,
            /// Whether it was taken out of the catalogue; a retired product is in no list.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            retired: bool,
        }
        free {
            /// Its name.
            name: String,
            /// Its brand.
            brand: String,
            /// Such as `22 LB`.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            package_size: Option<String>,
            /// What one piece costs.
            price: Money,
            /// A line or two about it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            summary: Option<String>,
        }
    }
}

/// A product's place in the list of its category and every category above.
#[derive(Debug, Clone, Copy)]
pub struct CategoryPlace<'a> {
    /// The category.
    pub category_path: &'a CategoryPath,
    /// The product.
    pub id: &'a ProductId,
}

impl CategoryPlace<'_> {
    fn key(&self) -> Result<IndexKey, KeyError> {
        let mut sort = self.category_path.key_text();
        sort.push('#');
        self.id.write(&mut sort);
        Ok(IndexKey {
            index: Index::Gsi2,
            partition: category_partition(self.category_path.top(), CATEGORY_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(sort)?,
        })
    }
}

impl IndexEntry for CategoryPlace<'_> {
    type Entity = Product;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key()?)
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("category_path", value(self.category_path)?)])
    }
}

fn category_partition(top: &str, shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("CATEGORYLIST", &[&top, &shard])
}

impl Entity for Product {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        if self.retired {
            return Ok(Vec::new());
        }
        Ok(vec![CategoryPlace { category_path: &self.category_path, id: &self.id }.key()?])
    }
}

entity! {
    /// How many pieces can be sold. It outlives its product, so that a cancelled order always has somewhere to return to.
    Stock = "Stock" {
        keyed {
            /// Whose.
            product_id: ProductId,
            /// Pieces; never negative, by condition of every write. Moves only with the functions of this module.
            available: u64,
            /// Whether orders may take from it: not after the product was retired.
            sellable: bool,
        }
        free {
            /// Who moved it by hand the last time, and why; for whoever reads the stream.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            last_adjustment: Option<Adjustment>,
        }
    }
}

/// A movement of a stock by hand: goods came in, broke, were counted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// Pieces, negative for what went out.
    pub by: i64,
    /// Why.
    pub reason: String,
    /// The member of staff.
    pub staff: CustomerId,
    /// When.
    pub at: Instant,
}

/// Why a stock cannot be moved by so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StockError {
    /// It would be negative.
    #[error("fewer pieces are in stock")]
    Insufficient,
    /// It would exceed [`MAX_STOCK`].
    #[error("would make the stock larger than {MAX_STOCK}")]
    TooLarge,
}

impl Stock {
    /// The pieces after a movement.
    ///
    /// # Errors
    /// [`StockError`].
    pub fn moved(&self, by: i64) -> Result<u64, StockError> {
        match self.available.checked_add_signed(by) {
            Some(pieces) if pieces <= MAX_STOCK => Ok(pieces),
            None if by < 0 => Err(StockError::Insufficient),
            _ => Err(StockError::TooLarge),
        }
    }
}

impl Entity for Stock {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        stock_key(&self.product_id)
    }
}

entity! {
    /// What the reviews of a product add up to; written in the transaction of each review.
    ReviewStats = "ReviewStats" {
        keyed {
            /// Whose.
            product_id: ProductId,
            /// How many reviews.
            rating_count: u64,
            /// The sum of their ratings.
            rating_sum: u64,
        }
        free {}
    }
}

impl Entity for ReviewStats {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        stats_key(&self.product_id)
    }
}

entity! {
    /// A product's long description, read on the product's own page only.
    ProductContent = "ProductContent" {
        keyed {
            /// Whose.
            product_id: ProductId,
        }
        free {
            /// Markdown.
            text: String,
        }
    }
}

impl Entity for ProductContent {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        content_key(&self.product_id)
    }
}

pub(crate) fn partition(id: &ProductId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PRODUCT", &[id])
}

pub(crate) fn key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT")? })
}

pub(crate) fn stock_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#STOCK")? })
}

pub(crate) fn stats_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PRODUCT#STATS")? })
}

fn content_key(id: &ProductId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("CONTENT")? })
}

/// The condition that a product is in the catalogue.
pub(crate) fn in_catalogue() -> Condition {
    Condition::Exists.and(Condition::Lacks("retired"))
}

/// A product as the category index shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The product.
    pub id: ProductId,
    /// Its name.
    pub name: String,
    /// Its brand.
    pub brand: String,
    /// Such as `22 LB`.
    #[serde(default)]
    pub package_size: Option<String>,
    /// Where it stands.
    pub category_path: CategoryPath,
    /// What one piece costs.
    pub price: Money,
    /// The product's version.
    pub version: u64,
}

crate::item::view!(Listed of Product);

/// Which part of a product transaction was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The product: exists already, is not there, or is at another version.
    Product,
    /// Its stock item.
    Stock,
    /// Its content item.
    Content,
    /// The idempotency record: the same request was answered before.
    Idempotency,
}

patterns! {
    CREATE = "products.create": TransactWriteItems, "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK" => "neither exists", Consistency::Write, "staff", "Create a product with its stock", ["POST /v1/products"];
    CREATE_MANY = "products.create-many": TransactWriteItems, "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK, for up to 50 products" => "none exists", Consistency::Write, "staff", "Create the new products of an import", ["POST /v1/products/import"];
    REVIVE = "products.revive": TransactWriteItems, "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK" => "the product is retired and at the rev that was seen", Consistency::Write, "staff", "Bring a retired product back under its id", ["POST /v1/products", "POST /v1/products/import"];
    PAGE = "products.page": Query, "PK = PRODUCT#<id>, SK between PRODUCT and PRODUCT$" => "summary, review statistics, stock", Consistency::Eventual, "any", "Read a product with stock and statistics, without content", ["GET /v1/products/{id}", "POST /v1/products", "PATCH /v1/products/{id}"];
    EDIT = "products.edit": GetItem, "PK = PRODUCT#<id>, SK = PRODUCT" => "the product", Consistency::Strong("a refusal is explained by what is stored now"), "staff", "Read a product to revive it, or to say why a change was refused", ["POST /v1/products", "PATCH /v1/products/{id}", "DELETE /v1/products/{id}"];
    MANY = "products.many": BatchGetItem, "PK = PRODUCT#<id>, SK = PRODUCT, for each id" => "the products", Consistency::Strong("an import decides from it what is new, equal or changed"), "staff", "Read the products that an import names", ["POST /v1/products/import"];
    UPDATE = "products.update": UpdateItem, "PK = PRODUCT#<id>, SK = PRODUCT" => "in the catalogue, version = the If-Match", Consistency::Write, "staff", "Change a product, with its category key when the category changes", ["PATCH /v1/products/{id}", "POST /v1/products/import"];
    RETIRE = "products.retire": TransactWriteItems, "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK" => "in the catalogue, version = the If-Match", Consistency::Write, "staff", "Take a product out of the catalogue", ["DELETE /v1/products/{id}"];
    SET_STOCK = "stock.set": UpdateItem, "PK = PRODUCT#<id>, SK = PRODUCT#STOCK" => "sellable", Consistency::Write, "staff", "Set a stock", ["PUT /v1/products/{id}/stock"];
    ADJUST_STOCK = "stock.adjust": TransactWriteItems, "PK = PRODUCT#<id>, SK = PRODUCT#STOCK; PK = IDEMPOTENCY#<caller>#<key>" => "sellable, and still what was read; the key is new", Consistency::Write, "staff", "Adjust a stock once", ["POST /v1/products/{id}/stock/adjustments"];
    READ_STOCK = "stock.get": GetItem, "PK = PRODUCT#<id>, SK = PRODUCT#STOCK" => "the stock", Consistency::Strong("the adjustment is computed from it and conditional on it"), "staff", "Read a stock before adjusting it", ["POST /v1/products/{id}/stock/adjustments"];
    GET_CONTENT = "content.get": BatchGetItem, "PK = PRODUCT#<id>, SK = PRODUCT and CONTENT" => "the product, which may be retired, and the content", Consistency::Eventual, "any", "Read a product's long description", ["GET /v1/products/{id}/content"];
    PUT_CONTENT = "content.put": TransactWriteItems, "PK = PRODUCT#<id>, SK = CONTENT; SK = PRODUCT (check)" => "does not exist, or version = the If-Match; the product is in the catalogue", Consistency::Write, "staff", "Write a product's long description", ["PUT /v1/products/{id}/content"];
    IN_CATEGORY = "categories.products": ShardedQuery on Gsi2, "GSI2PK = CATEGORYLIST#<top>#<shard>, GSI2SK under <path>#" => "products of a category and all below it, by category and id", Consistency::Eventual, "any", "List the products of a category", ["GET /v1/categories/{path}/products"];
}

fn stock_of(product: &Stored<Product>, available: u64) -> Stored<Stock> {
    let stock = Stock { product_id: product.id.clone(), available, sellable: true, last_adjustment: None };
    Stored::new(stock, product.meta.born.clone(), product.meta.created_at)
}

/// Creates a product with its stock.
///
/// # Errors
/// [`EncodeError`].
pub fn create(product: &Stored<Product>, available: u64) -> Result<Transaction<Part>, EncodeError> {
    Ok(Transaction::new(&CREATE)
        .action(Part::Product, Guarded::put(product, Condition::NotExists)?)
        .action(Part::Stock, Guarded::put(&stock_of(product, available), Condition::NotExists)?))
}

/// Creates up to 50 products with their stock. Labels are positions in `products`.
///
/// # Errors
/// [`EncodeError`].
pub fn create_many<'a>(
    products: impl IntoIterator<Item = (&'a Stored<Product>, u64)>,
) -> Result<Transaction<usize>, EncodeError> {
    let mut transaction = Transaction::new(&CREATE_MANY);
    for (position, (product, available)) in products.into_iter().enumerate() {
        transaction = transaction
            .action(position, Guarded::put(product, Condition::NotExists)?)
            .action(position, Guarded::put(&stock_of(product, available), Condition::NotExists)?);
    }
    Ok(transaction)
}

/// Brings a retired product back as another incarnation; `version` and `rev` go on where they were.
///
/// # Errors
/// [`EncodeError`].
pub fn revive(
    retired: &Stored<Product>,
    product: &Product,
    available: u64,
    born: &Born,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let change = Change::<Product>::visible(at)
        .reborn(born, at)
        .name(&product.name)?
        .brand(&product.brand)?
        .package_size(&product.package_size)?
        .price(&product.price)?
        .summary(&product.summary)?
        .enter(&CategoryPlace { category_path: &product.category_path, id: &product.id })?
        .set("retired", None::<bool>)?;
    let seen = Condition::Has("retired").and(Condition::Is("rev", number(retired.meta.rev)));
    let stock = Change::<Stock>::visible(at)
        .or_create(born, at)
        .set("product_id", &product.id)?
        .set("available", available)?
        .set("sellable", true)?;
    Ok(Transaction::new(&REVIVE).action(Part::Product, Guarded::update(key(&product.id)?, change, seen)).action(
        Part::Stock,
        Guarded {
            write: crate::request::Write::Update { key: stock_key(&product.id)?, steps: stock.into_steps() },
            condition: None,
        },
    ))
}

/// Everything that a product page shows: summary, statistics, stock. A retired product comes back too.
///
/// # Errors
/// [`KeyError`].
pub fn page(id: &ProductId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&PAGE, partition(id)?, Range::Between("PRODUCT".into(), "PRODUCT$".into())).limit(3))
}

/// Reads a product strongly, retired or not.
///
/// # Errors
/// [`KeyError`].
pub fn edit(id: &ProductId) -> Result<Get<Stored<Product>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Reads many products strongly, retired ones too.
///
/// # Errors
/// [`KeyError`].
pub fn many<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Product>>, KeyError> {
    Ok(BatchGet::new(&MANY, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Changes a product of the catalogue that is at `version`; gives it back.
///
/// # Errors
/// [`KeyError`].
pub fn update(id: &ProductId, change: Change<Product>, version: u64) -> Result<Single<Stored<Product>>, KeyError> {
    let condition = in_catalogue().and(Condition::version(version));
    Ok(Single::new(&UPDATE, Guarded::update(key(id)?, change, condition)))
}

/// Takes a product out of the catalogue.
///
/// # Errors
/// [`EncodeError`].
pub fn retire(id: &ProductId, version: u64, at: Instant) -> Result<Transaction<Part>, EncodeError> {
    let change = Change::<Product>::visible(at).leave(Index::Gsi2).set("retired", true)?;
    let stock = Change::<Stock>::visible(at).set("sellable", false)?;
    Ok(Transaction::new(&RETIRE)
        .action(Part::Product, Guarded::update(key(id)?, change, in_catalogue().and(Condition::version(version))))
        .action(Part::Stock, Guarded::update(stock_key(id)?, stock, Condition::Exists)))
}

/// Sets the stock of a product of the catalogue; gives it back.
///
/// # Errors
/// [`EncodeError`].
pub fn set_stock(id: &ProductId, available: u64, at: Instant) -> Result<Single<Stored<Stock>>, EncodeError> {
    let change = Change::<Stock>::visible(at).set("available", available)?;
    Ok(Single::new(&SET_STOCK, Guarded::update(stock_key(id)?, change, Condition::Is("sellable", value(true)?))))
}

/// Moves the stock that was read to `available`, if it still is what was read: only so is the number that the caller answers the one
/// that the table holds after this very adjustment. `claim` is the idempotency record ([`crate::idempotency::claim`]).
///
/// # Errors
/// [`EncodeError`].
pub fn adjust_stock(
    seen: &Stored<Stock>,
    available: u64,
    adjustment: Adjustment,
    claim: Guarded,
) -> Result<Transaction<Part>, EncodeError> {
    let unchanged = Condition::Is("sellable", value(true)?).and(Condition::Is("available", number(seen.available)));
    let change =
        Change::<Stock>::visible(adjustment.at).set("available", available)?.last_adjustment(&Some(adjustment))?;
    Ok(Transaction::new(&ADJUST_STOCK)
        .action(Part::Stock, Guarded::update(stock_key(&seen.product_id)?, change, unchanged))
        .action(Part::Idempotency, claim))
}

/// Takes pieces for an order line, or refuses: an action of the order's transaction.
pub(crate) fn take(id: &ProductId, quantity: u64, at: Instant) -> Result<Guarded, EncodeError> {
    let quantity = i64::try_from(quantity).map_err(|_| EncodeError::TooLarge(usize::MAX))?;
    let condition = Condition::Is("sellable", value(true)?).and(Condition::AtLeast("available", number(quantity)));
    Ok(Guarded::update(stock_key(id)?, Change::<Stock>::visible(at).add("available", -quantity), condition))
}

/// Returns pieces of a cancelled order line: an action of the order's transaction. A retired product takes them back too.
pub(crate) fn give_back(id: &ProductId, quantity: u64, at: Instant) -> Result<Guarded, EncodeError> {
    let quantity = i64::try_from(quantity).map_err(|_| EncodeError::TooLarge(usize::MAX))?;
    Ok(Guarded::update(stock_key(id)?, Change::<Stock>::visible(at).add("available", quantity), Condition::Exists))
}

/// Reads a stock strongly.
///
/// # Errors
/// [`KeyError`].
pub fn stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&READ_STOCK, stock_key(id)?))
}

/// The product, then its content: what a retired product says is not shown.
///
/// # Errors
/// [`KeyError`].
pub fn content(id: &ProductId) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&GET_CONTENT, vec![key(id)?, content_key(id)?]))
}

/// Creates a product's content.
///
/// # Errors
/// [`EncodeError`].
pub fn create_content(content: &Stored<ProductContent>) -> Result<Transaction<Part>, EncodeError> {
    Ok(Transaction::new(&PUT_CONTENT)
        .action(Part::Content, Guarded::put(content, Condition::NotExists)?)
        .action(Part::Product, Guarded::check(key(&content.product_id)?, in_catalogue())))
}

/// Replaces a product's content that is at `version`.
///
/// # Errors
/// [`EncodeError`].
pub fn replace_content(
    id: &ProductId,
    text: &String,
    version: u64,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let change = Change::<ProductContent>::visible(at).text(text)?;
    Ok(Transaction::new(&PUT_CONTENT)
        .action(Part::Content, Guarded::update(content_key(id)?, change, Condition::version(version)))
        .action(Part::Product, Guarded::check(key(id)?, in_catalogue())))
}

/// The products of a category and all below it, by category and id.
///
/// # Errors
/// [`KeyError`].
pub fn in_category(path: &CategoryPath) -> Result<Query<Listed>, KeyError> {
    let shards = CATEGORY_SHARDS.all().map(|shard| category_partition(path.top(), shard)).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&IN_CATEGORY, shards, Range::under(&path.key_text())))
}
