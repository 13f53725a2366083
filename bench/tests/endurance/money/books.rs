use std::collections::BTreeMap;
use std::fmt::Debug;

use bench::replay::Shop;
use emulators::payments::{Account, PaymentServer};
use key_schema::cart::Cart;
use key_schema::entity::AnyEntity;
use key_schema::idempotency::IdempotencyRecord;
use key_schema::invoice::Invoice;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::{CustomerOrder, NumberClaim, Order, OrderLine, OrderStatusEvent, ReferenceClaim};
use key_schema::payment::{Payment, PaymentOperation};
use key_schema::product::Stock;
use key_schema::promotion::{CustomerUses, PromotionUses};
use key_schema::wallet::{Wallet, WalletEntry};

use super::world::{Outcome, Request, World};
use crate::support::Answer;

#[derive(Clone, Default)]
pub struct Books {
    pub orders: BTreeMap<String, Stored<Order>>,
    /// Lines by order, sorted by their numbers.
    pub lines: BTreeMap<String, Vec<OrderLine>>,
    /// Status events by order, sorted by time.
    pub history: BTreeMap<String, Vec<OrderStatusEvent>>,
    pub copies: BTreeMap<String, CustomerOrder>,
    pub references: Vec<ReferenceClaim>,
    pub numbers: Vec<NumberClaim>,
    pub records: Vec<IdempotencyRecord>,
    pub carts: BTreeMap<String, Cart>,
    pub stocks: BTreeMap<String, u64>,
    pub wallets: BTreeMap<String, Wallet>,
    pub entries: Vec<WalletEntry>,
    /// The payments by order, and their operations by order.
    pub payments: BTreeMap<String, Vec<Payment>>,
    pub operations: BTreeMap<String, Vec<PaymentOperation>>,
    /// The books of the payment provider.
    pub accounts: Vec<Account>,
    pub invoices: Vec<Invoice>,
    /// The counted uses of the coupon, by all customers and by the hash of each customer.
    pub uses: u64,
    pub customer_uses: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub struct Report {
    pub orders: usize,
    /// Orders with more lines than fit into one transaction.
    pub large: usize,
    /// Orders with more lines than two transactions can return to stock.
    pub giant: usize,
    pub undone: usize,
    pub giant_undone: usize,
    pub checked_out: usize,
    /// Orders with a quote, and those of them with the coupon.
    pub quoted: usize,
    pub discounted: usize,
    pub refused: usize,
    pub payments: usize,
    /// Card payments at the provider, those of them that were captured, and refunds of them.
    pub cards: usize,
    pub captured: usize,
    pub card_refunds: usize,
    pub refunds: usize,
    /// Refunds of the rest of a payment, when an order was cancelled or returned.
    pub remainders: usize,
    pub transfers: usize,
    pub invoices: usize,
    pub wrong: Vec<String>,
}

impl Report {
    /// Records a difference between the actual and the expected value.
    pub fn same<T: PartialEq + Debug>(&mut self, what: impl FnOnce() -> String, there: T, wanted: T) {
        if there != wanted {
            self.wrong.push(format!("{}: found {there:?}, expected {wanted:?}", what()));
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { orders, large, giant, undone, giant_undone, checked_out, quoted, discounted, .. } = self;
        let Self { refused, payments, refunds, remainders, transfers, invoices, wrong, .. } = self;
        let Self { cards, captured, card_refunds, .. } = self;
        write!(f, "{orders} orders ({large} large, {giant} giant, {undone} cancelled or returned, {giant_undone} of ")?;
        write!(f, "them giant, {checked_out} from carts, {quoted} with a quote, {discounted} with the coupon), ")?;
        write!(f, "{refused} requests refused, {payments} payments, {refunds} refunds, {remainders} remainders, ")?;
        write!(f, "{cards} cards ({captured} captured, {card_refunds} refunds), ")?;
        write!(f, "{transfers} transfers, {invoices} invoices")?;
        wrong.iter().try_for_each(|wrong| write!(f, "\n  WRONG: {wrong}"))
    }
}

impl Books {
    pub async fn of(shop: &Shop, provider: &PaymentServer) -> Self {
        let mut books = Self { accounts: provider.accounts(), ..Self::default() };
        let orders = [Order::NAME, OrderLine::NAME, OrderStatusEvent::NAME, CustomerOrder::NAME];
        let claims = [ReferenceClaim::NAME, NumberClaim::NAME];
        let money = [Wallet::NAME, WalletEntry::NAME, Payment::NAME, PaymentOperation::NAME, Invoice::NAME];
        let rest = [Stock::NAME, Cart::NAME, IdempotencyRecord::NAME, PromotionUses::NAME, CustomerUses::NAME];
        shop.read(&[&orders[..], &claims, &money, &rest].concat(), |entity| books.enter(entity)).await.unwrap();
        books.lines.values_mut().for_each(|lines| lines.sort_by_key(|line| line.line));
        books.history.values_mut().for_each(|steps| steps.sort_by_key(|step| step.at));
        books
    }

    /// Reads the books and compares them. The splitter may move pieces between two shards while they are
    /// read, so wrong books are read again.
    pub async fn compared(shop: &Shop, provider: &PaymentServer, world: &World<'_>) -> (Self, Report) {
        let mut books = Self::of(shop, provider).await;
        let mut report = books.compare(world);
        for _ in 0..2 {
            if !report.wrong.is_empty() {
                books = Self::of(shop, provider).await;
                report = books.compare(world);
            }
        }
        (books, report)
    }

    fn enter(&mut self, entity: AnyEntity) {
        match entity {
            AnyEntity::Order(order) => drop(self.orders.insert(order.id.to_string(), order)),
            AnyEntity::OrderLine(line) => {
                self.lines.entry(line.order_id.to_string()).or_default().push(line.data);
            }
            AnyEntity::OrderStatusEvent(step) => {
                self.history.entry(step.order_id.to_string()).or_default().push(step.data);
            }
            AnyEntity::CustomerOrder(copy) => drop(self.copies.insert(copy.id.to_string(), copy.data)),
            AnyEntity::ReferenceClaim(claim) => self.references.push(claim.data),
            AnyEntity::NumberClaim(claim) => self.numbers.push(claim.data),
            AnyEntity::IdempotencyRecord(record) => self.records.push(record.data),
            AnyEntity::Cart(cart) => drop(self.carts.insert(cart.customer_id.to_string(), cart.data)),
            AnyEntity::Stock(stock) => {
                *self.stocks.entry(stock.product_id.to_string()).or_default() += stock.available;
            }
            AnyEntity::Wallet(wallet) => drop(self.wallets.insert(wallet.customer_id.to_string(), wallet.data)),
            AnyEntity::WalletEntry(entry) => self.entries.push(entry.data),
            AnyEntity::Payment(payment) => {
                self.payments.entry(payment.order_id.to_string()).or_default().push(payment.data);
            }
            AnyEntity::PaymentOperation(operation) => {
                self.operations.entry(operation.order_id.to_string()).or_default().push(operation.data);
            }
            AnyEntity::Invoice(invoice) => self.invoices.push(invoice.data),
            AnyEntity::PromotionUses(all) => self.uses += all.uses,
            AnyEntity::CustomerUses(own) if own.uses > 0 => {
                self.customer_uses.insert(format!("{:?}", own.customer), own.uses);
            }
            _ => {}
        }
    }

    pub fn compare(&self, world: &World<'_>) -> Report {
        let requests = world.requests.lock().unwrap();
        let refused = requests.values().filter(|(_, outcome)| *outcome == Outcome::Refused).count();
        let mut report = Report { orders: self.orders.len(), refused, ..Report::default() };
        let done: Vec<(&Request, &Answer)> = requests
            .values()
            .filter_map(
                |(request, outcome)| if let Outcome::Done(answer) = outcome { Some((request, answer)) } else { None },
            )
            .collect();
        self.goods(world, &done, &mut report);
        self.steps(world, &done, &mut report);
        self.claims(&requests, &done, &mut report);
        self.money(&done, &mut report);
        self.refunds(world, &done, &mut report);
        self.provided(&mut report);
        self.requested(world, &mut report);
        self.secured(world, &done, &mut report);
        self.invoiced(world, &mut report);
        self.coupons(&mut report);
        report
    }
}
