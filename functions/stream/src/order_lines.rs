//! The lines of an order, for its event and for its sales.

use key_schema::id::OrderId;
use key_schema::item::Stored;
use key_schema::key::KeyError;
use key_schema::order::{self, OrderLine};
use table::TableError;

use crate::batch::Record;
use crate::ports::Items;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Returns the lines of the order whose head is in the record.
pub async fn read<'r, I: Items>(
    record: &'r Record<'_>,
    table: &I,
    order: &OrderId,
) -> Result<&'r [Stored<OrderLine>], ReadError> {
    let read = || async { Ok(table.query(&order::lines(order)?).await?.items) };
    record.lines.get_or_try_init(read).await.map(Vec::as_slice)
}
