//! Cancels pending orders that were not paid in time, and returns their stock.
//!
//! The index may be outdated, so [`staging::lapse`] decides by the order's head. If the order was
//! paid or cancelled meanwhile, the condition on the head refuses the write.

use futures::StreamExt as _;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::open;
use tokio::time::{self, timeout_at};
use workflows::staging::{self, Lapsed};

use crate::round::{AT_ONCE, Janitor, ListError, PAGE, Round, is_busy, reason};
use crate::turns;

/// The maximum number of orders in one round. The next round handles the other orders.
const MOST: usize = 1000;

impl Janitor {
    /// Cancels the pending orders that had to be paid by `now`. Uses at most half of the time until
    /// `stop`.
    pub(crate) async fn lapse(&self, now: Instant, stop: time::Instant, round: &mut Round) -> Result<(), ListError> {
        // These orders take at most half of the remaining time, and the later work gets the rest.
        let started = time::Instant::now();
        let stop = started + stop.saturating_duration_since(started) / 2;
        let (mut found, mut after): (Vec<OrderId>, _) = (Vec::new(), None);
        while found.len() < MOST {
            let query = open::lapsing(now)?.limit(PAGE).after(after);
            let Ok(page) = timeout_at(stop, self.table.query(&query)).await else {
                tracing::warn!("no time was left for orders that have lapsed");
                break;
            };
            let page = page?;
            found.extend(page.items.into_iter().map(|order| order.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // Conflicts on one product can use up the time for its orders, so each round begins at
        // another order.
        let found = turns::order(found, now);
        let each = found.iter().map(|id| async move {
            // A timeout polls its future once even after `stop`, so the time is checked first.
            let lapsed = match time::Instant::now() < stop {
                true => timeout_at(stop, staging::lapse(&self.table, id, now)).await.ok(),
                false => None,
            };
            (id, lapsed)
        });
        let mut outcomes = futures::stream::iter(each).buffer_unordered(AT_ONCE);
        while let Some((id, outcome)) = outcomes.next().await {
            match outcome {
                Some(Ok(Lapsed::Cancelled)) => {
                    tracing::info!(order = %id, reason = "not_paid_in_time", "an unpaid order was cancelled");
                    round.lapsed += 1;
                }
                Some(Ok(Lapsed::NotDue)) => {}
                // Other requests change the order or its stock. The next round tries again.
                Some(Err(error)) if is_busy(&error) => {
                    tracing::warn!(order = %id, reason = reason(&error), %error, "an order lapses later");
                    round.left += 1;
                }
                Some(Err(error)) => {
                    tracing::error!(order = %id, reason = reason(&error), %error, "an order could not lapse");
                    round.failed += 1;
                }
                None => round.left += 1,
            }
        }
        Ok(())
    }
}
