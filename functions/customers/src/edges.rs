//! The edges of the community that go with an erased customer: whom they followed, who followed them, what they liked.

use http_api::{Problem, Store};
use key_schema::entity::AnyEntity;
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::{follow, graph, like};
use table::TransactError;

use crate::erase::{Budget, remove};

/// Edges that are removed with one page of a list.
const PAGE: usize = 100;

/// Removes every edge from and to a customer, and takes the likes out of the counts of their products. Done twice it does no harm.
///
/// # Errors
/// 503 `throttled` when there are more than one request removes.
pub async fn erase(store: &Store, customer: &CustomerId, budget: Budget) -> Result<(), Problem> {
    own(store, customer, budget).await?;
    followers(store, customer, budget).await
}

/// The edges in the customer's own partition. What was removed is not read again, so every page is the first, strongly read: who follows or likes
/// at the same time is found by the next one.
async fn own(store: &Store, customer: &CustomerId, budget: Budget) -> Result<(), Problem> {
    loop {
        let page = store.table.query(&graph::own(customer)?.limit(PAGE)).await?.items;
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
        remove(store, &follow::erase(followed.into_iter().map(|other| (customer, other)))?).await?;
        for products in liked.chunks(like::ERASED_AT_ONCE) {
            match store.table.transact(&like::erase(customer, products.iter().copied(), Instant::now())?).await {
                // Refused because the customer took one of them back at the same moment: the next page shows which are left.
                Ok(()) | Err(TransactError::Refused(_)) => {}
                Err(TransactError::Table(error)) => return Err(error.into()),
            }
        }
        budget.is_left()?;
    }
}

/// The edges that lead to the customer. Their index follows by a moment, so what was removed may be read again; the list is gone through once.
async fn followers(store: &Store, customer: &CustomerId, budget: Budget) -> Result<(), Problem> {
    let mut after = None;
    loop {
        let page = store.table.query(&follow::followers(customer)?.limit(PAGE).after(after)).await?;
        if !page.items.is_empty() {
            let edges = page.items.iter().map(|follower| (&follower.customer_id, customer));
            remove(store, &follow::erase(edges)?).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
        budget.is_left()?;
    }
}
