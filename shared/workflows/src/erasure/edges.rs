//! Removes the community edges of an erased customer: follows in both directions, and likes.

use key_schema::entity::AnyEntity;
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::{follow, graph, like};
use table::{Budget, Table};

use crate::removal::RemovalError;

/// The edges per page.
const PAGE: usize = 100;

/// Removes every edge from and to a customer, and subtracts the likes from their products'
/// counters. The function can be called again after a failure.
///
/// # Errors
/// [`table::TableError::OverBudget`] when the customer has more edges than one request removes.
pub(super) async fn erase(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), RemovalError> {
    erase_own_partition(table, customer, budget).await?;
    followers(table, customer, budget).await
}

/// Removes the edges in the customer's own partition. Every read is strong and starts at the first
/// page, so it also finds edges that were added since the last read.
async fn erase_own_partition(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), RemovalError> {
    loop {
        let page = table.query(&graph::own(customer)?.limit(PAGE)).await?.items;
        let followed: Vec<&CustomerId> = page
            .iter()
            .filter_map(|edge| if let AnyEntity::Follow(edge) = edge { Some(&edge.followed_id) } else { None })
            .collect();
        let liked: Vec<&ProductId> = page
            .iter()
            .filter_map(|edge| if let AnyEntity::Like(like) = edge { Some(&like.product_id) } else { None })
            .collect();
        if followed.is_empty() && liked.is_empty() {
            return Ok(());
        }
        budget.write(&follow::erase(followed.into_iter().map(|other| (customer, other)))?).await?;
        for products in liked.chunks(like::ERASED_AT_ONCE) {
            // A refusal means that the customer removed one of these likes at the same moment. The
            // next page shows the remaining likes.
            let erase = like::erase(customer, products.iter().copied(), Instant::now())?;
            let _ = table.transact(&erase).await?;
            budget.pace().await?;
        }
    }
}

/// Removes the edges to the customer. Their index is eventually consistent and may still show
/// removed edges, so the loop reads each page once.
async fn followers(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&follow::followers(customer)?.limit(PAGE).after(after)).await?;
        let edges = page.items.iter().map(|follower| (&follower.customer_id, customer));
        budget.write(&follow::erase(edges)?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
