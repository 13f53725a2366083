//! Removes the community edges of an erased customer: follows in both directions, and likes.

use key_schema::graph::OwnEdge;
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::{follow, graph, like};
use table::{Budget, Table};

use crate::removal::RemovalError;

const PAGE: usize = 100;

/// Removes the edges in the customer's own partition, and subtracts the likes from their products'
/// counters. Every read is strong. The function can be called again after a failure.
///
/// # Errors
/// [`table::TableError::OverBudget`] when the customer has more edges than one request removes.
pub(super) async fn erase_own(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&graph::own(customer)?.limit(PAGE).after(after.clone())).await?;
        let (mut followed, mut liked): (Vec<&CustomerId>, Vec<&ProductId>) = (Vec::new(), Vec::new());
        for edge in &page.items {
            match edge {
                OwnEdge::Follow(edge) if edge.meta.created_at < until => followed.push(&edge.followed_id),
                OwnEdge::Like(like) if like.meta.created_at < until => liked.push(&like.product_id),
                _ => {}
            }
        }
        budget.write(&follow::erase(followed.into_iter().map(|other| (customer, other)))?).await?;
        let mut is_complete = true;
        for products in liked.chunks(like::ERASED_AT_ONCE) {
            let erase = like::erase(customer, products.iter().copied(), Instant::now())?;
            is_complete &= table.transact(&erase).await?.is_ok();
            budget.pace().await?;
        }
        // A refusal means that the customer removed one of these likes at the same moment. Then the
        // loop reads the page again.
        if is_complete {
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}

/// Removes the edges to the customer. Their index is eventually consistent and may still show
/// removed edges, so the loop reads each page once.
pub(super) async fn erase_followers(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&follow::followers(customer)?.limit(PAGE).after(after)).await?;
        let earlier = page.items.iter().filter(|follower| follower.created_at < until);
        budget.write(&follow::erase(earlier.map(|follower| (&follower.customer_id, customer)))?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
