//! A model of a table with one order: its writes have the condition that the order is unchanged, as
//! those of [`key_schema::payment::Ledger`] have. Workers take the same steps as
//! [`workflows::payments`], and a schedule interleaves them. The rules are the real ledger's.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::rc::Rc;

use key_schema::id::{OperationId, PaymentId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{Order, OrderStatus};
use key_schema::payment::{
    CaptureMode, Closing, Ledger, LedgerError, OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation,
    PaymentStatus, Present,
};
use payments::{Capture, Intent, IntentStatus, PaymentError, RefundStatus};

use crate::bank::{Account, Books, Call, Fault, Reply};
use crate::shop;

/// What a worker has read.
#[derive(Debug, Clone)]
pub struct Items {
    pub head: Stored<Order>,
    pub payments: Vec<Stored<Payment>>,
    pub operations: Vec<Stored<PaymentOperation>>,
}

impl Items {
    /// Returns the instant of the next write. It increases with each version, so that equal states
    /// have equal ids.
    fn next(&self) -> Instant {
        let version = i64::try_from(self.head.meta.version).unwrap();
        self.head.placed_at.plus_millis(version)
    }

    pub fn payment(&self, id: &PaymentId) -> &Payment {
        &self.payments.iter().find(|payment| payment.id == *id).unwrap().data
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub items: Rc<Items>,
    pub books: Books,
    /// How often the order became paid.
    pub paid: usize,
    /// Whether the stock of the order is there after it lapsed.
    pub has_stock: bool,
    /// Whether the order became paid after it had lapsed.
    pub is_revived: bool,
    /// What staff gave back after the order was paid.
    pub given_back: i64,
}

/// What a worker has found out and will record.
#[derive(Debug, Clone)]
enum Change {
    Close { operation: OperationId, payment: PaymentId, closing: Closing, present: Option<Present> },
    Refresh { payment: PaymentId, present: Present, failed: Vec<OperationId> },
}

#[derive(Debug, Clone)]
enum Phase {
    Reading,
    Calling(Rc<Items>),
    Recording(Rc<Items>, Box<Change>),
}

/// One run of the workflow, which sends what is unsettled and then refreshes the hinted payment.
#[derive(Debug, Clone)]
pub struct Worker {
    hint: Option<String>,
    tried: BTreeSet<OperationId>,
    phase: Phase,
}

impl World {
    pub fn new(total: i64) -> Self {
        let head = shop::head(1, total, None);
        let books = Books::new(head.placed_at);
        let items = Rc::new(Items { head, payments: Vec::new(), operations: Vec::new() });
        Self { items, books, paid: 0, has_stock: true, is_revived: false, given_back: 0 }
    }

    pub fn status(&self) -> OrderStatus {
        self.items.head.status
    }

    /// Writes a change of what was read. Returns `false` if the order was changed since.
    fn write(&mut self, read: &Items, to: Option<OrderStatus>, change: impl FnOnce(&mut Ledger<'_>)) -> bool {
        if read.head.meta.version != self.items.head.meta.version {
            return false;
        }
        let mut ledger = Ledger::new(&read.head, &read.payments, &read.operations, read.next());
        change(&mut ledger);
        let mut revived = ledger.clone();
        let is_revived = to.is_none() && self.has_stock && revived.revive();
        if is_revived {
            ledger = revived;
        }
        let is_paid = is_revived || (to.is_none() && ledger.settle());
        if !ledger.is_changed() && to.is_none() {
            return true;
        }
        let (payments, operations) = ledger.after();
        let mut head = read.head.clone();
        head.meta.version += 1;
        head.data.refunded += ledger.refunded();
        head.data.status = match to {
            Some(to) => to,
            None if is_paid => OrderStatus::Paid,
            None => head.status,
        };
        self.paid += usize::from(is_paid);
        self.is_revived |= is_revived;
        self.items = Rc::new(Items { head, payments, operations });
        shop::check_amounts(&self.items.payments);
        true
    }

    /// Does what a function does in one transaction. Returns whether the ledger allowed it.
    pub fn act(&mut self, act: impl FnOnce(&mut Ledger<'_>) -> Result<(), LedgerError>) -> bool {
        let (read, mut is_allowed) = (Rc::clone(&self.items), false);
        let before = self.clone();
        self.write(&read, None, |ledger| is_allowed = act(ledger).is_ok());
        if !is_allowed {
            *self = before;
        }
        is_allowed
    }

    /// Begins a card payment, as a customer's request does.
    pub fn pay(&mut self, amount: i64, capture: CaptureMode) -> Option<PaymentId> {
        let read = Rc::clone(&self.items);
        let number = u8::try_from(read.payments.len() + 1).unwrap();
        let id = PaymentId::generate(read.next(), [number; 10]);
        let payment = Payment::card(id.clone(), &read.head, shop::euros(amount), capture, read.next(), "c1");
        let is_begun = self.act(|ledger| {
            if !ledger.takes_money() || amount > ledger.due() {
                return Err(LedgerError::Status);
            }
            ledger.add(payment)
        });
        is_begun.then_some(id)
    }

    /// Begins an operation of staff. The request for a cancellation is refused if a paid order
    /// needs the payment.
    pub fn staff(&mut self, payment: &PaymentId, kind: OperationKind, amount: i64) -> bool {
        let (was_paid, known) = (self.status() != OrderStatus::Pending, self.items.payment(payment).clone());
        if kind == OperationKind::Cancel && was_paid && known.secured() > 0 {
            return false;
        }
        let is_begun = self.act(|ledger| ledger.begin(payment, kind, amount, "staff", None, Vec::new()).map(drop));
        if is_begun && was_paid {
            self.given_back += match kind {
                OperationKind::Capture => known.secured() - amount,
                _ => amount,
            };
        }
        is_begun
    }

    /// Cancels the order, as a function or the janitor does.
    pub fn end(&mut self) -> bool {
        let read = Rc::clone(&self.items);
        read.head.status.may_become(OrderStatus::Cancelled)
            && self.write(&read, Some(OrderStatus::Cancelled), |ledger| ledger.release_all())
    }

    /// Ends a pending order, as the janitor does when its time is over.
    pub fn lapse(&mut self) -> bool {
        let is_ended = self.status() == OrderStatus::Pending && self.end();
        if is_ended {
            Rc::make_mut(&mut self.items).head.data.lapsed = true;
        }
        is_ended
    }

    /// Ships a paid order. The step for its picking is left out.
    pub fn ship(&mut self) -> bool {
        let read = Rc::clone(&self.items);
        read.head.status == OrderStatus::Paid
            && self.write(&read, Some(OrderStatus::Shipped), |ledger| ledger.capture_all())
    }

    /// Sends everything and reads every payment until nothing changes.
    pub fn reconcile(&mut self) {
        for _ in 0..20 {
            let before = self.items.head.meta.version;
            let hints = self.books.accounts.iter().map(|account| Some(account.id.clone()));
            for hint in [None].into_iter().chain(hints).collect::<Vec<_>>() {
                let mut worker = Worker::new(hint);
                while !worker.step(self, None) {}
            }
            if self.items.head.meta.version == before {
                return;
            }
        }
        panic!("the payments never settle: {:#?}", self.items.operations);
    }

    /// Checks a state in which everything is settled.
    pub fn check_settled(&self) {
        let Items { head, payments, operations } = &*self.items;
        shop::check_settled(head, payments, operations, &self.books, self.given_back);
        assert!(self.paid <= 1, "the order became paid {} times", self.paid);
    }

    /// Returns a hash of everything that determines what can happen next.
    pub fn print(&self, others: &dyn fmt::Debug) -> u64 {
        struct Print(DefaultHasher);
        impl fmt::Write for Print {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.write(text.as_bytes());
                Ok(())
            }
        }
        let mut print = Print(DefaultHasher::new());
        write!(print, "{self:?}{others:?}").unwrap();
        print.0.finish()
    }
}

impl Worker {
    pub fn new(hint: Option<String>) -> Self {
        Self { hint, tried: BTreeSet::new(), phase: Phase::Reading }
    }

    /// Returns whether the next step sends a call.
    pub fn is_calling(&self) -> bool {
        matches!(self.phase, Phase::Calling(_))
    }

    fn next(&self, items: &Items) -> Option<(PaymentOperation, Payment)> {
        let is_next = |known: &&Stored<PaymentOperation>| known.state.is_unsettled() && !self.tried.contains(&known.id);
        let operation = items.operations.iter().find(is_next)?;
        Some((operation.data.clone(), items.payment(&operation.payment_id).clone()))
    }

    /// Takes a step. Returns whether the run is over.
    pub fn step(&mut self, world: &mut World, fault: Option<Fault>) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Reading) {
            Phase::Reading => {
                let items = Rc::clone(&world.items);
                if self.next(&items).is_none() && self.hint.is_none() {
                    return true;
                }
                self.phase = Phase::Calling(items);
            }
            Phase::Calling(items) => {
                let change = match self.next(&items) {
                    Some((operation, payment)) => self.call(world, &operation, &payment, fault),
                    None => self.refresh(world, &items, fault),
                };
                if let Some(change) = change {
                    self.phase = Phase::Recording(items, Box::new(change));
                }
            }
            Phase::Recording(items, change) => {
                let is_hint = matches!(*change, Change::Refresh { .. });
                let is_written = world.write(&items, None, |ledger| match &*change {
                    Change::Close { operation, payment, closing, present } => {
                        if let Some(present) = present {
                            ledger.apply(payment, present);
                        }
                        ledger.close(operation, closing);
                    }
                    Change::Refresh { payment, present, failed } => {
                        ledger.apply(payment, present);
                        failed.iter().for_each(|refund| ledger.revoke(refund, "refund_failed"));
                    }
                });
                if is_written && is_hint {
                    self.hint = None;
                }
            }
        }
        false
    }

    fn call(
        &mut self,
        world: &mut World,
        operation: &PaymentOperation,
        payment: &Payment,
        fault: Option<Fault>,
    ) -> Option<Change> {
        let key = operation.id.as_str();
        let close = |closing, intent: Option<Intent>| {
            let present = intent.map(|intent| present(&intent));
            Some(Change::Close { operation: operation.id.clone(), payment: payment.id.clone(), closing, present })
        };
        let of = payment.intent.clone();
        let call = match (operation.kind, of.clone()) {
            (OperationKind::Create, _) => {
                let capture = match payment.capture {
                    Some(CaptureMode::AtShipping) => Capture::Later,
                    _ => Capture::AtOnce,
                };
                Call::Create(payment.order_id.clone(), payment.money(operation.amount), capture)
            }
            (OperationKind::Capture, Some(intent)) => Call::Capture(intent, operation.amount),
            (OperationKind::Cancel, Some(intent)) => Call::Cancel(intent),
            (OperationKind::Refund, Some(intent)) => Call::Refund(intent, operation.amount),
            (_, None) => return close(Closing::Refused("no_payment".to_owned()), None),
        };
        let reply = match fault {
            None => world.books.call(call, key),
            Some(Fault::NotSent) => Err(PaymentError::NotSent("down".to_owned())),
            Some(Fault::Lost) => Err(PaymentError::Unknown("lost".to_owned())),
            Some(Fault::LostResponse) => {
                let _ = world.books.call(call, key);
                Err(PaymentError::Unknown("lost response".to_owned()))
            }
        };
        match reply {
            Ok(Reply::Intent(intent)) => close(Closing::Done, Some(intent)),
            Ok(Reply::Refund(refund)) if refund.status == RefundStatus::Failed => {
                close(Closing::Refused("refund_failed".to_owned()), None)
            }
            Ok(Reply::Refund(_)) => close(Closing::Done, None),
            Err(PaymentError::Refused(code)) if operation.kind == OperationKind::Refund => {
                let refunds = world.books.refunds(&of.unwrap());
                let is_made = |refund: &payments::Refund| {
                    refund.key.as_deref() == Some(key) && refund.status != RefundStatus::Failed
                };
                close(if refunds.iter().any(is_made) { Closing::Done } else { Closing::Refused(code) }, None)
            }
            Err(PaymentError::Refused(code)) => {
                let intent = world.books.read(&of.unwrap()).unwrap();
                let is_done = match operation.kind {
                    OperationKind::Capture => intent.status == IntentStatus::Captured,
                    _ => intent.status == IntentStatus::Cancelled,
                };
                close(if is_done { Closing::Done } else { Closing::Refused(code) }, Some(intent))
            }
            Err(error) => {
                self.tried.insert(operation.id.clone());
                let is_new = operation.state == OperationState::Sending && matches!(error, PaymentError::Unknown(_));
                if is_new { close(Closing::Unknown, None) } else { None }
            }
        }
    }

    fn refresh(&mut self, world: &World, items: &Items, fault: Option<Fault>) -> Option<Change> {
        let hint = self.hint.clone()?;
        let known = items.payments.iter().find(|payment| payment.intent.as_deref() == Some(&hint));
        let (Some(payment), None) = (known, fault) else {
            self.hint = None;
            return None;
        };
        let refunds = world.books.refunds(&hint);
        let has_failed = |known: &&Stored<PaymentOperation>| {
            let of = |refund: &&payments::Refund| refund.key.as_deref() == Some(known.id.as_str());
            known.kind == OperationKind::Refund
                && known.state == OperationState::Done
                && refunds.iter().find(of).is_some_and(|refund| refund.status == RefundStatus::Failed)
        };
        let failed = items.operations.iter().filter(has_failed).map(|known| known.id.clone()).collect();
        let present = present(&world.books.read(&hint).unwrap());
        Some(Change::Refresh { payment: payment.id.clone(), present, failed })
    }
}

/// Returns the status of a payment that the provider has in this status.
pub const fn status(status: IntentStatus) -> PaymentStatus {
    match status {
        IntentStatus::Open => PaymentStatus::Pending,
        IntentStatus::ActionRequired => PaymentStatus::ActionRequired,
        IntentStatus::Processing => PaymentStatus::Processing,
        IntentStatus::Authorised => PaymentStatus::Authorised,
        IntentStatus::Captured => PaymentStatus::Captured,
        IntentStatus::Cancelled => PaymentStatus::Cancelled,
    }
}

fn present(intent: &Intent) -> Present {
    Present {
        intent: intent.id.clone(),
        status: status(intent.status),
        authorised: intent.capturable.amount + intent.captured.amount,
        captured: intent.captured.amount,
        capture_before: None,
        declined: None,
    }
}

/// Returns the payment of an account.
pub fn payment_of<'a>(payments: &'a [Stored<Payment>], account: &Account) -> Option<&'a Payment> {
    let is_of = |payment: &&Stored<Payment>| {
        payment.method == PaymentMethod::Card && payment.intent.as_deref() == Some(&account.id)
    };
    payments.iter().find(is_of).map(|payment| &payment.data)
}
