use item_model::prelude::*;

use super::{
    BY_IDS, CATEGORY_SHARDS, CREATE, CREATE_MANY, CategoryIndexKey, CategoryPath, Copied, EDIT, GET_CONTENT,
    IN_CATEGORY, MANY, PAGE, PUT_CONTENT, Product, ProductChanges as _, ProductContent, ProductContentChanges as _,
    ProductSales, ProductSummary, RETIRE, REVIVE, ReviewStats, Stock, UPDATE, category_partition, content_key,
    in_catalogue, key, partition, stock_key,
};
use crate::category::CategoryNode;
use crate::change::Change;
use crate::expression::{Condition, number};
use crate::id::{Born, ProductId};
use crate::index::GSI2;
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::{KeyError, PartitionKey};
use crate::media::{self, UnsettledObject};
use crate::membership::ProductCategories;
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction};
use crate::variant::{MAX_VARIANTS, Variant};

/// A refusal names the action whose condition failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductAction {
    /// The product. The condition fails if the product exists already, is not in the catalogue, is
    /// at another version, or may not be retired or revived.
    Product,
    Stock,
    /// The entry in the list of stocks with several shards. Its condition fails after a recent change.
    Shards,
    Content,
    /// The [`UnsettledObject`] of an object that the content starts or stops referencing.
    Object,
    /// The parent of the product that becomes or stops being a variant.
    Parent,
    /// The stock of the parent. Its condition fails if the stock has pieces.
    ParentStock,
    /// The claim on the options of a variant. Its condition fails if a sibling has the options.
    Options,
    /// A node of the product's category path.
    Category,
    /// The idempotency record. Its condition fails if an earlier attempt of the request already has
    /// a response.
    Idempotency,
}

/// Returns the product with the copies of its first stock.
fn with_copies(product: &Stored<Product>, available: u64) -> Stored<Product> {
    let mut product = product.clone();
    product.data.copied = Copied::of_new(available);
    product
}

fn stock_of(product: &Stored<Product>, available: u64) -> Stored<Stock> {
    let stock = Stock::new(product.id.clone(), available);
    Stored::new(stock, product.meta.born.clone(), product.meta.created_at)
}

/// Returns the stock for a product whose stock was lost. Orders of another incarnation of the product
/// return no pieces to it, and a parent's stock takes no pieces at all.
#[must_use]
pub fn restored_stock(product: &Stored<Product>, available: u64, rev: u64, at: Instant) -> Stored<Stock> {
    let is_parent = product.variants.is_some();
    let born = if is_parent { Born::generate(at, [0; 10]) } else { product.meta.born.clone() };
    let mut stock = stock_of(product, if is_parent { 0 } else { available });
    stock.data.sellable = !product.retired && !is_parent;
    stock.data.product_born = Some(born);
    stock.meta.rev = rev;
    stock.meta.updated_at = at;
    stock
}

/// Creates a product with its stock and the missing nodes of its category path.
pub fn create(
    product: &Stored<Product>,
    available: u64,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    let [product, stock] = new_items(product, available)?;
    let transaction =
        Transaction::new(&CREATE).action(ProductAction::Product, product).action(ProductAction::Stock, stock);
    with_nodes(transaction, nodes)
}

pub(crate) fn new_items(product: &Stored<Product>, available: u64) -> Result<[Guarded; 2], EncodeError> {
    Ok([
        Guarded::put(&with_copies(product, available), Condition::NotExists)?,
        Guarded::put(&stock_of(product, available), Condition::NotExists)?,
    ])
}

/// Creates up to 50 products with their stock. Each action's label is a position in `products`.
pub fn create_many<'a>(
    products: impl IntoIterator<Item = (&'a Stored<Product>, u64)>,
) -> Result<Transaction<usize>, EncodeError> {
    let mut transaction = Transaction::new(&CREATE_MANY);
    for (position, (product, available)) in products.into_iter().enumerate() {
        for write in new_items(product, available)? {
            transaction = transaction.action(position, write);
        }
    }
    Ok(transaction)
}

/// Revives a retired product with the attributes and the `born` of `product`, and adds the missing
/// nodes of its category path. `version` and `rev` continue from the retired item. The stock starts
/// again with `available` pieces. Orders from before the revival return no pieces to it.
pub fn revive(
    retired: &Stored<Product>,
    product: &Stored<Product>,
    available: u64,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    let [product, stock] = revived_items(retired, product, available)?;
    let transaction =
        Transaction::new(&REVIVE).action(ProductAction::Product, product).action(ProductAction::Stock, stock);
    with_nodes(transaction, nodes)
}

pub(crate) fn revived_items(
    retired: &Stored<Product>,
    product: &Stored<Product>,
    available: u64,
) -> Result<[Guarded; 2], EncodeError> {
    let (born, at) = (&product.meta.born, product.meta.created_at);
    let change = Change::<Product>::visible(at)
        .reborn(born, at)
        .name(&product.name)?
        .brand(&product.brand)?
        .package_size(&product.package_size)?
        .price(&product.price)?
        .compare_at(&product.compare_at)?
        .summary(&product.summary)?
        .weight_grams(&product.weight_grams)?
        .shippable(&product.shippable)?
        .tax_category(&product.tax_category)?
        .enter(&CategoryIndexKey { category_path: &product.category_path, id: &product.id })?
        .set("retired", None::<bool>)?
        .set("parent", &product.parent)?
        .set("options", &product.options)?
        .set("variants", None::<u64>)?
        .set("in_stock", (available > 0).then_some(true))?;
    // The condition is not on `rev`: after the retirement, the stream's consumer copies the
    // availability onto the product and so increases `rev`.
    let seen = Condition::Has("retired").and(Condition::version(retired.meta.version));
    let first = Stock::new(product.id.clone(), available);
    let stock = Change::<Stock>::visible(at)
        .or_create(born, at)
        .set("product_id", &first.product_id)?
        .set("location", &first.location)?
        .set("shard", first.shard)?
        .set("available", first.available)?
        .set("sellable", first.sellable)?
        .set("product_born", born)?;
    Ok([Guarded::update(key(&product.id)?, change, seen), Guarded::modify(stock_key(&product.id)?, stock)])
}

/// Adds the puts of category nodes. Every writer writes the same node, so the puts need no
/// condition.
pub(crate) fn with_nodes(
    mut transaction: Transaction<ProductAction>,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    for node in nodes {
        transaction = transaction.action(ProductAction::Category, Guarded::overwrite(node)?);
    }
    Ok(transaction)
}

/// The maximum number of items that the Query of a product page reads: `PRODUCT` and, below it,
/// `CATEGORIES`, `SALES`, `STATS`, the variants, and a stock that is not moved yet
/// ([`super::old_stock`]).
const PAGE_ITEMS: usize = 5 + MAX_VARIANTS as usize;

one_of! {
    pub enum PageItem { Product ProductCategories ProductSales ReviewStats Stock Variant }
}

/// Reads the items of a product page except the stock: summary, further categories, sales, statistics
/// and variants. The product may be retired.
pub fn page(id: &ProductId) -> Result<Query<PageItem>, KeyError> {
    Ok(Query::new(&PAGE, partition(id)?, Range::Between("PRODUCT".into(), "PRODUCT$".into())).limit(PAGE_ITEMS))
}

/// Reads a product, retired or not, with strong consistency.
pub fn read_for_update(id: &ProductId) -> Result<Get<Stored<Product>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Reads many products, retired or not, with strong consistency.
pub fn many<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Product>>, KeyError> {
    Ok(BatchGet::new(&MANY, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// The maximum number of products that a client can read by their ids in one request.
pub const MAX_IDS: usize = 50;

/// Reads products by their ids, retired or not, in the given order.
pub fn by_ids<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Product>>, KeyError> {
    Ok(BatchGet::new(&BY_IDS, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Changes a product and returns it, on the condition that it is in the catalogue and at `version`.
pub fn update(id: &ProductId, change: Change<Product>, version: u64) -> Result<Single<Stored<Product>>, KeyError> {
    let condition = in_catalogue().and(Condition::version(version));
    Ok(Single::new(&UPDATE, Guarded::update(key(id)?, change, condition)))
}

/// Takes a product out of the catalogue. DynamoDB refuses the write for a variant, which
/// [`crate::variant::retire`] retires, and for a parent that still has variants.
pub fn retire(id: &ProductId, version: u64, at: Instant) -> Result<Transaction<ProductAction>, EncodeError> {
    let childless = Condition::Lacks("variants").or(Condition::Is("variants", number(0)));
    let able = Condition::version(version).and(Condition::Lacks("parent")).and(childless);
    let [product, stock] = retired_items(id, able, at)?;
    Ok(Transaction::new(&RETIRE).action(ProductAction::Product, product).action(ProductAction::Stock, stock))
}

/// Returns the writes that retire a product and its stock, on a condition on the product.
pub(crate) fn retired_items(id: &ProductId, able: Condition, at: Instant) -> Result<[Guarded; 2], EncodeError> {
    let change = Change::<Product>::visible(at).leave(GSI2).set("retired", true)?;
    let stock = Change::<Stock>::visible(at).set("sellable", false)?;
    Ok([
        Guarded::update(key(id)?, change, in_catalogue().and(able)),
        Guarded::update(stock_key(id)?, stock, Condition::Exists.and(Condition::Lacks("shards"))),
    ])
}

one_of! {
    pub enum ContentItem { Product ProductContent }
}

/// Reads the product, then its content. The caller needs the product, because the content of a
/// retired product stays hidden.
pub fn content(id: &ProductId) -> Result<BatchGet<ContentItem>, KeyError> {
    Ok(BatchGet::new(&GET_CONTENT, vec![key(id)?, content_key(id)?]))
}

/// Creates a product's content. `note` is the [`UnsettledObject`] of the object that the content
/// references, if any.
pub fn create_content(
    content: &Stored<ProductContent>,
    note: Option<&Stored<UnsettledObject>>,
) -> Result<Transaction<ProductAction>, EncodeError> {
    Ok(Transaction::new(&PUT_CONTENT)
        .action(ProductAction::Content, Guarded::put(content, Condition::NotExists)?)
        .action(ProductAction::Product, Guarded::check(key(&content.product_id)?, in_catalogue()))
        .optional(ProductAction::Object, note.map(media::settled).transpose()?))
}

/// Replaces a product's content if it is at `version`. `note` is the [`UnsettledObject`] of the
/// object that the new content references. `before` is a new [`UnsettledObject`] for the object
/// that the stored content references. Without `before`, DynamoDB refuses the write if the stored
/// content references an object.
pub fn replace_content(
    content: &ProductContent,
    note: Option<&Stored<UnsettledObject>>,
    before: Option<&Stored<UnsettledObject>>,
    version: u64,
    at: Instant,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let id = &content.product_id;
    let change = Change::<ProductContent>::visible(at).text(&content.text)?.file(&content.file)?;
    let seen = Condition::version(version);
    // The version determines the object that the stored content references. So with `before`, the
    // condition on the version is enough. Without `before`, the stored content must not reference
    // an object.
    let seen = if before.is_some() { seen } else { seen.and(Condition::Lacks("file")) };
    let mut transaction = Transaction::new(&PUT_CONTENT)
        .action(ProductAction::Content, Guarded::update(content_key(id)?, change, seen))
        .action(ProductAction::Product, Guarded::check(key(id)?, in_catalogue()));
    // If the object stays referenced, the transaction leaves its `UnsettledObject` unchanged. The
    // janitor deletes that item later.
    if note.map(|note| &note.id) != before.map(|before| &before.id) {
        if let Some(note) = note {
            transaction = transaction.action(ProductAction::Object, media::settled(note)?);
        }
        if let Some(before) = before {
            transaction = transaction.action(ProductAction::Object, media::unsettled(before)?);
        }
    }
    Ok(transaction)
}

/// Lists the products of a category and of all categories below it, by category and id.
pub fn in_category(path: &CategoryPath) -> Result<Query<ProductSummary>, KeyError> {
    Ok(Query::sharded(&IN_CATEGORY, list_partitions(path)?, Range::under(&path.key_text())))
}

pub(crate) fn list_partitions(path: &CategoryPath) -> Result<Vec<PartitionKey>, KeyError> {
    CATEGORY_SHARDS.all().map(|shard| category_partition(path.top(), shard)).collect()
}
