//! One attempt of a delivery, and what follows from it.

use std::time::Duration;

use aws::{Call, Limits, Method, Service, Target};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, Attempt, DeliveryState, WebhookDelivery};
use key_schema::webhook_endpoint::{self, Disabled, DisabledReason, FAILING_SECONDS, WebhookEndpoint};
use key_schema::webhook_secret::WebhookSecret;
use signatures::{Signed, SigningKeys, content_digest};
use telemetry::crash_point;
use tokio::time::Instant as Clock;

use crate::{Courier, CourierError};

const JSON: &str = "application/json";
/// The time limit of a request.
pub const LIMIT: Duration = Duration::from_secs(10);
/// How long an attempt keeps others away. It is longer than the function may run.
pub const LEASE_SECONDS: i64 = 60;
const GONE: u16 = 410;

/// What came of some attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub delivered: u32,
    /// Failed attempts.
    pub failed: u32,
    /// Deliveries whose last attempt has failed.
    pub given_up: u32,
    /// Endpoints that were disabled, because they are gone or fail for days. A round also counts those that
    /// were disabled before, so that the metric shows all.
    pub disabled: u32,
}

impl Tally {
    pub const fn add(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.given_up += other.given_up;
        self.disabled += other.disabled;
    }
}

/// What signs the messages to an endpoint.
#[derive(Debug)]
pub enum Signer<'a> {
    /// The valid secrets of the endpoint.
    Secrets(Vec<WebhookSecret>),
    /// The shop's own keys, of which an agent knows the public part.
    Keys(&'a SigningKeys),
}

impl Courier {
    /// Sends a delivery, and records what came of it. The caller has begun the attempt, with a lease until
    /// `lease`. If the record fails, the delivery is due again after the lease.
    pub(crate) async fn attempt(
        &self,
        endpoint: &Stored<WebhookEndpoint>,
        signer: &Signer<'_>,
        delivery: WebhookDelivery,
        lease: Instant,
    ) -> Tally {
        let attempt = self.send(endpoint, signer, &delivery).await;
        crash_point("courier.sent");
        let delivery = delivery.with(attempt.clone());
        match self.settle(endpoint, &delivery, &attempt, lease).await {
            Ok(tally) => tally,
            Err(error) => {
                tracing::warn!(endpoint = %endpoint.id, delivery = %delivery.id, %error, "an attempt is not recorded");
                Tally { failed: 1, ..Tally::default() }
            }
        }
    }

    /// Returns what signs the messages to an endpoint. Without a key nothing is sent.
    pub(crate) fn signer(&self, endpoint: &WebhookEndpoint) -> Option<Signer<'_>> {
        if endpoint.is_from_profile() {
            return self.signing.as_ref().map(Signer::Keys);
        }
        let now = Instant::now();
        let valid = endpoint.secrets.iter().filter(|seed| seed.is_valid(now));
        let secret = |seed| self.keys.as_ref()?.secret(&endpoint.id, seed);
        let secrets: Vec<WebhookSecret> = valid.filter_map(secret).collect();
        if secrets.is_empty() {
            tracing::error!(endpoint = %endpoint.id, "nothing is sent: the key of the endpoint's secret is gone");
            return None;
        }
        Some(Signer::Secrets(secrets))
    }

    async fn send(&self, endpoint: &WebhookEndpoint, signer: &Signer<'_>, delivery: &WebhookDelivery) -> Attempt {
        let (at, began) = (Instant::now(), Clock::now());
        let sent = self.request(endpoint, signer, delivery, at).await;
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (status, error) = match sent {
            Ok(status) => (Some(status), None),
            Err(error) => (None, Some(error)),
        };
        Attempt { at, milliseconds, status, error }
    }

    async fn request(
        &self,
        endpoint: &WebhookEndpoint,
        signer: &Signer<'_>,
        delivery: &WebhookDelivery,
        now: Instant,
    ) -> Result<u16, String> {
        let target = Target::new(&endpoint.url, self.reach).map_err(|bad| format!("the URL {bad}"))?;
        let signed = match signer {
            Signer::Secrets(secrets) if endpoint.agent.is_some() => signed_for_acp(secrets, delivery, now),
            Signer::Secrets(secrets) => signed_by_secrets(secrets, delivery, now),
            Signer::Keys(keys) => signed_by_key(keys, &target, delivery, now).ok_or("the message cannot be signed")?,
        };
        let mut headers = vec![("content-type", JSON), ("user-agent", "Bodega")];
        headers.extend(signed.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let body = delivery.body.clone().into();
        let call = Call { headers: &headers, body, ..Call::new(Method::POST, &target.path) };
        let service = Service::new(self.connector.clone(), &target.base, None).with_limits(Limits::once(LIMIT));
        service.status(&call).await.map_err(|failure| failure.to_string())
    }

    async fn settle(
        &self,
        endpoint: &Stored<WebhookEndpoint>,
        delivery: &WebhookDelivery,
        attempt: &Attempt,
        lease: Instant,
    ) -> Result<Tally, CourierError> {
        let (now, is_gone) = (Instant::now(), attempt.status == Some(GONE));
        let (next, state) = match attempt.is_success() {
            true => (None, DeliveryState::Delivered),
            false => (delivery.next(now).filter(|_| !is_gone), DeliveryState::Failed),
        };
        let settle = webhook_delivery::settle(delivery, lease, next, state, now)?;
        if self.table.write(&settle).await?.is_err() {
            // The lease has ended, or staff have asked for a redelivery meanwhile.
            tracing::info!(endpoint = %endpoint.id, delivery = %delivery.id, "another attempt follows anyway");
        }
        let mut tally = Tally::default();
        if attempt.is_success() {
            tally.delivered = 1;
            if let Some(since) = endpoint.failing_since {
                // A refusal means that another attempt has noted it.
                let _ = self.table.write(&webhook_endpoint::works(&endpoint.id, since)?).await?;
            }
            return Ok(tally);
        }
        tally.failed = 1;
        tally.given_up = u32::from(next.is_none());
        let (endpoint_id, delivery_id) = (endpoint.id.as_str(), delivery.id.as_str());
        let (status, error) = (attempt.status, attempt.error.as_deref());
        tracing::info!(endpoint = endpoint_id, delivery = delivery_id, status, error, "an attempt failed");
        let disable = |reason, since| {
            let disabled = Disabled { reason, at: now };
            webhook_endpoint::disable(&endpoint.id, endpoint.meta.version, disabled, since).map(Some)
        };
        let disable = match endpoint.failing_since {
            _ if is_gone => disable(DisabledReason::Gone, None)?,
            Some(since) if since.plus_seconds(FAILING_SECONDS) <= now => disable(DisabledReason::Failing, Some(since))?,
            Some(_) => None,
            None => {
                // A refusal means that another attempt has noted it.
                let _ = self.table.write(&webhook_endpoint::fails(&endpoint.id, now)?).await?;
                None
            }
        };
        if let Some(disable) = disable
            && self.table.write(&disable).await?.is_ok()
        {
            tally.disabled = 1;
            tracing::warn!(endpoint = endpoint_id, "an endpoint is disabled: it is gone, or fails for days");
        }
        Ok(tally)
    }
}

/// Returns the headers of Standard Webhooks.
fn signed_by_secrets(secrets: &[WebhookSecret], delivery: &WebhookDelivery, now: Instant) -> Vec<(String, String)> {
    let sign = |secret: &WebhookSecret| secret.sign(&delivery.event_id, now.as_seconds(), &delivery.body);
    let signatures = secrets.iter().map(sign).collect::<Vec<_>>().join(" ");
    let headers = [
        ("webhook-id", delivery.event_id.clone()),
        ("webhook-timestamp", now.as_seconds().to_string()),
        ("webhook-signature", signatures),
    ];
    headers.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns the headers of the Agentic Commerce Protocol. They have room for one signature, that of the
/// newest secret. The id of a delivery begins with the time of its event, so a later state of an order has a
/// greater `Request-Id`.
fn signed_for_acp(secrets: &[WebhookSecret], delivery: &WebhookDelivery, now: Instant) -> Vec<(String, String)> {
    let signature = secrets.first().map(|secret| secret.merchant_signature(now.as_seconds(), &delivery.body));
    let headers = [
        ("request-id", delivery.id.to_string()),
        ("timestamp", now.to_string()),
        ("merchant-signature", signature.unwrap_or_default()),
    ];
    headers.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns the headers of a delivery with a signature as RFC 9421 wants it, over all that identifies the
/// message.
fn signed_by_key(
    keys: &SigningKeys,
    target: &Target,
    delivery: &WebhookDelivery,
    now: Instant,
) -> Option<Vec<(String, String)>> {
    let mut headers: Vec<(String, String)> = delivery.signed_headers.clone()?.into_iter().collect();
    headers.push(("content-digest".to_owned(), content_digest(delivery.body.as_bytes())));
    let authority = target.authority();
    let (path, query) =
        target.path.split_once('?').map_or((target.path.as_str(), None), |(path, query)| (path, Some(query)));
    let query = query.map(|query| format!("?{query}"));
    let mut components = vec![("@method", "POST"), ("@authority", &authority), ("@path", path)];
    components.extend(query.as_deref().map(|query| ("@query", query)));
    components.push(("content-type", JSON));
    components.extend(headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let Signed { input, signature } = keys.sign(&components, now.as_seconds())?;
    headers.extend([("signature-input".to_owned(), input), ("signature".to_owned(), signature)]);
    Some(headers)
}
