//! Removes the addresses of an erased customer's orders. The orders keep only country and city.

use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::order::addresses;
use table::{Budget, Table};

use crate::removal::RemovalError;

const PAGE: usize = 100;

pub(super) async fn erase(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&addresses::of_customer(customer)?.limit(PAGE).after(after)).await?;
        let earlier = page.items.iter().filter(|addresses| addresses.meta.created_at < until);
        budget.write(&addresses::erase(earlier.map(|addresses| &addresses.data))?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
