//! Stream records as a shop makes them.

use key_schema::id::{Born, CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Meta, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderStatus};
use key_schema::product::{CategoryPath, Copied, Product};
use serde_json::{Value, json};

use crate::BenchError;

/// Every so many records of a kind a further item begins; the others change it.
const REVS: u64 = 2;

/// So many records of products and orders, each item created and then changed once, as a stream has them: the change some hundred records
/// behind the creation.
///
/// # Errors
/// [`BenchError::Wrong`]: the schema refuses an item.
pub fn records(number: u64) -> Result<Vec<String>, BenchError> {
    (0..number).map(record).collect()
}

fn record(number: u64) -> Result<String, BenchError> {
    // Of 1,000 records 500 create items, and the next 500 change these.
    let (thousand, place) = (number / 1_000, number % 1_000);
    let (rev, item) = (1 + place / 500 % REVS, thousand * 500 + place % 500);
    let sequence = format!("{:021}", number + 1);
    if item % 2 == 0 {
        change(&product(item, rev)?, rev, &sequence)
    } else {
        change(&order(item, rev)?, rev, &sequence)
    }
}

fn product(number: u64, rev: u64) -> Result<Stored<Product>, BenchError> {
    let data = Product {
        id: ProductId::new(format!("{}", 800_000 + number)).map_err(BenchError::wrong)?,
        category_path: CategoryPath::new(vec!["GROCERY".into(), "FRZN ICE".into(), "ICE - CRUSHED/CUBED".into()])
            .map_err(BenchError::wrong)?,
        retired: false,
        copied: Copied::default(),
        name: format!("Ice crushed and cubed number {number}, {rev}"),
        brand: "Private".into(),
        package_size: Some("22 LB".into()),
        price: Money::new(99, Currency::USD),
        summary: Some("Clear ice for drinks and coolers, crushed or in cubes, from filtered water.".into()),
    };
    stored(data, rev)
}

fn order(number: u64, rev: u64) -> Result<Stored<Order>, BenchError> {
    let data = Order {
        id: OrderId::new(format!("0159597e-5d70-7000-8000-{number:012}")).map_err(BenchError::wrong)?,
        customer_id: CustomerId::new(format!("{}", number % 2_469)).map_err(BenchError::wrong)?,
        status: if rev == 1 { OrderStatus::Pending } else { OrderStatus::Paid },
        placed_at: at()?,
        reference: None,
        store_id: None,
        total: Money::new(4_711, Currency::USD),
        line_count: 10,
        unfinished: None,
        invoice_number: None,
        paid_from_wallet: false,
        refunded: 0,
        expires_at: None,
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

/// The record of a creation, or of a change with both images.
fn change<T: Entity>(item: &Stored<T>, rev: u64, sequence: &str) -> Result<String, BenchError> {
    let key = item.data.key().map_err(BenchError::wrong)?;
    let image = serde_json::to_value(item.to_item().map_err(BenchError::wrong)?).map_err(BenchError::wrong)?;
    let mut record = json!({
        "Keys": {"PK": {"S": key.pk.as_str()}, "SK": {"S": key.sk.as_str()}},
        "NewImage": image,
        "SequenceNumber": sequence,
        "ApproximateCreationDateTime": 1_483_271_606,
        "SizeBytes": 1_000,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    });
    if rev > 1
        && let Value::Object(record) = &mut record
    {
        record.insert("OldImage".to_owned(), image);
    }
    let name = if rev > 1 { "MODIFY" } else { "INSERT" };
    let record = json!({
        "eventID": format!("event-{sequence}"), "eventName": name, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
        "awsRegion": "eu-central-1", "dynamodb": record,
    });
    Ok(record.to_string())
}
