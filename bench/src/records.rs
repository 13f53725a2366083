//! Stream records like those of a shop.

use std::collections::BTreeMap;

use key_schema::customer::Customer;
use key_schema::id::SessionId;
use key_schema::item::{Entity, Item, Meta, Stored};
use key_schema::order::{Order, OrderLine, OrderStatus};
use key_schema::product::{Product, Stock};
use key_schema::session::Session;
use search_index::document_id;
use serde_json::{Value, json};

use crate::BenchError;
use crate::examples::{self, at, bytes, category};

/// The number of records of each item. The first creates the item, and the second changes it.
const REVS: u64 = 2;
/// The number of customers with orders and sessions.
const CUSTOMERS: u64 = 2_469;

/// Returns records of products and orders. As in a real stream, other records come between the
/// creation of an item and its change: the change is 500 records later.
///
/// # Errors
/// [`BenchError`] when the schema refuses an item.
pub(crate) fn records(number: u64) -> Result<Vec<String>, BenchError> {
    (0..number).map(record).collect()
}

fn record(number: u64) -> Result<String, BenchError> {
    let (rev, item) = place(number);
    if item % 2 == 0 {
        change(|rev| product(item, rev), rev, &sequence(number))
    } else {
        change(|rev| order(item, rev), rev, &sequence(number))
    }
}

/// Returns records for every sink of the consumer. Of ten items, four are orders, three are
/// products, two are stocks that run low, and one is an expired session.
///
/// # Errors
/// [`BenchError`] when the schema refuses an item.
pub(crate) fn mixed(number: u64) -> Result<Vec<String>, BenchError> {
    let record = |number: u64| {
        let (rev, item) = place(number);
        let sequence = sequence(number);
        match item % 10 {
            0..=3 => change(|rev| order(item, rev), rev, &sequence),
            4..=6 => change(|rev| product(item, rev), rev, &sequence),
            7..=8 => change(|rev| stock(item, rev), rev, &sequence),
            _ => expired(&session(number)?, &sequence),
        }
    };
    (0..number).map(record).collect()
}

/// Returns the table's items for [`mixed`] records: the orders with their lines, the products, and
/// the customers of the orders and sessions.
pub(crate) fn around(number: u64) -> impl Iterator<Item = Result<Item, BenchError>> {
    let items = number.div_ceil(1_000) * 500;
    let customers = (0..number.min(CUSTOMERS)).map(|customer| stored_item(self::customer(customer)));
    let shop = (0..items).flat_map(|item| match item % 10 {
        0..=3 => [stored_item(order(item, REVS)), stored_item(line(item, 1)), stored_item(line(item, 2))]
            .into_iter()
            .collect::<Vec<_>>(),
        // Stocks (7 and 8) refer to a product, too.
        4..=8 => vec![stored_item(product(item, REVS))],
        _ => Vec::new(),
    });
    customers.chain(shop)
}

/// Returns the documents of the search index after these records: the id and the last `rev` of each
/// product and order.
pub(crate) fn documents(records: &[String]) -> Result<BTreeMap<String, u64>, BenchError> {
    let mut documents = BTreeMap::new();
    for record in records {
        let record: Value = serde_json::from_str(record)?;
        let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if ["Product", "Order"].contains(&text("/dynamodb/NewImage/entity/S")) {
            let id = document_id(text("/dynamodb/Keys/PK/S"), text("/dynamodb/Keys/SK/S"));
            let rev: u64 = text("/dynamodb/NewImage/rev/N").parse()?;
            documents.entry(id).and_modify(|known| *known = rev.max(*known)).or_insert(rev);
        }
    }
    Ok(documents)
}

/// Returns the `rev` and the item's number of a record. Of 1,000 records, 500 create items and the
/// next 500 change them.
const fn place(number: u64) -> (u64, u64) {
    let (thousand, place) = (number / 1_000, number % 1_000);
    (1 + place / 500 % REVS, thousand * 500 + place % 500)
}

fn sequence(number: u64) -> String {
    format!("{:021}", number + 1)
}

fn stored_item<T: Entity>(stored: Result<Stored<T>, BenchError>) -> Result<Item, BenchError> {
    Ok(stored?.to_item()?)
}

fn stock(number: u64, rev: u64) -> Result<Stored<Stock>, BenchError> {
    let (product_id, available) = (examples::product_id(number)?, if rev == 1 { 50 } else { 3 });
    Ok(stored(Stock { product_id, available, sellable: true, product_born: None, last_adjustment: None }, rev))
}

/// Returns a line of an order. The orders share about 500 products.
fn line(number: u64, line: u64) -> Result<Stored<OrderLine>, BenchError> {
    let product_id = examples::product_id(number * 7 % 500 + line)?;
    let data = examples::order_line(&examples::order_id(number))?;
    Ok(stored(OrderLine { line, product_id, quantity: line, ..data }, 1))
}

fn customer(number: u64) -> Result<Stored<Customer>, BenchError> {
    Ok(stored(examples::customer(examples::customer_id(number)?, number)?, 1))
}

fn session(number: u64) -> Result<Stored<Session>, BenchError> {
    let customer_id = examples::customer_id(number % CUSTOMERS)?;
    let id = SessionId::generate(at(0), bytes(number));
    Ok(stored(Session { sign_in: None, id, customer_id, expires_at: at(0), device: "Laptop".into() }, 1))
}

fn product(number: u64, rev: u64) -> Result<Stored<Product>, BenchError> {
    let data = Product {
        name: format!("Ice crushed and cubed number {number}, {rev}"),
        summary: Some("Clear ice for drinks and coolers, crushed or in cubes, from filtered water.".into()),
        category_path: category(&["GROCERY", "FRZN ICE", "ICE - CRUSHED/CUBED"])?,
        ..examples::product(examples::product_id(number)?)?
    };
    Ok(stored(data, rev))
}

fn order(number: u64, rev: u64) -> Result<Stored<Order>, BenchError> {
    let data = Order {
        status: if rev == 1 { OrderStatus::Pending } else { OrderStatus::Paid },
        customer_id: examples::customer_id(number % CUSTOMERS)?,
        reference: None,
        line_count: 10,
        ..examples::order(number)?
    };
    Ok(stored(data, rev))
}

/// Returns an item with this `rev`. All items were created at the same time.
fn stored<T: Entity>(data: T, rev: u64) -> Stored<T> {
    let Stored { meta, data } = examples::stored(data, 0);
    Stored { meta: Meta { version: rev, rev, ..meta }, data }
}

/// Returns the record of a creation, or of a change with both images.
fn change<T: Entity>(
    item: impl Fn(u64) -> Result<Stored<T>, BenchError>,
    rev: u64,
    sequence: &str,
) -> Result<String, BenchError> {
    if rev > 1 {
        record_of("MODIFY", Some(&item(rev)?), Some(&item(1)?), sequence)
    } else {
        record_of("INSERT", Some(&item(rev)?), None, sequence)
    }
}

/// Returns the record of an item that DynamoDB removed after its expiry.
fn expired<T: Entity>(item: &Stored<T>, sequence: &str) -> Result<String, BenchError> {
    record_of("REMOVE", None, Some(item), sequence)
}

fn record_of<T: Entity>(
    name: &str,
    new: Option<&Stored<T>>,
    old: Option<&Stored<T>>,
    sequence: &str,
) -> Result<String, BenchError> {
    let item = new.or(old).ok_or_else(|| wrong!("a record without an image"))?;
    let key = item.data.key()?;
    let mut change = json!({
        "Keys": {"PK": {"S": key.pk.as_str()}, "SK": {"S": key.sk.as_str()}},
        "SequenceNumber": sequence,
        "ApproximateCreationDateTime": at(0).as_millis() / 1_000,
        "SizeBytes": 1_000,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    });
    for (image, item) in [("NewImage", new), ("OldImage", old)] {
        if let (Some(item), Value::Object(change)) = (item, &mut change) {
            let item = serde_json::to_value(item.to_item()?)?;
            change.insert(image.to_owned(), item);
        }
    }
    let mut record = json!({
        "eventID": format!("event-{sequence}"), "eventName": name, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
        "awsRegion": "eu-central-1", "dynamodb": change,
    });
    if name == "REMOVE"
        && let Value::Object(record) = &mut record
    {
        record.insert("userIdentity".to_owned(), json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"}));
    }
    Ok(record.to_string())
}
