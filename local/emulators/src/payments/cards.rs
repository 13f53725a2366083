//! Stripe's test payment methods (<https://docs.stripe.com/testing>).

/// What happens when a payment with this payment method is confirmed.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) step: Step,
    /// The outcome of the charge. `None` means that it succeeds.
    pub(super) decline: Option<&'static Decline>,
    pub(super) refund: RefundCourse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Charge,
    /// The customer authenticates with 3-D Secure before the charge.
    Authentication,
    /// The charge stays in processing, as a bank debit does.
    Processing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefundCourse {
    Succeeds,
    /// The refund is pending at first, and succeeds later.
    Pends,
    /// The refund succeeds at first, and fails later.
    Fails,
}

#[derive(Debug)]
pub(super) struct Decline {
    pub(super) code: &'static str,
    pub(super) decline_code: Option<&'static str>,
    pub(super) message: &'static str,
}

const fn card_declined(decline_code: &'static str, message: &'static str) -> Decline {
    Decline { code: "card_declined", decline_code: Some(decline_code), message }
}

pub(super) static GENERIC: Decline = card_declined("generic_decline", "Your card was declined.");
static FUNDS: Decline = card_declined("insufficient_funds", "Your card has insufficient funds.");
static LOST: Decline = card_declined("lost_card", "Your card was declined.");
static STOLEN: Decline = card_declined("stolen_card", "Your card was declined.");
static EXPIRED: Decline = Decline { code: "expired_card", decline_code: None, message: "Your card has expired." };
static PROCESSING: Decline = Decline {
    code: "processing_error",
    decline_code: None,
    message: "An error occurred while processing your card. Try again in a little bit.",
};
pub(super) static AUTHENTICATION: Decline = Decline {
    code: "payment_intent_authentication_failure",
    decline_code: None,
    message: "The provided PaymentMethod has failed authentication. You can provide payment_method_data or a new \
        PaymentMethod to attempt to fulfill this PaymentIntent again.",
};

pub(super) fn card(method: &str) -> Option<Card> {
    let plain = Card { step: Step::Charge, decline: None, refund: RefundCourse::Succeeds };
    let declined = |decline| Some(Card { decline: Some(decline), ..plain });
    if method == "pm_usBankAccount_processing" {
        return Some(Card { step: Step::Processing, ..plain });
    }
    // Stripe has names with and without the brand for the same cards.
    let name = method.strip_prefix("pm_card_")?;
    match name.strip_prefix("visa_").unwrap_or(name) {
        "visa" | "mastercard" | "amex" | "debit" => Some(plain),
        "pendingRefund" => Some(Card { refund: RefundCourse::Pends, ..plain }),
        "refundFail" => Some(Card { refund: RefundCourse::Fails, ..plain }),
        "chargeDeclined" => declined(&GENERIC),
        "chargeDeclinedInsufficientFunds" => declined(&FUNDS),
        "chargeDeclinedLostCard" => declined(&LOST),
        "chargeDeclinedStolenCard" => declined(&STOLEN),
        "chargeDeclinedExpiredCard" => declined(&EXPIRED),
        "chargeDeclinedProcessingError" => declined(&PROCESSING),
        "authenticationRequired" | "threeDSecure2Required" => Some(Card { step: Step::Authentication, ..plain }),
        "authenticationRequiredChargeDeclinedInsufficientFunds" => {
            Some(Card { step: Step::Authentication, decline: Some(&FUNDS), ..plain })
        }
        _ => None,
    }
}
