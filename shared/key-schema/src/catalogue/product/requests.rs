//! The access patterns of products.

use item_model::prelude::*;

use super::{
    Adjustment, CATEGORY_SHARDS, CategoryIndexKey, CategoryPath, Copied, Product, ProductChanges as _, ProductContent,
    ProductContentChanges as _, ProductSummary, Stock, StockChanges as _, category_partition, content_key,
    in_catalogue, key, partition, stock_key,
};
use crate::category::CategoryNode;
use crate::change::Change;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number, value};
use crate::id::ProductId;
use crate::index::GSI2;
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::{KeyError, PartitionKey};
use crate::media::{self, UnsettledObject};
use crate::order::OrderLine;
use crate::pattern::Consistency;
use crate::request::{BatchGet, Get, Guarded, Query, Range, Single, Transaction, Write};

/// An action of a product transaction, which labels its refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductAction {
    /// The product already exists, is missing, or is at another version.
    Product,
    /// The product's stock item.
    Stock,
    /// The product's content item.
    Content,
    /// The note of an object that the content starts or stops referencing.
    Object,
    /// A node of the product's category path.
    Category,
    /// The idempotency record: an earlier attempt of the request has a response already.
    Idempotency,
}

patterns! {
    CREATE {
        id: "products.create",
        purpose: "Create a product with its stock and the missing categories",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK; PK = CATEGORY#<parent>, SK = \
            CHILD#<name>, for each missing node",
        requires: "product and stock do not exist",
        callers: "staff",
    }
    CREATE_MANY {
        id: "products.create-many",
        purpose: "Create the new products of an import",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK, for up to 50 products",
        requires: "none exists",
        callers: "staff",
    }
    REVIVE {
        id: "products.revive",
        purpose: "Bring a retired product back under its id",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK",
        requires: "the product is retired, at the version that was read",
        callers: "staff",
    }
    PAGE {
        id: "products.page",
        purpose: "Read everything that a product page shows, except content",
        request: Query,
        key: "PK = PRODUCT#<id>, SK between PRODUCT and PRODUCT$",
        returns: "the product, its further categories, sales, review statistics and stock",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    EDIT {
        id: "products.edit",
        purpose: "Read a product to revive it, or to explain a refused change",
        request: GetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        returns: "the product",
        consistency: Consistency::Strong("the explanation of a refusal must match the stored \
            product"),
        callers: "staff",
    }
    MANY {
        id: "products.many",
        purpose: "Read the products that an import names",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT, for each id",
        returns: "the products",
        consistency: Consistency::Strong("an import compares its rows with the stored products"),
        callers: "staff",
    }
    UPDATE {
        id: "products.update",
        purpose: "Change a product, with its category key when the category changes",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT",
        requires: "in the catalogue, version = the If-Match",
        callers: "staff",
    }
    RETIRE {
        id: "products.retire",
        purpose: "Take a product out of the catalogue",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and PRODUCT#STOCK",
        requires: "in the catalogue, version = the If-Match",
        callers: "staff",
    }
    SET_STOCK {
        id: "stock.set",
        purpose: "Set a stock",
        request: UpdateItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT#STOCK",
        requires: "sellable",
        callers: "staff",
    }
    ADJUST_STOCK {
        id: "stock.adjust",
        purpose: "Adjust a stock once",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = PRODUCT#STOCK; PK = IDEMPOTENCY#<caller>#<key>",
        requires: "sellable, and unchanged; the key is new",
        callers: "staff",
    }
    READ_STOCK {
        id: "stock.get",
        purpose: "Read a stock before adjusting it",
        request: GetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT#STOCK",
        returns: "the stock",
        consistency: Consistency::Strong("the adjustment is computed from it and conditional on it"),
        callers: "staff",
    }
    GET_CONTENT {
        id: "content.get",
        purpose: "Read a product's long description",
        request: BatchGetItem,
        key: "PK = PRODUCT#<id>, SK = PRODUCT and CONTENT",
        returns: "the product, which may be retired, and the content",
        consistency: Consistency::Eventual,
        callers: "any",
    }
    PUT_CONTENT {
        id: "content.put",
        purpose: "Write a product's long description",
        request: TransactWriteItems,
        key: "PK = PRODUCT#<id>, SK = CONTENT; SK = PRODUCT (check); SK = OBJECT#<id> of objects",
        requires: "does not exist, or version = the If-Match; the product is in the catalogue; a \
            new object is noted",
        callers: "staff",
    }
    IN_CATEGORY {
        id: "categories.products",
        purpose: "List the products of a category",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = CATEGORYLIST#<top>#<shard>, GSI2SK under <path>#",
        returns: "products of a category and all below it, by category and id",
        consistency: Consistency::Eventual,
        callers: "any",
    }
}

/// Returns the product with the copies of its first stock.
fn with_copies(product: &Stored<Product>, available: u64) -> Stored<Product> {
    let mut product = product.clone();
    product.data.copied = Copied::of_new(available);
    product
}

fn stock_of(product: &Stored<Product>, available: u64) -> Stored<Stock> {
    let stock =
        Stock { product_id: product.id.clone(), available, sellable: true, product_born: None, last_adjustment: None };
    Stored::new(stock, product.meta.born.clone(), product.meta.created_at)
}

/// Creates a product with its stock and the missing nodes of its category path.
///
/// # Errors
/// [`EncodeError`].
pub fn create(
    product: &Stored<Product>,
    available: u64,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    let transaction = Transaction::new(&CREATE)
        .action(ProductAction::Product, Guarded::put(&with_copies(product, available), Condition::NotExists)?)
        .action(ProductAction::Stock, Guarded::put(&stock_of(product, available), Condition::NotExists)?);
    with_nodes(transaction, nodes)
}

/// Creates up to 50 products with their stock. Each action's label is a position in `products`.
///
/// # Errors
/// [`EncodeError`].
pub fn create_many<'a>(
    products: impl IntoIterator<Item = (&'a Stored<Product>, u64)>,
) -> Result<Transaction<usize>, EncodeError> {
    let mut transaction = Transaction::new(&CREATE_MANY);
    for (position, (product, available)) in products.into_iter().enumerate() {
        transaction = transaction
            .action(position, Guarded::put(&with_copies(product, available), Condition::NotExists)?)
            .action(position, Guarded::put(&stock_of(product, available), Condition::NotExists)?);
    }
    Ok(transaction)
}

/// Revives a retired product as a new incarnation, `product`, with the missing nodes of its
/// category path. `version` and `rev` continue from the retired item. The stock begins anew: orders
/// of the earlier incarnation no longer return their pieces to it.
///
/// # Errors
/// [`EncodeError`].
pub fn revive(
    retired: &Stored<Product>,
    product: &Stored<Product>,
    available: u64,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    let (born, at) = (&product.meta.born, product.meta.created_at);
    let change = Change::<Product>::visible(at)
        .reborn(born, at)
        .name(&product.name)?
        .brand(&product.brand)?
        .package_size(&product.package_size)?
        .price(&product.price)?
        .summary(&product.summary)?
        .enter(&CategoryIndexKey { category_path: &product.category_path, id: &product.id })?
        .set("retired", None::<bool>)?
        .set("in_stock", (available > 0).then_some(true))?;
    // The condition is not on `rev`, because the stream moves it when it copies the retirement onto
    // the product.
    let seen = Condition::Has("retired").and(Condition::version(retired.meta.version));
    let stock = Change::<Stock>::visible(at)
        .or_create(born, at)
        .set("product_id", &product.id)?
        .set("available", available)?
        .set("sellable", true)?
        .set("product_born", born)?;
    let stock = Write::Update { key: stock_key(&product.id)?, steps: stock.into_steps() };
    let transaction = Transaction::new(&REVIVE)
        .action(ProductAction::Product, Guarded::update(key(&product.id)?, change, seen))
        .action(ProductAction::Stock, Guarded { write: stock, condition: None });
    with_nodes(transaction, nodes)
}

/// Adds the puts of category nodes. Every writer writes the same node, so the puts need no
/// condition.
fn with_nodes(
    mut transaction: Transaction<ProductAction>,
    nodes: &[Stored<CategoryNode>],
) -> Result<Transaction<ProductAction>, EncodeError> {
    for node in nodes {
        let put = Guarded { write: Write::Put { item: node.to_item()? }, condition: None };
        transaction = transaction.action(ProductAction::Category, put);
    }
    Ok(transaction)
}

/// The number of items that a product page shows: `PRODUCT` and, below it, `CATEGORIES`, `SALES`,
/// `STATS` and `STOCK`.
const PAGE_ITEMS: usize = 5;

/// Reads all items of a product page: summary, further categories, sales, statistics and stock. The
/// result includes retired products.
///
/// # Errors
/// [`KeyError`].
pub fn page(id: &ProductId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&PAGE, partition(id)?, Range::Between("PRODUCT".into(), "PRODUCT$".into())).limit(PAGE_ITEMS))
}

/// Reads a product, retired or not, with strong consistency.
///
/// # Errors
/// [`KeyError`].
pub fn read_for_update(id: &ProductId) -> Result<Get<Stored<Product>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Reads many products, retired or not, with strong consistency.
///
/// # Errors
/// [`KeyError`].
pub fn many<'a>(ids: impl IntoIterator<Item = &'a ProductId>) -> Result<BatchGet<Stored<Product>>, KeyError> {
    Ok(BatchGet::new(&MANY, ids.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Changes a product of the catalogue that is at `version`, and returns the product.
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
pub fn retire(id: &ProductId, version: u64, at: Instant) -> Result<Transaction<ProductAction>, EncodeError> {
    let change = Change::<Product>::visible(at).leave(GSI2).set("retired", true)?;
    let stock = Change::<Stock>::visible(at).set("sellable", false)?;
    Ok(Transaction::new(&RETIRE)
        .action(
            ProductAction::Product,
            Guarded::update(key(id)?, change, in_catalogue().and(Condition::version(version))),
        )
        .action(ProductAction::Stock, Guarded::update(stock_key(id)?, stock, Condition::Exists)))
}

/// Sets the stock of a product of the catalogue, and returns the stock.
///
/// # Errors
/// [`EncodeError`].
pub fn set_stock(id: &ProductId, available: u64, at: Instant) -> Result<Single<Stored<Stock>>, EncodeError> {
    let change = Change::<Stock>::visible(at).set("available", available)?;
    Ok(Single::new(&SET_STOCK, Guarded::update(stock_key(id)?, change, Condition::Is("sellable", value(true)?))))
}

/// Sets the stock to `available`, on the condition that it is still as it was `seen`. So no
/// concurrent change is lost, and the response reports the stock right after this adjustment.
/// `claim` is the idempotency record ([`crate::idempotency::claim`]).
///
/// # Errors
/// [`EncodeError`].
pub fn adjust_stock(
    seen: &Stored<Stock>,
    available: u64,
    adjustment: Adjustment,
    claim: Guarded,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let unchanged = Condition::Is("sellable", value(true)?).and(Condition::Is("available", number(seen.available)));
    let change =
        Change::<Stock>::visible(adjustment.at).set("available", available)?.last_adjustment(&Some(adjustment))?;
    Ok(Transaction::new(&ADJUST_STOCK)
        .action(ProductAction::Stock, Guarded::update(stock_key(&seen.product_id)?, change, unchanged))
        .action(ProductAction::Idempotency, claim))
}

/// Takes pieces for an order line. The action belongs to the order's transaction. Its condition
/// fails if the stock is too small, not for sale, or of another incarnation of the product.
pub(crate) fn take(line: &OrderLine, at: Instant) -> Result<Guarded, EncodeError> {
    let quantity = pieces(line)?;
    let enough = Condition::Is("sellable", value(true)?).and(Condition::AtLeast("available", number(quantity)));
    let change = Change::<Stock>::visible(at).add("available", -quantity);
    Ok(Guarded::update(stock_key(&line.product_id)?, change, enough.and(of_incarnation(line)?)))
}

fn pieces(line: &OrderLine) -> Result<i64, EncodeError> {
    i64::try_from(line.quantity).map_err(|_| EncodeError::TooLarge(usize::MAX))
}

/// Returns the condition that the stock is of the product that the line has sold
/// ([`Stock::is_of`]).
fn of_incarnation(line: &OrderLine) -> Result<Condition, EncodeError> {
    let never_revived = Condition::Lacks("product_born");
    Ok(match &line.product_born {
        Some(born) => never_revived.or(Condition::Is("product_born", value(born)?)),
        None => never_revived,
    })
}

/// Returns the pieces of a cancelled or returned order line. The action belongs to the order's
/// transaction. The stock of a retired product takes pieces back too. The condition fails if the
/// product was revived since the sale, because the pieces are no longer counted then.
pub(crate) fn give_back(line: &OrderLine, at: Instant) -> Result<Guarded, EncodeError> {
    let change = Change::<Stock>::visible(at).add("available", pieces(line)?);
    Ok(Guarded::update(stock_key(&line.product_id)?, change, Condition::Exists.and(of_incarnation(line)?)))
}

/// Reads a stock with strong consistency.
///
/// # Errors
/// [`KeyError`].
pub fn stock(id: &ProductId) -> Result<Get<Stored<Stock>>, KeyError> {
    Ok(Get::new(&READ_STOCK, stock_key(id)?))
}

/// Reads the product, then its content. The caller needs the product, because the content of a
/// retired product stays hidden.
///
/// # Errors
/// [`KeyError`].
pub fn content(id: &ProductId) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&GET_CONTENT, vec![key(id)?, content_key(id)?]))
}

/// Creates a product's content. `note` is the note of the object that the content references, if
/// any.
///
/// # Errors
/// [`EncodeError`].
pub fn create_content(
    content: &Stored<ProductContent>,
    note: Option<&Stored<UnsettledObject>>,
) -> Result<Transaction<ProductAction>, EncodeError> {
    let transaction = Transaction::new(&PUT_CONTENT)
        .action(ProductAction::Content, Guarded::put(content, Condition::NotExists)?)
        .action(ProductAction::Product, Guarded::check(key(&content.product_id)?, in_catalogue()));
    match note {
        Some(note) => Ok(transaction.action(ProductAction::Object, media::settled(note)?)),
        None => Ok(transaction),
    }
}

/// Replaces a product's content that is at `version`. `note` is the note of the newly referenced
/// object. `before` is a new note for the previously referenced object. Without `before`, DynamoDB
/// refuses the write if the content references an object.
///
/// # Errors
/// [`EncodeError`].
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
    // The version determines the object that the content references, so with `before` the version
    // is enough. Without `before`, the content must not reference an object.
    let seen = if before.is_some() { seen } else { seen.and(Condition::Lacks("file")) };
    let mut transaction = Transaction::new(&PUT_CONTENT)
        .action(ProductAction::Content, Guarded::update(content_key(id)?, change, seen))
        .action(ProductAction::Product, Guarded::check(key(id)?, in_catalogue()));
    // An object that stays referenced keeps its note, and the janitor deletes the note.
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
///
/// # Errors
/// [`KeyError`].
pub fn in_category(path: &CategoryPath) -> Result<Query<ProductSummary>, KeyError> {
    Ok(Query::sharded(&IN_CATEGORY, list_partitions(path)?, Range::under(&path.key_text())))
}

/// Returns the partitions of the list of a path's top category.
pub(crate) fn list_partitions(path: &CategoryPath) -> Result<Vec<PartitionKey>, KeyError> {
    CATEGORY_SHARDS.all().map(|shard| category_partition(path.top(), shard)).collect()
}
