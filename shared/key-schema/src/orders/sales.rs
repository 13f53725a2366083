//! Sales: one row per order line, which the stream's consumer derives from orders.
//!
//! The consumer never deletes a row. A row stores the `rev` of the order from which it was derived,
//! and the consumer overwrites only an older row. The rows of a cancelled or returned order lose
//! their index keys, so the lists, which read sparse indexes, do not show them. A replayed old
//! record cannot bring them back, because its `rev` is lower.
//!
//! A row also records whether its line is counted. The transaction that writes the row also changes
//! the product's counter, by the difference between the old and the new row. Its condition is that
//! the row is unchanged since it was read. So a counter always equals the sum of the rows that are
//! not reversed. That holds even if many writers derive the sales of an order, repeatedly, late or
//! in any sequence. The transaction also changes the count of the order's day
//! ([`crate::leaderboard`]). One more item, `PLACE`, records whether the totals of the order's
//! place contain the order ([`crate::place`]). It is written in the same way.

use crate::index::{GSI1, GSI3};
use std::collections::BTreeMap;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::Change;
use crate::encoding::join;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number};
use crate::id::{CustomerId, OrderId, ProductId, StoreId};
use crate::instant::{Instant, InstantError};
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, Stored, decode, entity_name};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::leaderboard::{self, Board, Period};
use crate::money::Money;
use crate::order::{Order, OrderLine};
use crate::pattern::Consistency;
use crate::place::{self, SalePlace};
use crate::product::{self, ProductSales};
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Transaction};

entity! {
    /// The sale of one order line.
    Sale = "Sale" {
        fixed {
            /// The id of the order.
            order_id: OrderId,
            /// The number of the line in the order, from 1.
            line: u64,
            /// The product that was sold.
            product_id: ProductId,
            /// The instant at which the order was placed.
            placed_at: Instant,
            /// The number of pieces.
            quantity: u64,
            /// The price paid for the line.
            total: Money,
            /// The shop of the order, if it was placed in one.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            store_id: Option<StoreId>,
            /// The customer of the order. Rows of the first release lack it until they are written
            /// again.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            customer_id: Option<CustomerId>,
            /// Whether the order was cancelled or returned. No list contains a reversed row.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            reversed: bool,
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
        let bought = |customer| -> Result<IndexKey, KeyError> {
            Ok(IndexKey {
                index: GSI1,
                partition: bought_partition(customer)?,
                // An order has at most one line per product, so order and product identify the row.
                sort: SortKey::new(join(&self.placed_at.to_string(), &[&self.order_id, &self.product_id]))?,
            })
        };
        let bought = self.customer_id.as_ref().map(bought).transpose()?;
        Ok([of_product].into_iter().chain(bought).collect())
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
    /// The product that was bought.
    pub product_id: ProductId,
    /// The order of the sale.
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
        let placed_at = placed_at.ok_or_else(|| DecodeError::malformed(Sale::NAME, "its key has no instant"))?;
        let Ids { product_id, order_id } = decode(Sale::NAME, item)?;
        Ok(Self { product_id, order_id, placed_at })
    }
}

/// A sale as its product's index returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleSummary {
    /// The id of the order.
    pub order_id: OrderId,
    /// The instant at which the order was placed.
    pub placed_at: Instant,
    /// The number of pieces.
    pub quantity: u64,
    /// The price paid for the line.
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
        returns: "the rows of its lines, and its place",
        consistency: Consistency::Strong("each write is conditional on the row that was read"),
        callers: "system",
    }
    APPLY {
        id: "sales.apply",
        purpose: "Derive an order's sales and count them",
        request: TransactWriteItems,
        key: "PK = SALES#<order>, SK = LINE#<line>, for each line, and PLACE; PK = PRODUCT#<id>, \
            SK = PRODUCT#SALES, for each product; PK = TALLY#sales#<product>, SK = <day>#<part>; PK = \
            PLACESALES#<country>#<month>, or \
            PLACESALES#<country>#<month>#<shard>, SK = <city>#<store>#<date>#<currency>",
        requires: "each row and the place are unchanged; ADD the difference to the counters",
        callers: "system",
    }
}

/// Derives the sale of an order line, at the order's `rev`.
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
        customer_id: Some(order.customer_id.clone()),
        reversed: !order.status.is_sale(),
    };
    Stored { meta: order.meta.clone(), data: sale }
}

/// The items derived from an order so far, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// The rows by line number.
    pub rows: BTreeMap<u64, Stored<Sale>>,
    /// The place that counts the order, if it was counted.
    pub place: Option<Stored<SalePlace>>,
}

impl FromIterator<AnyEntity> for Derived {
    fn from_iter<I: IntoIterator<Item = AnyEntity>>(items: I) -> Self {
        let mut derived = Self::default();
        for item in items {
            match item {
                AnyEntity::Sale(row) => drop(derived.rows.insert(row.line, row)),
                AnyEntity::SalePlace(place) => derived.place = Some(place),
                _ => {}
            }
        }
        derived
    }
}

/// Reads the items derived from an order.
///
/// # Errors
/// [`KeyError`].
pub fn derived(order: &OrderId) -> Result<Query<AnyEntity>, KeyError> {
    // An order has one row per line, and one item for its place.
    let most = crate::order::MAX_LINES + 1;
    Ok(Query::new(&DERIVED, PartitionKey::of("SALES", &[order])?, Range::All).limit(most))
}

/// The maximum number of rows in one transaction: three actions each, plus two for the place.
const ROWS_A_TRANSACTION: usize = (MAX_TRANSACTION_ACTIONS - 2) / 3;

/// Returns the transactions that make the sales of an order match its head. The list is empty if
/// the sales are up to date. Each transaction is independent of the others. `place` applies only to
/// an order that was not counted before. Any other order keeps its stored place.
///
/// # Errors
/// [`EncodeError`].
pub fn apply(
    head: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    seen: &Derived,
    place: SalePlace,
) -> Result<Vec<Transaction<()>>, EncodeError> {
    // A row of the first release has no customer. It is written again even at the same `rev`.
    let is_old = |seen: &Stored<Sale>| {
        seen.meta.rev < head.meta.rev || (seen.meta.rev == head.meta.rev && seen.customer_id.is_none())
    };
    let is_old = |row: &Stored<Sale>| seen.rows.get(&row.line).is_none_or(is_old);
    let rows: Vec<Stored<Sale>> = lines.iter().map(|line| derive(head, line)).filter(is_old).collect();
    let mut transactions = Vec::new();
    for rows in rows.chunks(ROWS_A_TRANSACTION) {
        transactions.push(count_rows(rows, seen)?);
    }
    if seen.place.as_ref().is_none_or(|seen| seen.meta.rev < head.meta.rev) {
        let transaction = if transactions.is_empty() { Transaction::new(&APPLY) } else { transactions.remove(0) };
        transactions.insert(0, count_place(transaction, head, seen, place)?);
    }
    Ok(transactions)
}

/// Writes rows, and changes the counters of each product once: of all time, and of the order's day.
fn count_rows(rows: &[Stored<Sale>], seen: &Derived) -> Result<Transaction<()>, EncodeError> {
    let mut transaction = Transaction::new(&APPLY);
    let mut counters: BTreeMap<&ProductId, (i64, i64)> = BTreeMap::new();
    for row in rows {
        let seen = seen.rows.get(&row.line);
        transaction = transaction.action((), Guarded::put(row, unchanged(seen.map(|seen| &seen.meta)))?);
        let counted = |sale: &Sale| -> Result<(i64, i64), EncodeError> {
            Ok(if sale.reversed { (0, 0) } else { (signed(sale.quantity)?, 1) })
        };
        let (before, after) = (seen.map_or(Ok((0, 0)), |seen| counted(seen))?, counted(row)?);
        let counter = counters.entry(&row.product_id).or_default();
        *counter = (counter.0 + after.0 - before.0, counter.1 + after.1 - before.1);
    }
    let Some(Stored { meta, data: first }) = rows.first() else { return Ok(transaction) };
    let (day, at) = (Period::day(first.placed_at), meta.updated_at);
    for (product, (quantity, orders)) in counters.into_iter().filter(|(_, difference)| *difference != (0, 0)) {
        let change = Change::<ProductSales>::visible(meta.updated_at)
            .or_create(&meta.born, meta.updated_at)
            .set("product_id", product)?
            .add("quantity", quantity)
            .add("orders", orders);
        transaction = transaction
            .action((), Guarded::modify(product::sales_key(product)?, change))
            .optional((), leaderboard::count((Board::Sales, product), (day, 0), quantity, at)?);
    }
    Ok(transaction)
}

/// Writes the record of the order's place, and changes the total of that place if the count
/// changes.
fn count_place(
    transaction: Transaction<()>,
    head: &Stored<Order>,
    seen: &Derived,
    place: SalePlace,
) -> Result<Transaction<()>, EncodeError> {
    let seen = seen.place.as_ref();
    let data = SalePlace { reversed: !head.status.is_sale(), ..seen.map_or(place, |seen| seen.data.clone()) };
    let place = Stored { meta: head.meta.clone(), data };
    let transaction = transaction.action((), Guarded::put(&place, unchanged(seen.map(|seen| &seen.meta)))?);
    let amount = place.total.amount;
    let (orders, amount) = match (seen.is_some_and(|seen| !seen.reversed), !place.reversed) {
        (false, true) => (1, amount),
        (true, false) => (-1, amount.checked_neg().ok_or(EncodeError::TooLarge(usize::MAX))?),
        (true, true) | (false, false) => return Ok(transaction),
    };
    Ok(transaction.action((), place::count(&place, orders, amount)?))
}

/// Returns the condition that the item is unchanged since it was read, or is still missing.
fn unchanged(seen: Option<&Meta>) -> Condition {
    seen.map_or(Condition::NotExists, |seen| Condition::Is("rev", number(seen.rev)))
}

fn signed(quantity: u64) -> Result<i64, EncodeError> {
    i64::try_from(quantity).map_err(|_| EncodeError::TooLarge(usize::MAX))
}

/// Lists a product's sales in one calendar year between two instants, both included, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn of_product(product: &ProductId, year: i32, from: Instant, to: Instant) -> Result<Query<SaleSummary>, KeyError> {
    let range = Range::Between(from.to_string(), format!("{to}$"));
    Ok(Query::new(&OF_PRODUCT, partition(product, year)?, range).descending())
}

/// Lists a customer's purchases, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn bought(customer: &CustomerId) -> Result<Query<Bought>, KeyError> {
    Ok(Query::new(&BOUGHT, bought_partition(customer)?, Range::All).descending())
}

impl SaleSummary {
    /// Returns the sale's sort key in the list, for a cursor.
    #[must_use]
    pub fn sort_key(&self) -> String {
        join(&self.placed_at.to_string(), &[&self.order_id])
    }
}

/// Returns the instant in a sort key of the list. A cursor continues in the year of that instant.
///
/// # Errors
/// [`InstantError`] for text that [`SaleSummary::sort_key`] did not make.
pub fn placed_at_of(sort_key: &str) -> Result<Instant, InstantError> {
    sort_key.split('#').next().unwrap_or_default().parse()
}
