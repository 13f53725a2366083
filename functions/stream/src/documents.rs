//! The search documents of items. A document depends only on the item.

use key_schema::entity::AnyEntity;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::key::Key;
use key_schema::order::{Order, OrderNumber, OrderStatus};
use key_schema::product::Product;
use key_schema::variant::Options;
use search_index::{BulkOperation, Collection, OrderDocument, ProductDocument, SearchError, document_id};

use crate::batch::{Mutation, Record};

/// Returns the index operation of a change, or `None` if its item has no document.
pub(crate) fn operation(record: &Record<'_>) -> Option<Result<BulkOperation, SearchError>> {
    let id = id(&record.key);
    match &record.change {
        Mutation::Created { new } | Mutation::Changed { new, .. } => written(id, new),
        Mutation::Removed { old, .. } => removed(id, old, record),
    }
}

/// Returns the index operation for an existing item, or `None` if it has no document.
pub fn written(id: String, new: &AnyEntity) -> Option<Result<BulkOperation, SearchError>> {
    match new {
        AnyEntity::Product(new) if new.retired => {
            Some(tombstone(Collection::Products, id, new.meta.rev, new.meta.updated_at))
        }
        AnyEntity::Product(new) => Some(BulkOperation::index(id, new.meta.rev, &product(new))),
        // Searches do not find invisible or retired orders. The tombstone is written even if there
        // is no document to remove, so that the index always has the item's newest `rev`.
        AnyEntity::Order(new) if new.status == OrderStatus::Placing || new.expires_at.is_some() => {
            Some(tombstone(Collection::Orders, id, new.meta.rev, new.meta.updated_at))
        }
        AnyEntity::Order(new) => Some(BulkOperation::index(id, new.meta.rev, &order(new))),
        _ => None,
    }
}

fn removed(id: String, old: &AnyEntity, record: &Record<'_>) -> Option<Result<BulkOperation, SearchError>> {
    let (collection, meta) = match old {
        AnyEntity::Product(old) => (Collection::Products, &old.meta),
        AnyEntity::Order(old) => (Collection::Orders, &old.meta),
        _ => return None,
    };
    Some(tombstone(collection, id, after(meta.rev), removed_at(record, meta.updated_at)))
}

fn id(key: &Key) -> String {
    document_id(key.pk.as_str(), key.sk.as_str())
}

fn tombstone(collection: Collection, id: String, rev: u64, at: Instant) -> Result<BulkOperation, SearchError> {
    BulkOperation::tombstone(collection, id, rev, &at.to_string())
}

/// Returns the `rev` of a removal, which is higher than the `rev` of the removed state. Otherwise
/// a second delivery of that state would restore the document. Operators remove products and
/// orders, and DynamoDB removes expired orders.
///
/// If a removed product is created again, its `rev` starts at 1. Searches do not find it until its
/// `rev` exceeds the `rev` of the tombstone, or until the index is rebuilt without tombstones
/// (`ops search rebuild --restored`). The `rev` of an order that is restored from the archive is
/// higher than the `rev` of its tombstone.
const fn after(rev: u64) -> u64 {
    rev.saturating_add(1)
}

/// Returns the stream's time of a removal. The tombstone contains the time, but only the `rev`
/// decides which write the engine keeps.
fn removed_at(record: &Record<'_>, otherwise: Instant) -> Instant {
    record.origin.written_at.unwrap_or(otherwise)
}

fn product(product: &Stored<Product>) -> ProductDocument {
    ProductDocument {
        id: product.id.to_string(),
        name: product.name.clone(),
        brand: product.brand.clone(),
        package_size: product.package_size.clone(),
        category_path: product.category_path.names().to_vec(),
        category: product.category_path.lineage().map(|category| category.to_segment()).collect(),
        price_amount: product.price.amount,
        price_currency: product.price.currency.to_string(),
        compare_at_amount: product.compare_at().map(|former| former.amount),
        summary: product.summary.clone().unwrap_or_default(),
        thumbnail: product.thumbnail.as_ref().map(ToString::to_string),
        in_stock: product.copied.in_stock,
        rating_sum: product.copied.rating_sum,
        rating_count: product.copied.rating_count,
        created_at: product.meta.created_at.to_string(),
        parent: product.parent.as_ref().map(ToString::to_string),
        options: product.options.iter().flat_map(Options::iter).map(|(_, value)| value.to_owned()).collect(),
        group: product.parent.as_ref().unwrap_or(&product.id).to_string(),
        has_variants: product.variants.is_some(),
        version: product.meta.version,
        deleted: false,
    }
}

fn order(order: &Stored<Order>) -> OrderDocument {
    OrderDocument {
        id: order.id.to_string(),
        number: OrderNumber::of(&order.id).to_string(),
        reference: order.reference.as_ref().map(ToString::to_string),
        customer_id: order.customer_id.to_string(),
        store_id: order.store_id.as_ref().map(ToString::to_string),
        status: order.status.to_string(),
        total_amount: order.total.amount,
        total_currency: order.total.currency.to_string(),
        placed_at: order.placed_at.to_string(),
        destination_country: order.destination.as_ref().map(|place| place.country.to_string()),
        destination_city: order.destination.as_ref().map(|place| place.city.clone()),
        line_count: order.line_count,
        version: order.meta.version,
        deleted: false,
    }
}
