use std::collections::BTreeMap;

use key_schema::money::Currency;
use key_schema::payment::{Payment, PaymentMethod};
use key_schema::wallet::{EntryKind, WalletEntry};

use super::books::{Books, Report};
use super::goods::text;
use super::world::{Request, World};
use crate::support::Answer;

/// A movement as its entry shows it: id, customer, amount, currency, counterparty and note.
type Movement<'a> = (&'a str, &'a str, i64, &'a str, Option<&'a str>, Option<&'a str>);

impl Books {
    /// Checks that every balance is the sum of the entries in its currency, and that the entries
    /// are exactly those of the acknowledged requests.
    pub fn money(&self, done: &[(&Request, &Answer)], report: &mut Report) {
        let mut sums: BTreeMap<(&str, Currency), i64> = BTreeMap::new();
        for entry in &self.entries {
            *sums.entry((entry.customer_id.as_str(), entry.currency)).or_default() += entry.amount;
        }
        for (customer, wallet) in &self.wallets {
            for balance in wallet.balances() {
                let sum = sums.remove(&(customer.as_str(), balance.currency)).unwrap_or_default();
                if sum != balance.amount || balance.amount < 0 {
                    report
                        .wrong
                        .push(format!("the wallet of {customer} has {balance:?}, but its entries sum to {sum}"));
                }
            }
        }
        report.wrong.extend(sums.keys().map(|of| format!("entries without a balance: {of:?}")));
        let (mut deposits, mut transfers) = (Vec::new(), Vec::new());
        for (request, answer) in done {
            let (body, id) = (&request.body, answer.body["id"].as_str().unwrap_or_default());
            let note = body["note"].as_str();
            let money = || (body["amount"]["amount"].as_i64().unwrap(), text(&body["amount"]["currency"]));
            if request.path.ends_with("/deposits") {
                let (amount, currency) = money();
                deposits.push((id, request.path.split('/').nth(3).unwrap(), amount, currency, None, note));
            } else if request.path.ends_with("/transfers") {
                let ((amount, currency), from, to) = (money(), text(&body["from"]), text(&body["to"]));
                transfers.push((id, from, -amount, currency, Some(to), note));
                transfers.push((id, to, amount, currency, Some(from), note));
            }
        }
        report.transfers = transfers.len() / 2;
        for (kind, wanted) in [(EntryKind::Deposit, deposits), (EntryKind::Transfer, transfers)] {
            let found = self.entries_of(kind).map(movement).collect();
            differ(kind.as_str(), found, wanted, report);
        }
        let mut paid: BTreeMap<&str, Vec<(&str, &str, i64)>> = BTreeMap::new();
        for entry in self.entries_of(EntryKind::Payment) {
            let payment = (entry.id.as_str(), entry.customer_id.as_str(), -entry.amount);
            paid.entry(order_of(entry)).or_default().push(payment);
        }
        report.payments = paid.len();
        for (id, order) in &self.orders {
            let wallet = |payment: &&Payment| payment.method == PaymentMethod::Wallet;
            let mut wanted: Vec<_> = self
                .payments_of(id)
                .iter()
                .filter(wallet)
                .map(|payment| (payment.id.as_str(), order.customer_id.as_str(), payment.amount.amount))
                .collect();
            let mut found = paid.remove(id.as_str()).unwrap_or_default();
            found.sort_unstable();
            wanted.sort_unstable();
            report.same(|| format!("the payments of {id} from the wallet"), found, wanted);
        }
        report.wrong.extend(paid.keys().map(|id| format!("a payment for the missing order {id}")));
    }

    /// Each acknowledged refund to the wallet has one entry. If an order is cancelled or returned,
    /// one more entry refunds what the wallet has paid, or what staff chose. The entries of an
    /// order sum to the refunds of its payments that were not made by card.
    pub fn refunds(&self, world: &World<'_>, done: &[(&Request, &Answer)], report: &mut Report) {
        let chosen = world.chosen.lock().unwrap();
        let mut asked: BTreeMap<&str, Vec<(&str, &str, i64)>> = BTreeMap::new();
        for (request, answer) in done {
            let Some(order) = request.refunds_order() else { continue };
            let customer = self.orders.get(order).map_or("", |order| order.customer_id.as_str());
            let amount = request.body["amount"]["amount"].as_i64().unwrap();
            asked.entry(order).or_default().push((text(&answer.body["id"]), customer, amount));
        }
        let mut back: BTreeMap<&str, Vec<(&str, &str, i64)>> = BTreeMap::new();
        for entry in self.entries_of(EntryKind::Refund) {
            report.refunds += 1;
            back.entry(order_of(entry)).or_default().push((
                entry.id.as_str(),
                entry.customer_id.as_str(),
                entry.amount,
            ));
        }
        for (id, order) in &self.orders {
            let mut found = back.remove(id.as_str()).unwrap_or_default();
            let sum: i64 = found.iter().map(|(_, _, amount)| amount).sum();
            let payments = self.payments_of(id);
            let refunded = payments.iter().map(|payment| payment.refunded).sum();
            report.same(|| format!("the refunded amount of {id}"), order.refunded, refunded);
            let others = payments.iter().filter(|payment| payment.method != PaymentMethod::Card);
            let others: i64 = others.map(|payment| payment.refunded).sum();
            report.same(|| format!("the refunds of {id} to the wallet"), sum, others);
            for refund in asked.remove(id.as_str()).unwrap_or_default() {
                match found.iter().position(|entry| *entry == refund) {
                    Some(at) => drop(found.swap_remove(at)),
                    None => report.wrong.push(format!("an acknowledged refund of {id} is missing: {refund:?}")),
                }
            }
            let has_wallet = payments.iter().any(|payment| payment.method == PaymentMethod::Wallet);
            let remainder = !order.status.is_sale() && (has_wallet || chosen.contains(id));
            report.remainders += if remainder { found.len() } else { 0 };
            let whose = found.iter().all(|(_, customer, _)| *customer == order.customer_id.as_str());
            if found.len() > usize::from(remainder) || !whose {
                report.wrong.push(format!("refunds of {id} without an acknowledged request: {found:?}"));
            }
        }
        report.wrong.extend(asked.keys().chain(back.keys()).map(|id| format!("a refund of the missing order {id}")));
    }

    /// Checks that invoice numbers run from 1 without a gap, and that acknowledged invoices are
    /// unchanged. An order has at most one invoice, whose total is the order's.
    pub fn invoiced(&self, world: &World<'_>, report: &mut Report) {
        report.invoices = self.invoices.len();
        let mut numbers: Vec<u64> = self.invoices.iter().map(|invoice| invoice.number).collect();
        numbers.sort_unstable();
        let all = (1..=u64::try_from(numbers.len()).unwrap()).collect();
        report.same(|| "the numbers of the invoices".to_owned(), numbers, all);
        let marked = self.orders.values().filter_map(|order| {
            Some((order.id.as_str(), (order.invoice_number?, order.customer_id.as_str(), order.total)))
        });
        let marked: BTreeMap<_, _> = marked.collect();
        let issued = self
            .invoices
            .iter()
            .map(|invoice| (invoice.order_id.as_str(), (invoice.number, invoice.customer_id.as_str(), invoice.total)));
        let issued: BTreeMap<_, _> = issued.collect();
        report.same(|| "invoices of orders".to_owned(), issued.len(), self.invoices.len());
        report.same(|| "invoices".to_owned(), &issued, &marked);
        for (order, invoice) in world.invoices.lock().unwrap().iter() {
            let said = (invoice["order_id"].as_str(), invoice["number"].as_u64(), invoice["total"]["amount"].as_i64());
            let found = issued.get(order.as_str());
            let found = (Some(order.as_str()), found.map(|found| found.0), found.map(|found| found.2.amount));
            report.same(|| format!("the acknowledged invoice of {order}"), found, said);
        }
    }

    pub fn payments_of(&self, order: &str) -> &[Payment] {
        self.payments.get(order).map(Vec::as_slice).unwrap_or_default()
    }

    fn entries_of(&self, kind: EntryKind) -> impl Iterator<Item = &WalletEntry> {
        self.entries.iter().filter(move |entry| entry.kind == kind)
    }
}

fn order_of(entry: &WalletEntry) -> &str {
    entry.order_id.as_ref().map_or("", |order| order.as_str())
}

fn movement(entry: &WalletEntry) -> Movement<'_> {
    let (other, note) = (entry.counterparty.as_ref().map(|other| other.as_str()), entry.note.as_deref());
    (entry.id.as_str(), entry.customer_id.as_str(), entry.amount, entry.currency.as_str(), other, note)
}

/// Compares two lists that must have the same entries, in any order.
fn differ(what: &str, mut found: Vec<Movement<'_>>, mut wanted: Vec<Movement<'_>>, report: &mut Report) {
    found.sort_unstable();
    wanted.sort_unstable();
    if found == wanted {
        return;
    }
    let more =
        found.iter().filter(|entry| !wanted.contains(entry)).map(|entry| format!("an unexpected {what}: {entry:?}"));
    let less = wanted.iter().filter(|entry| !found.contains(entry)).map(|entry| format!("a missing {what}: {entry:?}"));
    report.wrong.push(format!("{} entries of {what} instead of {}", found.len(), wanted.len()));
    report.wrong.extend(more.chain(less).take(20));
}
