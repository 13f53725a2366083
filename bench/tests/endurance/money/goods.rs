use std::collections::{BTreeMap, BTreeSet};

use key_schema::idempotency;
use key_schema::order::{OrderLine, OrderNumber, OrderStatus, OrderStatusEvent};
use key_schema::payment::PaymentMethod;
use serde_json::Value;

use super::books::{Books, Report};
use super::world::{ALL_PRODUCTS, Request, Requests, World, initial_stock, product};
use crate::support::Answer;

/// An order as its request specified it.
struct Wanted<'a> {
    customer: &'a str,
    by: &'a str,
    reference: Option<&'a str>,
    /// The lines of a cart are sorted, because a cart does not keep the order of its lines.
    lines: Vec<(&'a str, u64)>,
    sorted: bool,
}

impl Books {
    /// Checks that exactly the acknowledged orders exist, each of them complete. The stock must be
    /// the initial stock minus the quantities in all orders that are not cancelled or returned.
    pub fn goods(&self, world: &World<'_>, done: &[(&Request, &Answer)], report: &mut Report) {
        let carts = world.carts.lock().unwrap();
        let mut wanted: BTreeMap<String, Wanted<'_>> = BTreeMap::new();
        for (request, answer) in done.iter().filter(|(request, _)| request.path == "/v1/orders") {
            let Request { body, .. } = request;
            let asked = body["lines"].as_array().unwrap().iter();
            let lines = asked.map(|line| (text(&line["product_id"]), line["quantity"].as_u64().unwrap())).collect();
            let (customer, reference) = (text(&body["customer_id"]), body["reference"].as_str());
            let order = Wanted { customer, by: request.caller(), reference, lines, sorted: false };
            if wanted.insert(text(&answer.body["id"]).to_owned(), order).is_some() {
                report.wrong.push(format!("two requests created the order {}", answer.body["id"]));
            }
        }
        // A cart has either become one order or still has its lines.
        for (customer, cart) in carts.iter() {
            let keyed = done.iter().filter(|(request, _)| request.is_checkout() && request.caller() == customer);
            let acknowledged: BTreeSet<&str> =
                keyed.map(|(_, answer)| &answer.body).chain(&cart.orders).map(|body| text(&body["id"])).collect();
            let stored = self.orders.values().filter(|order| order.customer_id.as_str() == customer);
            let stored: BTreeSet<&str> = stored.map(|order| order.id.as_str()).collect();
            // A checkout without a key may create an order although its response is lost. The
            // client then finds the order in the list of orders.
            let found = cart.unknown && acknowledged.is_empty() && stored.len() == 1;
            if stored.len() > 1 || cart.orders.len() > 1 || (stored != acknowledged && !found) {
                report.wrong.push(format!(
                    "the cart of {customer} has the orders {stored:?}, but {acknowledged:?} were acknowledged"
                ));
            }
            let lines: Vec<(&str, u64)> = cart.lines.iter().map(|(product, n)| (product.as_str(), *n)).collect();
            let left = self.carts.get(customer).map(|cart| cart.lines.iter());
            let left: Option<Vec<(&str, u64)>> =
                left.map(|lines| lines.map(|(product, line)| (product.as_str(), line.quantity)).collect());
            report.same(|| format!("the cart of {customer}"), left, stored.is_empty().then(|| lines.clone()));
            for id in stored {
                report.checked_out += 1;
                let order = Wanted { customer, by: customer, reference: None, lines: lines.clone(), sorted: true };
                wanted.insert(id.to_owned(), order);
            }
        }
        let acknowledged: BTreeSet<&String> = wanted.keys().collect();
        let stored: BTreeSet<&String> = self.orders.keys().collect();
        let missing = acknowledged.difference(&stored).map(|id| format!("an acknowledged order is missing: {id}"));
        let strange =
            stored.difference(&acknowledged).map(|id| format!("an order without an acknowledged request: {id}"));
        report.wrong.extend(missing.chain(strange));
        let parts = self.lines.keys().chain(self.history.keys()).chain(self.copies.keys());
        let lost =
            parts.filter(|id| !self.orders.contains_key(*id)).map(|id| format!("an item of the missing order {id}"));
        report.wrong.extend(lost);
        for (id, wanted) in &wanted {
            self.whole(id, wanted, report);
        }
        self.stock(report);
    }

    fn whole(&self, id: &str, wanted: &Wanted<'_>, report: &mut Report) {
        let Some(order) = self.orders.get(id) else { return };
        if order.status == OrderStatus::Placing || order.unfinished.is_some() {
            report.wrong.push(format!("{id} is unfinished: {:?}", order.unfinished));
        }
        let (large, giant, undone) = (order.line_count > 47, order.line_count >= 200, !order.status.is_sale());
        report.large += usize::from(large);
        report.giant += usize::from(giant);
        report.undone += usize::from(undone);
        report.giant_undone += usize::from(giant && undone);
        let lines: &[OrderLine] = self.lines.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut ordered: Vec<(&str, u64)> =
            lines.iter().map(|line| (line.product_id.as_str(), line.quantity)).collect();
        if wanted.sorted {
            ordered.sort_unstable();
        }
        if ordered != wanted.lines || lines.iter().map(|line| line.line).ne(1..=order.line_count) {
            report.wrong.push(format!("{id} has wrong lines: {ordered:?}"));
        }
        self.priced(order, lines, report);
        report.same(|| format!("the customer of {id}"), order.customer_id.as_str(), wanted.customer);
        let reference = order.reference.as_ref().map(|reference| reference.as_str());
        report.same(|| format!("the reference of {id}"), reference, wanted.reference);
        let steps = self.history.get(id).and_then(|steps| steps.first());
        report.same(
            || format!("the author of the first status event of {id}"),
            steps.map(|step| step.by.as_str()),
            Some(wanted.by),
        );
    }

    fn stock(&self, report: &mut Report) {
        let mut held: BTreeMap<&str, u64> = BTreeMap::new();
        for line in self.lines.values().flatten() {
            if self.orders.get(line.order_id.as_str()).is_some_and(|order| order.status.is_sale()) {
                *held.entry(line.product_id.as_str()).or_default() += line.quantity;
            }
        }
        for n in 0..ALL_PRODUCTS {
            let (id, initial) = (product(n), initial_stock(n));
            let (left, held) =
                (self.stocks.get(&id).copied().unwrap_or_default(), held.get(id.as_str()).copied().unwrap_or_default());
            if left + held != initial {
                report.wrong.push(format!("{id}: {left} in stock and {held} in orders are not {initial}"));
            }
        }
    }

    /// Checks that the history is legal, that the order and its copy match the last step, and that
    /// every acknowledged step is in the history.
    pub fn steps(&self, world: &World<'_>, done: &[(&Request, &Answer)], report: &mut Report) {
        let mut refunded: BTreeMap<&str, usize> = BTreeMap::new();
        for (request, _) in done {
            *refunded.entry(&request.path).or_default() += 1;
        }
        for (id, order) in &self.orders {
            let steps: &[OrderStatusEvent] = self.history.get(id).map(Vec::as_slice).unwrap_or_default();
            let statuses: Vec<OrderStatus> = steps.iter().map(|step| step.status).collect();
            let begins = statuses.first() == Some(&OrderStatus::Pending);
            let allowed = statuses.windows(2).all(|pair| pair[0].may_become(pair[1]));
            if !begins || !allowed || statuses.last() != Some(&order.status) {
                report.wrong.push(format!("{id} is {}, and its status events are {statuses:?}", order.status));
            }
            // Each status step, refund and invoice made one version, and each payment that did not
            // make the order paid. A card payment makes some more versions.
            let refunds = refunded.get(&*format!("/v1/orders/{id}/refunds")).copied().unwrap_or_default();
            let payments = self.payments_of(id);
            let is_paid = statuses.contains(&OrderStatus::Paid);
            let parts = payments.len().saturating_sub(usize::from(is_paid));
            let changes = steps.len() + refunds + parts + usize::from(order.invoice_number.is_some());
            let version = usize::try_from(order.meta.version).unwrap();
            let has_cards = payments.iter().any(|payment| payment.method == PaymentMethod::Card);
            let changes = if has_cards { version.max(changes) } else { changes };
            report.same(|| format!("the version of {id}"), version, changes);
            let Some(copy) = self.copies.get(id) else {
                report.wrong.push(format!("{id} is missing in its customer's list"));
                continue;
            };
            let shipped = steps.iter().find(|step| step.status == OrderStatus::Shipped).map(|step| step.at);
            report.same(|| format!("the time of shipping in the copy of {id}"), copy.shipped_at, shipped);
            let copied = (&copy.customer_id, copy.status, copy.total, copy.line_count, copy.placed_at, &copy.reference);
            let head =
                (&order.customer_id, order.status, order.total, order.line_count, order.placed_at, &order.reference);
            report.same(|| format!("the copy of {id}"), copied, head);
        }
        let mut versions = BTreeSet::new();
        for moved in world.moved.lock().unwrap().iter() {
            if !versions.insert((moved.order.clone(), moved.version)) {
                report.wrong.push(format!("two status changes made the same version: {moved:?}"));
            }
            let mut steps = self.history.get(&moved.order).into_iter().flatten();
            let same = |step: &OrderStatusEvent| {
                (step.status.as_str(), step.at.to_string(), step.by.as_str())
                    == (&*moved.status, moved.at.clone(), &*moved.by)
            };
            if !steps.any(same) {
                report.wrong.push(format!("an acknowledged status change is missing: {moved:?}"));
            }
        }
    }

    /// Checks that the claims of references and numbers match the orders, and that the stored idempotency keys are
    /// exactly the keys of the completed requests.
    pub fn claims(&self, requests: &Requests, done: &[(&Request, &Answer)], report: &mut Report) {
        let claimed: BTreeSet<(&str, &str)> =
            self.references.iter().map(|claim| (claim.reference.as_str(), claim.order_id.as_str())).collect();
        let named = self.orders.iter();
        let named = named.filter_map(|(id, order)| Some((order.reference.as_ref()?.as_str(), id.as_str()))).collect();
        report.same(|| "references".to_owned(), claimed, named);
        let claimed: BTreeSet<(String, &str)> =
            self.numbers.iter().map(|claim| (claim.order_number.to_string(), claim.order_id.as_str())).collect();
        let numbered = self.orders.values().map(|order| (OrderNumber::of(&order.id).to_string(), order.id.as_str()));
        report.same(|| "numbers".to_owned(), claimed, numbered.collect());
        let mut answers: BTreeMap<(&str, &str), &Answer> =
            done.iter().map(|(request, answer)| ((request.caller(), request.key.as_str()), *answer)).collect();
        for record in &self.records {
            let idempotency::Scope { caller, key } = &record.scope;
            let Some(answer) = answers.remove(&(caller, key)) else {
                let was_sent = requests.get(key).is_some_and(|(request, _)| request.caller() == caller);
                if was_sent && self.was_declined(&record.answer) {
                    continue;
                }
                report.wrong.push(format!("an idempotency key without a completed request: {:?}", record.scope));
                continue;
            };
            match &record.answer {
                idempotency::StoredResponse::Order(id) => {
                    report.same(|| format!("the order of {key}"), id.as_str(), text(&answer.body["id"]));
                }
                idempotency::StoredResponse::Payment { payment_id, .. } => {
                    report.same(|| format!("the payment of {key}"), payment_id.as_str(), text(&answer.body["id"]));
                }
                idempotency::StoredResponse::Operation { operation_id, .. } => {
                    report.same(|| format!("the refund of {key}"), operation_id.as_str(), text(&answer.body["id"]));
                }
                idempotency::StoredResponse::Checkout(id) => {
                    report.same(|| format!("the checkout of {key}"), id.as_str(), text(&answer.body["id"]));
                }
                idempotency::StoredResponse::Endpoint(id) => {
                    report.same(|| format!("the endpoint of {key}"), id.as_str(), text(&answer.body["id"]));
                }
                idempotency::StoredResponse::Body { status, body } => {
                    let kept: Value = serde_json::from_str(body).unwrap();
                    let said = std::str::from_utf8(&answer.raw).ok();
                    report.same(|| format!("the response of {key}"), kept["body"].as_str(), said);
                    report.same(|| format!("the status of {key}"), *status, answer.status);
                }
            }
        }
        report
            .wrong
            .extend(answers.keys().map(|key| format!("a completed request without its idempotency key: {key:?}")));
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
