//! Payments by card: what customers, their browsers and staff do, and the events of the provider.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emulators::payments::Event;
use fastrand::Rng;
use serde_json::{Value, json};

use super::steps::usd;
use super::world::{PRICE, World};

/// The methods of payment, as often as a step chooses them.
const METHODS: [&str; 10] = ["card", "card", "card", "card", "card", "card", "card", "card", "wallet", "manual"];
/// The test cards, as often as a browser chooses them.
const CARDS: [&str; 8] = [
    "pm_card_visa",
    "pm_card_visa",
    "pm_card_visa",
    "pm_card_visa",
    "pm_card_authenticationRequired",
    "pm_card_authenticationRequired",
    "pm_card_visa_chargeDeclined",
    "pm_card_visa_chargeDeclinedInsufficientFunds",
];
/// With this error of its clock, the cashier finds the newest operations, also those of a function
/// whose clock is an hour ahead. The keys of the operations are not too old yet.
const HOURS: i64 = 3 * 60 * 60;
/// With this error, the cashier takes all keys for too old, and reads the provider's books.
const DAY: i64 = 24 * 60 * 60;
/// The maximum number of deliveries of an event.
const ATTEMPTS: usize = 5;
/// The provider's search finds a payment after this time.
const SEARCH_LAG: Duration = Duration::from_secs(61);

/// A card payment that a client knows.
#[derive(Debug, Clone)]
pub struct Card {
    order: String,
    payment: String,
    /// The provider's id of the payment.
    intent: String,
}

#[derive(Debug, Default)]
pub struct Cards {
    known: Vec<Card>,
    /// The events of each payment at the provider, as far as they were read.
    events: BTreeMap<String, Vec<Event>>,
    read: u64,
    /// Payments that a browser has changed since the last event that Bodega has accepted.
    owed: BTreeSet<String>,
    /// Whether the provider may have stored an error for a key, and whether this was ever so.
    pub has_stored_errors: bool,
    had_stored_errors: bool,
    /// Whether something happened since everything was settled.
    is_used: bool,
}

impl Cards {
    pub fn enter(&mut self, order: &str, payment: &Value) {
        let Some(intent) = intent_of(payment) else { return };
        let payment = payment["id"].as_str().unwrap().to_owned();
        if self.known.iter().all(|known| known.payment != payment) {
            self.known.push(Card { order: order.to_owned(), payment, intent: intent.to_owned() });
        }
    }
}

/// Returns the provider's id of a payment, which is a part of the secret for the browser.
pub fn intent_of(payment: &Value) -> Option<&str> {
    Some(payment["client_secret"].as_str()?.split_once("_secret")?.0)
}

impl World<'_> {
    /// Begins one or two payments of an order. Mostly the browser confirms one of them.
    pub async fn pay(&self, rng: &mut Rng) {
        let Some((order, owner)) = self.a_new_order(rng) else { return };
        self.cards.lock().unwrap().is_used = true;
        let count = if rng.u8(0..6) == 0 { 2 } else { 1 };
        for _ in 0..count {
            let method = METHODS[rng.usize(0..METHODS.len())];
            let mut body = json!({"method": method});
            if method != "card" || rng.u8(0..3) == 0 {
                body["amount"] = usd(rng.i64(1..PRICE * 3));
            }
            let by = (method != "manual" && rng.bool()).then(|| owner.clone());
            self.create(rng, by, format!("/v1/orders/{order}/payments"), body).await;
        }
        let known = self.cards.lock().unwrap().known.iter().rev().find(|card| card.order == order).cloned();
        // Some browsers are late, and some customers never pay.
        if let Some(card) = known.filter(|_| rng.u8(0..5) > 0) {
            self.browse(rng, &card.intent).await;
        }
    }

    /// Works with a card payment that a client knows: a late browser, or staff.
    pub async fn follow(&self, rng: &mut Rng) {
        let Some(Card { order, payment, intent }) = self.a_card(rng) else { return };
        self.cards.lock().unwrap().is_used = true;
        if rng.u8(0..4) == 0 {
            return self.browse(rng, &intent).await;
        }
        let found = self.clients.staff("GET", &format!("/v1/orders/{order}"), &[], None).await;
        let mut payments = found.body["payments"].as_array().into_iter().flatten();
        let Some(known) = payments.find(|known| known["id"] == *payment) else { return };
        let (path, is_pending) = (format!("/v1/orders/{order}/payments/{payment}"), found.body["status"] == "pending");
        let amount = |name: &str| known[name]["amount"].as_i64().unwrap_or_default();
        match known["status"].as_str() {
            // The amount is sometimes more than what is left. A refund before the order is paid
            // would make the sums of the comparison depend on the sequence of two requests.
            Some("captured") if !is_pending => {
                let left = amount("captured") - amount("refunded");
                let body = json!({"amount": usd(rng.i64(1..=left.clamp(1, PRICE * 4) + 1)), "reason": "damaged"});
                self.create(rng, None, format!("{path}/refunds"), body).await;
            }
            Some("authorised") => {
                let is_part = !is_pending && rng.bool();
                let part = is_part.then(|| usd(rng.i64(1..=amount("authorised").max(1))));
                self.clients.staff("POST", &format!("{path}/capture"), &[], Some(&json!({"amount": part}))).await;
            }
            Some("pending" | "action_required") if rng.bool() => {
                self.clients.staff("POST", &format!("{path}/cancel"), &[], None).await;
            }
            _ => self.hear(rng, &intent).await,
        }
    }

    fn a_card(&self, rng: &mut Rng) -> Option<Card> {
        let cards = self.cards.lock().unwrap();
        cards.known.get(rng.usize(0..cards.known.len().max(1))).cloned()
    }

    /// The customer's browser gives the provider a card. Then the provider sends events.
    async fn browse(&self, rng: &mut Rng, intent: &str) {
        // The provider refuses if the payment has ended meanwhile.
        if self.provider.confirm(intent, Some(CARDS[rng.usize(0..CARDS.len())])).is_err() {
            return;
        }
        // The customer makes the authentication, or uses another card.
        if rng.bool() {
            let _ = self.provider.confirm(intent, None);
        }
        self.cards.lock().unwrap().owed.insert(intent.to_owned());
        self.hear(rng, intent).await;
    }

    /// The browser gives the provider a good card.
    pub fn give_card(&self, intent: &str) {
        if self.provider.confirm(intent, None).is_ok() {
            self.cards.lock().unwrap().owed.insert(intent.to_owned());
        }
    }

    /// The provider delivers the last event of a payment until Bodega accepts it.
    pub async fn tell(&self, intent: &str) {
        if let Some(last) = self.events_of(intent).last() {
            for _ in 0..ATTEMPTS {
                if self.deliver(last).await {
                    return;
                }
            }
        }
    }

    /// Delivers some events of a payment: the last one, one event twice, several events in the
    /// wrong sequence, or none.
    async fn hear(&self, rng: &mut Rng, intent: &str) {
        let events = self.events_of(intent);
        let Some(last) = events.last() else { return };
        match rng.u8(0..10) {
            0..=4 => {
                self.deliver(last).await;
            }
            5 => {
                futures::join!(self.deliver(last), self.deliver(last));
            }
            6 => {
                for event in events.iter().rev().take(3) {
                    self.deliver(event).await;
                }
            }
            7 => {
                self.deliver(&events[rng.usize(0..events.len())]).await;
            }
            _ => {}
        }
    }

    /// Delivers an event. Returns whether Bodega has accepted it.
    async fn deliver(&self, event: &Event) -> bool {
        let is_accepted = self.provider.deliver(event).await;
        // The state of the payment is read later than this event, so no earlier event is owed.
        if is_accepted && self.events_of(&event.intent).last().is_some_and(|last| last.id == event.id) {
            self.cards.lock().unwrap().owed.remove(&event.intent);
        }
        is_accepted
    }

    /// Returns the events of a payment at the provider, in their sequence.
    fn events_of(&self, intent: &str) -> Vec<Event> {
        let mut cards = self.cards.lock().unwrap();
        let page = self.provider.events(cards.read, usize::MAX);
        cards.read = page.next;
        for event in page.items {
            cards.events.entry(event.intent.clone()).or_default().push(event);
        }
        cards.events.get(intent).cloned().unwrap_or_default()
    }

    /// Runs a round of the cashier, whose clock is wrong by this number of seconds.
    async fn cashier(&self, seconds: i64) {
        self.clients.fault(json!({"target": "function:Cashier", "kind": "clock", "seconds": seconds})).await;
        self.clients.staff("POST", "/_local/invoke/Cashier", &[], Some(&json!({}))).await;
    }

    /// Runs a round of the cashier. Clients may be active at the same time.
    pub async fn round(&self) {
        self.cards.lock().unwrap().is_used = true;
        self.cashier(HOURS).await;
    }

    /// Delivers what is owed, and finds the results of calls whose keys are useless. Call it only
    /// without faults, and while no client is active.
    pub async fn settle_cards(&self) {
        let (owed, has_stored_errors) = {
            let mut cards = self.cards.lock().unwrap();
            if !cards.is_used {
                return;
            }
            cards.had_stored_errors |= cards.has_stored_errors;
            (std::mem::take(&mut cards.owed), std::mem::take(&mut cards.has_stored_errors))
        };
        for intent in owed {
            let events = self.events_of(&intent);
            assert!(self.deliver(events.last().unwrap()).await, "an event of {intent} is refused");
        }
        self.clients.staff("POST", "/_local/drain?timeout_s=300", &[], None).await.expect(200);
        if !has_stored_errors {
            return;
        }
        self.cashier(HOURS).await;
        self.provider.advance(SEARCH_LAG);
        self.cashier(DAY).await;
    }

    /// Sends the calls that are left after the last request.
    pub async fn settle_calls(&self) {
        let had_stored_errors = {
            let mut cards = self.cards.lock().unwrap();
            if !std::mem::take(&mut cards.is_used) {
                return;
            }
            cards.had_stored_errors
        };
        self.cashier(HOURS).await;
        if had_stored_errors {
            // The operations of an order are later than its last step, which may be a day ahead.
            self.cashier(2 * DAY).await;
        }
        self.clients.local("DELETE", "/_local/faults", None).await;
    }
}
