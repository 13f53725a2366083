//! Tests the comparison itself. Each case changes the data that was read after a run, as a defect
//! would have changed it. The comparison must detect the change.

use emulators::payments::{Account, Status};
use key_schema::item::Stored;
use key_schema::order::{Order, OrderStatus, SYSTEM};
use key_schema::payment::{
    CaptureMode, OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation, PaymentStatus,
};
use key_schema::wallet::{EntryKind, Wallet, WalletEntry};

use super::books::Books;
use super::world::World;

fn add(wallet: &mut Wallet, entry: &WalletEntry, amount: i64) {
    *wallet.balances.entry(entry.currency).or_default() += amount;
}

fn is_paid(order: &Order) -> bool {
    order.status.is_sale() && order.status != OrderStatus::Pending
}

/// A change of the data that was read. Returns `None` if the run has nothing to change.
type Tampering = fn(&mut Books, &World<'_>) -> Option<()>;

const TAMPERINGS: &[(&str, Tampering)] = &[
    ("a refund was done twice under one key", |books, _| {
        let refund = books.entry(EntryKind::Refund)?.clone();
        let order = books.orders.get_mut(refund.order_id.as_ref()?.as_str())?;
        order.data.refunded += refund.amount;
        order.meta.version += 1;
        let mut payments = books.payments.get_mut(order.id.as_str())?.iter_mut();
        payments.find(|payment| payment.method != PaymentMethod::Card)?.refunded += refund.amount;
        books.again(refund)
    }),
    ("a deposit was done twice under one key", |books, _| {
        let deposit = books.entry(EntryKind::Deposit)?.clone();
        books.again(deposit)
    }),
    ("a transfer moved more than requested", |books, _| {
        let id = books.entry(EntryKind::Transfer)?.id.clone();
        for entry in books.entries.iter_mut().filter(|entry| entry.id == id) {
            let more = entry.amount.signum();
            entry.amount += more;
            add(books.wallets.get_mut(entry.customer_id.as_str())?, entry, more);
        }
        Some(())
    }),
    ("a transfer moved money in the wrong direction", |books, _| {
        let id = books.entry(EntryKind::Transfer)?.id.clone();
        for entry in books.entries.iter_mut().filter(|entry| entry.id == id) {
            add(books.wallets.get_mut(entry.customer_id.as_str())?, entry, -2 * entry.amount);
            entry.amount = -entry.amount;
        }
        Some(())
    }),
    ("another customer paid an order", |books, _| {
        let (id, payer) = books.entry(EntryKind::Payment).map(|entry| (entry.id.clone(), entry.customer_id.clone()))?;
        let other = books.wallets.values().find(|wallet| wallet.customer_id != payer)?.customer_id.clone();
        let entry = books.entries.iter_mut().find(|entry| entry.id == id)?;
        add(books.wallets.get_mut(payer.as_str())?, entry, -entry.amount);
        add(books.wallets.get_mut(other.as_str())?, entry, entry.amount);
        entry.customer_id = other;
        Some(())
    }),
    ("a cancelled order keeps its use of the coupon", |books, _| {
        books.uses += 1;
        Some(())
    }),
    ("the discount of a line is too low", |books, _| {
        let lines = books.lines.values_mut().flatten();
        lines.into_iter().find(|line| line.discount > 0)?.discount -= 1;
        Some(())
    }),
    ("the stock lacks a returned piece", |books, _| {
        *books.stocks.values_mut().find(|stock| **stock > 0)? -= 1;
        Some(())
    }),
    ("an acknowledged status change is missing", |books, world| {
        let moved = world.moved.lock().unwrap();
        let undo = |books: &mut Books, id: &str| {
            let steps = books.history.get_mut(id)?;
            steps.pop_if(|step| matches!(step.status, OrderStatus::Picking | OrderStatus::Delivered))?;
            let status = steps.last()?.status;
            let order = books.orders.get_mut(id)?;
            order.data.status = status;
            order.meta.version -= 1;
            books.copies.get_mut(id)?.status = status;
            Some(())
        };
        moved.iter().find_map(|moved| undo(books, &moved.order))
    }),
    ("an order has its first status event twice", |books, _| {
        let (id, steps) = books.history.iter_mut().next()?;
        let first = steps.first()?.clone();
        steps.insert(0, first);
        books.orders.get_mut(id)?.meta.version += 1;
        Some(())
    }),
    ("a customer's copy has an old status", |books, _| {
        let copy = books.copies.values_mut().find(|copy| copy.status != OrderStatus::Pending)?;
        copy.status = OrderStatus::Pending;
        Some(())
    }),
    ("a reference belongs to no order", |books, _| {
        let mut leaked = books.references.first()?.clone();
        leaked.reference = "leaked".parse().unwrap();
        books.references.push(leaked);
        Some(())
    }),
    ("a number belongs to no order", |books, _| {
        let mut leaked = books.numbers.first()?.clone();
        leaked.order_id = "leaked".parse().unwrap();
        books.numbers.push(leaked);
        Some(())
    }),
    ("an idempotency key belongs to no request", |books, _| {
        let mut leaked = books.records.first()?.clone();
        leaked.scope.key.push('x');
        books.records.push(leaked);
        Some(())
    }),
    ("an idempotency key is missing", |books, _| books.records.pop().map(drop)),
    ("two invoices were exchanged", |books, world| {
        let acknowledged = world.invoices.lock().unwrap().first()?.0.clone();
        let one = books.invoices.iter().position(|invoice| invoice.order_id.as_str() == acknowledged)?;
        let other = (0..books.invoices.len()).find(|at| *at != one)?;
        let numbers = [one, other].map(|at| books.invoices[at].number);
        for (at, number) in [(one, numbers[1]), (other, numbers[0])] {
            let invoice = &mut books.invoices[at];
            invoice.number = number;
            books.orders.get_mut(invoice.order_id.as_str())?.data.invoice_number = Some(number);
        }
        Some(())
    }),
    ("the provider made a refund that the table lacks", |books, _| {
        books.accounts.iter_mut().find(|account| account.refunded < account.captured)?.refunded += 1;
        Some(())
    }),
    ("the provider has a cancelled payment as open", |books, _| {
        let account = books.accounts.iter_mut().find(|account| account.status == Status::Canceled)?;
        account.status = Status::RequiresPaymentMethod;
        Some(())
    }),
    ("the provider has a payment that no order has", |books, _| {
        let mut another = books.accounts.first()?.clone();
        another.intent.push('x');
        books.accounts.push(another);
        Some(())
    }),
    ("the provider does not have a payment", |books, _| books.accounts.pop().map(drop)),
    ("the result of a call was not recorded", |books, _| {
        let mut operations = books.operations.values_mut().flatten();
        operations.find(|operation| operation.kind == OperationKind::Create)?.state = OperationState::Unknown;
        Some(())
    }),
    ("a card payment without a request took the place of another", |books, _| {
        let payment = books.payments.values_mut().flatten().find(|payment| payment.intent.is_some())?;
        let id = payment.id.clone();
        payment.id = "leaked".parse().ok()?;
        for operation in books.operations.values_mut().flatten().filter(|operation| operation.payment_id == id) {
            operation.payment_id = "leaked".parse().ok()?;
        }
        Some(())
    }),
    ("a refund of staff was done twice under one key", |books, _| {
        let is_staffs = |known: &&PaymentOperation| {
            known.kind == OperationKind::Refund && known.by != SYSTEM && known.state == OperationState::Done
        };
        let operation = books.operations.values().flatten().find(is_staffs)?.clone();
        books.refund(&operation, operation.amount)?;
        let id = "leaked".parse().ok()?;
        books.operations.get_mut(operation.order_id.as_str())?.push(PaymentOperation { id, ..operation });
        Some(())
    }),
    ("an order is paid without its card payment", |books, _| {
        let (payment, account) = books.captured(is_paid)?;
        (payment.captured, payment.refunded, payment.status) = (0, 0, PaymentStatus::Cancelled);
        (account.captured, account.refunded, account.status) = (0, 0, Status::Canceled);
        let id = payment.id.clone();
        books.operations.values_mut().for_each(|all| all.retain(|known| known.payment_id != id || known.by == SYSTEM));
        Some(())
    }),
    ("a card paid more than the total of its order", |books, _| {
        let (payment, account) = books.captured(is_paid)?;
        (payment.amount.amount, payment.authorised, payment.captured) =
            (payment.amount.amount + 1, payment.authorised + 1, payment.captured + 1);
        (account.amount, account.captured) = (account.amount + 1, account.captured + 1);
        Some(())
    }),
    ("the money of a cancelled order was kept", |books, world| {
        let chosen = world.chosen.lock().unwrap().clone();
        let is_cancelled =
            |order: &Order| order.status == OrderStatus::Cancelled && !chosen.contains(order.id.as_str());
        let id = books.captured(is_cancelled)?.0.id.clone();
        let mut operations = books.operations.values_mut().flatten();
        let is_refund = |known: &&mut PaymentOperation| {
            known.payment_id == id && known.kind == OperationKind::Refund && known.state == OperationState::Done
        };
        let operation = operations.find(is_refund)?;
        operation.state = OperationState::Refused;
        let operation = operation.clone();
        books.refund(&operation, -operation.amount)
    }),
    ("an acknowledged order and all its items are missing", |books, _| {
        let untouched = |order: &&Stored<Order>| order.meta.version == 1 && order.reference.is_none();
        let id = books.orders.values().find(untouched)?.id.to_string();
        books.orders.remove(&id);
        for line in books.lines.remove(&id)? {
            *books.stocks.get_mut(line.product_id.as_str())? += line.quantity;
        }
        books.history.remove(&id);
        books.copies.remove(&id);
        Some(())
    }),
    ("a cart remains after its checkout", |books, world| {
        let carts = world.carts.lock().unwrap();
        let order = books.orders.values().find(|order| carts.contains_key(order.customer_id.as_str()))?;
        let (customer_id, expires_at) = (order.customer_id.clone(), order.placed_at);
        let cart = key_schema::cart::Cart { customer_id, expires_at, lines: [].into() };
        books.carts.insert(order.customer_id.to_string(), cart);
        Some(())
    }),
];

impl Books {
    /// Makes each change that the run permits, in a separate copy, and returns their number. Panics
    /// if the comparison does not detect one of them.
    pub fn tampered(&self, world: &World<'_>) -> usize {
        let found = |(what, tampering): &&(&str, Tampering)| {
            let mut books = self.clone();
            let done = tampering(&mut books, world).is_some();
            assert!(!done || !books.compare(world).wrong.is_empty(), "the comparison does not detect that {what}");
            done
        };
        TAMPERINGS.iter().filter(found).count()
    }

    pub const TAMPERINGS: usize = TAMPERINGS.len();

    fn entry(&self, kind: EntryKind) -> Option<&WalletEntry> {
        self.entries.iter().find(|entry| entry.kind == kind && entry.amount != 0)
    }

    /// Changes the refunded sums of a card payment, in the table and at the provider.
    fn refund(&mut self, operation: &PaymentOperation, amount: i64) -> Option<()> {
        let (order, mut payments) = (operation.order_id.as_str(), self.payments.values_mut().flatten());
        let payment = payments.find(|payment| payment.id == operation.payment_id)?;
        let is_of = |account: &&mut Account| Some(&account.intent) == payment.intent.as_ref();
        let account = self.accounts.iter_mut().find(is_of)?;
        self.orders.get_mut(order)?.data.refunded += amount;
        payment.refunded += amount;
        account.refunded += amount;
        // The amounts of the payment stay possible.
        payment.captured = payment.captured.max(payment.refunded);
        payment.authorised = payment.authorised.max(payment.captured);
        payment.amount.amount = payment.amount.amount.max(payment.captured);
        account.captured = payment.captured;
        account.amount = payment.amount.amount;
        Some(())
    }

    /// Returns a captured card payment of an order for which this is true, and the provider's. The
    /// sums of an order are exact only if its payments are captured at once.
    fn captured(&mut self, is_wanted: impl Fn(&Order) -> bool) -> Option<(&mut Payment, &mut Account)> {
        let orders = &self.orders;
        let is_captured = |payment: &&mut Payment| {
            payment.status == PaymentStatus::Captured
                && payment.capture == Some(CaptureMode::AtOnce)
                && orders.get(payment.order_id.as_str()).is_some_and(|order| is_wanted(order))
        };
        let payment = self.payments.values_mut().flatten().find(is_captured)?;
        let account = self.accounts.iter_mut().find(|account| Some(&account.intent) == payment.intent.as_ref())?;
        Some((payment, account))
    }

    /// Adds the entry again with another id, and adds its amount to the wallet.
    fn again(&mut self, entry: WalletEntry) -> Option<()> {
        add(self.wallets.get_mut(entry.customer_id.as_str())?, &entry, entry.amount);
        let id = format!("{}x", entry.id).parse().ok().unwrap_or_else(|| entry.id.clone());
        self.entries.push(WalletEntry { id, ..entry });
        Some(())
    }
}
