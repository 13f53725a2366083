//! Sales: one row per order line, which the stream's consumer derives from orders.
//!
//! The consumer never deletes a row. A row stores the `rev` of the order from which it was derived,
//! and the consumer overwrites only an older row. The rows of a cancelled or returned order lose
//! their index keys, so the lists, which read sparse indexes, do not show them. An old stream
//! record that is replayed cannot bring the rows back, because its `rev` is lower.
//!
//! A row also records whether its line is counted. The transaction that writes the row also changes
//! the product's counter, by the difference between the old and the new row. Its condition is that
//! the row is unchanged since it was read. So a counter always equals the sum of the rows that are
//! not reversed. That holds even if many writers derive the sales of an order, repeatedly, late or
//! in any sequence. One more item, `PLACE`, records whether the totals of the order's region
//! contain the order ([`crate::region`]). The consumer writes `PLACE` in the same way.
//!
//! # Hot products
//!
//! If the stock of a product has several shards, as many items count its new sales ([`ProductSales`]).
//! Each order's line has the number of shards at the time of the order, and the order's id selects the
//! item. The `splitter` moves these sales to the first item ([`fold`]) for as long as it lists the
//! stock. So a row that is written late counts at the first item, as do the rows of an order that is
//! cancelled.
//!
//! # Leaderboards
//!
//! Everybody can read the ranks of the products on a leaderboard. An unpaid order costs its
//! customer nothing, so it must not change the ranks. A leaderboard counts a row only after its
//! order was shipped. `ranked_at` records that the row is counted, and on which day. The
//! transaction that sets or removes `ranked_at` also changes the tallies ([`crate::leaderboard`]).
//! So a return subtracts exactly the rows that were added.

use crate::index::{GSI1, GSI3};
use std::collections::BTreeMap;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::Change;
use crate::encoding::join;
use crate::expression::{Condition, number};
use crate::id::{CustomerId, OrderId, ProductId, StoreId};
use crate::instant::{Instant, InstantError};
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, Stored, decode, entity_name};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::leaderboard::{self, Board, Period};
use crate::money::Money;
use crate::order::{Order, OrderLine};
use crate::pattern::Consistency;
use crate::product::{self, MAX_STOCK_SHARDS, ProductSales};
use crate::region::{self, SaleRegion};
use crate::request::{BatchGet, Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Transaction};
use crate::shard::Shards;

entity! {
    Sale = "Sale" {
        fixed {
            order_id: OrderId,
            /// The number of the line in the order, from 1.
            line: u64,
            product_id: ProductId,
            placed_at: Instant,
            quantity: u64,
            total: Money,
            /// The shop of the order, if it was placed in a shop.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            store_id: Option<StoreId>,
            customer_id: CustomerId,
            /// Whether the order was cancelled or returned. No list contains a reversed row.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            reversed: bool,
            /// The instant on whose day the leaderboards count the row. Only rows of shipped orders
            /// have it.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            ranked_at: Option<Instant>,
        }
        mutable {}
    }
}

impl Entity for Sale {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: PartitionKey::of("SALES", &[&self.order_id])?, sk: SortKey::of("LINE", &[&self.line])? })
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        if self.reversed {
            return Ok(Vec::new());
        }
        let of_product = IndexKey {
            index: GSI3,
            partition: partition(&self.product_id, self.placed_at.year())?,
            sort: SortKey::new(join(&self.placed_at.to_string(), &[&self.order_id]))?,
        };
        let bought = IndexKey {
            index: GSI1,
            partition: bought_partition(&self.customer_id)?,
            // An order has at most one line per product, so order and product identify the row.
            sort: SortKey::new(join(&self.placed_at.to_string(), &[&self.order_id, &self.product_id]))?,
        };
        Ok(vec![of_product, bought])
    }
}

/// Returns the partition of a product's sales in one year. Each year has its own partition, so that
/// no partition grows without limit.
fn partition(product: &ProductId, year: i32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PRODUCTSALES", &[product, &i64::from(year).to_string()])
}

fn bought_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("BOUGHT", &[customer])
}

/// A sale as its customer's index returns it: an edge from the customer to the product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    pub product_id: ProductId,
    pub order_id: OrderId,
    /// The instant at which the order was placed, read from the index key.
    pub placed_at: Instant,
}

#[derive(Deserialize)]
struct Ids {
    product_id: ProductId,
    order_id: OrderId,
}

impl FromItem for Bought {
    fn from_item(item: Item) -> Result<Self, DecodeError> {
        let found = entity_name(&item)?;
        if found != Sale::NAME {
            return Err(DecodeError::OtherEntity { expected: Sale::NAME, found: found.to_owned() });
        }
        let placed_at = match item.get(GSI1.sort_attribute()) {
            Some(AttributeValue::S(sort)) => placed_at_of(sort).ok(),
            _ => None,
        };
        let placed_at = placed_at.ok_or_else(|| DecodeError::malformed(Sale::NAME, &item, "its key has no instant"))?;
        let Ids { product_id, order_id } = decode(Sale::NAME, item)?;
        Ok(Self { product_id, order_id, placed_at })
    }
}

/// A sale as its product's index returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleSummary {
    pub order_id: OrderId,
    pub placed_at: Instant,
    pub quantity: u64,
    pub total: Money,
}

view!(SaleSummary of Sale);

patterns! {
    OF_PRODUCT {
        id: "sales.of-product",
        purpose: "List a product's sales by date",
        request: Query on GSI3,
        key: "GSI3PK = PRODUCTSALES#<product>#<year>, GSI3SK between <from> and <to>$, backward",
        returns: "sales of a product, newest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    BOUGHT {
        id: "sales.bought",
        purpose: "List a customer's purchases",
        request: Query on GSI1,
        key: "GSI1PK = BOUGHT#<customer>, GSI1SK = <placed_at>#<order>#<product>, backward",
        returns: "purchases, newest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    DERIVED {
        id: "sales.derived",
        purpose: "Read the sales rows of an order",
        request: Query,
        key: "PK = SALES#<order>",
        returns: "the rows of its lines, and its region",
        consistency: Consistency::Strong("each write is conditional on the row that was read"),
        callers: "system",
    }
    APPLY {
        id: "sales.apply",
        purpose: "Derive an order's sales and count them",
        request: TransactWriteItems,
        key: "PK = SALES#<order>, SK = LINE#<line>, for each line, and PLACE; PK = PRODUCT#<id>, \
            SK = PRODUCT#SALES, or PK = PRODUCTSALES#<id>#<shard>, for each product; PK = \
            TALLY#sales#<product>, SK = <day>#<part> and \
            ALL#<part>; PK = PLACESALES#<country>#<month>#<shard>, SK = \
            <city>#<store>#<date>#<currency>",
        requires: "each row and the region are unchanged; ADD the difference to the counters",
        callers: "system",
    }
    COUNTS {
        id: "sales.counts",
        purpose: "Read the further items that count the sales of a product",
        request: BatchGetItem,
        key: "PK = PRODUCTSALES#<id>#<shard>, SK = PRODUCTSALES, for each shard but the first",
        returns: "the counts of the shards that have some",
        consistency: Consistency::Strong("they are moved on the condition that they are unchanged"),
        callers: "system",
    }
    FOLD {
        id: "sales.fold",
        purpose: "Move counted sales to the product's first item",
        request: TransactWriteItems,
        key: "PK = PRODUCTSALES#<id>#<shard>, SK = PRODUCTSALES; PK = PRODUCT#<id>, SK = PRODUCT#SALES",
        requires: "the shard is unchanged",
        callers: "system",
    }
}

/// Derives the sale of an order line, at the order's `rev`. If the order is shipped, `ranked_at` is
/// the instant of its latest change. [`apply`] keeps the `ranked_at` of a row that already has one.
#[must_use]
pub fn derive(order: &Stored<Order>, line: &OrderLine) -> Stored<Sale> {
    let sale = Sale {
        order_id: order.id.clone(),
        line: line.line,
        product_id: line.product_id.clone(),
        placed_at: order.placed_at,
        quantity: line.quantity,
        total: line.total,
        store_id: order.store_id.clone(),
        customer_id: order.customer_id.clone(),
        reversed: false,
        ranked_at: None,
    };
    at_state_of(order, sale)
}

/// Returns the row in the present state of its order.
fn at_state_of(order: &Stored<Order>, row: Sale) -> Stored<Sale> {
    let reversed = !order.status.is_sale();
    let ranked_at = order.status.is_shipped().then(|| row.ranked_at.unwrap_or(order.meta.updated_at));
    // A guest's order may have been claimed since.
    let customer_id = order.customer_id.clone();
    Stored { meta: order.meta.clone(), data: Sale { customer_id, reversed, ranked_at, ..row } }
}

/// The items derived from an order so far, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// The rows by line number.
    pub rows: BTreeMap<u64, Stored<Sale>>,
    /// The region that counts the order, if it was counted.
    pub region: Option<Stored<SaleRegion>>,
}

impl Derived {
    /// Returns whether each line of the order has a row. Then [`apply`] needs no lines.
    #[must_use]
    pub fn is_complete(&self, order: &Order) -> bool {
        u64::try_from(self.rows.len()).is_ok_and(|rows| rows >= order.line_count)
    }
}

impl FromIterator<DerivedItem> for Derived {
    fn from_iter<I: IntoIterator<Item = DerivedItem>>(items: I) -> Self {
        let mut derived = Self::default();
        for item in items {
            match item {
                DerivedItem::Sale(row) => drop(derived.rows.insert(row.line, row)),
                DerivedItem::SaleRegion(region) => derived.region = Some(region),
            }
        }
        derived
    }
}

one_of! {
    pub enum DerivedItem { Sale SaleRegion }
}

pub fn derived(order: &OrderId) -> Result<Query<DerivedItem>, KeyError> {
    // An order has one row per line, and one item for its region.
    let most = crate::order::MAX_LINES + 1;
    Ok(Query::new(&DERIVED, PartitionKey::of("SALES", &[order])?, Range::All).limit(most))
}

/// The time after the placement within which a further item may count the sales. The `splitter` lists
/// the stock for twice as long.
pub const SPREAD_SECONDS: i64 = product::CALM_SECONDS / 2;

/// The maximum number of rows in one transaction: four actions each, plus two for the region.
const ROWS_A_TRANSACTION: usize = (MAX_TRANSACTION_ACTIONS - 2) / 4;

/// Returns the transactions that make the sales of an order match its head. The list is empty if
/// the sales are up to date. Each transaction is independent of the others. `lines` may leave out
/// lines whose rows were seen, because a row has the values of its line. `region` applies only to
/// an order that was not counted before. Any other order keeps its stored region.
pub fn apply(
    head: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    seen: &Derived,
    region: SaleRegion,
    now: Instant,
) -> Result<Vec<Transaction<()>>, EncodeError> {
    let is_old = |row: &Stored<Sale>| seen.rows.get(&row.line).is_none_or(|seen| seen.meta.rev < head.meta.rev);
    let known = seen.rows.iter().map(|(line, row)| (*line, at_state_of(head, row.data.clone())));
    let mut rows: BTreeMap<u64, Stored<Sale>> = known.collect();
    for line in lines {
        let mut row = derive(head, line);
        row.data.ranked_at = rows.get(&line.line).map_or(row.ranked_at, |known| known.ranked_at);
        rows.insert(line.line, row);
    }
    let rows: Vec<Stored<Sale>> = rows.into_values().filter(is_old).collect();
    let shards: BTreeMap<u64, u32> = lines.iter().map(|line| (line.line, shard_of(head, line, now))).collect();
    let mut transactions = Vec::new();
    for rows in rows.chunks(ROWS_A_TRANSACTION) {
        transactions.push(count_rows(rows, seen, &shards, now)?);
    }
    if seen.region.as_ref().is_none_or(|seen| seen.meta.rev < head.meta.rev) {
        let transaction = if transactions.is_empty() { Transaction::new(&APPLY) } else { transactions.remove(0) };
        transactions.insert(0, count_region(transaction, head, seen, region)?);
    }
    Ok(transactions)
}

/// Returns the number of the item that counts a new row of this line.
fn shard_of(head: &Stored<Order>, line: &OrderLine, now: Instant) -> u32 {
    let is_late = head.meta.created_at.plus_seconds(SPREAD_SECONDS) < now;
    let shards = line.stock_shards.filter(|_| !is_late).unwrap_or(1).clamp(1, MAX_STOCK_SHARDS);
    Shards(shards).of(head.id.as_str())
}

/// Writes rows. Changes each sales counter and each tally of their products at most once. `shards` has
/// the numbers of the items that count new rows.
fn count_rows(
    rows: &[Stored<Sale>],
    seen: &Derived,
    shards: &BTreeMap<u64, u32>,
    now: Instant,
) -> Result<Transaction<()>, EncodeError> {
    let mut transaction = Transaction::new(&APPLY);
    let mut counters: BTreeMap<(&ProductId, u32), (i64, i64)> = BTreeMap::new();
    let mut tallies: BTreeMap<(&ProductId, Period), i64> = BTreeMap::new();
    for row in rows {
        let seen = seen.rows.get(&row.line);
        transaction = transaction.action((), Guarded::put(row, unchanged(seen.map(|seen| &seen.meta)))?);
        for (row, sign) in seen.map(|seen| (&seen.data, -1)).into_iter().chain([(&row.data, 1)]) {
            let quantity = sign * signed(row.quantity)?;
            if !row.reversed {
                let shard = if seen.is_none() { shards.get(&row.line).copied().unwrap_or(0) } else { 0 };
                let counter = counters.entry((&row.product_id, shard)).or_default();
                *counter = (counter.0 + quantity, counter.1 + sign);
            }
            for period in row.ranked_at.iter().flat_map(|at| [Period::day(*at), Period::All]) {
                *tallies.entry((&row.product_id, period)).or_default() += quantity;
            }
        }
    }
    let Some(Stored { meta, .. }) = rows.first() else { return Ok(transaction) };
    for ((product, shard), (quantity, orders)) in counters.into_iter().filter(|(_, added)| *added != (0, 0)) {
        let added = ProductSales { quantity, orders, ..ProductSales::none(product.clone(), shard) };
        transaction = transaction.action((), add(&added, meta)?);
    }
    for ((product, period), quantity) in tallies.into_iter().filter(|(_, difference)| *difference != 0) {
        let tally = leaderboard::count((Board::Sales, product), (period, 0), quantity, now)?;
        transaction = transaction.optional((), tally);
    }
    Ok(transaction)
}

/// Adds to the item that has the product and the shard of `added`.
fn add(added: &ProductSales, created: &Meta) -> Result<Guarded, EncodeError> {
    let ProductSales { product_id, shard, quantity, orders } = added;
    let change = Change::<ProductSales>::visible(created.updated_at)
        .or_create(&created.born, created.updated_at)
        .set("product_id", product_id)?
        .add("quantity", *quantity)
        .add("orders", *orders);
    let change = if *shard > 0 { change.set("shard", shard)? } else { change };
    Ok(Guarded::modify(added.key()?, change))
}

/// Reads the further items that count the sales of a product, if there can be any.
pub fn counts(product: &ProductId) -> Result<BatchGet<Stored<ProductSales>>, KeyError> {
    let keys = (1..MAX_STOCK_SHARDS).map(|shard| product::sales_key(product, shard));
    Ok(BatchGet::new(&COUNTS, keys.collect::<Result<_, _>>()?))
}

/// Moves the counted sales of a further item to the first one. Returns [`None`] if it has none.
pub fn fold(counted: &Stored<ProductSales>) -> Result<Option<Transaction<()>>, EncodeError> {
    if (counted.quantity, counted.orders) == (0, 0) || counted.shard == 0 {
        return Ok(None);
    }
    let moved = Change::<ProductSales>::copied().add("quantity", -counted.quantity).add("orders", -counted.orders);
    let unchanged = Condition::Is("rev", number(counted.meta.rev));
    let first = ProductSales { shard: 0, ..counted.data.clone() };
    let fold = Transaction::new(&FOLD).action((), Guarded::update(counted.key()?, moved, unchanged));
    Ok(Some(fold.action((), add(&first, &counted.meta)?)))
}

/// Writes the record of the order's region. If the order begins to count or no longer counts, also
/// changes the total of that region.
fn count_region(
    transaction: Transaction<()>,
    head: &Stored<Order>,
    seen: &Derived,
    region: SaleRegion,
) -> Result<Transaction<()>, EncodeError> {
    let seen = seen.region.as_ref();
    let data = SaleRegion { reversed: !head.status.is_sale(), ..seen.map_or(region, |seen| seen.data.clone()) };
    let region = Stored { meta: head.meta.clone(), data };
    let transaction = transaction.action((), Guarded::put(&region, unchanged(seen.map(|seen| &seen.meta)))?);
    let amount = region.total.amount;
    let (orders, amount) = match (seen.is_some_and(|seen| !seen.reversed), !region.reversed) {
        (false, true) => (1, amount),
        (true, false) => (-1, amount.checked_neg().ok_or(EncodeError::Overflow)?),
        (true, true) | (false, false) => return Ok(transaction),
    };
    Ok(transaction.action((), region::count(&region, orders, amount)?))
}

/// Returns the condition that the item is unchanged since it was read, or is still missing.
fn unchanged(seen: Option<&Meta>) -> Condition {
    seen.map_or(Condition::NotExists, |seen| Condition::Is("rev", number(seen.rev)))
}

fn signed(quantity: u64) -> Result<i64, EncodeError> {
    i64::try_from(quantity).map_err(|_| EncodeError::Overflow)
}

/// Lists a product's sales in one calendar year between two instants, both included, newest first.
pub fn of_product(product: &ProductId, year: i32, from: Instant, to: Instant) -> Result<Query<SaleSummary>, KeyError> {
    let range = Range::Between(from.to_string(), format!("{to}$"));
    Ok(Query::new(&OF_PRODUCT, partition(product, year)?, range).descending())
}

/// Lists a customer's purchases, newest first.
pub fn bought(customer: &CustomerId) -> Result<Query<Bought>, KeyError> {
    Ok(Query::new(&BOUGHT, bought_partition(customer)?, Range::All).descending())
}

impl SaleSummary {
    /// Returns the sale's sort key in the list of its product's sales, for a cursor.
    #[must_use]
    pub fn sort_key(&self) -> String {
        join(&self.placed_at.to_string(), &[&self.order_id])
    }
}

/// Returns the instant in a sort key of a list of sales. A cursor continues in that instant's year.
///
/// # Errors
/// [`InstantError`] for text that [`SaleSummary::sort_key`] did not make.
pub fn placed_at_of(sort_key: &str) -> Result<Instant, InstantError> {
    sort_key.split('#').next().unwrap_or_default().parse()
}
