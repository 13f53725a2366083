//! Keeps the events of messages for the endpoints that want them, and sends them.

use std::collections::BTreeSet;
use std::time::Duration;

use bus::Event;
use bus::queue::{Answer, Batch, Message};
use futures::future::join_all;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, LIFETIME_SECONDS, WebhookDelivery};
use key_schema::webhook_endpoint::{self, WebhookEndpoint};
use telemetry::correlation;
use tokio::time::{Instant as Clock, timeout_at};

use crate::message::Outgoing;
use crate::send::{LEASE_SECONDS, LIMIT, Tally};
use crate::{Courier, CourierError};

/// After this time, a batch begins no further request to an endpoint. The round sends the rest.
const PROMPT: Duration = Duration::from_secs(1);

/// A message whose event endpoints may get.
struct Wanted<'a> {
    message: &'a Message,
    event: Outgoing,
}

impl Courier {
    /// Handles a batch until `stop`. The answer names the messages that are not kept for every endpoint.
    pub async fn take(&self, batch: &Batch, stop: Clock) -> (Answer, Tally) {
        let (now, mut failed, mut wanted) = (Instant::now(), BTreeSet::new(), Vec::new());
        for message in &batch.records {
            let event = message.event().map_err(CourierError::from);
            // A replay may have events that are older than the log of deliveries. Nothing tells whether
            // they were sent.
            let is_late =
                |event: &Event| message.is_replayed() && event.occurred_at.plus_seconds(LIFETIME_SECONDS) < now;
            match event.and_then(|event| if is_late(&event) { Ok(None) } else { Outgoing::of(event) }) {
                Ok(Some(event)) => wanted.push(Wanted { message, event }),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(message_id = message.id, %error, "a message cannot be read");
                    failed.insert(message.id.clone());
                }
            }
        }
        let mut tally = Tally::default();
        if !wanted.is_empty() {
            match timeout_at(stop, self.endpoints()).await {
                Ok(Ok(endpoints)) => {
                    let each = endpoints.iter().map(|endpoint| self.serve(endpoint, &wanted, stop));
                    for (unkept, sent) in join_all(each).await {
                        failed.extend(unkept);
                        tally.add(sent);
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the endpoints cannot be read");
                    failed.extend(wanted.iter().map(|wanted| wanted.message.id.clone()));
                }
                Err(_) => failed.extend(wanted.iter().map(|wanted| wanted.message.id.clone())),
            }
        }
        (Answer::naming(failed), tally)
    }

    pub(crate) async fn endpoints(&self) -> Result<Vec<Stored<WebhookEndpoint>>, CourierError> {
        Ok(self.table.query(&webhook_endpoint::list()?).await?.items)
    }

    /// Keeps the events for an endpoint, and then sends them. Returns the messages that are not kept.
    ///
    /// An endpoint that fails gets its events only in rounds, so that it does not hold the queue up.
    async fn serve(
        &self,
        endpoint: &Stored<WebhookEndpoint>,
        wanted: &[Wanted<'_>],
        stop: Clock,
    ) -> (Vec<String>, Tally) {
        let (mut unkept, mut kept, mut tally) = (Vec::new(), Vec::new(), Tally::default());
        for Wanted { message, event } in wanted.iter().filter(|wanted| endpoint.wants(wanted.event.kind)) {
            let cause = message.cause();
            let keep = correlation::caused_by(cause.as_deref(), self.keep(endpoint, event));
            let reason = match timeout_at(stop, keep).await {
                Ok(Ok(new)) => {
                    kept.extend(new);
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no time is left".to_owned(),
            };
            tracing::warn!(message_id = message.id, endpoint = %endpoint.id, reason, "an event is not kept");
            unkept.push(message.id.clone());
        }
        let until = (Clock::now() + PROMPT).min(stop.checked_sub(LIMIT).unwrap_or(stop));
        let Some(signer) = self.signer(endpoint).filter(|_| !kept.is_empty()) else { return (unkept, tally) };
        for (delivery, lease) in kept {
            if tally.failed > 0 || Clock::now() >= until {
                break;
            }
            tally.add(self.attempt(endpoint, &signer, delivery, lease).await);
        }
        (unkept, tally)
    }

    /// Keeps an event for an endpoint. Returns the new delivery and the end of the lease of its first
    /// attempt. Returns `None` if it was kept before, or if the round sends it, because the endpoint fails.
    async fn keep(
        &self,
        endpoint: &WebhookEndpoint,
        event: &Outgoing,
    ) -> Result<Option<(WebhookDelivery, Instant)>, CourierError> {
        let now = Instant::now();
        let lease = endpoint.failing_since.is_none().then(|| now.plus_seconds(LEASE_SECONDS));
        let delivery = event.to(&endpoint.id, now, lease)?;
        let added = self.table.write(&webhook_delivery::add(&delivery)?).await?;
        Ok(lease.filter(|_| added.is_ok()).map(|lease| (delivery.data, lease)))
    }
}
