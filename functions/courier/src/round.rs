//! A round: sends the deliveries that are due.

use futures::future::join_all;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, DeliveryState, DueDelivery, MAX_TRIES, WebhookDelivery};
use key_schema::webhook_endpoint::{Disabled, DisabledReason, WebhookEndpoint};
use table::Page;
use tokio::time::{Instant as Clock, timeout_at};

use crate::send::{LEASE_SECONDS, LIMIT, Signer, Tally};
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
        let mut tally = Tally::default();
        // A deployment without keys sends nothing, and no endpoint is to blame.
        if self.keys.is_none() {
            return Ok(tally);
        }
        let endpoints = self.endpoints().await?;
        let is_broken = |disabled: Disabled| disabled.reason != DisabledReason::Staff;
        let (closed, open): (Vec<_>, Vec<_>) = endpoints.into_iter().partition(|one| one.disabled.is_some());
        let broken = closed.iter().filter(|endpoint| endpoint.disabled.is_some_and(is_broken)).count();
        tally.disabled = u32::try_from(broken).unwrap_or(u32::MAX);
        for sent in join_all(open.into_iter().map(|endpoint| self.catch_up(endpoint, stop))).await {
            tally.add(sent);
        }
        Ok(tally)
    }

    async fn catch_up(&self, mut endpoint: Stored<WebhookEndpoint>, stop: Clock) -> Tally {
        let (now, mut after, mut tally) = (Instant::now(), None, Tally::default());
        loop {
            let Some(signer) = self.signer(&endpoint) else { return tally };
            let page = match self.due(&endpoint, now, after).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(endpoint = %endpoint.id, %error, "what is due cannot be read");
                    return tally;
                }
            };
            for some in page.items.chunks(AT_ONCE) {
                let is_failing = tally.delivered == 0 && tally.failed >= MOST_FAILURES;
                if is_failing || tally.disabled > 0 || Clock::now() + LIMIT > stop {
                    return tally;
                }
                let each = join_all(some.iter().map(|due| self.attempt_due(&endpoint, &signer, due)));
                let Ok(sent) = timeout_at(stop, each).await else { return tally };
                sent.into_iter().for_each(|sent| tally.add(sent));
            }
            after = page.next;
            // Staff may have changed the endpoint meanwhile.
            let present = self.endpoints().await.unwrap_or_default();
            match present.into_iter().find(|one| one.id == endpoint.id && one.disabled.is_none()) {
                Some(present) if after.is_some() => endpoint = present,
                _ => return tally,
            }
        }
    }

    async fn due(
        &self,
        endpoint: &WebhookEndpoint,
        now: Instant,
        after: Option<String>,
    ) -> Result<Page<DueDelivery>, CourierError> {
        let due = webhook_delivery::due(&endpoint.id, now)?.limit(PAGE).after(after);
        Ok(self.table.query(&due).await?)
    }

    /// Attempts a delivery, unless another attempt has begun meanwhile.
    async fn attempt_due(&self, endpoint: &Stored<WebhookEndpoint>, signer: &Signer<'_>, due: &DueDelivery) -> Tally {
        let now = Instant::now();
        let lease = now.plus_seconds(LEASE_SECONDS);
        match self.claim(endpoint, due, now, lease).await {
            // The last attempt has ended without a record.
            Ok(Some(delivery)) if delivery.tries > MAX_TRIES => match self.give_up(&delivery, lease).await {
                Ok(()) => return Tally { given_up: 1, ..Tally::default() },
                Err(error) => {
                    tracing::warn!(endpoint = %endpoint.id, delivery = %due.id, %error, "a delivery is not given up");
                }
            },
            Ok(Some(delivery)) => return self.attempt(endpoint, signer, delivery, lease).await,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(endpoint = %endpoint.id, delivery = %due.id, %error, "an attempt cannot begin");
            }
        }
        Tally::default()
    }

    async fn claim(
        &self,
        endpoint: &WebhookEndpoint,
        due: &DueDelivery,
        now: Instant,
        lease: Instant,
    ) -> Result<Option<WebhookDelivery>, CourierError> {
        let claim = webhook_delivery::claim(&endpoint.id, &due.id, now, lease)?;
        Ok(self.table.update(&claim).await?.ok().map(|claimed| claimed.data))
    }

    async fn give_up(&self, delivery: &WebhookDelivery, lease: Instant) -> Result<(), CourierError> {
        let settle = webhook_delivery::settle(delivery, lease, None, DeliveryState::Failed, Instant::now())?;
        // A refusal means that staff have asked for a redelivery meanwhile.
        let _ = self.table.write(&settle).await?;
        Ok(())
    }
}
