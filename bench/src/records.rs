//! Stream records like those of a shop.

use std::collections::BTreeSet;

use key_schema::customer::Customer;
use key_schema::id::{Born, CustomerId, OrderId, ProductId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Item, Meta, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderLine, OrderStatus};
use key_schema::product::{CategoryPath, Product, Stock};
use key_schema::session::Session;
use serde_json::{Value, json};

use crate::BenchError;

/// Records of each item. The first creates the item, and the second changes it.
const REVS: u64 = 2;
/// The number of customers with orders and sessions.
const CUSTOMERS: u64 = 2_469;

/// Returns records of products and orders. Each item is created and then changed once, about 500
/// records later, as in a real stream.
///
/// # Errors
/// [`BenchError::Wrong`] when the schema refuses an item.
pub fn records(number: u64) -> Result<Vec<String>, BenchError> {
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

/// Returns records of every kind that the consumer handles. Of ten items, four are orders, three
/// are products, two are stocks that run low, and one is an expired session.
///
/// # Errors
/// [`BenchError::Wrong`] when the schema refuses an item.
pub fn mixed(number: u64) -> Result<Vec<String>, BenchError> {
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
pub fn around(number: u64) -> impl Iterator<Item = Result<Item, BenchError>> {
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

/// Returns the number of documents in the search index after these records: distinct products and
/// orders.
pub(crate) fn documents(records: &[String]) -> Result<u64, BenchError> {
    let mut keys = BTreeSet::new();
    for record in records {
        let record: Value = serde_json::from_str(record).map_err(BenchError::wrong)?;
        let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if ["Product", "Order"].contains(&text("/dynamodb/NewImage/entity/S").as_str()) {
            keys.insert((text("/dynamodb/Keys/PK/S"), text("/dynamodb/Keys/SK/S")));
        }
    }
    u64::try_from(keys.len()).map_err(BenchError::wrong)
}

/// Returns the `rev` and the item of a record. Of 1,000 records, 500 create items and the next 500
/// change them.
const fn place(number: u64) -> (u64, u64) {
    let (thousand, place) = (number / 1_000, number % 1_000);
    (1 + place / 500 % REVS, thousand * 500 + place % 500)
}

fn sequence(number: u64) -> String {
    format!("{:021}", number + 1)
}

fn stored_item<T: Entity>(stored: Result<Stored<T>, BenchError>) -> Result<Item, BenchError> {
    stored?.to_item().map_err(BenchError::wrong)
}

fn stock(number: u64, rev: u64) -> Result<Stored<Stock>, BenchError> {
    let product_id = product_id(number)?;
    stored(
        Stock {
            product_id,
            available: if rev == 1 { 50 } else { 3 },
            sellable: true,
            product_born: None,
            last_adjustment: None,
        },
        rev,
    )
}

/// Returns a line of an order. The orders share about 500 products.
fn line(number: u64, line: u64) -> Result<Stored<OrderLine>, BenchError> {
    let data = OrderLine {
        order_id: order_id(number)?,
        line,
        product_id: product_id(number * 7 % 500 + line)?,
        product_born: None,
        name: "Ice".into(),
        quantity: line,
        unit_price: Money::new(129, Currency::USD),
        total: Money::new(129, Currency::USD),
        expires_at: None,
    };
    stored(data, 1)
}

fn customer(number: u64) -> Result<Stored<Customer>, BenchError> {
    let data = Customer::new(
        CustomerId::new(format!("{number}")).map_err(BenchError::wrong)?,
        format!("household-{number}@example.com").parse().map_err(BenchError::wrong)?,
        format!("household-{number}").parse().map_err(BenchError::wrong)?,
        "Household".to_owned(),
    );
    stored(data, 1)
}

fn session(number: u64) -> Result<Stored<Session>, BenchError> {
    let customer_id = CustomerId::new(format!("{}", number % CUSTOMERS)).map_err(BenchError::wrong)?;
    let id = SessionId::generate(at()?, number.to_be_bytes().repeat(2).first_chunk().copied().unwrap_or_default());
    stored(Session { sign_in: None, id, customer_id, expires_at: at()?, device: "Laptop".into() }, 1)
}

fn product_id(number: u64) -> Result<ProductId, BenchError> {
    ProductId::new(format!("{}", 800_000 + number)).map_err(BenchError::wrong)
}

fn order_id(number: u64) -> Result<OrderId, BenchError> {
    OrderId::new(format!("0159597e-5d70-7000-8000-{number:012}")).map_err(BenchError::wrong)
}

fn product(number: u64, rev: u64) -> Result<Stored<Product>, BenchError> {
    let data = Product {
        package_size: Some("22 LB".into()),
        summary: Some("Clear ice for drinks and coolers, crushed or in cubes, from filtered water.".into()),
        ..Product::new(
            product_id(number)?,
            format!("Ice crushed and cubed number {number}, {rev}"),
            "Private".into(),
            Money::new(99, Currency::USD),
            CategoryPath::new(vec!["GROCERY".into(), "FRZN ICE".into(), "ICE - CRUSHED/CUBED".into()])
                .map_err(BenchError::wrong)?,
        )
    };
    stored(data, rev)
}

fn order(number: u64, rev: u64) -> Result<Stored<Order>, BenchError> {
    let data = Order {
        status: if rev == 1 { OrderStatus::Pending } else { OrderStatus::Paid },
        ..Order::new(
            order_id(number)?,
            CustomerId::new(format!("{}", number % CUSTOMERS)).map_err(BenchError::wrong)?,
            at()?,
            Money::new(4_711, Currency::USD),
            10,
        )
    };
    stored(data, rev)
}

fn stored<T>(data: T, rev: u64) -> Result<Stored<T>, BenchError> {
    let born = Born::new("0159597e5d707000").map_err(BenchError::wrong)?;
    Ok(Stored { meta: Meta { version: rev, rev, born, created_at: at()?, updated_at: at()? }, data })
}

fn at() -> Result<Instant, BenchError> {
    "2017-01-01T11:53:26.000Z".parse().map_err(BenchError::wrong)
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
    let item = new.or(old).ok_or_else(|| BenchError::wrong("a record of nothing"))?;
    let key = item.data.key().map_err(BenchError::wrong)?;
    let mut change = json!({
        "Keys": {"PK": {"S": key.pk.as_str()}, "SK": {"S": key.sk.as_str()}},
        "SequenceNumber": sequence,
        "ApproximateCreationDateTime": 1_483_271_606,
        "SizeBytes": 1_000,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    });
    for (image, item) in [("NewImage", new), ("OldImage", old)] {
        if let (Some(item), Value::Object(change)) = (item, &mut change) {
            let item = serde_json::to_value(item.to_item().map_err(BenchError::wrong)?).map_err(BenchError::wrong)?;
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
