use key_schema::entity::AnyEntity as Any;
use key_schema::idempotency::{self, StoredResponse};
use key_schema::item::Stored;
use key_schema::webhook_delivery::{self, Attempt, DeliveryState, WebhookDelivery};
use key_schema::webhook_endpoint::{self, Disabled, DisabledReason, WebhookEndpoint, WebhookEndpoints};
use key_schema::webhook_secret::SecretSeed;

use crate::exercises::NOW;
use crate::goldens::{Golden, with};
use crate::rendering::{Request as _, Shown};
use crate::support::at;
use crate::world::World;

const LEASE: &str = "2017-02-03T10:01:07.125Z";

impl World {
    fn seed(nonce: &str, created_at: &str) -> SecretSeed {
        SecretSeed { key: "k1".into(), nonce: nonce.into(), created_at: at(created_at), ends_at: None }
    }

    pub fn webhook_endpoint(&self) -> Stored<WebhookEndpoint> {
        self.stored(WebhookEndpoint {
            id: self.endpoint.clone(),
            agent: None,
            secrets: vec![Self::seed("nonce-1", "2017-02-03T09:41:00.000Z")],
            failing_since: None,
            url: "https://erp.example/webhooks".into(),
            kinds: ["order.*".to_owned(), "stock.low".to_owned()].into(),
            description: Some("The warehouse".into()),
            disabled: None,
        })
    }

    pub fn endpoint_of_agent(&self) -> Stored<WebhookEndpoint> {
        with(self.webhook_endpoint(), |endpoint| {
            endpoint.id = webhook_endpoint::id_of_agent(&self.agent());
            endpoint.agent = Some(self.agent.clone());
            (endpoint.secrets, endpoint.kinds, endpoint.description) = (Vec::new(), [].into(), None);
            endpoint.url = "https://agent.example/orders".into();
        })
    }

    pub fn webhook_endpoints(&self) -> Stored<WebhookEndpoints> {
        self.stored(WebhookEndpoints { endpoints: 2 })
    }

    /// Makes a delivery whose first attempt is running.
    pub fn webhook_delivery(&self) -> Stored<WebhookDelivery> {
        self.stored(WebhookDelivery {
            id: self.delivery.clone(),
            endpoint_id: self.endpoint.clone(),
            event_id: self.event_id.clone(),
            kind: "order.placed".into(),
            body: r#"{"type":"order.placed"}"#.into(),
            signed_headers: None,
            state: DeliveryState::Pending,
            due_at: Some(at(LEASE)),
            tries: 1,
            expires_at: at("2017-03-05T10:00:00.000Z"),
            attempts: Vec::new(),
        })
    }
}

fn attempt(status: Option<u16>, error: Option<&str>) -> Attempt {
    let error = error.map(str::to_owned);
    Attempt { at: at("2017-02-03T10:00:08.000Z"), milliseconds: 250, status, error }
}

pub fn webhooks_goldens(world: &World) -> Vec<Golden> {
    let failing = with(world.webhook_endpoint(), |endpoint| {
        endpoint.secrets = endpoint.rotated(World::seed("nonce-2", "2017-02-04T09:41:00.000Z"));
        endpoint.failing_since = Some(at("2017-02-03T11:00:00.000Z"));
        endpoint.description = None;
        endpoint.disabled = Some(Disabled { reason: DisabledReason::Failing, at: at("2017-02-06T11:00:00.000Z") });
    });
    let delivered = with(world.webhook_delivery(), |delivery| {
        delivery.attempts = vec![attempt(None, Some("timeout")), attempt(Some(204), None)];
        (delivery.state, delivery.due_at, delivery.tries) = (DeliveryState::Delivered, None, 2);
    });
    let headers = [("ucp-agent", "profile=\"https://api.example/.well-known/ucp\""), ("webhook-id", &world.event_id)];
    let to_agent = with(world.webhook_delivery(), |delivery| {
        delivery.endpoint_id = webhook_endpoint::id_of_agent(&world.agent());
        delivery.kind = "ucp.order".into();
        delivery.signed_headers = Some(headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    });
    vec![
        Golden::of("WebhookEndpoint", world.webhook_endpoint(), Any::WebhookEndpoint),
        Golden::of("WebhookEndpoint-failing", failing, Any::WebhookEndpoint),
        Golden::of("WebhookEndpoint-agent", world.endpoint_of_agent(), Any::WebhookEndpoint),
        Golden::of("WebhookDelivery-agent", to_agent, Any::WebhookDelivery),
        Golden::of("WebhookEndpoints", world.webhook_endpoints(), Any::WebhookEndpoints),
        Golden::of("WebhookDelivery", world.webhook_delivery(), Any::WebhookDelivery),
        Golden::of("WebhookDelivery-delivered", delivered, Any::WebhookDelivery),
    ]
}

pub fn webhooks(world: &World) -> Vec<Shown> {
    let (now, lease, endpoint, delivery) = (at(NOW), at(LEASE), world.webhook_endpoint(), world.webhook_delivery());
    let (id, of) = (&delivery.id, &endpoint.id);
    let record = world.idempotency_record(StoredResponse::Endpoint(of.clone()));
    let disabled = Disabled { reason: DisabledReason::Failing, at: now };
    let (pending, failed) = (DeliveryState::Pending, DeliveryState::Failed);
    let tried = delivery.data.clone().with(attempt(Some(500), None));
    vec![
        webhook_endpoint::get(of).unwrap().show("webhook_endpoint::get"),
        webhook_endpoint::list().unwrap().show("webhook_endpoint::list"),
        webhook_endpoint::create(&endpoint, Some(idempotency::claim(&record, now).unwrap()))
            .unwrap()
            .show("webhook_endpoint::create"),
        webhook_endpoint::adopt(&world.endpoint_of_agent(), &world.agent()).unwrap().show("webhook_endpoint::adopt"),
        webhook_endpoint::change(&endpoint, 3, true, now).unwrap().show("webhook_endpoint::change"),
        webhook_endpoint::rotate(&endpoint, World::seed("nonce-2", NOW)).unwrap().show("webhook_endpoint::rotate"),
        webhook_endpoint::remove(of, now).unwrap().show("webhook_endpoint::remove"),
        webhook_endpoint::fails(of, now).unwrap().show("webhook_endpoint::fails"),
        webhook_endpoint::works(of, lease).unwrap().show("webhook_endpoint::works"),
        webhook_endpoint::disable(of, 3, disabled, Some(lease)).unwrap().show("webhook_endpoint::disable"),
        webhook_delivery::get(of, id).unwrap().show("webhook_delivery::get"),
        webhook_delivery::list(of).unwrap().show("webhook_delivery::list"),
        webhook_delivery::add(&delivery).unwrap().show("webhook_delivery::add"),
        webhook_delivery::due(of, now).unwrap().show("webhook_delivery::due"),
        webhook_delivery::claim(of, id, now, lease).unwrap().show("webhook_delivery::claim"),
        webhook_delivery::settle(&tried, lease, tried.next(now), pending, now)
            .unwrap()
            .show("webhook_delivery::settle"),
        webhook_delivery::settle(&tried, lease, None, failed, now).unwrap().show("webhook_delivery::settle"),
        webhook_delivery::redeliver(of, id, now).unwrap().show("webhook_delivery::redeliver"),
    ]
}
