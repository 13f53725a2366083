//! Continues unfinished removals that no client has retried: erasures of customers, deletions of
//! documents, and removals of the texts of discarded drafts.
//!
//! A request removes only as much as its [`Budget`] allows. A repeated request continues the
//! removal. After the grace period, the janitor continues the removal. A round gives each removal a
//! share of its time, so a large removal delays the others but does not stop them
//! ([`crate::turns`]).

use std::time::Duration;

use key_schema::id::{CustomerId, DocumentId};
use key_schema::instant::Instant;
use key_schema::{customer, document};
use table::{Budget, TableError};
use tokio::time::{self, timeout_at};
use workflows::removal::RemovalError;
use workflows::{erasure, removal};

use crate::round::{Janitor, ListError, PAGE, Round};
use crate::turns;

/// The least time of one removal. One step of a deletion removes ten texts, which takes about two
/// seconds at the permitted rate. So with a shorter share, a deletion would exceed its share.
const LEAST: Duration = Duration::from_secs(2);
/// The age at which an unfinished removal counts as failed.
const OVERDUE_SECONDS: i64 = 24 * 60 * 60;

/// Returns the instant one day ago. Unfinished removals that began earlier count as failed, and the
/// alarm `JanitorFailures` reports them. Without this limit, a removal that needs too many rounds
/// may never cause an error.
pub(crate) fn overdue_before(now: Instant) -> Instant {
    now.plus_seconds(-OVERDUE_SECONDS)
}

enum Unfinished {
    Customer(CustomerId),
    Document(DocumentId),
}

impl Janitor {
    /// Continues the removals that began at `before` or earlier. Uses at most half of the time
    /// until `stop`.
    pub(crate) async fn remove(
        &self,
        now: Instant,
        before: Instant,
        stop: time::Instant,
        round: &mut Round,
    ) -> Result<(), ListError> {
        // Removals take at most half of the remaining time, because there can be many of them.
        let started = time::Instant::now();
        let stop = started + stop.saturating_duration_since(started) / 2;
        let (mut customers, mut documents) = (Vec::new(), Vec::new());
        let mut overdue = 0;
        let lists = async {
            self.list(|| customer::erasing(before), &mut customers).await?;
            self.list(|| document::removals(before), &mut documents).await?;
            if !customers.is_empty() || !documents.is_empty() {
                let long = overdue_before(now);
                overdue += self.table.query(&customer::erasing(long)?.limit(PAGE)).await?.items.len();
                overdue += self.table.query(&document::removals(long)?.limit(PAGE)).await?.items.len();
            }
            Ok::<_, ListError>(())
        };
        match timeout_at(stop, lists).await {
            Ok(listed) => listed?,
            Err(_) => tracing::warn!("no time was left to list all removals"),
        }
        if overdue > 0 {
            tracing::error!(overdue, "removals have been unfinished for more than a day");
            round.failed += u32::try_from(overdue).unwrap_or(u32::MAX);
        }
        let customers = customers.into_iter().map(|customer| Unfinished::Customer(customer.id)).collect();
        let documents = documents.into_iter().map(|document| Unfinished::Document(document.id)).collect();
        let removals = turns::alternate(turns::order(customers, now), turns::order(documents, now));
        for (left, removal) in (1..=removals.len()).rev().zip(&removals) {
            // A timeout polls its future once even after `stop`, so the time is checked first.
            if time::Instant::now() >= stop {
                round.left += 1;
                continue;
            }
            let budget = Budget::share(&self.table, turns::share(stop, left).max(LEAST));
            let work = async {
                match removal {
                    Unfinished::Customer(id) => erasure::go_on(&self.table, id, &budget).await,
                    Unfinished::Document(id) => removal::go_on(&self.table, id, &budget).await,
                }
            };
            count(timeout_at(stop, Box::pin(work)).await.ok(), round);
            // After a timeout, `stop` has passed, so this round begins no further removal.
            let _ = timeout_at(stop, budget.settle()).await;
        }
        Ok(())
    }
}

fn count(outcome: Option<Result<bool, RemovalError>>, round: &mut Round) {
    match outcome {
        Some(Ok(true)) => round.removed += 1,
        // The index was outdated: the removal had already ended.
        Some(Ok(false)) => {}
        // The next round continues the removal.
        Some(Err(RemovalError::Table(TableError::OverBudget | TableError::Contended))) | None => round.left += 1,
        Some(Err(error)) => {
            tracing::error!(%error, "a removal could not be finished");
            round.failed += 1;
        }
    }
}
