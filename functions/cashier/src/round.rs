//! A round: repeats the calls whose result is not known, and counts the authorisations that expire.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::payment;
use tokio::time::{self, timeout_at};

use crate::{Cashier, CashierError};

/// The age at which an operation is repeated. The request that began it has ended by then, which only
/// avoids calls: the same key has its effect once.
const GRACE_SECONDS: i64 = 30;
/// An authorisation that expires within this time is counted.
const SOON_SECONDS: i64 = 24 * 60 * 60;
const PAGE: usize = 100;
/// The maximum number of operations of one round. The next round finds the others.
const MOST: usize = 500;
const AT_ONCE: usize = 4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Operations whose result was not known.
    pub found: u32,
    /// Orders that were not settled. The log has each of them.
    pub failed: u32,
    /// The age of the oldest operation.
    pub oldest: Duration,
    /// Authorised payments that are not captured and expire within a day, at most 100.
    pub expiring: u32,
}

impl Cashier {
    /// Settles the orders with operations that began some time before `now`. All work ends at `stop`.
    ///
    /// # Errors
    /// [`CashierError`] if the operations cannot be listed.
    pub async fn run_round(&self, now: Instant, stop: time::Instant) -> Result<Round, CashierError> {
        let mut round = Round::default();
        let before = now.plus_seconds(-GRACE_SECONDS);
        let mut orders = BTreeSet::<OrderId>::new();
        let mut after = None;
        while round.found < u32::try_from(MOST).unwrap_or(u32::MAX) {
            let page = self.table.query(&payment::unsettled(before)?.limit(PAGE).after(after)).await?;
            for operation in page.items {
                round.found += 1;
                let age = now.as_millis().saturating_sub(operation.created_at.as_millis());
                round.oldest = round.oldest.max(Duration::from_millis(u64::try_from(age).unwrap_or_default()));
                orders.insert(operation.order_id);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let each = orders.iter().map(|order| async move {
            let settled = match time::Instant::now() < stop {
                true => timeout_at(stop, self.settle(order, None)).await.ok(),
                false => None,
            };
            (order, settled)
        });
        let mut outcomes = futures::stream::iter(each).buffer_unordered(AT_ONCE);
        while let Some((order, outcome)) = outcomes.next().await {
            match outcome {
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::warn!(%order, %error, "the payments of an order are not settled");
                    round.failed += 1;
                }
                // The next round continues.
                None => tracing::warn!(%order, "no time is left for the payments of an order"),
            }
        }
        let soon = payment::expiring(now.plus_seconds(SOON_SECONDS))?.limit(PAGE);
        let soon = self.table.query(&soon).await?.items;
        for payment in &soon {
            tracing::warn!(order = %payment.order_id, payment = %payment.id, "an authorisation expires within a day");
        }
        round.expiring = u32::try_from(soon.len()).unwrap_or(u32::MAX);
        Ok(round)
    }
}
