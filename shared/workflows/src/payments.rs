//! Sends the operations of an order's payments to the provider, and records their results.
//!
//! A function begins an operation in the transaction of its cause, for example the cancellation of
//! the order. Then this workflow makes the call, with the operation's id as the provider's key, and
//! records the result in a second transaction. After an interruption between the two, the cashier
//! finds the operation in its sparse index and repeats the call with the same key. The provider
//! remembers a key for 24 hours, so an older operation is not sent again. The provider's books then
//! tell whether the call had its effect.
//!
//! A hint makes the workflow read the provider's present state of a payment. It reads the order
//! before, and writes on the condition that the order is unchanged. So of two states that two workers
//! have read, the later one is stored last.

use std::collections::BTreeSet;
use std::time::Duration;

use key_schema::id::{OperationId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder, SYSTEM, Step};
use key_schema::payment::{
    CaptureMode, Closing, Ledger, OperationKind, OperationState, Payment, PaymentOperation, PaymentStatus, Present,
    UNSENT,
};
use payments::{Capture, Intent, IntentStatus, PaymentError, Provider, RefundStatus};
use table::{Refusals, Table};

use crate::engine::{self, Bound, Standing, Stop, Worker, WorkflowError, workflow};
use crate::{staging, stock};

pub type SettleError = WorkflowError<OrderAction>;

/// How long a call is repeated with its key. The provider forgets keys after 24 hours.
const KEY_LIFETIME: Duration = Duration::from_secs(23 * 60 * 60);
/// The maximum number of calls for one order in one run. The next run continues.
const MAX_CALLS: usize = 40;
const ATTEMPTS: usize = 8;
const REFUSED: &str = "the payment provider refused an operation";

workflow! {
    /// Sends the calls of an order's payments to the provider, and records their results.
    SettlePayments of OrderAction, by Settler, begun ["payments.begun"];
    Call => {
        run call, at most Bound::Times(MAX_CALLS), crash "payments.recorded", within "payments.called";
        forward only;
    }
    Refresh => {
        run refresh, at most Bound::Times(ATTEMPTS), crash "payments.refreshed";
        forward only;
    }
}

/// An order after its operations were sent.
#[derive(Debug)]
pub struct Settled {
    pub order: PlacedOrder,
    /// The payments that the provider has returned in this run. A client secret is only there.
    pub intents: Vec<Intent>,
    /// The last error of the provider. Some operations may be unsettled, and the next run repeats
    /// them.
    pub error: Option<PaymentError>,
}

/// Sends the operations of an order, and records their results. With the provider's id of a payment
/// as `hint`, also records the present state of this payment. Returns [`None`] if there is no such
/// order.
///
/// # Errors
/// [`SettleError`]. After an error, the next call continues.
pub async fn settle(
    table: &Table,
    provider: &dyn Provider,
    id: &OrderId,
    hint: Option<&str>,
) -> Result<Option<Settled>, SettleError> {
    let Some(order) = staging::read(table, id).await? else { return Ok(None) };
    let (tried, intents) = (BTreeSet::new(), Vec::new());
    let mut settler = Settler { table, provider, order, hint, tried, intents, error: None, is_current: true };
    engine::run(&mut settler).await?;
    let Settler { order, intents, error, .. } = settler;
    Ok(Some(Settled { order, intents, error }))
}

struct Settler<'a> {
    table: &'a Table,
    provider: &'a dyn Provider,
    order: PlacedOrder,
    /// The provider's id of the payment to read, until it was read.
    hint: Option<&'a str>,
    /// The operations whose call had no usable response in this run.
    tried: BTreeSet<OperationId>,
    intents: Vec<Intent>,
    error: Option<PaymentError>,
    /// Whether the order was read or written after the last step.
    is_current: bool,
}

impl Worker for Settler<'_> {
    type End = ();

    async fn stands(&mut self, _: Option<SettlePayments>) -> Result<Standing<SettlePayments, ()>, SettleError> {
        if !std::mem::take(&mut self.is_current) {
            match staging::read(self.table, &self.order.head.id).await? {
                Some(order) => self.order = order,
                None => return Ok(Standing::Over(())),
            }
        }
        Ok(match (self.next(), self.hint) {
            (Some(_), _) => Standing::At(SettlePayments::Call),
            // The result of a call can be older than the present state, so the present state comes
            // last.
            (None, Some(_)) => Standing::At(SettlePayments::Refresh),
            (None, None) => Standing::Over(()),
        })
    }
}

impl Settler<'_> {
    fn next(&self) -> Option<(PaymentOperation, Payment)> {
        let is_next = |known: &&Stored<PaymentOperation>| known.state.is_unsettled() && !self.tried.contains(&known.id);
        let operation = self.order.operations.iter().find(is_next)?;
        let payment = self.order.payments.iter().find(|payment| payment.id == operation.payment_id)?;
        Some((operation.data.clone(), payment.data.clone()))
    }

    async fn call(&mut self) -> Result<(), Stop<OrderAction>> {
        let Some((operation, payment)) = self.next() else { return Ok(()) };
        let (id, of) = (&operation.id, &payment.id);
        let result = self.result(&operation, &payment).await;
        telemetry::crash_point("payments.called");
        let (closing, intent) = match result {
            Ok(result) => result,
            Err(error) => {
                let is_new = operation.state == OperationState::Sending && matches!(error, PaymentError::Unknown(_));
                let kind = operation.kind;
                tracing::warn!(operation = %id, ?kind, %error, "a call of the payment provider is left");
                self.error = Some(error);
                self.tried.insert(id.clone());
                if !is_new {
                    self.is_current = true;
                    return Ok(());
                }
                (Closing::Unknown, None)
            }
        };
        if let Closing::Refused(code) = &closing {
            // Nobody waits for an operation of the system, so staff must look at it.
            match operation.by == SYSTEM {
                true => tracing::error!(operation = %id, kind = ?operation.kind, code, "{REFUSED}"),
                false => tracing::warn!(operation = %id, kind = ?operation.kind, code, "{REFUSED}"),
            }
        }
        let present = match &intent {
            Some(intent) => Some(present(intent, &payment)?),
            None => None,
        };
        self.intents.extend(intent);
        self.record(|ledger| {
            if let Some(present) = &present {
                ledger.apply(of, present);
            }
            ledger.close(id, &closing);
        })
        .await
    }

    /// Makes the call of an operation. Returns its result, and the payment as the provider has
    /// returned it.
    async fn result(
        &self,
        operation: &PaymentOperation,
        payment: &Payment,
    ) -> Result<(Closing, Option<Intent>), PaymentError> {
        let age = Instant::now().as_millis().saturating_sub(operation.at.as_millis());
        if u128::try_from(age).is_ok_and(|age| age > KEY_LIFETIME.as_millis()) {
            return self.looked_up(operation, payment, UNSENT).await;
        }
        let (key, amount) = (operation.id.as_str(), payment.money(operation.amount));
        let intent = payment.intent.as_deref().map(|id| Intent::stored(id, payment.amount));
        let said = match (operation.kind, &intent) {
            (OperationKind::Create, _) => {
                let capture = match payment.capture {
                    Some(CaptureMode::AtShipping) => Capture::Later,
                    _ => Capture::AtOnce,
                };
                match self.provider.create(&payment.order_id, amount, capture, key).await {
                    Err(PaymentError::Refused(code)) => return Ok((Closing::Refused(code), None)),
                    said => said.map(Some),
                }
            }
            (OperationKind::Capture, Some(intent)) => self.provider.capture(intent, amount, key).await.map(Some),
            (OperationKind::Cancel, Some(intent)) => self.provider.cancel(&intent.id, key).await.map(Some),
            (OperationKind::Refund, Some(intent)) => match self.provider.refund(intent, amount, key).await {
                Ok(refund) if refund.status == RefundStatus::Failed => {
                    return Ok((Closing::Refused("refund_failed".to_owned()), None));
                }
                said => said.map(|_| None),
            },
            // A payment that the provider does not have.
            (_, None) => return Ok((Closing::Refused("no_payment".to_owned()), None)),
        };
        match said {
            Ok(intent) => Ok((Closing::Done, intent)),
            Err(PaymentError::Amount(error)) => Ok((Closing::Refused(error.to_string()), None)),
            // An earlier call may have had its effect, so the books decide.
            Err(PaymentError::Refused(code)) => self.looked_up(operation, payment, &code).await,
            // The search of payments is late, so a payment that is not found may exist.
            Err(PaymentError::KeyReused) if operation.kind == OperationKind::Create => {
                match self.looked_up(operation, payment, UNSENT).await? {
                    (Closing::Done, intent) => Ok((Closing::Done, intent)),
                    _ => Err(PaymentError::KeyReused),
                }
            }
            Err(PaymentError::KeyReused) => self.looked_up(operation, payment, "key_reused").await,
            // The provider may repeat a stored error of a call that had its effect. Only the effect
            // itself is a proof, because the books can be late.
            Err(PaymentError::Unknown(reason)) if operation.state == OperationState::Unknown => {
                match self.looked_up(operation, payment, UNSENT).await {
                    Ok((Closing::Done, intent)) => Ok((Closing::Done, intent)),
                    _ => Err(PaymentError::Unknown(reason)),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Reads in the provider's books whether the call of an operation had its effect. `code` is the
    /// reason if it had none.
    async fn looked_up(
        &self,
        operation: &PaymentOperation,
        payment: &Payment,
        code: &str,
    ) -> Result<(Closing, Option<Intent>), PaymentError> {
        let refused = || Closing::Refused(code.to_owned());
        let Some(intent) = &payment.intent else {
            let found = self.provider.find(operation.id.as_str()).await?;
            return Ok((if found.is_some() { Closing::Done } else { refused() }, found));
        };
        if operation.kind == OperationKind::Refund {
            let refunds = self.provider.refunds(intent).await?;
            let made = refunds.iter().find(|refund| refund.key.as_deref() == Some(operation.id.as_str()));
            let is_made = made.is_some_and(|refund| refund.status != RefundStatus::Failed);
            return Ok((if is_made { Closing::Done } else { refused() }, None));
        }
        let intent = self.provider.read(intent).await?;
        let is_done = match operation.kind {
            OperationKind::Capture => intent.status == IntentStatus::Captured,
            OperationKind::Cancel => intent.status == IntentStatus::Cancelled,
            OperationKind::Create | OperationKind::Refund => true,
        };
        Ok((if is_done { Closing::Done } else { refused() }, Some(intent)))
    }

    async fn refresh(&mut self) -> Result<(), Stop<OrderAction>> {
        let Some(hint) = self.hint else { return Ok(()) };
        let Some(payment) = of_intent(&self.order, hint).cloned() else {
            tracing::warn!(order = %self.order.head.id, "the payment provider has a payment that the order lacks");
            self.hint = None;
            self.is_current = true;
            return Ok(());
        };
        let (read, failed) = match self.present(&payment, hint).await {
            Ok(read) => read,
            Err(error) => {
                (self.error, self.hint, self.is_current) = (Some(error), None, true);
                return Ok(());
            }
        };
        let (id, present) = (payment.id.clone(), present(&read, &payment)?);
        self.intents.push(read);
        self.record(|ledger| {
            ledger.apply(&id, &present);
            failed.iter().for_each(|refund| ledger.revoke(refund, "refund_failed"));
        })
        .await?;
        self.hint = None;
        Ok(())
    }

    /// Reads a payment at the provider, and which of its refunds have failed after the provider had
    /// accepted them.
    async fn present(&self, payment: &Payment, hint: &str) -> Result<(Intent, Vec<OperationId>), PaymentError> {
        let intent = self.provider.read(hint).await?;
        let is_made = |known: &&Stored<PaymentOperation>| {
            known.payment_id == payment.id && known.kind == OperationKind::Refund && known.state == OperationState::Done
        };
        let made: Vec<&OperationId> = self.order.operations.iter().filter(is_made).map(|known| &known.id).collect();
        if made.is_empty() {
            return Ok((intent, Vec::new()));
        }
        let refunds = self.provider.refunds(hint).await?;
        let has_failed = |id: &&&OperationId| {
            let of = |refund: &&payments::Refund| refund.key.as_deref() == Some(id.as_str());
            refunds.iter().find(of).is_some_and(|refund| refund.status == RefundStatus::Failed)
        };
        Ok((intent, made.iter().filter(has_failed).map(|id| (*id).clone()).collect()))
    }

    /// Writes a change of the payments with everything that follows from it. If the payments reach
    /// the order's total, the same transaction makes the order `paid`.
    async fn record(&mut self, change: impl Fn(&mut Ledger<'_>)) -> Result<(), Stop<OrderAction>> {
        let at = self.order.next_step_at(Instant::now());
        let mut ledger = self.order.ledger(at);
        change(&mut ledger);
        let (ledger, is_paid) = match self.revived(&ledger).await? {
            Some(revived) => (revived, true),
            None => {
                let is_paid = ledger.settle();
                self.write(&ledger, is_paid).await?;
                (ledger, is_paid)
            }
        };
        if ledger.is_changed() {
            let refunded = self.order.head.refunded.saturating_add(ledger.refunded());
            (self.order.payments, self.order.operations) = ledger.after();
            self.order.head.data.refunded = refunded;
            self.order.head.meta.version += 1;
            if is_paid {
                (self.order.head.data.status, self.order.head.data.lapsed) = (OrderStatus::Paid, false);
            }
        }
        self.is_current = true;
        Ok(())
    }

    async fn write(&self, ledger: &Ledger<'_>, is_paid: bool) -> Result<(), Stop<OrderAction>> {
        if !ledger.is_changed() {
            return Ok(());
        }
        let paid = Step::new(ledger.order(), &[], OrderStatus::Paid, ledger.at(), SYSTEM);
        let step = Step { money: Some(ledger), ..paid };
        let transaction = if is_paid { order::transition(step)? } else { order::change_payments(ledger, &[])? };
        match staging::transition(self.table, &[], transaction).await? {
            Err(refusals) if is_late(&refusals) => Err(Stop::Late),
            outcome => Ok(outcome?),
        }
    }

    /// Makes a lapsed order `paid` if captured payments of its whole total have arrived, and its stock
    /// is still there. Returns the ledger that was written. After [`None`], the money goes back.
    async fn revived<'l>(&self, ledger: &Ledger<'l>) -> Result<Option<Ledger<'l>>, Stop<OrderAction>> {
        let mut ledger = ledger.clone();
        if !ledger.revive() {
            return Ok(None);
        }
        if !self.order.has_all_lines() {
            return Err(Stop::Late);
        }
        let mut lines = self.order.lines.clone();
        let revive = |lines: &[_]| order::revive(lines, &ledger);
        match stock::transact(self.table, lines.as_mut_slice(), revive).await? {
            Ok(()) => Ok(Some(ledger)),
            Err(refusals) if is_late(&refusals) => Err(Stop::Late),
            Err(refusals) => {
                let order = &self.order.head.id;
                tracing::info!(%order, ?refusals, "a late payment goes back, because the order lacks stock");
                Ok(None)
            }
        }
    }
}

/// Returns whether the order or its payments changed since they were read.
pub fn is_late(refusals: &Refusals<OrderAction>) -> bool {
    [OrderAction::Order, OrderAction::Payment, OrderAction::Operation].iter().any(|action| refusals.names(*action))
}

/// Returns the provider's state of a payment, in the terms of the payment.
fn present(intent: &Intent, payment: &Payment) -> Result<Present, Stop<OrderAction>> {
    if intent.amount.currency != payment.amount.currency {
        tracing::error!(payment = %payment.id, "the payment provider has another currency");
        return Err(Stop::Failed(WorkflowError::Contended));
    }
    let authorised = intent.capturable.amount.saturating_add(intent.captured.amount);
    Ok(Present {
        intent: intent.id.clone(),
        status: status_of(intent),
        authorised,
        captured: intent.captured.amount,
        capture_before: intent.capture_before,
        declined: intent.declined.clone(),
    })
}

/// Returns the status of a payment that the provider has in this state.
#[must_use]
pub const fn status_of(intent: &Intent) -> PaymentStatus {
    match intent.status {
        IntentStatus::Open => PaymentStatus::Pending,
        IntentStatus::ActionRequired => PaymentStatus::ActionRequired,
        IntentStatus::Processing => PaymentStatus::Processing,
        IntentStatus::Authorised => PaymentStatus::Authorised,
        IntentStatus::Captured => PaymentStatus::Captured,
        IntentStatus::Cancelled => PaymentStatus::Cancelled,
    }
}

/// Finds a payment of an order by the provider's id.
#[must_use]
pub fn of_intent<'a>(order: &'a PlacedOrder, intent: &str) -> Option<&'a Payment> {
    let known = order.payments.iter().find(|payment| payment.intent.as_deref() == Some(intent))?;
    Some(&known.data)
}
