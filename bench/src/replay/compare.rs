//! Compares the search index, the events, the audit and the derived items with the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use key_schema::entity::AnyEntity;
use key_schema::expiration;
use key_schema::item::{Entity as _, Stored};
use key_schema::key::Key;
use key_schema::membership::Membership;
use key_schema::order::{Order, OrderLine, OrderStatus};
use key_schema::product::{Product, ProductSales, ReviewStats, Stock};
use key_schema::region::{RegionSales, SaleRegion};
use key_schema::sales::{self, Sale};
use ops::search::{ReconcileOptions, reconcile};
use search_index::Collection;
use serde_json::Value;
use stream::batch::{Batch, Event, Mutation, Remover};
use stream::transitions::Rules;

use super::copies::Copies;
use super::recorder::Recorded;
use super::shop::Shop;
use crate::BenchError;
use crate::report::Differences;

/// The maximum time until a change is visible in the index.
const SETTLE: Duration = Duration::from_secs(2);
const PAGE: u16 = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    pub documents: u64,
    /// Events that the bus received, without repetitions.
    pub events: usize,
    /// Events that the bus received, with repetitions.
    pub published: usize,
    pub expirations: usize,
    /// Sales rows and sales counters.
    pub derived: usize,
    /// Checked copies: stock level and rating on each product, and products in further categories.
    pub copies: usize,
    pub differences: Differences,
}

impl Compared {
    #[must_use]
    pub const fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { documents, events, published, expirations, derived, copies, differences } = self;
        write!(f, "  {documents} documents, {events} events ({published} published), {expirations} expirations, ")?;
        write!(f, "{derived} rows and counters of sales, {copies} copies: {differences}")
    }
}

/// Compares index, bus, audit, counters and copies with the table.
pub async fn compare(shop: &Shop, recorded: &Recorded) -> Result<Compared, BenchError> {
    let mut compared = Compared::default();
    index(shop, &mut compared).await?;
    let rules = Rules { table: shop.table_name().to_owned(), stock_low: stream::Settings::default().stock_low };
    let history = History::of(recorded, &rules)?;
    bus(shop, &history, &mut compared).await?;
    audit(shop, &history, &mut compared).await?;
    derived(shop, &mut compared).await?;
    Ok(compared)
}

async fn index(shop: &Shop, compared: &mut Compared) -> Result<(), BenchError> {
    let collections = Collection::ALL.to_vec();
    let options = ReconcileOptions { collections, rate: None, dry_run: true, settle: SETTLE };
    let reconciled = reconcile(&shop.search()?, &shop.items(), &options).await?;
    compared.documents = reconciled.collections.iter().map(|collection| collection.documents).sum();
    let drift = reconciled.collections.iter().filter(|collection| !collection.drift.is_none());
    compared
        .differences
        .add("index", drift.map(|collection| format!("{}: {}", collection.collection, collection.drift)));
    Ok(())
}

/// The effects that the consumer must have produced, according to the recorded stream.
#[derive(Default)]
struct History {
    events: BTreeSet<String>,
    /// The same events by item, with one list for each change, in the order of the changes.
    by_item: BTreeMap<Key, Vec<Vec<String>>>,
    /// The sequence numbers of the removals that the audit must contain. `days` has their days.
    removals: BTreeSet<String>,
    days: BTreeSet<String>,
}

impl History {
    fn of(recorded: &Recorded, rules: &Rules) -> Result<Self, BenchError> {
        let mut history = Self::default();
        for record in recorded.by_function().flat_map(|(_, records)| records) {
            let event = format!(r#"{{"Records":[{record}]}}"#);
            let event: Event = serde_json::from_str(&event)?;
            for record in &Batch::decode(&event)?.records {
                // Several functions may receive the same record, so its events may be counted
                // already.
                let ids = rules.event(record)?.into_iter().map(|event| event.id.to_string());
                let fresh: Vec<String> = ids.filter(|id| history.events.insert(id.clone())).collect();
                history.by_item.entry(record.key.clone()).or_default().push(fresh);
                let audited = matches!(
                    &record.change,
                    Mutation::Removed {
                        old: AnyEntity::Session(_) | AnyEntity::Cart(_) | AnyEntity::Order(_),
                        by: Remover::Expiry | Remover::Unknown,
                    }
                );
                if audited {
                    history.removals.insert(record.origin.sequence.to_string());
                    history.days.extend(record.origin.written_at.map(key_schema::instant::Instant::day));
                }
            }
        }
        Ok(history)
    }
}

/// Events with one id must have the same content, and the events of an item's changes must arrive
/// in the order of the changes.
async fn bus(shop: &Shop, history: &History, compared: &mut Compared) -> Result<(), BenchError> {
    let mut taken: BTreeMap<String, Value> = BTreeMap::new();
    // This maps each event to the position of its first arrival.
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    let mut other = Vec::new();
    for mut event in shop.list("events").await? {
        compared.published += 1;
        if let Some(event) = event.as_object_mut() {
            // The envelope is different for each delivery.
            event.remove("envelope");
        }
        let id = event.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        place.entry(id.clone()).or_insert(compared.published);
        match taken.get(&id) {
            Some(first) if *first != event => other.push(id),
            _ => drop(taken.insert(id, event)),
        }
    }
    compared.events = taken.len();
    compared.differences.add("missing events", history.events.iter().filter(|id| !taken.contains_key(*id)).cloned());
    compared
        .differences
        .add("events without a change in the table", taken.into_keys().filter(|id| !history.events.contains(id)));
    compared.differences.add("event ids with several contents", other);
    let places = |ids: &Vec<String>| ids.iter().filter_map(|id| place.get(id).copied()).collect::<Vec<_>>();
    // The events of one change may arrive in any order.
    let in_order = |changes: &[Vec<String>]| {
        let ends = changes.iter().filter_map(|ids| Some((*places(ids).iter().min()?, *places(ids).iter().max()?)));
        ends.flat_map(|(first, last)| [first, last]).is_sorted()
    };
    let out_of_order = history.by_item.iter().filter(|(_, ids)| !in_order(ids));
    compared.differences.add("items with events out of order", out_of_order.map(|(key, _)| format!("{key:?}")));
    Ok(())
}

/// Compares the expected removals with the audit, and the audit with the objects in the archive.
async fn audit(shop: &Shop, history: &History, compared: &mut Compared) -> Result<(), BenchError> {
    let table = shop.table();
    let mut entries = Vec::new();
    for day in &history.days {
        let mut after = None;
        // The loop ends, because every page starts after the previous one.
        loop {
            let list = expiration::of_day(day)?.after(after);
            let page = table.query(&list).await?;
            entries.extend(page.items.into_iter().map(|entry| entry.data));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    compared.expirations = entries.len();
    let audited: BTreeSet<&str> = entries.iter().map(|entry| entry.sequence_number.as_str()).collect();
    let missing = history.removals.iter().filter(|removal| !audited.contains(removal.as_str())).cloned();
    compared.differences.add("expirations without an audit entry", missing);
    let surplus = entries.len().saturating_sub(history.removals.len());
    compared.differences.add("audit entries without an expiration", (surplus > 0).then(|| surplus.to_string()));
    let archive = shop.archive()?;
    let mut without = Vec::new();
    // Items that belonged to no customer have no archive object.
    for name in entries.iter().filter_map(|entry| entry.archive.as_ref()) {
        if archive.get(name).await?.is_none() {
            without.push(name.clone());
        }
    }
    compared.differences.add("audit entries without their archive object", without);
    let named: BTreeSet<&str> = entries.iter().filter_map(|entry| entry.archive.as_deref()).collect();
    let (mut surplus, mut after) = (Vec::new(), None::<String>);
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = archive.list("expired/", after.as_deref(), PAGE).await?;
        surplus.extend(page.items.into_iter().map(|object| object.name).filter(|name| !named.contains(name.as_str())));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    compared.differences.add("archive objects without an audit entry", surplus);
    Ok(())
}

/// The table's orders, and the items that are derived from them.
#[derive(Default)]
struct Books {
    orders: BTreeMap<String, Stored<Order>>,
    lines: Vec<OrderLine>,
    /// Sales rows by order and line.
    rows: BTreeMap<(String, u64), Sale>,
    places: BTreeMap<String, SaleRegion>,
    products: BTreeMap<String, (i64, i64)>,
    totals: BTreeMap<Total, (i64, i64)>,
}

/// The key of a total: country, city, store, day and currency.
type Total = (String, String, String, String, String);

impl Books {
    fn enter(&mut self, entity: AnyEntity) {
        match entity {
            AnyEntity::Order(order) => drop(self.orders.insert(order.id.to_string(), order)),
            AnyEntity::OrderLine(line) => self.lines.push(line.data),
            AnyEntity::Sale(row) => drop(self.rows.insert((row.order_id.to_string(), row.line), row.data)),
            AnyEntity::SaleRegion(place) => drop(self.places.insert(place.order_id.to_string(), place.data)),
            AnyEntity::ProductSales(sales) => {
                let (quantity, orders) = self.products.entry(sales.product_id.to_string()).or_default();
                (*quantity, *orders) = (*quantity + sales.quantity, *orders + sales.orders);
            }
            AnyEntity::RegionSales(sales) => {
                let shop = (sales.country.clone(), sales.city.clone(), sales.store_id.to_string());
                let total = (shop.0, shop.1, shop.2, sales.date.clone(), sales.currency.to_string());
                let (orders, amount) = self.totals.entry(total).or_default();
                (*orders, *amount) = (*orders + sales.orders, *amount + sales.amount);
            }
            _ => {}
        }
    }

    fn check(&self, compared: &mut Compared) {
        let mut rows = BTreeMap::new();
        let mut products: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for line in &self.lines {
            let Some(order) = self.orders.get(line.order_id.as_str()) else { continue };
            if order.status == OrderStatus::Placing {
                continue;
            }
            let mut row = sales::derive(order, line).data;
            let key = (row.order_id.to_string(), row.line);
            // The row keeps the instant at which it first counted as shipped.
            let ranked_at = self.rows.get(&key).and_then(|stored| stored.ranked_at);
            row.ranked_at = row.ranked_at.map(|at| ranked_at.unwrap_or(at));
            if !row.reversed {
                let (quantity, orders) = products.entry(row.product_id.to_string()).or_default();
                (*quantity, *orders) = (*quantity + i64::try_from(row.quantity).unwrap_or(i64::MAX), *orders + 1);
            }
            rows.insert(key, row);
        }
        compared.derived = self.rows.len() + self.products.len() + self.totals.len();
        compared.differences.add("sales rows that differ", unlike(&rows, &self.rows));
        // A counter that has returned to zero equals a missing counter.
        let counted = self.products.iter().filter(|(_, counts)| **counts != (0, 0));
        let counted = counted.map(|(id, counts)| (id.clone(), *counts)).collect();
        compared.differences.add("product counters that differ", unlike(&products, &counted));

        let mut totals: BTreeMap<Total, (i64, i64)> = BTreeMap::new();
        let mut unplaced = Vec::new();
        for order in self.orders.values().filter(|order| order.status.is_sale()) {
            match self.places.get(order.id.as_str()) {
                Some(place) if !place.reversed && place.total == order.total => {
                    let shop = (place.country.clone(), place.city.clone(), place.store_id.to_string());
                    let currency = order.total.currency.to_string();
                    let total = (shop.0, shop.1, shop.2, order.placed_at.day(), currency);
                    let (orders, amount) = totals.entry(total).or_default();
                    (*orders, *amount) = (*orders + 1, *amount + order.total.amount);
                }
                _ => unplaced.push(order.id.to_string()),
            }
        }
        compared.differences.add("orders without a correct SaleRegion item", unplaced);
        let counted = self.totals.iter().filter(|(_, counts)| **counts != (0, 0));
        let counted = counted.map(|(total, counts)| (total.clone(), *counts)).collect();
        compared.differences.add("totals of places that differ", unlike(&totals, &counted));
    }
}

/// Returns the keys with different values in the two maps.
fn unlike<K: Ord + fmt::Debug, V: PartialEq>(one: &BTreeMap<K, V>, other: &BTreeMap<K, V>) -> BTreeSet<String> {
    let keys = one.keys().chain(other.keys());
    keys.filter(|key| one.get(key) != other.get(key)).map(|key| format!("{key:?}")).collect()
}

async fn derived(shop: &Shop, compared: &mut Compared) -> Result<(), BenchError> {
    let books_of = [Order::NAME, OrderLine::NAME, Sale::NAME, SaleRegion::NAME, ProductSales::NAME, RegionSales::NAME];
    let copies_of = [Product::NAME, Stock::NAME, ReviewStats::NAME, Membership::NAME];
    let (mut books, mut copies) = (Books::default(), Copies::default());
    let enter = |entity: AnyEntity| {
        copies.enter(entity.clone());
        books.enter(entity);
    };
    shop.read(&[&books_of[..], &copies_of].concat(), enter).await?;
    books.check(compared);
    copies.check(compared);
    Ok(())
}
