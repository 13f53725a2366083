//! Items, and the stream records of their changes.

use key_schema::id::Born;
use key_schema::item::{Entity, Meta, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderStatus};
use key_schema::product::{CategoryPath, Product};
use serde_json::{Value, json};

/// Returns a product at a rev. Its name contains the rev, so that a document shows the rev that it
/// was made from.
pub fn product(id: &str, rev: u64) -> Stored<Product> {
    let data = Product::new(
        id.parse().unwrap(),
        format!("{id} at rev {rev}"),
        "Private".into(),
        Money::new(129, Currency::USD),
        CategoryPath::new(vec!["GROCERY".into(), "FRZN ICE".into()]).unwrap(),
    );
    Stored { meta: meta(rev), data }
}

/// Returns the same product, retired.
pub fn retired(id: &str, rev: u64) -> Stored<Product> {
    let mut product = product(id, rev);
    product.data.retired = true;
    product
}

/// Returns the head of an order.
pub fn order(id: &str, status: OrderStatus, rev: u64) -> Stored<Order> {
    let data = Order {
        status,
        ..Order::new(
            id.parse().unwrap(),
            "c1".parse().unwrap(),
            "2017-01-01T11:53:26.000Z".parse().unwrap(),
            Money::new(258, Currency::USD),
            2,
        )
    };
    Stored { meta: meta(rev), data }
}

fn meta(rev: u64) -> Meta {
    let at = "2017-01-01T00:00:00.000Z".parse().unwrap();
    Meta { version: rev, rev, born: Born::new("b1").unwrap(), created_at: at, updated_at: at }
}

/// Returns an item at a rev.
pub fn with_meta<T>(data: T, rev: u64) -> Stored<T> {
    Stored { meta: meta(rev), data }
}

/// Returns the record of a change of an existing item. Both images are the new item.
pub fn modify<T: Entity>(sequence: u64, new: &Stored<T>) -> Value {
    record(sequence, "MODIFY", new, json!({"NewImage": image(new), "OldImage": image(new)}))
}

/// Returns the record of a removal.
pub fn remove<T: Entity>(sequence: u64, old: &Stored<T>) -> Value {
    record(sequence, "REMOVE", old, json!({"OldImage": image(old)}))
}

fn record<T: Entity>(sequence: u64, name: &str, item: &Stored<T>, mut change: Value) -> Value {
    let key = item.data.key().unwrap();
    change["Keys"] = json!({"PK": {"S": key.pk.as_str()}, "SK": {"S": key.sk.as_str()}});
    change["SequenceNumber"] = format!("{sequence:021}").into();
    change["ApproximateCreationDateTime"] = json!(1_483_271_606);
    json!({
        "eventID": format!("event-{sequence}"), "eventName": name, "eventSource": "aws:dynamodb", "dynamodb": change,
    })
}

/// Returns the stream image of an item.
pub fn image<T: Entity>(item: &Stored<T>) -> Value {
    serde_json::to_value(item.to_item().unwrap()).unwrap()
}
