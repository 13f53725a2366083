//! Sales: what was sold of a product and when, and how much of it, derived from orders by the stream.
//!
//! One row an order line. A row is never deleted: it carries the `rev` of the order that it was derived from, and is written only over
//! an older one. An order that was cancelled or returned leaves its rows without index keys, so the list, which reads the sparse
//! index, does not show them, and an old record that is replayed cannot bring them back.
//!
//! # Why nothing is counted twice
//!
//! A row is also the proof that its line was counted, or is not counted any more: the product's counter moves in the transaction that writes the
//! row, by the difference between the row as it was read and as it becomes, and on the condition that the row still is what was read.
//! So at every moment a counter is the sum of the rows that are not reversed, however often, late or out of order, or beside whom, an order is
//! derived. The totals of its place ([`crate::place`]) are proved in the same way by one more item, `PLACE`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::change::{Change, entity};
use crate::encoding::join;
use crate::entity::AnyEntity;
use crate::expression::{Condition, number};
use crate::id::{CustomerId, OrderId, ProductId, StoreId};
use crate::instant::{Instant, InstantError};
use crate::item::{DecodeError, EncodeError, Entity, FromItem, Item, Meta, Stored, decode, entity_name};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::order::{Order, OrderLine};
use crate::pattern::{Consistency, patterns};
use crate::place::{self, SalePlace};
use crate::product::{self, ProductSales};
use crate::request::{Guarded, MAX_TRANSACTION_ACTIONS, Query, Range, Transaction, Write};

entity! {
    /// One order line as a sale.
    Sale = "Sale" {
        keyed {
            /// The order.
            order_id: OrderId,
            /// Which of its lines, from 1.
            line: u64,
            /// What was sold.
            product_id: ProductId,
            /// When.
            placed_at: Instant,
            /// How many pieces.
            quantity: u64,
            /// What was paid for the line.
            total: Money,
            /// Where, if it was in a shop.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            store_id: Option<StoreId>,
            /// Who bought it. Rows of the first release do not say; they do as soon as they are written again.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            customer_id: Option<CustomerId>,
            /// Whether the order was cancelled or returned; such a row is in no list.
            #[serde(skip_serializing_if = "std::ops::Not::not", default)]
            reversed: bool,
        }
        free {}
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
            index: Index::Gsi3,
            partition: partition(&self.product_id, self.placed_at.year())?,
            sort: SortKey::new(join(&self.placed_at.to_string(), &[&self.order_id]))?,
        };
        let bought = |customer| -> Result<IndexKey, KeyError> {
            Ok(IndexKey {
                index: Index::Gsi1,
                partition: bought_partition(customer)?,
                // An order has each product once.
                sort: SortKey::new(join(&self.placed_at.to_string(), &[&self.order_id, &self.product_id]))?,
            })
        };
        let bought = self.customer_id.as_ref().map(bought).transpose()?;
        Ok([of_product].into_iter().chain(bought).collect())
    }
}

/// A product's sales of one year: a time bucket, so that no partition grows for ever.
fn partition(product: &ProductId, year: i32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PRODUCTSALES", &[product, &i64::from(year).to_string()])
}

fn bought_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("BOUGHT", &[customer])
}

/// A sale as the index of its customer shows it: an edge from the customer to the product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    /// What.
    pub product_id: ProductId,
    /// In which order.
    pub order_id: OrderId,
    /// When, as the key in the index says it.
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
        let placed_at = match item.get(Index::Gsi1.sort_attribute()) {
            Some(AttributeValue::S(sort)) => placed_at_of(sort).ok(),
            _ => None,
        };
        let placed_at = placed_at.ok_or_else(|| DecodeError::malformed(Sale::NAME, "its key has no instant"))?;
        let Ids { product_id, order_id } = decode(Sale::NAME, item)?;
        Ok(Self { product_id, order_id, placed_at })
    }
}

/// A sale as the index of its product shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The order.
    pub order_id: OrderId,
    /// When.
    pub placed_at: Instant,
    /// How many pieces.
    pub quantity: u64,
    /// What was paid for the line.
    pub total: Money,
}

crate::item::view!(Listed of Sale);

patterns! {
    OF_PRODUCT = "sales.of-product": Query on Gsi3, "GSI3PK = PRODUCTSALES#<product>#<year>, GSI3SK between <from> and <to>$, backward" => "sales of a product, newest first", Consistency::Eventual, "staff", "List a product's sales by date", ["GET /v1/products/{id}/sales"];
    BOUGHT = "sales.bought": Query on Gsi1, "GSI1PK = BOUGHT#<customer>, GSI1SK = <placed_at>#<order>#<product>, backward" => "what a customer bought, newest first", Consistency::Eventual, "staff", "List what a customer bought", ["GET /v1/graph/{node}/edges"];
    DERIVED = "sales.derived": Query, "PK = SALES#<order>" => "the rows of its lines, and its place", Consistency::Strong("each is written on the condition that it is what was read"), "system", "Read what was derived from an order", ["stream"];
    APPLY = "sales.apply": TransactWriteItems, "PK = SALES#<order>, SK = LINE#<line>, for each line, and PLACE; PK = PRODUCT#<id>, SK = PRODUCT#SALES, for each product; PK = PLACESALES#<country>#<month>, or PLACESALES#<country>#<month>#<shard>, SK = <city>#<store>#<date>#<currency>" => "each row and the place are what was read; ADD the difference to the counters", Consistency::Write, "system", "Derive an order's sales and count them", ["stream"];
}

/// The sale that an order line is, as of the order's `rev`.
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

/// What was derived from an order so far, as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// The rows by line.
    pub rows: BTreeMap<u64, Stored<Sale>>,
    /// Where it was counted.
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

/// Reads what was derived from an order.
///
/// # Errors
/// [`KeyError`].
pub fn derived(order: &OrderId) -> Result<Query<AnyEntity>, KeyError> {
    // A row a line, and the place.
    let most = crate::order::MAX_LINES + 1;
    Ok(Query::new(&DERIVED, PartitionKey::of("SALES", &[order])?, Range::All).limit(most))
}

/// As many rows as one transaction takes: two actions each, and two for the place.
const ROWS_A_TRANSACTION: usize = (MAX_TRANSACTION_ACTIONS - 2) / 2;

/// The transactions that bring what was read of an order's sales up to its head, each of which stands for itself; none if all is as new as
/// the head. `place` is where the order is counted if it was not counted yet: one that was is counted, and taken away, where it was.
///
/// # Errors
/// [`EncodeError`].
pub fn apply(
    head: &Stored<Order>,
    lines: &[Stored<OrderLine>],
    seen: &Derived,
    place: SalePlace,
) -> Result<Vec<Transaction<()>>, EncodeError> {
    // A row of the first release, which names no customer, is completed whenever its order is derived again.
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

/// Rows and the counters of their products, each counter once.
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
    let Some(meta) = rows.first().map(|row| &row.meta) else { return Ok(transaction) };
    for (product, (quantity, orders)) in counters.into_iter().filter(|(_, difference)| *difference != (0, 0)) {
        let change = Change::<ProductSales>::visible(meta.updated_at)
            .or_create(&meta.born, meta.updated_at)
            .set("product_id", product)?
            .add("quantity", quantity)
            .add("orders", orders);
        let write = Write::Update { key: product::sales_key(product)?, steps: change.into_steps() };
        transaction = transaction.action((), Guarded { write, condition: None });
    }
    Ok(transaction)
}

/// The proof of the order's place, and the total of that place if it moves.
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

/// The item is what was read of it, or still is not there.
fn unchanged(seen: Option<&Meta>) -> Condition {
    seen.map_or(Condition::NotExists, |seen| Condition::Is("rev", number(seen.rev)))
}

fn signed(quantity: u64) -> Result<i64, EncodeError> {
    i64::try_from(quantity).map_err(|_| EncodeError::TooLarge(usize::MAX))
}

/// A product's sales of one calendar year between two instants, both included, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn of_product(product: &ProductId, year: i32, from: Instant, to: Instant) -> Result<Query<Listed>, KeyError> {
    let range = Range::Between(from.to_string(), format!("{to}$"));
    Ok(Query::new(&OF_PRODUCT, partition(product, year)?, range).descending())
}

/// What a customer bought, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn bought(customer: &CustomerId) -> Result<Query<Bought>, KeyError> {
    Ok(Query::new(&BOUGHT, bought_partition(customer)?, Range::All).descending())
}

impl Listed {
    /// Where the sale stands in the list, for a cursor.
    #[must_use]
    pub fn sort_key(&self) -> String {
        join(&self.placed_at.to_string(), &[&self.order_id])
    }
}

/// When the sale was, by its place in the list: which year's bucket a cursor goes on in.
///
/// # Errors
/// [`InstantError`] for text that [`Listed::sort_key`] did not make.
pub fn placed_at_of(sort_key: &str) -> Result<Instant, InstantError> {
    sort_key.split('#').next().unwrap_or_default().parse()
}
