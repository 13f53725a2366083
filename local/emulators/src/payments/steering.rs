//! What tests and the local system's control endpoints do with the provider.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::books::{Account, Cause, Desk};
use super::intents::{Intent, Status};
use super::server::{PaymentServer, seconds};
use super::webhooks::{Delivery, Event, Mode, Webhook};
use crate::log::Page;

/// The reason why a payment cannot be steered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteeringError {
    #[error("there is no payment {0}")]
    Unknown(String),
    #[error("the payment has the status {}, in which this is not possible", .0.name())]
    Status(Status),
    #[error("the payment has no refund that changes later")]
    NoRefund,
}

impl PaymentServer {
    /// Returns the amounts of all payments, in the order of their creation.
    #[must_use]
    pub fn accounts(&self) -> Vec<Account> {
        self.provider.run(Cause::default(), |books| books.accounts().collect())
    }

    #[must_use]
    pub fn account(&self, intent: &str) -> Option<Account> {
        self.provider.run(Cause::default(), |books| books.accounts().find(|account| account.intent == intent))
    }

    /// Returns the Unix time of the provider's clock.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.provider.now()
    }

    /// Moves the clock forward, and ends the authorisations that expire.
    pub fn advance(&self, by: Duration) {
        let by = seconds(by);
        let add = |passed: i64| Some(passed.saturating_add(by));
        // The closure never refuses the change.
        let _ = self.provider.passed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        self.provider.run(Cause::default(), |_| ());
    }

    /// Does the customer's part of a payment: the payment with this test payment method, the
    /// authentication, or the end of the processing. The default is the payment's own method, or
    /// else `pm_card_visa`. The method may be declined.
    pub fn confirm(&self, intent: &str, method: Option<&str>) -> Result<(), SteeringError> {
        let method = method.map(str::to_owned);
        self.steer(intent, |desk, intent| intent.complete(desk, method))
    }

    /// Makes the customer's part fail: the bank declines, or the authentication fails.
    pub fn decline(&self, intent: &str) -> Result<(), SteeringError> {
        self.steer(intent, |desk, intent| intent.decline(desk))
    }

    /// Ends the authorisation of a payment now.
    pub fn expire(&self, intent: &str) -> Result<(), SteeringError> {
        self.steer(intent, |desk, intent| intent.expire(desk))
    }

    /// Lets the later course of a payment's refunds happen. Refunds of `pm_card_pendingRefund`
    /// succeed, and refunds of `pm_card_refundFail` fail.
    pub fn settle_refunds(&self, intent: &str) -> Result<(), SteeringError> {
        let settled = self.steer(intent, |desk, intent| intent.settle_refunds(desk));
        settled.map_err(|error| match error {
            SteeringError::Status(_) => SteeringError::NoRefund,
            error => error,
        })
    }

    fn steer(&self, id: &str, act: impl FnOnce(&mut Desk, &mut Intent) -> bool) -> Result<(), SteeringError> {
        let act = |desk: &mut Desk, intent: &mut Intent| (act(desk, intent), intent.status);
        match self.provider.run(Cause::default(), |books| books.change(id, act)) {
            None => Err(SteeringError::Unknown(id.to_owned())),
            Some((false, status)) => Err(SteeringError::Status(status)),
            Some((true, _)) => Ok(()),
        }
    }

    /// Sets the endpoint of the events, or removes it.
    pub fn set_webhook(&self, webhook: Option<Webhook>) {
        self.provider.webhooks.lock().endpoint = webhook.map(Arc::new);
    }

    /// Sets when and how the following events are delivered.
    pub fn set_mode(&self, mode: Mode) {
        self.provider.webhooks.lock().mode = mode;
    }

    /// Skips the first `after` events, and returns at most `limit` of the following events. The
    /// newest 20,000 are kept, whether they were delivered or not.
    #[must_use]
    pub fn events(&self, after: u64, limit: usize) -> Page<Event> {
        self.provider.events.page(after, limit)
    }

    /// Returns the events that wait for their delivery.
    #[must_use]
    pub fn pending(&self) -> Vec<Event> {
        self.provider.webhooks.lock().pending.iter().cloned().collect()
    }

    /// Drops the events that wait for their delivery.
    pub fn discard_pending(&self) {
        self.provider.webhooks.lock().pending.clear();
    }

    /// Delivers the events that wait. Returns the number of accepted deliveries. An event that the
    /// endpoint did not accept waits further.
    pub async fn deliver_pending(&self) -> usize {
        self.provider.deliver_pending().await
    }

    /// Delivers an event now, whether it was delivered or not. Returns whether the endpoint
    /// accepted it. A waiting event waits further.
    pub async fn deliver(&self, event: &Event) -> bool {
        self.provider.deliver(event).await
    }

    /// Delivers all events of a payment again. Returns the number of accepted deliveries.
    pub async fn redeliver(&self, intent: &str) -> usize {
        let mut accepted = 0;
        for event in self.events(0, usize::MAX).items.iter().filter(|event| event.intent == intent) {
            accepted += usize::from(self.deliver(event).await);
        }
        accepted
    }

    /// Signs an event for the endpoint without sending it. Returns `None` without an endpoint.
    #[must_use]
    pub fn sign_delivery(&self, event: &Event) -> Option<Delivery> {
        let endpoint = self.provider.webhooks.lock().endpoint.clone();
        endpoint.map(|endpoint| endpoint.delivery(event, self.now(), false))
    }
}
