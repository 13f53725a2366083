//! Derives the sales of an order, as the stream's consumer does. The derived items record which
//! sales are counted. So if a consumer derives the same sales concurrently, nothing is counted
//! twice.

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::place::{self, SalePlace};
use key_schema::{order, sales};
use table::Table;

use crate::error::OpsError;
use crate::items::Repaired;

pub(super) async fn sales_of(table: &Table, id: &OrderId) -> Result<Repaired, OpsError> {
    let Some(head) = table.get(&order::head(id)?).await? else { return Ok(Repaired::Refused) };
    let lines = table.query(&order::lines(id)?).await?.items;
    let seen: sales::Derived = table.query(&sales::derived(id)?).await?.items.into_iter().collect();
    let place = if let Some(place) = &seen.place {
        place.data.clone()
    } else {
        let store_id = place::store_of(&head);
        let store = table.get(&place::read_for_update(&store_id)?).await?;
        SalePlace::of(&head, store.as_deref(), store_id)
    };
    for transaction in sales::apply(&head, &lines, &seen, place, Instant::now())? {
        if table.transact(&transaction).await?.is_err() {
            return Ok(Repaired::Refused);
        }
    }
    Ok(Repaired::Done)
}
