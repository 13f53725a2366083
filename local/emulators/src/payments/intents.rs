//! One PaymentIntent and its states (<https://docs.stripe.com/payments/paymentintents/lifecycle>).

use hyper::StatusCode;
use serde_json::{Value, json};

use super::books::Desk;
use super::cards::{AUTHENTICATION, Decline, GENERIC, Step, card};
use super::refunds::Refund;
use super::wire::{Metadata, Refusal};

/// <https://docs.stripe.com/payments/place-a-hold-on-a-payment-method>: a payment that the customer
/// made online stays authorised for seven days.
const AUTHORISED_SECONDS: i64 = 7 * 24 * 60 * 60;

const CONFIRMABLE: &str = "requires_confirmation, requires_payment_method, requires_action";
const CANCELABLE: &str = "requires_payment_method, requires_capture, requires_reauthorization, \
    requires_confirmation, requires_action, processing";

pub(super) const NO_METHOD: &str = "You cannot confirm this PaymentIntent because it's missing a payment method. You \
    can either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly \
    with a payment method.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    RequiresPaymentMethod,
    RequiresConfirmation,
    RequiresAction,
    Processing,
    RequiresCapture,
    Succeeded,
    Canceled,
}

impl Status {
    /// Returns the name in the API, such as `requires_capture`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequiresPaymentMethod => "requires_payment_method",
            Self::RequiresConfirmation => "requires_confirmation",
            Self::RequiresAction => "requires_action",
            Self::Processing => "processing",
            Self::RequiresCapture => "requires_capture",
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
        }
    }
}

/// The parameters of a new payment.
#[derive(Debug)]
pub(super) struct NewIntent {
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) is_manual: bool,
    pub(super) method: Option<String>,
    pub(super) method_types: Vec<String>,
    pub(super) metadata: Metadata,
    pub(super) description: Option<String>,
}

#[derive(Debug)]
pub(super) struct Intent {
    pub(super) id: String,
    client_secret: String,
    pub(super) new: NewIntent,
    pub(super) status: Status,
    pub(super) created: i64,
    /// Time of the last change, for the search.
    pub(super) changed: i64,
    canceled_at: Option<i64>,
    cancellation_reason: Option<&'static str>,
    last_error: Option<Value>,
    /// The latest charge. Earlier charges failed, and no request reads them.
    pub(super) charge: Option<Charge>,
}

#[derive(Debug)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) method: String,
    pub(super) state: ChargeState,
    pub(super) captured: i64,
    /// The refunds that have not failed, including the released amount.
    pub(super) refunded: i64,
    /// The amount that was released without a capture.
    pub(super) released: i64,
    pub(super) capture_before: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ChargeState {
    Pending,
    Succeeded,
    Failed(&'static Decline),
}

impl Intent {
    pub(super) fn new(desk: &mut Desk, new: NewIntent) -> Self {
        let id = desk.id("pi_");
        let status = if new.method.is_some() { Status::RequiresConfirmation } else { Status::RequiresPaymentMethod };
        let intent = Self {
            client_secret: desk.id(&format!("{id}_secret_")),
            id,
            new,
            status,
            created: desk.now,
            changed: desk.now,
            canceled_at: None,
            cancellation_reason: None,
            last_error: None,
            charge: None,
        };
        intent.emit(desk, "payment_intent.created");
        intent
    }

    pub(super) fn confirm(&mut self, desk: &mut Desk, method: Option<String>) -> Result<(), Refusal> {
        match self.status {
            Status::RequiresPaymentMethod | Status::RequiresConfirmation | Status::RequiresAction => {}
            Status::Succeeded => {
                return Err(self.refuse(
                    "You cannot confirm this PaymentIntent because it has already succeeded after being \
                    previously confirmed.",
                ));
            }
            status => {
                return Err(self.refuse(format!(
                    "You cannot confirm this PaymentIntent because it has a status of {}. Only a PaymentIntent \
                    with one of the following statuses may be confirmed: {CONFIRMABLE}.",
                    status.name()
                )));
            }
        }
        let Some(method) = method.or_else(|| self.new.method.clone()) else {
            return Err(self.refuse(NO_METHOD));
        };
        let card = card(&method).ok_or_else(|| no_method(&method))?;
        self.new.method = Some(method);
        self.last_error = None;
        match card.step {
            Step::Charge => self.attempt(desk, card.decline),
            Step::Authentication => {
                self.status = Status::RequiresAction;
                self.emit(desk, "payment_intent.requires_action");
                Ok(())
            }
            Step::Processing => {
                self.charge = Some(self.new_charge(desk, ChargeState::Pending));
                self.status = Status::Processing;
                self.emit(desk, "payment_intent.processing");
                Ok(())
            }
        }
    }

    fn attempt(&mut self, desk: &mut Desk, decline: Option<&'static Decline>) -> Result<(), Refusal> {
        match decline {
            Some(decline) => Err(self.fail(desk, decline)),
            None => {
                self.authorise(desk);
                Ok(())
            }
        }
    }

    fn authorise(&mut self, desk: &mut Desk) {
        let mut charge = self.new_charge(desk, ChargeState::Succeeded);
        let change = if self.new.is_manual {
            let until = desk.now.saturating_add(AUTHORISED_SECONDS);
            charge.capture_before = Some(until);
            desk.expires_at(until, &self.id);
            self.status = Status::RequiresCapture;
            "payment_intent.amount_capturable_updated"
        } else {
            charge.captured = self.new.amount;
            self.status = Status::Succeeded;
            "payment_intent.succeeded"
        };
        self.charge = Some(charge);
        self.emit_charge(desk, "charge.succeeded");
        self.emit(desk, change);
    }

    /// Returns the payment to `requires_payment_method`, as Stripe does after a decline.
    fn fail(&mut self, desk: &mut Desk, decline: &'static Decline) -> Refusal {
        let mut refusal = Refusal::new(StatusCode::PAYMENT_REQUIRED, "card_error", decline.message).code(decline.code);
        if let Some(code) = decline.decline_code {
            refusal = refusal.with("decline_code", code);
        }
        refusal = refusal.with("payment_method", json!({"id": self.new.method, "object": "payment_method"}));
        self.status = Status::RequiresPaymentMethod;
        if decline.code != AUTHENTICATION.code {
            let charge = self.new_charge(desk, ChargeState::Failed(decline));
            refusal = refusal.with("charge", charge.id.as_str());
            self.charge = Some(charge);
            self.emit_charge(desk, "charge.failed");
        }
        self.new.method = None;
        self.last_error = Some(refusal.error());
        self.emit(desk, "payment_intent.payment_failed");
        refusal.with("payment_intent", self.view(false))
    }

    /// A pending charge keeps its id.
    fn new_charge(&mut self, desk: &mut Desk, state: ChargeState) -> Charge {
        let pending = self.charge.take().filter(|charge| matches!(charge.state, ChargeState::Pending));
        Charge {
            id: pending.map_or_else(|| desk.id("ch_"), |pending| pending.id),
            created: desk.now,
            method: self.new.method.clone().unwrap_or_default(),
            state,
            captured: 0,
            refunded: 0,
            released: 0,
            capture_before: None,
        }
    }

    pub(super) fn capture(&mut self, desk: &mut Desk, amount: Option<i64>) -> Result<(), Refusal> {
        match self.status {
            Status::RequiresCapture => {}
            Status::Succeeded => {
                return Err(
                    self.refuse("This PaymentIntent could not be captured because it has already been captured.")
                );
            }
            status => {
                return Err(self.refuse(format!(
                    "This PaymentIntent could not be captured because it has a status of {}. Only a PaymentIntent \
                    with one of the following statuses may be captured: requires_capture.",
                    status.name()
                )));
            }
        }
        let amount = amount.unwrap_or(self.new.amount);
        if amount > self.new.amount {
            return Err(Refusal::invalid(
                "The payment could not be captured because the requested capture amount is greater than the \
                authorized amount.",
            )
            .code("amount_too_large")
            .param("amount_to_capture")
            .with("payment_intent", self.view(false)));
        }
        if let Some(charge) = &mut self.charge {
            charge.captured = amount;
        }
        self.status = Status::Succeeded;
        self.emit_charge(desk, "charge.captured");
        self.release(desk);
        self.emit(desk, "payment_intent.succeeded");
        Ok(())
    }

    pub(super) fn cancel(&mut self, desk: &mut Desk, reason: Option<&'static str>) -> Result<(), Refusal> {
        match self.status {
            Status::Succeeded | Status::Canceled => {
                return Err(self.refuse(format!(
                    "You cannot cancel this PaymentIntent because it has a status of {}. Only a PaymentIntent with \
                    one of the following statuses may be canceled: {CANCELABLE}.",
                    self.status.name()
                )));
            }
            Status::RequiresCapture => self.release(desk),
            _ => {}
        }
        self.end(desk, reason);
        Ok(())
    }

    /// Ends an authorisation that was not captured in time. Returns whether there was one.
    pub(super) fn expire(&mut self, desk: &mut Desk) -> bool {
        if self.status != Status::RequiresCapture {
            return false;
        }
        self.release(desk);
        self.emit_charge(desk, "charge.expired");
        self.end(desk, Some("automatic"));
        true
    }

    fn end(&mut self, desk: &mut Desk, reason: Option<&'static str>) {
        self.status = Status::Canceled;
        self.canceled_at = Some(desk.now);
        self.cancellation_reason = reason;
        self.emit(desk, "payment_intent.canceled");
    }

    /// Releases the amount that was not captured. Stripe's books show it as a refund of the charge:
    /// <https://docs.stripe.com/api/charges/capture>.
    fn release(&mut self, desk: &mut Desk) {
        let Some(charge) = &mut self.charge else { return };
        let rest = self.new.amount.saturating_sub(charge.captured);
        if rest == 0 {
            return;
        }
        charge.released = rest;
        charge.refunded = charge.refunded.saturating_add(rest);
        let refund = Refund::new(desk, &self.id, &charge.id, &self.new.currency, rest);
        desk.refunds.push(refund);
        self.emit_charge(desk, "charge.refunded");
    }

    /// Does the customer's part: the payment with a card, the authentication, or the end of the
    /// processing. Returns false if the customer has nothing to do.
    pub(super) fn complete(&mut self, desk: &mut Desk, method: Option<String>) -> bool {
        match self.status {
            Status::RequiresPaymentMethod | Status::RequiresConfirmation => {
                let method = method.or_else(|| self.new.method.clone()).unwrap_or_else(|| "pm_card_visa".to_owned());
                // The error of a declined payment is in `last_payment_error`.
                card(&method).is_some_and(|_| {
                    let _ = self.confirm(desk, Some(method));
                    true
                })
            }
            Status::RequiresAction => {
                let decline = self.new.method.as_deref().and_then(card).and_then(|card| card.decline);
                let _ = self.attempt(desk, decline);
                true
            }
            Status::Processing => {
                self.authorise(desk);
                true
            }
            Status::RequiresCapture | Status::Succeeded | Status::Canceled => false,
        }
    }

    /// Makes the customer's part fail. Returns false if the customer has nothing to do.
    pub(super) fn decline(&mut self, desk: &mut Desk) -> bool {
        let decline = match self.status {
            Status::RequiresPaymentMethod | Status::RequiresConfirmation | Status::Processing => &GENERIC,
            Status::RequiresAction => &AUTHENTICATION,
            Status::RequiresCapture | Status::Succeeded | Status::Canceled => return false,
        };
        self.new.method.get_or_insert_with(|| "pm_card_visa_chargeDeclined".to_owned());
        self.fail(desk, decline);
        true
    }

    pub(super) fn capturable(&self) -> i64 {
        if self.status == Status::RequiresCapture { self.new.amount } else { 0 }
    }

    pub(super) fn received(&self) -> i64 {
        self.charge.as_ref().map_or(0, |charge| charge.captured)
    }

    pub(super) fn refunded(&self) -> i64 {
        self.charge.as_ref().map_or(0, |charge| charge.refunded.saturating_sub(charge.released))
    }

    fn refuse(&self, message: impl Into<String>) -> Refusal {
        Refusal::unexpected_state(message).with("payment_intent", self.view(false))
    }

    fn emit(&self, desk: &mut Desk, kind: &str) {
        desk.emit(kind, &self.id, &self.view(false));
    }

    pub(super) fn emit_charge(&self, desk: &mut Desk, kind: &str) {
        desk.emit(kind, &self.id, &self.charge_view());
    }

    /// <https://docs.stripe.com/api/payment_intents/object>
    pub(super) fn view(&self, is_charge_expanded: bool) -> Value {
        let latest_charge = match &self.charge {
            Some(_) if is_charge_expanded => self.charge_view(),
            charge => json!(charge.as_ref().map(|charge| &charge.id)),
        };
        let next_action = (self.status == Status::RequiresAction)
            .then(|| json!({"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}));
        json!({
            "id": self.id, "object": "payment_intent", "amount": self.new.amount,
            "amount_capturable": self.capturable(), "amount_received": self.received(),
            "canceled_at": self.canceled_at, "cancellation_reason": self.cancellation_reason,
            "capture_method": if self.new.is_manual { "manual" } else { "automatic" },
            "client_secret": self.client_secret, "confirmation_method": "automatic", "created": self.created,
            "currency": self.new.currency, "customer": null, "description": self.new.description,
            "last_payment_error": self.last_error, "latest_charge": latest_charge, "livemode": false,
            "metadata": self.new.metadata, "next_action": next_action, "payment_method": self.new.method,
            "payment_method_types": self.new.method_types, "processing": null, "receipt_email": null,
            "setup_future_usage": null, "shipping": null, "status": self.status.name(),
        })
    }

    /// <https://docs.stripe.com/api/charges/object>
    fn charge_view(&self) -> Value {
        let Some(charge) = &self.charge else { return Value::Null };
        let (status, failure) = match charge.state {
            ChargeState::Pending => ("pending", None),
            ChargeState::Succeeded => ("succeeded", None),
            ChargeState::Failed(decline) => ("failed", Some(decline)),
        };
        let mut card = json!({"brand": "visa", "last4": "4242", "amount_authorized": self.new.amount});
        if let (Some(until), Some(card)) = (charge.capture_before, card.as_object_mut()) {
            card.insert("capture_before".to_owned(), until.into());
        }
        json!({
            "id": charge.id, "object": "charge", "amount": self.new.amount, "amount_captured": charge.captured,
            "amount_refunded": charge.refunded, "balance_transaction": null, "captured": charge.captured > 0,
            "created": charge.created, "currency": self.new.currency, "disputed": false,
            "failure_code": failure.map(|decline| decline.code),
            "failure_message": failure.map(|decline| decline.message), "livemode": false,
            "metadata": self.new.metadata, "paid": status == "succeeded", "payment_intent": self.id,
            "payment_method": charge.method, "payment_method_details": {"type": "card", "card": card},
            "refunded": charge.refunded == self.new.amount, "status": status,
        })
    }
}

pub(super) fn no_method(method: &str) -> Refusal {
    let refusal = Refusal::not_found("PaymentMethod", method, "payment_method");
    refusal.status(StatusCode::BAD_REQUEST)
}
