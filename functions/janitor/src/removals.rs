//! Removals that no client repeats: erasures of customers, deletions of documents, and the texts of
//! discarded drafts.
//!
//! A request removes only as much as its [`Budget`] allows, and its repetition continues. The
//! janitor continues after the grace, also with a budget for each of them.

use key_schema::instant::Instant;
use key_schema::{customer, document};
use table::{Budget, TableError};
use tokio::time::{self, timeout_at};
use workflows::removal::RemovalError;
use workflows::{erasure, removal};

use crate::round::{Janitor, ListError, PAGE, Round};

impl Janitor {
    /// Continues the erasures and deletions that began up to `before`, until `stop`.
    pub(crate) async fn remove(
        &self,
        before: Instant,
        stop: time::Instant,
        round: &mut Round,
    ) -> Result<(), ListError> {
        // Removals take at most half of the time, because there can be many of them.
        let started = time::Instant::now();
        let stop = started + stop.saturating_duration_since(started) / 2;
        let lists = async {
            let customers = self.table.query(&customer::erasing(before)?.limit(PAGE)).await?.items;
            let documents = self.table.query(&document::removals(before)?.limit(PAGE)).await?.items;
            Ok::<_, ListError>((customers, documents))
        };
        let Ok(found) = timeout_at(stop, lists).await else {
            tracing::warn!("no time was left for removals");
            return Ok(());
        };
        let (customers, documents) = found?;
        for customer in customers {
            let budget = Budget::begin(&self.table);
            count(Box::pin(erasure::go_on(&self.table, &customer.id, &budget)), stop, round).await;
        }
        for document in documents {
            let budget = Budget::begin(&self.table);
            count(Box::pin(removal::go_on(&self.table, &document.id, &budget)), stop, round).await;
        }
        Ok(())
    }
}

/// Continues one removal, and counts its outcome.
async fn count(removal: impl Future<Output = Result<bool, RemovalError>>, stop: time::Instant, round: &mut Round) {
    // A timeout polls its future once even after `stop`, so the time is checked first.
    let outcome = match time::Instant::now() < stop {
        true => timeout_at(stop, removal).await.ok(),
        false => None,
    };
    match outcome {
        Some(Ok(true)) => round.removed += 1,
        // The list was outdated.
        Some(Ok(false)) => {}
        // The next round continues.
        Some(Err(RemovalError::Table(TableError::OverBudget | TableError::Contended))) | None => round.left += 1,
        Some(Err(error)) => {
            tracing::error!(%error, "a removal could not be finished");
            round.failed += 1;
        }
    }
}
