//! Refunds (<https://docs.stripe.com/api/refunds>).

use serde_json::{Value, json};

use super::books::Desk;
use super::cards::{RefundCourse, card};
use super::intents::{ChargeState, Intent, Status};
use super::wire::{Metadata, Refusal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefundStatus {
    Pending,
    Succeeded,
    Failed,
}

#[derive(Debug)]
pub(super) struct NewRefund {
    pub(super) intent: String,
    pub(super) amount: Option<i64>,
    pub(super) reason: Option<&'static str>,
    pub(super) metadata: Metadata,
}

#[derive(Debug)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) intent: String,
    charge: String,
    amount: i64,
    currency: String,
    created: i64,
    status: RefundStatus,
    course: RefundCourse,
    reason: Option<&'static str>,
    metadata: Metadata,
}

impl Refund {
    /// Creates a refund that succeeds at once.
    pub(super) fn new(desk: &mut Desk, intent: &str, charge: &str, currency: &str, amount: i64) -> Self {
        Self {
            id: desk.id("re_"),
            intent: intent.to_owned(),
            charge: charge.to_owned(),
            amount,
            currency: currency.to_owned(),
            created: desk.now,
            status: RefundStatus::Succeeded,
            course: RefundCourse::Succeeds,
            reason: None,
            metadata: Metadata::new(),
        }
    }

    pub(super) fn view(&self) -> Value {
        let (status, failure) = match self.status {
            RefundStatus::Pending => ("pending", None),
            RefundStatus::Succeeded => ("succeeded", None),
            RefundStatus::Failed => ("failed", Some("unknown")),
        };
        let mut view = json!({
            "id": self.id, "object": "refund", "amount": self.amount, "balance_transaction": null,
            "charge": self.charge, "created": self.created, "currency": self.currency, "metadata": self.metadata,
            "payment_intent": self.intent, "reason": self.reason, "receipt_number": null, "status": status,
        });
        if let (Some(reason), Some(view)) = (failure, view.as_object_mut()) {
            view.insert("failure_reason".to_owned(), reason.into());
        }
        view
    }
}

impl Intent {
    pub(super) fn refund(&mut self, desk: &mut Desk, new: NewRefund) -> Result<Value, Refusal> {
        let total = self.new.amount;
        let is_charged = self.status == Status::Succeeded;
        let charge = self.charge.as_mut().filter(|charge| is_charged && matches!(charge.state, ChargeState::Succeeded));
        let Some(charge) = charge else {
            return Err(Refusal::invalid(format!(
                "This PaymentIntent ({}) does not have a successful charge to refund.",
                self.id
            )));
        };
        let left = total.saturating_sub(charge.refunded);
        let amount = new.amount.unwrap_or(left);
        if left == 0 {
            return Err(Refusal::invalid(format!("Charge {} has already been refunded.", charge.id))
                .code("charge_already_refunded"));
        }
        if amount > left {
            let currency = &self.new.currency;
            return Err(Refusal::invalid(format!(
                "Refund amount ({amount} {currency}) is greater than unrefunded amount on charge ({left} {currency})"
            ))
            .param("amount"));
        }
        charge.refunded = charge.refunded.saturating_add(amount);
        let mut refund = Refund::new(desk, &self.id, &charge.id, &self.new.currency, amount);
        (refund.reason, refund.metadata) = (new.reason, new.metadata);
        refund.course = card(&charge.method).map_or(RefundCourse::Succeeds, |card| card.refund);
        if refund.course == RefundCourse::Pends {
            refund.status = RefundStatus::Pending;
        }
        let view = refund.view();
        desk.refunds.push(refund);
        desk.emit("refund.created", &self.id, &view);
        self.emit_charge(desk, "charge.refunded");
        Ok(view)
    }

    /// Lets the payment's refunds take their later course. Returns whether a refund changed.
    pub(super) fn settle_refunds(&mut self, desk: &mut Desk) -> bool {
        let Some(charge) = &mut self.charge else { return false };
        let mut events = Vec::new();
        for refund in desk.refunds.iter_mut().filter(|refund| refund.intent == self.id) {
            match (refund.course, refund.status) {
                (RefundCourse::Pends, RefundStatus::Pending) => refund.status = RefundStatus::Succeeded,
                (RefundCourse::Fails, RefundStatus::Succeeded) => {
                    refund.status = RefundStatus::Failed;
                    charge.refunded = charge.refunded.saturating_sub(refund.amount);
                    events.push(("refund.failed", refund.view()));
                }
                _ => continue,
            }
            events.push(("refund.updated", refund.view()));
        }
        for (kind, view) in &events {
            desk.emit(kind, &self.id, view);
        }
        !events.is_empty()
    }
}
