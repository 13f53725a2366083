//! The message of an event, as endpoints get it.

use bus::{Data, Event};
use key_schema::id::{Born, DeliveryId, EndpointId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, DeliveryState, LIFETIME_SECONDS, WebhookDelivery};
use serde::Serialize;

use crate::CourierError;

/// A longer event of an order comes without its lines.
pub const MAX_EVENT_BYTES: usize = 16 * 1024;

/// An event that endpoints may get.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub kind: &'static str,
    id: DeliveryId,
    event_id: String,
    body: String,
}

/// The body: the event of the bus, with the members of Standard Webhooks.
#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    r#type: &'static str,
    version: u32,
    timestamp: Instant,
    sequence: u64,
    data: &'a Data,
}

impl Outgoing {
    /// Returns the message of an event, or `None` if no endpoint may get it.
    ///
    /// # Errors
    /// [`CourierError`] for an event that cannot be encoded.
    pub fn of(event: Event) -> Result<Option<Self>, CourierError> {
        let Some(kind) = event.kind().in_webhooks() else { return Ok(None) };
        let version = event.kind().version();
        let Event { id, occurred_at, sequence, mut data, .. } = event;
        let write = |data: &Data| {
            serde_json::to_string(&Body {
                id: id.as_str(),
                r#type: kind,
                version,
                timestamp: occurred_at,
                sequence,
                data,
            })
        };
        let mut body = write(&data)?;
        if body.len() > MAX_EVENT_BYTES
            && let Data::OrderPlaced(placed) = &mut data
        {
            // The receiver of a large order reads its lines from the API.
            placed.lines = Vec::new();
            placed.lines_left_out = placed.line_count;
            body = write(&data)?;
        }
        Ok(Some(Self { kind, id: webhook_delivery::id_of(id.as_str(), occurred_at), event_id: id.to_string(), body }))
    }

    /// Returns the delivery of the message to an endpoint. With a lease, its first attempt has begun.
    /// Otherwise it is due.
    pub fn to(
        &self,
        endpoint: &EndpointId,
        now: Instant,
        lease: Option<Instant>,
    ) -> Result<Stored<WebhookDelivery>, CourierError> {
        let delivery = WebhookDelivery {
            id: self.id.clone(),
            endpoint_id: endpoint.clone(),
            event_id: self.event_id.clone(),
            kind: self.kind.to_owned(),
            body: self.body.clone(),
            signed_headers: None,
            state: DeliveryState::Pending,
            due_at: Some(lease.unwrap_or(now)),
            tries: u64::from(lease.is_some()),
            expires_at: now.plus_seconds(LIFETIME_SECONDS),
            attempts: Vec::new(),
        };
        // Each event's delivery is created only once, so the event's id serves as `born`.
        Ok(Stored::new(delivery, Born::new(&self.event_id)?, now))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bus::{Kind, StockLow};
    use key_schema::webhook_endpoint::KINDS;

    use super::*;

    #[test]
    fn every_kind_in_webhooks_can_be_wanted() {
        let sent: Vec<&str> = Kind::ALL.iter().filter_map(|kind| kind.in_webhooks()).collect();
        for kind in &sent {
            let group = format!("{}.*", kind.split('.').next().unwrap());
            assert!(KINDS.contains(kind) && KINDS.contains(&group.as_str()), "{kind}");
        }
        for wanted in KINDS {
            let beginning = wanted.trim_end_matches('*');
            assert!(sent.iter().any(|kind| kind.starts_with(beginning)), "{wanted}");
        }
    }

    #[test]
    fn an_event_has_one_delivery() {
        let at: Instant = "2026-11-20T12:00:00.000Z".parse().unwrap();
        let data = StockLow { product_id: "p1".parse().unwrap(), available: 3, threshold: 10 };
        let event = |digits: &str| {
            let id = digits.repeat(16).parse().unwrap();
            Event { id, occurred_at: at, sequence: 7, correlation_id: Some("r1".to_owned()), data: data.clone().into() }
        };
        let (one, again) = (Outgoing::of(event("a1")).unwrap().unwrap(), Outgoing::of(event("a1")).unwrap());
        assert_eq!(again.unwrap().id, one.id);
        assert_ne!(Outgoing::of(event("a2")).unwrap().unwrap().id, one.id);
        assert_eq!(
            one.body,
            r#"{"id":"a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1","type":"stock.low","version":1,"#.to_owned()
                + r#""timestamp":"2026-11-20T12:00:00.000Z","sequence":7,"#
                + r#""data":{"product_id":"p1","available":3,"threshold":10}}"#
        );
    }
}
