//! A round: sends the deliveries that are due.

use futures::future::join_all;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, DeliveryState, DueDelivery, MAX_TRIES, WebhookDelivery};
use key_schema::webhook_endpoint::WebhookEndpoint;
use tokio::time::Instant as Clock;

use crate::send::{LEASE_SECONDS, LIMIT, Tally};
use crate::{Courier, CourierError};

const PAGE: usize = 100;
/// How many requests an endpoint gets at once.
const AT_ONCE: usize = 4;
/// After so many failures without a success, the rest of an endpoint's deliveries waits for the next
/// round.
const MOST_FAILURES: u32 = 4;

impl Courier {
    /// Sends what is due to each endpoint, until `stop`. The endpoints do not wait for each other.
    ///
    /// # Errors
    /// [`CourierError`] if the endpoints cannot be listed.
    pub async fn run_round(&self, stop: Clock) -> Result<Tally, CourierError> {
        let endpoints = self.endpoints().await?;
        let open = endpoints.iter().filter(|endpoint| endpoint.disabled.is_none());
        let mut tally = Tally::default();
        for (endpoint, caught_up) in
            join_all(open.map(async |endpoint| (endpoint, self.catch_up(endpoint, stop).await))).await
        {
            match caught_up {
                Ok(sent) => tally.add(sent),
                Err(error) => tracing::warn!(endpoint = %endpoint.id, %error, "what is due cannot be sent"),
            }
        }
        Ok(tally)
    }

    async fn catch_up(&self, endpoint: &WebhookEndpoint, stop: Clock) -> Result<Tally, CourierError> {
        let (now, mut after, mut tally) = (Instant::now(), None, Tally::default());
        loop {
            let due = webhook_delivery::due(&endpoint.id, now)?.limit(PAGE).after(after);
            let page = self.table.query(&due).await?;
            for some in page.items.chunks(AT_ONCE) {
                let is_failing = tally.delivered == 0 && tally.failed >= MOST_FAILURES;
                if is_failing || tally.disabled > 0 || Clock::now() + LIMIT > stop {
                    return Ok(tally);
                }
                for sent in join_all(some.iter().map(|due| self.attempt_due(endpoint, due))).await {
                    tally.add(sent?);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(tally);
            }
        }
    }

    /// Attempts a delivery, unless another attempt has begun meanwhile.
    async fn attempt_due(&self, endpoint: &WebhookEndpoint, due: &DueDelivery) -> Result<Tally, CourierError> {
        let now = Instant::now();
        let lease = now.plus_seconds(LEASE_SECONDS);
        let claim = webhook_delivery::claim(&endpoint.id, &due.id, now, lease)?;
        let Ok(Stored { data, .. }) = self.table.update(&claim).await? else { return Ok(Tally::default()) };
        if data.tries > MAX_TRIES {
            // The last attempt has ended without a record.
            self.give_up(&data, lease).await?;
            return Ok(Tally { given_up: 1, ..Tally::default() });
        }
        Ok(self.attempt(endpoint, data, lease).await)
    }

    async fn give_up(&self, delivery: &WebhookDelivery, lease: Instant) -> Result<(), CourierError> {
        let settle = webhook_delivery::settle(delivery, lease, None, DeliveryState::Failed, Instant::now())?;
        // A refusal means that staff have asked for a redelivery meanwhile.
        let _ = self.table.write(&settle).await?;
        Ok(())
    }
}
