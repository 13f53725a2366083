//! Webhooks of Stripe: their signature, and the payment that an event is about
//! (<https://docs.stripe.com/webhooks#verify-manually>).
//!
//! An event is a hint. Its reader takes only the ids from it, and reads the provider's present state
//! of the payment. So it does not matter when, how often and in which sequence events arrive.

use key_schema::id::OrderId;
use key_schema::instant::Instant;
use ring::hmac;
use serde::Deserialize;

/// The largest difference between the signature's time and now. Stripe's libraries have the same.
pub const TOLERANCE_SECONDS: i64 = 300;
/// The header with the signature.
pub const SIGNATURE: &str = "stripe-signature";
/// The maximum length of an id (<https://docs.stripe.com/upgrades>, "backwards-compatible changes").
const MAX_ID: usize = 255;
/// The maximum number of signatures in the header that are compared.
const MAX_SIGNATURES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error("the signature is missing or malformed")]
    Malformed,
    #[error("no signature is of a known secret")]
    Unsigned,
    #[error("the signature is too old, or from the future")]
    Untimely,
    #[error("the signed text is not an event")]
    NotAnEvent,
}

/// The ids in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub kind: String,
    /// The payment that the event is about. Events about other things have none.
    pub intent: Option<String>,
    /// The order of that payment, if the event has it.
    pub order: Option<OrderId>,
}

/// Checks the signature of a webhook, and reads the event. While a secret is rotated, `secrets` has
/// the old and the new one.
///
/// # Errors
/// [`WebhookError`]. The text of an error contains nothing of the request.
pub fn open(header: &str, body: &str, secrets: &[&str], now: Instant) -> Result<Event, WebhookError> {
    let (mut at, mut signatures) = (None, Vec::new());
    for part in header.split(',').map(str::trim) {
        match part.split_once('=').ok_or(WebhookError::Malformed)? {
            ("t", text) => at = Some(text),
            ("v1", text) if signatures.len() < MAX_SIGNATURES => signatures.extend(bytes(text)),
            // Other schemes, such as `v0` of test events, prove nothing.
            _ => {}
        }
    }
    let at = at.ok_or(WebhookError::Malformed)?;
    let seconds: i64 = at.parse().map_err(|_| WebhookError::Malformed)?;
    let signed = format!("{at}.{body}");
    let is_of = |secret: &&str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        signatures.iter().any(|signature| hmac::verify(&key, signed.as_bytes(), signature).is_ok())
    };
    // Anybody can sign with an empty secret.
    if !secrets.iter().filter(|secret| !secret.is_empty()).any(is_of) {
        return Err(WebhookError::Unsigned);
    }
    if (now.as_millis() / 1000).abs_diff(seconds) > TOLERANCE_SECONDS.unsigned_abs() {
        return Err(WebhookError::Untimely);
    }
    read(body).ok_or(WebhookError::NotAnEvent)
}

/// Reads a hexadecimal text. Returns `None` for any other text.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}

fn read(body: &str) -> Option<Event> {
    #[derive(Deserialize)]
    struct Envelope {
        id: String,
        #[serde(rename = "type")]
        kind: String,
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        object: Object,
    }
    #[derive(Deserialize)]
    struct Object {
        object: String,
        id: Option<String>,
        payment_intent: Option<String>,
        metadata: Option<Metadata>,
    }
    #[derive(Deserialize)]
    struct Metadata {
        order: Option<String>,
    }
    let Envelope { id, kind, data: Data { object } } = serde_json::from_str(body).ok()?;
    let order = object.metadata.and_then(|metadata| metadata.order?.parse().ok());
    let intent = if object.object == "payment_intent" { object.id } else { object.payment_intent };
    // A longer id is not one of the provider's, and would not fit a key.
    let is_id = |text: &str| (1..=MAX_ID).contains(&text.len());
    (is_id(&id) && intent.as_deref().is_none_or(is_id)).then_some(Event { id, kind, intent, order })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BODY: &str = r#"{"id":"evt_1","type":"charge.refunded",
        "data":{"object":{"object":"charge","id":"ch_1","payment_intent":"pi_1","metadata":{"order":"o1"}}}}"#;
    const SECRET: &str = "whsec_test";

    fn at(seconds: i64) -> Instant {
        Instant::EPOCH.plus_seconds(seconds)
    }

    fn signature(secret: &str, text: &str) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), text.as_bytes());
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn header(secret: &str) -> String {
        format!("t=1700000000,v1={}", signature(secret, &format!("1700000000.{BODY}")))
    }

    /// The signature of this text was computed with OpenSSL.
    #[test]
    fn a_signature_is_the_hmac_of_time_and_body() {
        assert_eq!(
            signature("whsec_test", "1700000000.{}"),
            "35495024f4ef3f94e5a93e22221544c4b75e9a42300cd965ab81cb85cd994e91"
        );
    }

    #[test]
    fn an_event_is_accepted_with_one_valid_signature_of_any_secret() {
        let now = at(1_700_000_000);
        let (intent, order) = (Some("pi_1".to_owned()), Some("o1".parse().unwrap()));
        let event = Event { id: "evt_1".to_owned(), kind: "charge.refunded".to_owned(), intent, order };
        assert_eq!(open(&header(SECRET), BODY, &["old", SECRET], now), Ok(event.clone()));
        let rotated = format!("{},v1={}", header("old"), signature(SECRET, &format!("1700000000.{BODY}")));
        assert_eq!(open(&rotated, BODY, &[SECRET], now), Ok(event.clone()));
        for late in [-300, 300] {
            assert_eq!(open(&header(SECRET), BODY, &[SECRET], at(1_700_000_000 + late)), Ok(event.clone()));
        }
    }

    #[test]
    fn an_event_without_a_valid_and_timely_signature_is_refused() {
        let (now, valid) = (at(1_700_000_000), header(SECRET));
        for (header, secrets, now, expected) in [
            (&*valid, &["other"][..], now, WebhookError::Unsigned),
            (&valid, &[], now, WebhookError::Unsigned),
            (&header(""), &["", SECRET], now, WebhookError::Unsigned),
            (&valid.replace("v1=", "v0="), &[SECRET], now, WebhookError::Unsigned),
            (&valid.replace("t=1700000000", "t=1700000001"), &[SECRET], now, WebhookError::Unsigned),
            (&valid.replace("v1=", "v1=é"), &[SECRET], now, WebhookError::Unsigned),
            (&valid, &[SECRET], at(1_700_000_301), WebhookError::Untimely),
            (&valid, &[SECRET], at(1_699_999_699), WebhookError::Untimely),
            (&valid.replace("t=", "at="), &[SECRET], now, WebhookError::Malformed),
            ("", &[SECRET], now, WebhookError::Malformed),
            ("t=x,v1=00", &[SECRET], now, WebhookError::Malformed),
        ] {
            assert_eq!(open(header, BODY, secrets, now), Err(expected), "{header}");
        }
        assert_eq!(open(&valid, &BODY.replace("pi_1", "pi_2"), &[SECRET], now), Err(WebhookError::Unsigned));
        let signed = format!("t=1700000000,v1={}", signature(SECRET, "1700000000.[]"));
        assert_eq!(open(&signed, "[]", &[SECRET], now), Err(WebhookError::NotAnEvent));
    }
}
