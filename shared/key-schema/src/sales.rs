//! Sales: what was sold of a product and when, derived from orders by the stream.
//!
//! One row an order line. A row is never deleted: it carries the `rev` of the order that it was derived from, and is written only over
//! an older one. An order that was cancelled or returned leaves its rows without index keys, so the list, which reads the sparse
//! index, does not show them, and an old record that is replayed cannot bring them back.

use serde::{Deserialize, Serialize};

use crate::change::entity;
use crate::encoding::join;
use crate::expression::{Condition, number};
use crate::id::{OrderId, ProductId, StoreId};
use crate::instant::{Instant, InstantError};
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::money::Money;
use crate::order::{Order, OrderLine};
use crate::pattern::{Consistency, patterns};
use crate::request::{Guarded, Query, Range, Transaction};

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
        Ok(vec![IndexKey {
            index: Index::Gsi3,
            partition: partition(&self.product_id, self.placed_at.year())?,
            sort: SortKey::new(join(&self.placed_at.to_string(), &[&self.order_id]))?,
        }])
    }
}

/// A product's sales of one year: a time bucket, so that no partition grows for ever.
fn partition(product: &ProductId, year: i32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("PRODUCTSALES", &[product, &i64::from(year).to_string()])
}

/// A sale as the index shows it.
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
    APPLY = "sales.apply": TransactWriteItems, "PK = SALES#<order>, SK = LINE#<line>, for each line" => "absent, or derived from an older rev of the order", Consistency::Write, "system", "Derive the sales rows of an order", ["stream"];
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
        reversed: !order.status.is_sale(),
    };
    Stored { meta: order.meta.clone(), data: sale }
}

/// Writes up to 100 rows of one order unless they are newer already. All carry the same `rev`, so they are refused together.
///
/// # Errors
/// [`EncodeError`].
pub fn apply(rows: &[Stored<Sale>]) -> Result<Transaction<()>, EncodeError> {
    let mut transaction = Transaction::new(&APPLY);
    for row in rows {
        let older = Condition::NotExists.or(Condition::Below("rev", number(row.meta.rev)));
        transaction = transaction.action((), Guarded::put(row, older)?);
    }
    Ok(transaction)
}

/// A product's sales of one calendar year between two instants, both included, newest first.
///
/// # Errors
/// [`KeyError`].
pub fn of_product(product: &ProductId, year: i32, from: Instant, to: Instant) -> Result<Query<Listed>, KeyError> {
    let range = Range::Between(from.to_string(), format!("{to}$"));
    Ok(Query::new(&OF_PRODUCT, partition(product, year)?, range).descending())
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
