//! The webhook of the payment provider.

use http_api::contract::{Node, Schema, Schemas, route};
use http_api::{Code, Problem, Request, Response};
use key_schema::instant::Instant;
use key_schema::provider_event;
use ordering::payments::unavailable;
use payments::AccountError;
use payments::webhook::{self, Event, SIGNATURE, WebhookError};

use crate::App;

/// An event of the payment provider, of which Bodega reads only ids.
struct ProviderEvent;

impl Schema for ProviderEvent {
    fn schema(schemas: &mut Schemas) -> Node {
        schemas.named("ProviderEvent", |_| {
            Node::map([("type", "object".into()), ("additionalProperties", true.into())])
                .about("An event as Stripe sends it.")
                .with_examples(&[r#"{"id": "evt_1", "type": "payment_intent.succeeded",
                        "data": {"object": {"object": "payment_intent", "id": "pi_1"}}}"#])
        })
    }
}

/// Receive an event of the payment provider
///
/// Takes an event with a valid signature in the header `Stripe-Signature`, which is at most five minutes
/// old. The event is only a hint: the present state of its payment is read from the provider shortly
/// after. So it does not matter how often and in which sequence events arrive.
#[route(POST "/v1/webhooks/stripe", id = "receiveProviderEvent", who = any, task = "payments",
    parameters(StripeSignature), body = ProviderEvent, answers(204 = () "The event is received"),
    refuses(invalid_header = "the signature is missing, invalid or too old"), always)]
pub async fn receive(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let text = request.json_text()?;
    let header = request.header(SIGNATURE).unwrap_or_default();
    let keys = match app.account.keys().await {
        Ok(keys) => keys,
        // Without an account there is no signature that could be valid.
        Err(AccountError::Off) => return Err(invalid(WebhookError::Unsigned)),
        Err(error) => return Err(unavailable(error)),
    };
    let now = Instant::now();
    let Event { id, intent, order, kind } =
        webhook::open(header, text, &keys.webhook_secrets(), now).map_err(invalid)?;
    let Some(intent) = intent else {
        tracing::info!(kind, "an event of the payment provider is about no payment");
        return Ok(Response::no_content());
    };
    let event = provider_event::receive(id, intent, order, app.services.born(now)?, now)?;
    // A refusal means that the event was received before.
    let _ = app.services.table.write(&event).await?;
    Ok(Response::no_content())
}

fn invalid(error: WebhookError) -> Problem {
    Problem::new(Code::InvalidHeader, format!("Stripe-Signature is not valid: {error}."))
}
