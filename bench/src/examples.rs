use std::collections::BTreeSet;

use key_schema::customer::{Customer, Location, Tier};
use key_schema::document::{Document, Manifest};
use key_schema::id::{Born, CustomerId, DocumentId, OrderId, OrderReference, ProductId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Item, Stored};
use key_schema::money::{Currency, Money};
use key_schema::order::{Order, OrderLine};
use key_schema::product::{CategoryPath, Copied, Product};
use key_schema::question::{Question, QuestionStatus};

use crate::BenchError;

/// The id of the customer, product or other owner of the lists.
pub(crate) const OWNER: &str = "star";
/// The id of a member of staff. Staff may read all lists.
pub(crate) const STAFF: &str = "staff-1";
/// 2017-02-01T00:00:00Z. The n-th example is created n seconds later ([`at`]).
const BEGIN: i64 = 1_485_907_200;

pub(crate) fn at(n: u64) -> Instant {
    Instant::EPOCH.plus_seconds(BEGIN.saturating_add_unsigned(n))
}

/// Returns ten bytes for a number. They are the same in every run, and differ between numbers.
pub(crate) fn bytes(n: u64) -> [u8; 10] {
    let mut bytes = [0; 10];
    fastrand::Rng::with_seed(n).fill(&mut bytes);
    bytes
}

pub(crate) fn stored<T: Entity>(data: T, n: u64) -> Stored<T> {
    Stored::new(data, Born::generate(at(n), bytes(n)), at(n))
}

/// Returns the item of an entity that was created at the n-th second.
pub(crate) fn item<T: Entity>(data: T, n: u64) -> Result<Item, BenchError> {
    stored(data, n).to_item().map_err(BenchError::from)
}

pub(crate) fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

/// Pads the number, so that ids have the same length and sort by number.
pub(crate) fn numbered(kind: &str, n: u64) -> String {
    format!("{kind} {n:07}")
}

pub(crate) fn customer_id(n: u64) -> Result<CustomerId, BenchError> {
    CustomerId::new(numbered("customer", n)).map_err(BenchError::from)
}

pub(crate) fn product_id(n: u64) -> Result<ProductId, BenchError> {
    ProductId::new(numbered("product", n)).map_err(BenchError::from)
}

pub(crate) fn order_id(n: u64) -> OrderId {
    OrderId::generate(at(n), bytes(n))
}

pub(crate) fn owner() -> Result<CustomerId, BenchError> {
    CustomerId::new(OWNER).map_err(BenchError::from)
}

pub(crate) fn owned_product() -> Result<ProductId, BenchError> {
    ProductId::new(OWNER).map_err(BenchError::from)
}

pub(crate) fn category(names: &[&str]) -> Result<CategoryPath, BenchError> {
    CategoryPath::new(names.iter().map(|name| (*name).to_owned()).collect()).map_err(BenchError::from)
}

pub(crate) fn customer(id: CustomerId, n: u64) -> Result<Customer, BenchError> {
    let email = format!("customer-{n:07}@example.com").parse()?;
    let username = numbered("user", n).parse()?;
    let place = Some(Location { country: "DE".to_owned(), city: format!("City {:02}", n % 50) });
    let (tier, name) = (Tier::Silver, "Somebody".to_owned());
    Ok(Customer { tier, place, ..Customer::new(id, email, username, name) })
}

pub(crate) fn product(id: ProductId) -> Result<Product, BenchError> {
    Ok(Product {
        copied: Copied::of_new(5),
        package_size: Some("22 LB".to_owned()),
        ..Product::new(id, "Ice, crushed".to_owned(), "Private".to_owned(), usd(129), category(&["GROCERY", "ICE"])?)
    })
}

pub(crate) fn order(n: u64) -> Result<Order, BenchError> {
    Ok(Order { reference: Some(reference(n)?), ..Order::new(order_id(n), owner()?, at(n), usd(774), 1) })
}

pub(crate) fn order_line(order: &OrderId) -> Result<OrderLine, BenchError> {
    Ok(OrderLine {
        order_id: order.clone(),
        line: 1,
        product_id: owned_product()?,
        product_born: Born::counter(),
        name: "Ice, crushed".to_owned(),
        thumbnail: None,
        quantity: 6,
        unit_price: usd(129),
        total: usd(774),
        discount: 0,
        discounts: Vec::new(),
        tax: 0,
        tax_rate: None,
        expires_at: None,
        stock_shards: None,
        picks: Default::default(),
    })
}

pub(crate) fn reference(n: u64) -> Result<OrderReference, BenchError> {
    OrderReference::new(numbered("basket", n)).map_err(BenchError::from)
}

pub(crate) fn question(n: u64) -> Result<Question, BenchError> {
    Ok(Question {
        id: QuestionId::generate(at(n), bytes(n)),
        customer_id: owner()?,
        status: QuestionStatus::Open,
        answer_count: 0,
        title: "Ice".to_owned(),
        text: "Does it melt?".to_owned(),
    })
}

/// Returns an empty document that belongs to the owner alone.
pub(crate) fn document(id: DocumentId) -> Result<Document, BenchError> {
    Ok(Document {
        id,
        owner_id: Some(owner()?),
        organization_id: None,
        editors: BTreeSet::new(),
        deleting: false,
        discarded: [].into(),
        removing_since: None,
        title: "Statutes".to_owned(),
        current: 1,
        sections: Manifest::new(),
        draft: None,
    })
}
