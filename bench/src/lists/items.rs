//! What the examples of all lists are made of.

use std::collections::BTreeMap;

use key_schema::customer::{Customer, Place, Tier};
use key_schema::id::{Born, CustomerId, OrderId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Item, Stored};
use key_schema::money::{Currency, Money};
use key_schema::product::{CategoryPath, Copied, Product};

use crate::BenchError;

/// The customer, product or other thing whose list it is.
pub(super) const OWNER: &str = "star";
/// Who may see all lists.
pub(super) const STAFF: &str = "staff-1";
/// 2017-02-01T00:00:00Z: histories begin here, an entry a second.
const BEGIN: i64 = 1_485_907_200;

pub(super) fn at(n: u64) -> Instant {
    Instant::EPOCH.plus_seconds(BEGIN.saturating_add_unsigned(n))
}

/// Ten bytes that differ from entry to entry and are the same in every run.
pub(super) fn bytes(n: u64) -> [u8; 10] {
    let mut bytes = [0; 10];
    fastrand::Rng::with_seed(n).fill(&mut bytes);
    bytes
}

pub(super) fn stored<T: Entity>(data: T, n: u64) -> Stored<T> {
    Stored::new(data, Born::generate(at(n), bytes(n)), at(n))
}

/// The item of an entity, made at the n-th instant.
pub(super) fn item<T: Entity>(data: T, n: u64) -> Result<Item, BenchError> {
    stored(data, n).to_item().map_err(BenchError::wrong)
}

pub(super) fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

/// The id that every list is sorted by is as long for the first entry as for the last.
pub(super) fn numbered(kind: &str, n: u64) -> String {
    format!("{kind} {n:07}")
}

pub(super) fn customer_id(n: u64) -> Result<CustomerId, BenchError> {
    CustomerId::new(numbered("customer", n)).map_err(BenchError::wrong)
}

pub(super) fn product_id(n: u64) -> Result<ProductId, BenchError> {
    ProductId::new(numbered("product", n)).map_err(BenchError::wrong)
}

pub(super) fn order_id(n: u64) -> OrderId {
    OrderId::generate(at(n), bytes(n))
}

pub(super) fn owner() -> Result<CustomerId, BenchError> {
    CustomerId::new(OWNER).map_err(BenchError::wrong)
}

pub(super) fn owned_product() -> Result<ProductId, BenchError> {
    ProductId::new(OWNER).map_err(BenchError::wrong)
}

pub(super) fn category(names: &[&str]) -> Result<CategoryPath, BenchError> {
    CategoryPath::new(names.iter().map(|name| (*name).to_owned()).collect()).map_err(BenchError::wrong)
}

pub(super) fn customer(id: CustomerId, n: u64) -> Result<Customer, BenchError> {
    let email = format!("customer-{n:07}@example.com").parse().map_err(BenchError::wrong)?;
    let username = numbered("user", n).parse().map_err(BenchError::wrong)?;
    let place = Some(Place { country: "DE".to_owned(), city: format!("City {:02}", n % 50) });
    let (tier, name) = (Tier::Silver, "Somebody".to_owned());
    Ok(Customer { id, email, username, tier, place, name, addresses: BTreeMap::new() })
}

pub(super) fn product(id: ProductId) -> Result<Product, BenchError> {
    Ok(Product {
        id,
        category_path: category(&["GROCERY", "ICE"])?,
        retired: false,
        copied: Copied::of_new(5),
        name: "Ice, crushed".to_owned(),
        brand: "Private".to_owned(),
        package_size: Some("22 LB".to_owned()),
        price: usd(129),
        summary: None,
    })
}
