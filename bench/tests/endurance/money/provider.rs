//! Compares the payments of the table with the books of the provider, with the requests, and with
//! the orders.

use std::collections::{BTreeMap, BTreeSet};

use bench::replay::Shop;
use emulators::payments::{Account, PaymentServer, Status};
use key_schema::idempotency::StoredResponse;
use key_schema::instant::Instant;
use key_schema::order::{Order, OrderStatus, SYSTEM};
use key_schema::payment::{
    CaptureMode, OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation, PaymentStatus,
};
use ops::Pace;
use ops::payments::{Reconciled, reconcile};
use payments::Stripe;

use super::books::{Books, Report};
use super::world::{Request, World};
use crate::support::Answer;

/// The key of the metadata of a payment at the provider that has the id of the order.
const ORDER: &str = "order";

const fn status_of(status: Status) -> PaymentStatus {
    match status {
        Status::RequiresPaymentMethod | Status::RequiresConfirmation => PaymentStatus::Pending,
        Status::RequiresAction => PaymentStatus::ActionRequired,
        Status::Processing => PaymentStatus::Processing,
        Status::RequiresCapture => PaymentStatus::Authorised,
        Status::Succeeded => PaymentStatus::Captured,
        Status::Canceled => PaymentStatus::Cancelled,
    }
}

/// Runs `ops payments reconcile` for today.
pub async fn reconciled(shop: &Shop, provider: &PaymentServer) -> Reconciled {
    let service = aws::Service::new(aws::connector().unwrap(), provider.url(), None);
    let stripe = Stripe::new(service, "sk_test_local".to_owned());
    let now = Instant::now().to_string();
    let day = format!("{}T00:00:00.000Z", &now[.."2026-01-01".len()]).parse().unwrap();
    reconcile(&shop.items(), &stripe, day, false, &Pace::new(None)).await.unwrap()
}

fn is_staffs_refund(operation: &&PaymentOperation) -> bool {
    operation.kind == OperationKind::Refund && operation.by != SYSTEM && operation.state == OperationState::Done
}

impl Books {
    fn operations_of(&self, order: &str) -> &[PaymentOperation] {
        self.operations.get(order).map(Vec::as_slice).unwrap_or_default()
    }

    /// Checks that the provider's books have exactly the card payments of the table, with the same
    /// amounts and states, and that the result of each operation is known.
    pub fn provided(&self, report: &mut Report) {
        report.cards = self.accounts.len();
        let mut accounts: BTreeMap<&str, &Account> =
            self.accounts.iter().map(|account| (account.intent.as_str(), account)).collect();
        for payment in self.payments.values().flatten() {
            self.kept(payment, report);
            let Some(intent) = &payment.intent else {
                // The provider has refused the payment, or staff or the wallet paid.
                let is_none = payment.method != PaymentMethod::Card || payment.status == PaymentStatus::Failed;
                report.same(|| format!("the payment {} has a provider's id or has failed", payment.id), is_none, true);
                continue;
            };
            let Some(account) = accounts.remove(intent.as_str()) else {
                report.wrong.push(format!("the provider does not have the payment {} as {intent}", payment.id));
                continue;
            };
            report.captured += usize::from(account.captured > 0);
            let ours = (payment.order_id.as_str(), payment.status, payment.amount.amount);
            let order = account.metadata.get(ORDER).map_or("", String::as_str);
            let theirs = (order, status_of(account.status), account.amount);
            report.same(|| format!("the payment {} of {intent}", payment.id), ours, theirs);
            let (ours, theirs) = ((payment.captured, payment.refunded), (account.captured, account.refunded));
            report.same(|| format!("the captured and the refunded amount of {intent}"), ours, theirs);
            if account.captured > account.amount || account.refunded > account.captured {
                report.wrong.push(format!("the provider's amounts are impossible: {account:?}"));
            }
        }
        report.wrong.extend(accounts.keys().map(|intent| format!("the payment {intent} belongs to no order")));
    }

    /// Checks a payment and its operations.
    fn kept(&self, payment: &Payment, report: &mut Report) {
        let Payment { id, authorised, captured, refunded, captured_pending, refunded_pending, .. } = payment;
        if captured > authorised || refunded > captured || (*captured_pending, *refunded_pending) != (0, 0) {
            report.wrong.push(format!("the amounts of a payment are impossible: {payment:?}"));
        }
        let operations = self.operations_of(payment.order_id.as_str()).iter();
        let mut sum = 0;
        for operation in operations.filter(|operation| operation.payment_id == *id) {
            if operation.state.is_unsettled() {
                report.wrong.push(format!("an operation is unsettled: {operation:?}"));
            }
            if operation.kind == OperationKind::Refund && operation.state == OperationState::Done {
                report.card_refunds += 1;
                sum += operation.amount;
            }
        }
        if payment.method == PaymentMethod::Card {
            report.same(|| format!("the refunds of the payment {id}"), *refunded, sum);
        }
    }

    /// Checks that each key has made at most one payment or refund, and that all card payments, and
    /// all refunds by staff, have a key. A cancellation with a refund has none.
    pub fn requested(&self, world: &World<'_>, report: &mut Report) {
        let mut claimed = BTreeSet::new();
        for record in &self.records {
            let is_first = match &record.answer {
                StoredResponse::Payment { payment_id, .. } => claimed.insert(payment_id.as_str()),
                StoredResponse::Operation { operation_id, .. } => claimed.insert(operation_id.as_str()),
                _ => true,
            };
            report.same(|| format!("only {} has this answer", record.scope.key), is_first, true);
        }
        for payment in self.payments.values().flatten().filter(|payment| payment.method == PaymentMethod::Card) {
            let is_claimed = claimed.contains(payment.id.as_str());
            report.same(|| format!("the card payment {} has a key", payment.id), is_claimed, true);
        }
        let chosen = world.chosen.lock().unwrap();
        for operation in self.operations.values().flatten().filter(is_staffs_refund) {
            let is_known = claimed.contains(operation.id.as_str()) || chosen.contains(operation.order_id.as_str());
            report.same(|| format!("the refund {} has a key", operation.id), is_known, true);
        }
    }

    /// Returns whether the provider has refused what the first request with a key has begun.
    pub fn was_declined(&self, answer: &StoredResponse) -> bool {
        match answer {
            StoredResponse::Payment { order_id, payment_id } => {
                let mut payments = self.payments_of(order_id.as_str()).iter();
                payments.any(|known| known.id == *payment_id && known.status == PaymentStatus::Failed)
            }
            StoredResponse::Operation { order_id, operation_id } => {
                let mut operations = self.operations_of(order_id.as_str()).iter();
                operations.any(|known| known.id == *operation_id && known.state == OperationState::Refused)
            }
            _ => false,
        }
    }

    /// Checks that the payments of each order fit to its status.
    pub fn secured(&self, world: &World<'_>, done: &[(&Request, &Answer)], report: &mut Report) {
        let chosen = world.chosen.lock().unwrap();
        let mut to_wallet: BTreeMap<&str, i64> = BTreeMap::new();
        for (request, _) in done {
            if let Some(order) = request.refunds_order() {
                *to_wallet.entry(order).or_default() += request.body["amount"]["amount"].as_i64().unwrap();
            }
        }
        for (id, order) in &self.orders {
            let operations = self.operations_of(id);
            let by_card: i64 = operations.iter().filter(is_staffs_refund).map(|operation| operation.amount).sum();
            let given_back = by_card + to_wallet.get(id.as_str()).copied().unwrap_or_default();
            match order.status {
                OrderStatus::Cancelled | OrderStatus::Returned => self.released(id, chosen.contains(id), report),
                OrderStatus::Pending => {
                    let secured: i64 = self.payments_of(id).iter().map(Payment::secured).sum();
                    if secured >= order.total.amount {
                        report.wrong.push(format!("{id} is pending, although {secured} of its total is secured"));
                    }
                }
                _ => self.paid(id, order, given_back, report),
            }
        }
    }

    /// Checks that nothing is kept for an order that was cancelled or returned, except money that
    /// staff received. If staff chose the refund, only no further money must arrive.
    fn released(&self, id: &str, is_chosen: bool, report: &mut Report) {
        for payment in self.payments_of(id).iter().filter(|payment| payment.method != PaymentMethod::Manual) {
            let is_over = !payment.status.is_open() && payment.status != PaymentStatus::Authorised;
            if !is_over || (payment.held() > 0 && !is_chosen) {
                report.wrong.push(format!("{id} is cancelled or returned and keeps a payment: {payment:?}"));
            }
        }
    }

    /// Checks that the payments of a paid order are exactly its total, less what staff gave back.
    /// Before shipping, more than the total can be authorised. Staff can capture all of it.
    fn paid(&self, id: &str, order: &Order, given_back: i64, report: &mut Report) {
        let payments = self.payments_of(id);
        let (held, total): (i64, i64) = (payments.iter().map(Payment::held).sum(), order.total.amount);
        let is_later = |payment: &&Payment| payment.capture == Some(CaptureMode::AtShipping);
        // A capture of a part releases the rest.
        let released = payments.iter().filter(is_later).filter(|payment| payment.status == PaymentStatus::Captured);
        let released: i64 = released.map(|payment| payment.authorised - payment.captured).sum();
        let captured: i64 = payments.iter().map(|payment| payment.captured - payment.refunded).sum();
        let by_staff =
            self.operations_of(id).iter().any(|known| known.kind == OperationKind::Capture && known.by != SYSTEM);
        let least = total - given_back;
        let is_right = match payments.iter().any(|payment| is_later(&payment)) {
            false => held == least,
            true => held >= least - released && (captured <= total || by_staff),
        };
        if !is_right {
            report.wrong.push(format!(
                "{id} is {} with {held} of its total {total}, and staff gave {given_back} back: {payments:?}",
                order.status
            ));
        }
        let open = payments.iter().filter(|payment| payment.method == PaymentMethod::Card && payment.status.is_open());
        report.wrong.extend(open.map(|payment| format!("{id} is paid and has an open payment: {payment:?}")));
    }
}
