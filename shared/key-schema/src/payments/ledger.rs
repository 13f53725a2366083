use item_model::prelude::*;

use super::operation::{OperationKind, OperationState, PaymentOperation, PaymentOperationChanges as _, RefundedLine};
use crate::change::Change;
use crate::expression::Condition;
use crate::id::{EntryId, OperationId, PaymentId};
use crate::index::GSI3;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity as _, Stored};
use crate::money::Money;
use crate::order::{Order, OrderAction, OrderStatus, SYSTEM};
use crate::payment::{
    MAX_BY_STAFF, MAX_OPERATIONS, MAX_PAYMENTS, Payment, PaymentChanges as _, PaymentMethod, PaymentStatus, indexed,
};
use crate::request::Guarded;
use crate::shard::fnv1a;
use crate::wallet::{self, WalletAction};

/// The reason of an operation whose call was not sent within the lifetime of its key.
pub const UNSENT: &str = "unsent";

/// The payments of an order with the changes of one transaction.
///
/// The methods change copies of what was read. [`Ledger::writes`] compares the copies with what was
/// read, so a rule states its result and not its writes. Each write has the condition that its item
/// is unchanged.
///
/// # Invariants
/// - `captured + captured_pending <= authorised`, and `refunded + refunded_pending <= captured`.
/// - A call of the provider has an operation, which was written before the call.
/// - Money that arrives for an order that takes none is released in the transaction that records it.
#[derive(Debug, Clone)]
pub struct Ledger<'a> {
    order: &'a Stored<Order>,
    read: (&'a [Stored<Payment>], &'a [Stored<PaymentOperation>]),
    at: Instant,
    payments: Vec<Payment>,
    operations: Vec<PaymentOperation>,
    /// The movement of the customer's wallet: a negative amount pays.
    wallet: Option<(EntryId, i64)>,
    /// The change of the sum of the refunds.
    refunded: i64,
    /// Whether the sum of the payments has decided about the order. Then the payments that did not
    /// change are checked, too.
    has_decided: bool,
}

/// The state of a card payment at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    pub intent: String,
    pub status: PaymentStatus,
    pub authorised: i64,
    pub captured: i64,
    pub capture_before: Option<Instant>,
    pub declined: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    Done,
    Unknown,
    /// Nothing changed at the provider. The text is its code.
    Refused(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("the order has no such payment")]
    NoPayment,
    #[error("the payment's status does not allow it")]
    Status,
    #[error("must be at most {0}, what is authorised and not captured of the order's total")]
    Authorised(i64),
    #[error("must be at most {0}, the captured amount that is not refunded")]
    Captured(i64),
    #[error("the order or the payment has too many operations")]
    TooMany,
}

impl<'a> Ledger<'a> {
    #[must_use]
    pub fn new(
        order: &'a Stored<Order>,
        payments: &'a [Stored<Payment>],
        operations: &'a [Stored<PaymentOperation>],
        at: Instant,
    ) -> Self {
        Self {
            order,
            read: (payments, operations),
            at,
            payments: payments.iter().map(|payment| payment.data.clone()).collect(),
            operations: operations.iter().map(|operation| operation.data.clone()).collect(),
            wallet: None,
            refunded: 0,
            has_decided: false,
        }
    }

    #[must_use]
    pub const fn order(&self) -> &'a Stored<Order> {
        self.order
    }

    #[must_use]
    pub const fn at(&self) -> Instant {
        self.at
    }

    #[must_use]
    pub fn payments(&self) -> &[Payment] {
        &self.payments
    }

    /// Returns the movement of the wallet, if there is one. A negative amount pays.
    #[must_use]
    pub fn moved(&self) -> Option<Money> {
        let (_, amount) = self.wallet.as_ref()?;
        Some(Money::new(*amount, self.order.total.currency))
    }

    /// Returns the change of the sum of the order's refunds.
    #[must_use]
    pub const fn refunded(&self) -> i64 {
        self.refunded
    }

    /// Returns the sum that the payments secure.
    #[must_use]
    pub fn secured(&self) -> i64 {
        let is_ending = |payment: &Payment| {
            let ends = |known: &PaymentOperation| {
                known.payment_id == payment.id && known.kind == OperationKind::Cancel && known.state.is_unsettled()
            };
            // The provider refuses to cancel a captured payment.
            payment.status != PaymentStatus::Captured && self.operations.iter().any(ends)
        };
        let secured = self.payments.iter().filter(|payment| !is_ending(payment)).map(Payment::secured);
        secured.fold(0, i64::saturating_add)
    }

    /// Returns the part of the total that no payment secures.
    #[must_use]
    pub fn due(&self) -> i64 {
        self.order.total.amount.saturating_sub(self.secured()).max(0)
    }

    /// Returns whether the order takes money.
    #[must_use]
    pub fn takes_money(&self) -> bool {
        self.order.status == OrderStatus::Pending && self.order.expires_at.is_none()
    }

    /// Adds a payment: one whose money the shop has, or a card payment, with the operation that
    /// creates it at the provider.
    ///
    /// # Errors
    /// [`LedgerError::TooMany`], or [`LedgerError::Status`] for a second payment from the wallet.
    pub fn add(&mut self, payment: Payment) -> Result<(), LedgerError> {
        if self.payments.len() >= MAX_PAYMENTS {
            return Err(LedgerError::TooMany);
        }
        let (id, amount) = (payment.id.clone(), payment.amount.amount);
        match payment.method {
            PaymentMethod::Manual => {}
            PaymentMethod::Card => self.push(&payment, OperationKind::Create, amount, &payment.by, None, Vec::new()),
            PaymentMethod::Wallet => {
                let is_used = |other: &Payment| other.method == PaymentMethod::Wallet && other.refundable() > 0;
                if self.wallet.is_some() || self.payments.iter().any(is_used) {
                    return Err(LedgerError::Status);
                }
                self.wallet = Some((id.entry(), -amount));
            }
        }
        self.payments.push(payment);
        Ok(())
    }

    /// Begins an operation of staff.
    ///
    /// # Errors
    /// [`LedgerError`] if the payment does not allow it.
    pub fn begin(
        &mut self,
        payment: &PaymentId,
        kind: OperationKind,
        amount: i64,
        by: &str,
        reason: Option<String>,
        lines: Vec<RefundedLine>,
    ) -> Result<OperationId, LedgerError> {
        let by_staff = self
            .operations
            .iter()
            .filter(|known| known.payment_id == *payment && known.by != SYSTEM && known.kind != OperationKind::Create);
        if by_staff.count() >= MAX_BY_STAFF {
            return Err(LedgerError::TooMany);
        }
        if kind == OperationKind::Refund && self.captures_more() {
            return Err(LedgerError::Status);
        }
        self.begin_by(payment, kind, amount, by, reason, lines)
    }

    /// Returns whether the shipment could capture from another card what is refunded now: the order is
    /// paid, and authorised payments exceed its total.
    fn captures_more(&self) -> bool {
        let is_sold = self.order.status.is_sale() && self.order.status != OrderStatus::Pending;
        let is_open = |payment: &Payment| payment.status == PaymentStatus::Authorised && payment.captured_pending == 0;
        is_sold && self.secured() > self.order.total.amount && self.payments.iter().any(is_open)
    }

    /// Begins an operation of the system.
    fn begin_own(&mut self, payment: &PaymentId, kind: OperationKind, amount: i64) -> Result<OperationId, LedgerError> {
        self.begin_by(payment, kind, amount, SYSTEM, None, Vec::new())
    }

    fn begin_by(
        &mut self,
        payment: &PaymentId,
        kind: OperationKind,
        amount: i64,
        by: &str,
        reason: Option<String>,
        lines: Vec<RefundedLine>,
    ) -> Result<OperationId, LedgerError> {
        let of_payment = self.operations.iter().filter(|known| known.payment_id == *payment);
        if of_payment.clone().count() >= MAX_OPERATIONS {
            return Err(LedgerError::TooMany);
        }
        // The provider captures or cancels a payment once.
        let ends = |kind| matches!(kind, OperationKind::Capture | OperationKind::Cancel);
        let is_ending = of_payment.clone().any(|known| known.state.is_unsettled() && ends(known.kind));
        let uncaptured = self.uncaptured();
        let known = self.payments.iter_mut().find(|known| known.id == *payment).ok_or(LedgerError::NoPayment)?;
        match kind {
            OperationKind::Create => return Err(LedgerError::Status),
            OperationKind::Capture => {
                if known.status != PaymentStatus::Authorised || is_ending {
                    return Err(LedgerError::Status);
                }
                let most = known.capturable().min(uncaptured);
                if !(1..=most).contains(&amount) {
                    return Err(LedgerError::Authorised(most));
                }
                known.captured_pending = known.captured_pending.saturating_add(amount);
            }
            OperationKind::Cancel => {
                let is_cancellable = matches!(
                    known.status,
                    PaymentStatus::Pending | PaymentStatus::ActionRequired | PaymentStatus::Authorised
                );
                if !is_cancellable || is_ending {
                    return Err(LedgerError::Status);
                }
            }
            OperationKind::Refund => {
                if known.status != PaymentStatus::Captured {
                    return Err(LedgerError::Status);
                }
                if !(1..=known.refundable()).contains(&amount) {
                    return Err(LedgerError::Captured(known.refundable()));
                }
                known.refunded_pending = known.refunded_pending.saturating_add(amount);
            }
        }
        let (method, payment) = (known.method, known.clone());
        self.push(&payment, kind, amount, by, reason, lines);
        let id = self.operations.last().map(|operation| operation.id.clone()).ok_or(LedgerError::NoPayment)?;
        // Only the provider needs a call. Other money moves in this transaction.
        if method != PaymentMethod::Card {
            if method == PaymentMethod::Wallet {
                let (entry, moved) = (self.entry(&payment.id), self.wallet.take());
                self.wallet = Some((entry, moved.map_or(0, |(_, moved)| moved).saturating_add(amount)));
            }
            self.close(&id, &Closing::Done);
        }
        Ok(id)
    }

    fn push(
        &mut self,
        payment: &Payment,
        kind: OperationKind,
        amount: i64,
        by: &str,
        reason: Option<String>,
        refund_lines: Vec<RefundedLine>,
    ) {
        self.operations.push(PaymentOperation {
            id: OperationId::generate(self.at, self.mixed(&payment.id)),
            payment_id: payment.id.clone(),
            order_id: payment.order_id.clone(),
            kind,
            amount,
            at: self.at,
            by: by.to_owned(),
            reason,
            refund_lines,
            state: OperationState::Sending,
            expires_at: None,
            declined: None,
        });
    }

    /// Returns bytes that differ for each operation of each payment. The payment's id is random, and
    /// the condition on the order's head keeps two transactions from the same number.
    fn mixed(&self, payment: &PaymentId) -> [u8; 10] {
        let of = |salt: char| fnv1a(format!("{payment}{salt}{}", self.operations.len()).as_bytes()).to_be_bytes();
        let mut bytes = [0; 10];
        bytes.iter_mut().zip(of('a').into_iter().chain(of('b'))).for_each(|(to, from)| *to = from);
        bytes
    }

    fn entry(&self, payment: &PaymentId) -> EntryId {
        EntryId::generate(self.at, self.mixed(payment))
    }

    /// Refunds a part of a payment to the customer's wallet, whatever the customer paid with. The
    /// provider's money is not touched, so a card payment is refused.
    ///
    /// # Errors
    /// [`LedgerError`] if the payment does not allow it.
    pub fn refund_to_wallet(&mut self, payment: &PaymentId, amount: i64) -> Result<EntryId, LedgerError> {
        let entry = self.entry(payment);
        let moved = self.wallet.as_ref().map_or(0, |(_, moved)| *moved);
        let known = self.payments.iter_mut().find(|known| known.id == *payment).ok_or(LedgerError::NoPayment)?;
        if known.method == PaymentMethod::Card {
            return Err(LedgerError::Status);
        }
        if !(1..=known.refundable()).contains(&amount) {
            return Err(LedgerError::Captured(known.refundable()));
        }
        known.refunded = known.refunded.saturating_add(amount);
        self.refunded = self.refunded.saturating_add(amount);
        self.wallet = Some((entry.clone(), moved.saturating_add(amount)));
        Ok(entry)
    }

    /// Records the result of an operation.
    pub fn close(&mut self, id: &OperationId, result: &Closing) {
        let Some(operation) = self.operations.iter_mut().find(|known| known.id == *id) else { return };
        let (amount, is_own) = (operation.amount, operation.by == SYSTEM);
        operation.state = match result {
            Closing::Done => OperationState::Done,
            Closing::Unknown => OperationState::Unknown,
            Closing::Refused(code) => {
                operation.declined = Some(code.clone());
                OperationState::Refused
            }
        };
        if *result == Closing::Unknown {
            return;
        }
        let Some(payment) = self.payments.iter_mut().find(|known| known.id == operation.payment_id) else { return };
        match operation.kind {
            OperationKind::Create => {
                if let Closing::Refused(code) = result {
                    (payment.status, payment.declined) = (PaymentStatus::Failed, Some(code.clone()));
                }
            }
            OperationKind::Capture => payment.captured_pending = payment.captured_pending.saturating_sub(amount),
            OperationKind::Cancel => {}
            OperationKind::Refund => {
                payment.refunded_pending = payment.refunded_pending.saturating_sub(amount);
                if *result == Closing::Done {
                    payment.refunded = payment.refunded.saturating_add(amount);
                    self.refunded = self.refunded.saturating_add(amount);
                }
                // Nobody would begin a refund of the system again. A call that was not sent changed
                // nothing, so it is begun with another key.
                let (of, is_unsent) = (payment.id.clone(), *result == Closing::Refused(UNSENT.to_owned()));
                if is_unsent && is_own {
                    let _ = self.begin_own(&of, OperationKind::Refund, amount);
                }
            }
        }
    }

    /// Records that a refund failed after the provider had accepted it.
    pub fn revoke(&mut self, id: &OperationId, code: &str) {
        let is_done = |known: &&mut PaymentOperation| known.id == *id && known.state == OperationState::Done;
        let Some(operation) = self.operations.iter_mut().find(is_done) else { return };
        (operation.state, operation.declined) = (OperationState::Refused, Some(code.to_owned()));
        let (amount, of) = (operation.amount, operation.payment_id.clone());
        if let Some(payment) = self.payments.iter_mut().find(|known| known.id == of) {
            payment.refunded = payment.refunded.saturating_sub(amount);
            self.refunded = self.refunded.saturating_sub(amount);
        }
    }

    /// Records the state of a card payment at the provider.
    pub fn apply(&mut self, payment: &PaymentId, present: &Present) {
        let Some(payment) = self.payments.iter_mut().find(|known| known.id == *payment) else { return };
        let Present { intent, status, authorised, captured, capture_before, declined } = present.clone();
        payment.intent = Some(intent);
        payment.status = status;
        payment.captured = captured;
        payment.authorised = match status {
            PaymentStatus::Authorised | PaymentStatus::Captured => authorised.max(captured).max(payment.authorised),
            _ => payment.authorised.max(captured),
        };
        payment.capture_before = capture_before.filter(|_| status == PaymentStatus::Authorised);
        payment.declined = declined;
    }

    /// Decides whether the order, which has lapsed, is paid by card payments that were captured since.
    /// They must reach the total, and nothing of them may have gone back. If the result is `false`, the
    /// ledger is changed and no longer useful.
    #[must_use]
    pub fn revive(&mut self) -> bool {
        if !self.order.may_revive() {
            return false;
        }
        for payment in &mut self.payments {
            let goes_back =
                |known: &PaymentOperation| known.payment_id == payment.id && known.kind == OperationKind::Refund;
            if payment.status == PaymentStatus::Captured && !self.operations.iter().any(goes_back) {
                payment.releasing = false;
            }
        }
        let (secured, total) = (self.secured(), self.order.total.amount);
        if total == 0 || secured < total {
            return false;
        }
        self.has_decided = true;
        self.release_excess(secured.saturating_sub(total));
        true
    }

    /// Decides what follows from the changes. Returns whether the order is paid now. An order that
    /// takes no money releases what has arrived, and cancels what could still arrive.
    pub fn settle(&mut self) -> bool {
        if self.takes_money() {
            let (secured, total) = (self.secured(), self.order.total.amount);
            if total == 0 || secured < total {
                return false;
            }
            self.has_decided = true;
            self.cancel_open();
            self.release_excess(secured.saturating_sub(total));
            return true;
        }
        for payment in self.payments.clone() {
            let is_late = payment.status.is_open() || self.held_before(&payment.id) == 0;
            if payment.releasing || (payment.method == PaymentMethod::Card && is_late) {
                self.release(&payment);
            }
        }
        false
    }

    fn held_before(&self, id: &PaymentId) -> i64 {
        self.read.0.iter().find(|known| known.id == *id).map_or(0, |known| known.held())
    }

    /// Cancels the card payments that the customer could still make.
    pub fn cancel_open(&mut self) {
        for payment in self.payments.clone() {
            if payment.method == PaymentMethod::Card && payment.status.is_open() {
                let _ = self.begin_own(&payment.id, OperationKind::Cancel, 0);
            }
        }
    }

    /// Refunds what was captured beyond the order's total. An authorised payment is captured only up
    /// to the total later.
    fn release_excess(&mut self, mut excess: i64) {
        for payment in self.payments.clone().into_iter().rev() {
            let is_captured = payment.method == PaymentMethod::Card && payment.status == PaymentStatus::Captured;
            let amount = payment.refundable().min(excess);
            if is_captured && amount > 0 {
                let _ = self.begin_own(&payment.id, OperationKind::Refund, amount);
                excess = excess.saturating_sub(amount);
            }
        }
    }

    /// Gives the money of a card payment back, as far as the customer has paid. While another
    /// operation is in progress, only marks the payment. What the provider has refused is not tried
    /// again, and is left to staff.
    fn release(&mut self, payment: &Payment) {
        let (kind, amount) = match payment.status {
            PaymentStatus::Captured if payment.held() > 0 => (OperationKind::Refund, payment.refundable()),
            PaymentStatus::Captured | PaymentStatus::Cancelled | PaymentStatus::Failed => return,
            _ => (OperationKind::Cancel, 0),
        };
        if let Some(known) = self.payments.iter_mut().find(|known| known.id == payment.id) {
            known.releasing = true;
        }
        let is_refused = |known: &PaymentOperation| {
            let is_of_kind = known.payment_id == payment.id && known.kind == kind;
            // A call that was not sent changed nothing, so it is begun again with another key.
            is_of_kind && known.state == OperationState::Refused && known.declined.as_deref() != Some(UNSENT)
        };
        if !self.operations.iter().any(is_refused) {
            let _ = self.begin_own(&payment.id, kind, amount);
        }
    }

    /// Gives all money back for an order that is cancelled or returned: to the card, or to the
    /// wallet that paid. Money that staff received is left to staff.
    pub fn release_all(&mut self) {
        for payment in self.payments.clone() {
            match payment.method {
                PaymentMethod::Card => self.release(&payment),
                PaymentMethod::Wallet => {
                    let _ = self.refund_to_wallet(&payment.id, payment.refundable());
                }
                PaymentMethod::Manual => {}
            }
        }
    }

    /// Cancels the card payments of a cancelled order that are not captured, so that no further
    /// money arrives.
    pub fn release_uncaptured(&mut self) {
        for payment in self.payments.clone() {
            let is_captured = payment.status == PaymentStatus::Captured || payment.captured_pending > 0;
            if payment.method == PaymentMethod::Card && !is_captured {
                self.release(&payment);
            }
        }
    }

    /// Captures the authorised payments up to the order's total, and cancels the rest.
    pub fn capture_all(&mut self) {
        let mut left = self.uncaptured();
        for payment in self.payments.clone() {
            let amount = payment.capturable().min(left);
            let kind = if amount > 0 { OperationKind::Capture } else { OperationKind::Cancel };
            if payment.status == PaymentStatus::Authorised && self.begin_own(&payment.id, kind, amount).is_ok() {
                left = left.saturating_sub(amount);
            }
        }
    }

    /// Returns the part of the total that is neither captured nor being captured.
    fn uncaptured(&self) -> i64 {
        let captured = |payment: &Payment| match payment.status {
            PaymentStatus::Captured => payment.secured(),
            _ => payment.captured_pending,
        };
        let sum = self.payments.iter().map(captured).fold(0, i64::saturating_add);
        self.order.total.amount.saturating_sub(sum).max(0)
    }

    /// Returns how much of a payment can be captured: what is authorised, and not beyond the total.
    #[must_use]
    pub fn capturable(&self, payment: &Payment) -> i64 {
        payment.capturable().min(self.uncaptured())
    }

    /// Returns whether the transaction would write anything.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        let payments = self.payments.iter().zip(self.read.0).all(|(payment, read)| *payment == read.data);
        let operations = self.operations.iter().zip(self.read.1).all(|(operation, read)| *operation == read.data);
        let is_new = self.payments.len() > self.read.0.len() || self.operations.len() > self.read.1.len();
        is_new || !payments || !operations || self.wallet.is_some()
    }

    /// Returns whether an operation waits for the provider.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.operations.iter().any(|operation| operation.state.is_unsettled())
    }

    /// Returns the writes, without the head of the order.
    pub(crate) fn writes(&self) -> Result<Vec<(OrderAction, Guarded)>, EncodeError> {
        let mut writes = Vec::new();
        for payment in &self.payments {
            let write = match self.read.0.iter().find(|known| known.id == payment.id) {
                None => {
                    Some(Guarded::put(&Stored::new(payment.clone(), payment.id.born(), self.at), Condition::NotExists)?)
                }
                Some(read) if read.data != *payment => Some(self.changed_payment(read, payment)?),
                Some(read) if self.has_decided && payment.secured() > 0 => {
                    Some(Guarded::check(read.key()?, Condition::version(read.meta.version)))
                }
                Some(_) => None,
            };
            writes.extend(write.map(|write| (OrderAction::Payment, write)));
        }
        for operation in &self.operations {
            let write = match self.read.1.iter().find(|known| known.id == operation.id) {
                None => {
                    let stored = Stored::new(operation.clone(), operation.id.born(), self.at);
                    Some(Guarded::put(&stored, Condition::NotExists)?)
                }
                Some(read) if read.data != *operation => Some(self.changed_operation(read, operation)?),
                Some(_) => None,
            };
            writes.extend(write.map(|write| (OrderAction::Operation, write)));
        }
        if let Some((entry, amount)) = &self.wallet {
            let (customer, order, currency) = (&self.order.customer_id, &self.order.id, self.order.total.currency);
            let moved = if *amount < 0 {
                wallet::debit(customer, Money::new(amount.saturating_neg(), currency), order, entry, self.at)?
            } else {
                wallet::credit(customer, Money::new(*amount, currency), order, entry, self.at)?
            };
            let label = |action| match action {
                WalletAction::Wallet(_) => OrderAction::Wallet,
                _ => OrderAction::Entry,
            };
            writes.extend(moved.into_iter().map(|(action, write)| (label(action), write)));
        }
        Ok(writes)
    }

    fn changed_payment(&self, read: &Stored<Payment>, payment: &Payment) -> Result<Guarded, EncodeError> {
        let change = Change::<Payment>::visible(self.at)
            .set("status", payment.status)?
            .set("capture_before", payment.capture_before)?
            .authorised(&payment.authorised)?
            .captured(&payment.captured)?
            .refunded(&payment.refunded)?
            .captured_pending(&payment.captured_pending)?
            .refunded_pending(&payment.refunded_pending)?
            .intent(&payment.intent)?
            .releasing(&payment.releasing)?
            .declined(&payment.declined)?;
        Ok(Guarded::update(read.key()?, indexed(payment, change)?, Condition::version(read.meta.version)))
    }

    fn changed_operation(
        &self,
        read: &Stored<PaymentOperation>,
        operation: &PaymentOperation,
    ) -> Result<Guarded, EncodeError> {
        let change = Change::<PaymentOperation>::visible(self.at)
            .set("state", operation.state)?
            .declined(&operation.declined)?;
        let change = match operation.unsettled() {
            Some(entry) => change.enter(&entry)?,
            None => change.leave(GSI3),
        };
        Ok(Guarded::update(read.key()?, change, Condition::version(read.meta.version)))
    }

    /// Returns the payments and operations as they are after the transaction.
    #[must_use]
    pub fn after(&self) -> (Vec<Stored<Payment>>, Vec<Stored<PaymentOperation>>) {
        let payment = |payment: &Payment| match self.read.0.iter().find(|known| known.id == payment.id) {
            Some(read) => next(read, payment.clone()),
            None => Stored::new(payment.clone(), payment.id.born(), self.at),
        };
        let operation = |operation: &PaymentOperation| match self.read.1.iter().find(|known| known.id == operation.id) {
            Some(read) => next(read, operation.clone()),
            None => Stored::new(operation.clone(), operation.id.born(), self.at),
        };
        (self.payments.iter().map(payment).collect(), self.operations.iter().map(operation).collect())
    }
}

/// Returns an item with the version that its change gives it.
fn next<T: PartialEq>(read: &Stored<T>, data: T) -> Stored<T> {
    let mut meta = read.meta.clone();
    if read.data != data {
        meta.version += 1;
        meta.rev += 1;
    }
    Stored { meta, data }
}
