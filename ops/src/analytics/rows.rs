//! The rows of the tables. `docs/analytics.yaml` declares the same columns, and a test compares
//! them.

use key_schema::entity::AnyEntity;
use key_schema::id::time_of;
use key_schema::instant::Instant;
use key_schema::order::OrderStatus;
use serde::Serialize;

use crate::error::OpsError;

#[derive(Debug)]
pub(super) struct Row {
    pub table: &'static str,
    pub day: Option<String>,
    pub json: Vec<u8>,
}

/// A row of `orders`. In all rows, amounts are in minor units of the currency.
#[derive(Serialize)]
struct OrderRow<'a> {
    order_id: &'a str,
    customer_id: &'a str,
    store_id: Option<&'a str>,
    status: &'a str,
    items: i64,
    discount: i64,
    shipping: i64,
    shipping_discount: i64,
    tax: i64,
    total: i64,
    refunded: i64,
    currency: &'a str,
    line_count: u64,
    by_customer: bool,
    lapsed: bool,
    placed_at: String,
    updated_at: String,
}

#[derive(Serialize)]
struct LineRow<'a> {
    order_id: &'a str,
    line: u64,
    product_id: &'a str,
    product_name: &'a str,
    quantity: u64,
    unit_price: i64,
    discount: i64,
    tax: i64,
    total: i64,
    currency: &'a str,
    placed_at: String,
}

#[derive(Serialize)]
struct StatusRow<'a> {
    order_id: &'a str,
    status: &'a str,
    changed_at: String,
}

#[derive(Serialize)]
struct ProductRow<'a> {
    product_id: &'a str,
    name: &'a str,
    brand: &'a str,
    category: String,
    package_size: Option<&'a str>,
    price: i64,
    currency: &'a str,
    retired: bool,
}

#[derive(Serialize)]
struct ReviewRow<'a> {
    product_id: &'a str,
    customer_id: &'a str,
    rating: u64,
    created_at: String,
}

/// Returns the row of an item. Most entities have no row.
pub(super) fn row(entity: &AnyEntity) -> Result<Option<Row>, OpsError> {
    match entity {
        // An order that is being placed is invisible, so it has no row. In a join, its lines match
        // no order.
        AnyEntity::Order(order) if order.status == OrderStatus::Placing => Ok(None),
        AnyEntity::Order(order) => {
            let charges = order.charges();
            let row = OrderRow {
                order_id: order.id.as_str(),
                customer_id: order.customer_id.as_str(),
                store_id: order.store_id.as_ref().map(|id| id.as_str()),
                status: order.status.as_str(),
                items: charges.items,
                discount: charges.discount,
                shipping: charges.shipping,
                shipping_discount: charges.shipping_discount,
                tax: charges.tax,
                total: order.total.amount,
                refunded: order.refunded,
                currency: order.total.currency.as_str(),
                line_count: order.line_count,
                by_customer: order.by_customer,
                lapsed: order.lapsed,
                placed_at: timestamp(order.placed_at),
                updated_at: timestamp(order.meta.updated_at),
            };
            of("orders", Some(order.placed_at), &row)
        }
        AnyEntity::OrderLine(line) => {
            let id = line.order_id.as_str();
            let placed_at = time_of(id).ok_or_else(|| OpsError::failed("the order's id has no time"))?;
            let row = LineRow {
                order_id: id,
                line: line.line,
                product_id: line.product_id.as_str(),
                product_name: &line.name,
                quantity: line.quantity,
                unit_price: line.unit_price.amount,
                discount: line.discount,
                tax: line.tax,
                total: line.total.amount,
                currency: line.total.currency.as_str(),
                placed_at: timestamp(placed_at),
            };
            of("order_lines", Some(placed_at), &row)
        }
        AnyEntity::OrderStatusEvent(event) if event.status == OrderStatus::Placing => Ok(None),
        AnyEntity::OrderStatusEvent(event) => {
            let (order_id, status) = (event.order_id.as_str(), event.status.as_str());
            let row = StatusRow { order_id, status, changed_at: timestamp(event.at) };
            of("order_status_changes", Some(event.at), &row)
        }
        AnyEntity::Product(product) => {
            let row = ProductRow {
                product_id: product.id.as_str(),
                name: &product.name,
                brand: &product.brand,
                category: product.category_path.to_string(),
                package_size: product.package_size.as_deref(),
                price: product.price.amount,
                currency: product.price.currency.as_str(),
                retired: product.retired,
            };
            of("products", None, &row)
        }
        AnyEntity::Review(review) => {
            let row = ReviewRow {
                product_id: review.product_id.as_str(),
                customer_id: review.customer_id.as_str(),
                rating: review.rating,
                created_at: timestamp(review.meta.created_at),
            };
            of("reviews", None, &row)
        }
        _ => Ok(None),
    }
}

fn of(table: &'static str, at: Option<Instant>, row: &impl Serialize) -> Result<Option<Row>, OpsError> {
    let json = serde_json::to_vec(row).map_err(OpsError::failed)?;
    Ok(Some(Row { table, day: at.map(Instant::day), json }))
}

/// Returns an instant in the form of a SQL timestamp, in UTC. Hive and Athena reject the `T`
/// and the `Z` of RFC 3339.
fn timestamp(at: Instant) -> String {
    at.to_string().replace('T', " ").replace('Z', "")
}
