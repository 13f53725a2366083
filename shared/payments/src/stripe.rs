//! Stripe's PaymentIntents over its HTTP API (<https://docs.stripe.com/api/payment_intents>).

use std::time::Duration;

use aws::{Call, CallError, Failure, Limits, Method, Response, Service};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::money::{Currency, Money};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::amount::{from_stripe, to_stripe};
use crate::{
    AmountError, Answer, Capture, Intent, IntentPage, IntentStatus, MAX_REFUNDS, PaymentError, Provider, Refund,
    RefundStatus,
};

/// The version of the API that each call names, so that an account's own version does not matter.
pub const API_VERSION: &str = "2026-06-24.dahlia";

/// Stripe answers most calls within two seconds. Calls with a key may be repeated.
const LIMITS: Limits = Limits {
    attempt: Duration::from_secs(4),
    total: Duration::from_secs(9),
    attempts: 3,
    backoff: Duration::from_millis(300),
};
const PAGE: &str = "50";
/// A payment with its expanded charge has about 5 KB.
const MAX_RESPONSE: usize = 1 << 20;

const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.').remove(b'~');

/// An account at Stripe, or at a service with the same API.
pub struct Stripe {
    service: Service,
    key: String,
}

impl std::fmt::Debug for Stripe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stripe")
    }
}

impl Stripe {
    /// Creates a client with the secret key of an account. `service` has the address of the API,
    /// which is `https://api.stripe.com` for Stripe itself.
    #[must_use]
    pub fn new(service: Service, key: String) -> Self {
        Self { service: service.with_limits(LIMITS), key }
    }

    async fn post<T: for<'de> Deserialize<'de>>(&self, path: &str, form: Form, key: &str) -> Result<T, PaymentError> {
        let headers = [("idempotency-key", key), ("content-type", "application/x-www-form-urlencoded")];
        self.send(Method::POST, path, &headers, form.0).await
    }

    async fn get<T: for<'de> Deserialize<'de>>(&self, path: &str, query: Form) -> Result<T, PaymentError> {
        self.send(Method::GET, &format!("{path}?{}", query.0), &[], String::new()).await
    }

    async fn send<T: for<'de> Deserialize<'de>>(
        &self,
        method: Method,
        path: &str,
        more: &[(&'static str, &str)],
        body: String,
    ) -> Result<T, PaymentError> {
        let authorization = format!("Bearer {}", self.key);
        let mut headers = vec![("authorization", authorization.as_str()), ("stripe-version", API_VERSION)];
        headers.extend_from_slice(more);
        let body = body.into();
        let call = Call { headers: &headers, body, max_response: MAX_RESPONSE, ..Call::new(method, path) };
        let response = self.service.call(&call, may_pass).await.map_err(|error| failed(&error))?;
        if response.status != 200 {
            return Err(refused(&response));
        }
        // The parser's own message could quote a client secret.
        serde_json::from_slice(&response.body)
            .map_err(|_| PaymentError::Unknown("the response is malformed".to_owned()))
    }
}

impl Provider for Stripe {
    fn create<'a>(&'a self, order: &'a OrderId, amount: Money, capture: Capture, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move {
            let method = match capture {
                Capture::AtOnce => "automatic",
                Capture::Later => "manual",
            };
            let form = Form::default()
                .with("amount", &to_stripe(amount)?.to_string())
                .with("currency", &amount.currency.as_str().to_ascii_lowercase())
                .with("capture_method", method)
                .with("payment_method_types[]", "card")
                .with("metadata[order]", order.as_str())
                .with("metadata[operation]", key)
                .with("expand[]", "latest_charge");
            self.post::<StripeIntent>("/v1/payment_intents", form, key).await?.read()
        })
    }

    fn read<'a>(&'a self, intent: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move {
            let query = Form::default().with("expand[]", "latest_charge");
            self.get::<StripeIntent>(&path("payment_intents", intent, ""), query).await?.read()
        })
    }

    fn confirm<'a>(&'a self, intent: &'a str, token: &'a str, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move {
            // https://docs.stripe.com/agentic-commerce/concepts/shared-payment-tokens
            let name = match token.starts_with("spt_") {
                true => "payment_method_data[shared_payment_granted_token]",
                false => "payment_method",
            };
            let form = Form::default().with(name, token).with("expand[]", "latest_charge");
            self.post::<StripeIntent>(&path("payment_intents", intent, "/confirm"), form, key).await?.read()
        })
    }

    fn capture<'a>(&'a self, intent: &'a Intent, amount: Money, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move {
            let form = Form::default().with("amount_to_capture", &part_of(intent, amount)?);
            let form = form.with("expand[]", "latest_charge");
            self.post::<StripeIntent>(&path("payment_intents", &intent.id, "/capture"), form, key).await?.read()
        })
    }

    fn cancel<'a>(&'a self, intent: &'a str, key: &'a str) -> Answer<'a, Intent> {
        Box::pin(async move {
            let form = Form::default().with("expand[]", "latest_charge");
            self.post::<StripeIntent>(&path("payment_intents", intent, "/cancel"), form, key).await?.read()
        })
    }

    fn refund<'a>(&'a self, intent: &'a Intent, amount: Money, key: &'a str) -> Answer<'a, Refund> {
        Box::pin(async move {
            let form = Form::default()
                .with("payment_intent", &intent.id)
                .with("amount", &part_of(intent, amount)?)
                .with("metadata[operation]", key);
            self.post::<StripeRefund>("/v1/refunds", form, key).await?.read()
        })
    }

    fn refunds<'a>(&'a self, intent: &'a str) -> Answer<'a, Vec<Refund>> {
        Box::pin(async move {
            let query = Form::default().with("payment_intent", intent).with("limit", &MAX_REFUNDS.to_string());
            let list: List<StripeRefund> = self.get("/v1/refunds", query).await?;
            if list.has_more {
                return Err(PaymentError::Unknown(format!("the payment has more than {MAX_REFUNDS} refunds")));
            }
            list.data.into_iter().map(StripeRefund::read).collect()
        })
    }

    fn find<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Intent>> {
        Box::pin(async move {
            let query = Form::default().with("query", &format!("metadata['operation']:'{key}'"));
            let query = query.with("expand[]", "data.latest_charge");
            let list: List<StripeIntent> = self.get("/v1/payment_intents/search", query).await?;
            // The search ignores the case of letters.
            let mut found = list.data.into_iter().filter(|intent| intent.metadata.operation.as_deref() == Some(key));
            found.next().map(StripeIntent::read).transpose()
        })
    }

    fn created<'a>(&'a self, from: Instant, until: Instant, after: Option<&'a str>) -> Answer<'a, IntentPage> {
        Box::pin(async move {
            let seconds = |at: Instant| (at.as_millis() / 1000).to_string();
            let query = Form::default()
                .with("created[gte]", &seconds(from))
                .with("created[lt]", &seconds(until))
                .with("limit", PAGE)
                .with("expand[]", "data.latest_charge");
            let query = after.into_iter().fold(query, |query, after| query.with("starting_after", after));
            let list: List<StripeIntent> = self.get("/v1/payment_intents", query).await?;
            Ok(list.page())
        })
    }
}

/// Returns whether the same call with the same key may succeed now. Stripe says so in a header if it
/// knows (<https://docs.stripe.com/error-low-level#stripe-should-retry-header>).
fn may_pass(response: &Response) -> bool {
    match response.header("stripe-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(response.status, 409 | 429 | 500..),
    }
}

fn failed(error: &CallError) -> PaymentError {
    match &error.failure {
        Failure::Invalid(_) => PaymentError::NotSent("the request cannot be built".to_owned()),
        // An earlier attempt may have arrived.
        Failure::NotConnected(_) if error.attempts == 1 => PaymentError::NotSent(error.to_string()),
        _ => PaymentError::Unknown(error.to_string()),
    }
}

/// Returns the meaning of a response that is no success. The texts have only Stripe's codes, because
/// its messages may quote the request.
fn refused(response: &Response) -> PaymentError {
    #[derive(Default, Deserialize)]
    struct Body {
        #[serde(default)]
        error: Error,
    }
    #[derive(Default, Deserialize)]
    struct Error {
        #[serde(rename = "type")]
        kind: Option<String>,
        code: Option<String>,
        decline_code: Option<String>,
    }
    let Body { error: Error { kind, code, decline_code } } = serde_json::from_slice(&response.body).unwrap_or_default();
    if kind.as_deref() == Some("idempotency_error") && response.status == 400 {
        return PaymentError::KeyReused;
    }
    let text = decline_code.or(code).or(kind).unwrap_or_else(|| format!("status {}", response.status));
    match response.status {
        // After several attempts, an earlier one may have had its effect.
        401 | 403 | 429 if response.attempts == 1 => PaymentError::NotSent(text),
        400 | 402 | 404 => PaymentError::Refused(text),
        _ => PaymentError::Unknown(text),
    }
}

/// Returns an amount of the payment in Stripe's unit.
fn part_of(intent: &Intent, amount: Money) -> Result<String, AmountError> {
    let payment = intent.amount.currency;
    if payment != amount.currency {
        return Err(AmountError::OtherCurrency { payment, amount: amount.currency });
    }
    Ok(to_stripe(amount)?.to_string())
}

fn path(kind: &str, id: &str, action: &str) -> String {
    format!("/v1/{kind}/{}{action}", utf8_percent_encode(id, &ESCAPED))
}

/// Parameters in the form of a query.
#[derive(Default)]
struct Form(String);

impl Form {
    fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        for part in [name, "=", value] {
            match part {
                "=" => self.0.push('='),
                part => self.0.extend(utf8_percent_encode(part, &ESCAPED)),
            }
        }
        self
    }
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
}

impl List<StripeIntent> {
    fn page(self) -> IntentPage {
        let next = self.data.last().filter(|_| self.has_more).map(|last| last.id.clone());
        let mut page = IntentPage { items: Vec::new(), unreadable: Vec::new(), next };
        for intent in self.data {
            let id = intent.id.clone();
            match intent.read() {
                Ok(intent) => page.items.push(intent),
                Err(_) => page.unreadable.push(id),
            }
        }
        page
    }
}

#[derive(Default, Deserialize)]
struct Metadata {
    order: Option<String>,
    operation: Option<String>,
}

#[derive(Deserialize)]
struct StripeIntent {
    id: String,
    status: String,
    amount: i64,
    currency: String,
    #[serde(default)]
    amount_capturable: i64,
    #[serde(default)]
    amount_received: i64,
    client_secret: Option<String>,
    latest_charge: Option<Charge>,
    last_payment_error: Option<LastError>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct LastError {
    code: Option<String>,
    decline_code: Option<String>,
}

/// A charge, or only its id where the list is not expanded.
#[derive(Deserialize)]
#[serde(untagged)]
enum Charge {
    Whole {
        payment_method_details: Option<Details>,
    },
    #[allow(dead_code, reason = "serde needs the variant")]
    Id(String),
}

#[derive(Deserialize)]
struct Details {
    card: Option<Card>,
}

#[derive(Deserialize)]
struct Card {
    capture_before: Option<i64>,
}

fn malformed(what: &str) -> PaymentError {
    PaymentError::Unknown(format!("the response has an unknown {what}"))
}

fn currency(text: &str) -> Result<Currency, PaymentError> {
    text.to_ascii_uppercase().parse().map_err(|_| malformed("currency"))
}

/// Reads an amount of a response. The call had its effect, so an amount that cannot be read is no
/// [`AmountError`].
fn money(amount: i64, currency: Currency) -> Result<Money, PaymentError> {
    from_stripe(amount, currency).map_err(|_| malformed("amount"))
}

impl StripeIntent {
    fn read(self) -> Result<Intent, PaymentError> {
        let currency = currency(&self.currency)?;
        let status = match self.status.as_str() {
            "requires_payment_method" | "requires_confirmation" => IntentStatus::Open,
            "requires_action" => IntentStatus::ActionRequired,
            "processing" => IntentStatus::Processing,
            "requires_capture" => IntentStatus::Authorised,
            "succeeded" => IntentStatus::Captured,
            "canceled" => IntentStatus::Cancelled,
            _ => return Err(malformed("status")),
        };
        let card = match self.latest_charge {
            Some(Charge::Whole { payment_method_details: Some(Details { card }) }) => card,
            _ => None,
        };
        let before = card.and_then(|card| card.capture_before).filter(|_| status == IntentStatus::Authorised);
        Ok(Intent {
            id: self.id,
            status,
            amount: money(self.amount, currency)?,
            capturable: money(self.amount_capturable, currency)?,
            captured: money(self.amount_received, currency)?,
            capture_before: before
                .map(|seconds| {
                    seconds.checked_mul(1000).and_then(Instant::from_millis).ok_or_else(|| malformed("instant"))
                })
                .transpose()?,
            declined: self.last_payment_error.and_then(|error| error.decline_code.or(error.code)),
            client_secret: self.client_secret,
            order: self.metadata.order.and_then(|order| order.parse().ok()),
            key: self.metadata.operation,
        })
    }
}

#[derive(Deserialize)]
struct StripeRefund {
    id: String,
    status: Option<String>,
    amount: i64,
    currency: String,
    #[serde(default)]
    metadata: Metadata,
}

impl StripeRefund {
    fn read(self) -> Result<Refund, PaymentError> {
        let status = match self.status.as_deref() {
            Some("pending" | "requires_action") | None => RefundStatus::Pending,
            Some("succeeded") => RefundStatus::Done,
            Some("failed" | "canceled") => RefundStatus::Failed,
            Some(_) => return Err(malformed("status")),
        };
        let amount = money(self.amount, currency(&self.currency)?)?;
        Ok(Refund { id: self.id, status, amount, key: self.metadata.operation })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_response_that_does_not_say_that_nothing_changed_leaves_the_outcome_unknown() {
        let error = |status, attempts, body: &'static str| {
            refused(&Response { status, attempts, body: body.into(), ..Response::default() })
        };
        let declined = r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"lost_card"}}"#;
        let reused = r#"{"error":{"type":"idempotency_error"}}"#;
        let text = |text: &str| text.to_owned();
        for (found, expected) in [
            (error(402, 3, declined), PaymentError::Refused(text("lost_card"))),
            (error(404, 1, "{}"), PaymentError::Refused(text("status 404"))),
            (error(400, 1, reused), PaymentError::KeyReused),
            (error(401, 1, ""), PaymentError::NotSent(text("status 401"))),
            (error(429, 1, ""), PaymentError::NotSent(text("status 429"))),
            (error(429, 2, ""), PaymentError::Unknown(text("status 429"))),
            (error(408, 1, ""), PaymentError::Unknown(text("status 408"))),
            (error(409, 1, ""), PaymentError::Unknown(text("status 409"))),
            (error(424, 1, ""), PaymentError::Unknown(text("status 424"))),
            (error(500, 1, ""), PaymentError::Unknown(text("status 500"))),
        ] {
            assert_eq!(found, expected);
        }
    }

    /// The call that gets such a payment had its effect, so the error must not say that nothing was
    /// sent.
    #[test]
    fn a_payment_with_an_amount_that_bodega_lacks_is_set_aside() {
        let list = r#"{"has_more":true,"data":[
            {"id":"pi_1","status":"succeeded","amount":550,"currency":"isk"},
            {"id":"pi_2","status":"succeeded","amount":500,"currency":"isk"}]}"#;
        let read = || serde_json::from_str::<List<StripeIntent>>(list).unwrap();
        let first = read().data.into_iter().next().unwrap().read();
        assert!(matches!(first, Err(PaymentError::Unknown(_))), "{first:?}");
        let page = read().page();
        assert_eq!(
            (page.items.len(), page.unreadable, page.next),
            (1, vec!["pi_1".to_owned()], Some("pi_2".to_owned()))
        );
    }
}
