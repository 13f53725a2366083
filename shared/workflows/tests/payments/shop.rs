//! A real table with orders, a provider in memory, and the checks of both.

use std::ops::Deref;

use fixture::{TestTable, seed};
use key_schema::id::{Born, OperationId, OrderId, PaymentId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::{self, Order, OrderLine, OrderStatus, PlacedOrder, SYSTEM, Step};
use key_schema::payment::{
    CaptureMode, Ledger, LedgerError, OperationKind, Payment, PaymentMethod, PaymentOperation, PaymentStatus,
};
use key_schema::product::{self, Stock};
use payments::{IntentStatus, PaymentError};
use table::Table;
use workflows::payments::{SettleError, Settled, is_late, settle};
use workflows::staging::{self, Lapsed};

use crate::bank::{Bank, Books};
use crate::model;

const HOUR_MILLIS: i64 = 60 * 60 * 1000;

pub fn euros(amount: i64) -> Money {
    Money::new(amount, "EUR".parse().unwrap())
}

fn placed_at() -> Instant {
    // The time of the tests is real, because the workflow compares it with the ages of operations.
    Instant::now().plus_millis(-HOUR_MILLIS)
}

/// Returns a pending order that was placed an hour ago.
pub fn head(number: u8, total: i64, lapses_at: Option<Instant>) -> Stored<Order> {
    let at = placed_at();
    let order = Order::new(OrderId::generate(at, [number; 10]), "c1".parse().unwrap(), at, euros(total), 1);
    Stored::new(Order { lapses_at, ..order }, Born::new("b1").unwrap(), at)
}

/// Checks what holds at any time.
pub fn check_amounts(payments: &[Stored<Payment>]) {
    for payment in payments {
        let Payment { authorised, captured, refunded, captured_pending, refunded_pending, .. } = payment.data;
        assert!((0..=authorised).contains(&captured), "captured more than authorised: {payment:#?}");
        assert!(refunded >= 0 && refunded_pending >= 0 && captured_pending >= 0, "{payment:#?}");
        assert!(refunded + refunded_pending <= captured, "refunded more than captured: {payment:#?}");
    }
}

/// Checks what holds when everything is settled. `given_back` is what staff gave back after the
/// order was paid.
pub fn check_settled(
    head: &Order,
    payments: &[Stored<Payment>],
    operations: &[Stored<PaymentOperation>],
    books: &Books,
    given_back: i64,
) {
    check_amounts(payments);
    let why = || format!("{head:#?}\n{payments:#?}\n{operations:#?}\n{books:#?}");
    assert!(!operations.iter().any(|known| known.state.is_unsettled()), "unsettled: {}", why());
    for account in &books.accounts {
        let payment = model::payment_of(payments, account).unwrap_or_else(|| panic!("{account:?} has no payment"));
        let ours = (payment.status, payment.captured, payment.refunded);
        assert_eq!(ours, (model::status(account.status), account.captured, account.refunded()), "{}", why());
        assert!(account.captured <= account.amount.amount && account.refunded() <= account.captured, "{}", why());
        let may_pay = matches!(account.status, IntentStatus::Open | IntentStatus::ActionRequired);
        assert!(!may_pay || head.status == OrderStatus::Pending, "the customer can still pay: {}", why());
    }
    let refunded: i64 = payments.iter().map(|payment| payment.refunded).sum();
    assert_eq!(head.refunded, refunded, "the head has the sum of the refunds: {}", why());
    let others = payments.iter().filter(|payment| payment.method != PaymentMethod::Card);
    let others: i64 = others.map(|payment| payment.secured()).sum();
    let held: i64 = books.accounts.iter().map(crate::bank::Account::held).sum();
    match head.status {
        OrderStatus::Cancelled => assert_eq!(held, 0, "a cancelled order holds money: {}", why()),
        OrderStatus::Pending => assert!(held + others < head.total.amount, "a secured order is pending: {}", why()),
        OrderStatus::Paid => {
            assert!(held + others + given_back >= head.total.amount, "a paid order lacks money: {}", why());
        }
        _ => assert_eq!(held + others + given_back, head.total.amount, "a shipped order has its total: {}", why()),
    }
}

pub struct Shop {
    test: TestTable,
    pub bank: Bank,
}

impl Deref for Shop {
    type Target = TestTable;

    fn deref(&self) -> &TestTable {
        &self.test
    }
}

impl Shop {
    pub async fn open() -> Self {
        let shop = Self { test: TestTable::create().await, bank: Bank::open() };
        shop.put(&seed::stored(seed::customer("c1"))).await;
        shop.restock(10_000).await;
        shop
    }

    /// Replaces the stock of the product that the orders sell.
    pub async fn restock(&self, pieces: u64) {
        let stock = Stock { product_born: None, ..seed::stock("p1".parse().unwrap(), pieces) };
        self.put(&Stored::new(stock, Born::new("b1").unwrap(), placed_at())).await;
    }

    /// Returns how many pieces are left.
    pub async fn stock(&self) -> u64 {
        let stock = product::stock(&"p1".parse().unwrap()).unwrap();
        self.own().get(&stock).await.unwrap().unwrap().available
    }

    /// Places an order that lapses within the hour.
    pub async fn order(&self, number: u8, total: i64) -> OrderId {
        let head = head(number, total, Some(Instant::now().plus_millis(HOUR_MILLIS)));
        let product: ProductId = "p1".parse().unwrap();
        let line = OrderLine {
            product_born: Born::new("b1").unwrap(),
            total: euros(total),
            unit_price: euros(total),
            ..seed::line(&head.id, 1, product)
        };
        let line = Stored::new(line, head.meta.born.clone(), head.placed_at);
        let id = head.id.clone();
        self.transact(&order::place(&PlacedOrder::new(head, vec![line], "c1"), &[]).unwrap()).await;
        id
    }

    pub async fn read(&self, id: &OrderId) -> PlacedOrder {
        PlacedOrder::of(self.own().query(&order::read_for_update(id).unwrap()).await.unwrap().items).unwrap()
    }

    pub async fn payment(&self, id: &OrderId, payment: &PaymentId) -> Payment {
        self.read(id).await.payments.into_iter().find(|known| known.id == *payment).unwrap().data
    }

    pub async fn operation(&self, id: &OrderId, operation: &OperationId) -> PaymentOperation {
        self.read(id).await.operations.into_iter().find(|known| known.id == *operation).unwrap().data
    }

    /// Changes the payments as a request does, at `at`. Returns [`None`] if the ledger refuses, or
    /// the order changes at the same time.
    pub async fn change<T>(
        &self,
        id: &OrderId,
        at: Instant,
        to: Option<OrderStatus>,
        act: impl FnOnce(&mut Ledger<'_>) -> Result<T, LedgerError>,
    ) -> Option<T> {
        let order = self.read(id).await;
        let mut ledger = order.ledger(at);
        let done = act(&mut ledger).ok()?;
        let is_paid = to.is_none() && ledger.settle();
        let to = to.or_else(|| is_paid.then_some(OrderStatus::Paid));
        let transaction = match to {
            Some(to) => {
                let at = order.next_step_at(at);
                order::transition(Step { money: Some(&ledger), ..Step::new(&order.head, &order.lines, to, at, SYSTEM) })
            }
            None => order::change_payments(&ledger, &[]),
        };
        match staging::transition(self.own(), &order.lines, transaction.unwrap()).await.unwrap() {
            Ok(()) => Some(done),
            Err(refusals) if is_late(&refusals) => None,
            Err(refusals) => panic!("{refusals:?}"),
        }
    }

    /// Begins a card payment at `at`.
    pub async fn pay_at(&self, id: &OrderId, amount: i64, capture: CaptureMode, at: Instant) -> Option<PaymentId> {
        let order = self.read(id).await;
        let number = u8::try_from(order.payments.len() + 1).unwrap();
        let new = PaymentId::generate(order.head.placed_at, [number; 10]);
        let payment = Payment::card(new.clone(), &order.head, euros(amount), capture, at, "c1");
        self.change(id, at, None, |ledger| {
            if !ledger.takes_money() || amount > ledger.due() {
                return Err(LedgerError::Status);
            }
            ledger.add(payment)
        })
        .await?;
        Some(new)
    }

    pub async fn pay(&self, id: &OrderId, amount: i64, capture: CaptureMode) -> PaymentId {
        self.pay_at(id, amount, capture, Instant::now()).await.unwrap()
    }

    /// Begins an operation of staff at `at`.
    pub async fn staff_at(
        &self,
        id: &OrderId,
        payment: &PaymentId,
        kind: OperationKind,
        amount: i64,
        at: Instant,
    ) -> Option<OperationId> {
        self.change(id, at, None, |ledger| ledger.begin(payment, kind, amount, "staff", None, Vec::new())).await
    }

    pub async fn staff(&self, id: &OrderId, payment: &PaymentId, kind: OperationKind, amount: i64) -> OperationId {
        self.staff_at(id, payment, kind, amount, Instant::now()).await.unwrap()
    }

    /// Makes a card payment: the customer confirms it, and the webhook arrives.
    pub async fn paid(&self, id: &OrderId, amount: i64, capture: CaptureMode) -> PaymentId {
        let payment = self.pay(id, amount, capture).await;
        self.settle(id, None).await;
        let intent = self.intent(id, &payment).await;
        assert!(self.bank.with(|books| books.confirm(&intent)));
        self.settle(id, Some(&intent)).await;
        payment
    }

    pub async fn intent(&self, id: &OrderId, payment: &PaymentId) -> String {
        self.payment(id, payment).await.intent.unwrap()
    }

    pub async fn try_settle(&self, table: &Table, id: &OrderId, hint: Option<&str>) -> Result<Settled, SettleError> {
        Ok(settle(table, &self.bank, id, hint).await?.unwrap())
    }

    /// Runs the workflow. Returns the last error of the provider.
    pub async fn settle(&self, id: &OrderId, hint: Option<&str>) -> Option<PaymentError> {
        self.try_settle(self.own(), id, hint).await.unwrap().error
    }

    /// Cancels the order as the janitor does when its time is over.
    pub async fn lapse(&self, id: &OrderId) -> Lapsed {
        staging::lapse(self.own(), id, Instant::now().plus_millis(2 * HOUR_MILLIS)).await.unwrap()
    }

    /// Cancels the order as staff do.
    pub async fn cancel(&self, id: &OrderId) -> bool {
        if !self.read(id).await.head.status.may_become(OrderStatus::Cancelled) {
            return false;
        }
        let cancel = |ledger: &mut Ledger<'_>| {
            ledger.release_all();
            Ok(())
        };
        self.change(id, Instant::now(), Some(OrderStatus::Cancelled), cancel).await.is_some()
    }

    /// Sends everything and reads every payment until nothing changes.
    pub async fn reconcile(&self, id: &OrderId) -> PlacedOrder {
        for _ in 0..10 {
            let before = self.read(id).await.head.meta.version;
            self.settle(id, None).await;
            for intent in self.bank.with(|books| books.accounts.clone()).into_iter().filter(|known| known.order == *id)
            {
                self.settle(id, Some(&intent.id)).await;
            }
            let after = self.read(id).await;
            if after.head.meta.version == before {
                return after;
            }
        }
        panic!("the payments never settle: {:#?}", self.read(id).await.operations);
    }

    /// Settles everything, and checks the result.
    pub async fn check(&self, id: &OrderId, given_back: i64) -> PlacedOrder {
        let order = self.reconcile(id).await;
        let mut books = self.bank.with(|books| books.clone());
        books.accounts.retain(|account| account.order == *id);
        check_settled(&order.head, &order.payments, &order.operations, &books, given_back);
        let times = order.history.iter().filter(|step| step.status == OrderStatus::Paid).count();
        assert!(times <= 1, "the order became paid {times} times");
        order
    }
}

/// Returns what a state looks like: the status of the order, and of each payment its status, and
/// its captured and refunded amounts.
pub fn summary(order: &PlacedOrder) -> (OrderStatus, Vec<(PaymentStatus, i64, i64)>) {
    let payment = |payment: &Stored<Payment>| (payment.status, payment.captured, payment.refunded);
    (order.head.status, order.payments.iter().map(payment).collect())
}
