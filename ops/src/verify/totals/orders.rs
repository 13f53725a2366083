//! The facts of orders: an order's totals are the sums of its lines, shipping and discounts.

use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::{self, Order, OrderLine, OrderStatus};
use key_schema::payment::{OperationKind, OperationState, Payment, PaymentMethod, PaymentOperation};
use key_schema::promotion::{CustomerUses, PromotionUses};

use super::Scope::{Partition, Table};
use super::{Facts, HEAD, PAID, Says, USES};
use crate::error::OpsError;

/// The name of the check that an order's discounts are those of its promotions and those that staff
/// entered.
const NAMED: &str = "named discounts";

/// The name of the check that an order's refunds are those of its payments.
const REFUNDED: &str = "refunded";

pub(super) fn order(facts: &mut Facts, item: &Stored<Order>, now: Instant) -> Result<(), OpsError> {
    let key = item.key()?;
    facts.push(Partition, &key, HEAD, Says::Held(item.meta.rev));
    let charges = item.charges();
    let sums = [
        ("line_count", item.line_count.into()),
        ("total", item.total.amount.into()),
        ("items", charges.items.into()),
        ("discount", charges.discount.into()),
        (NAMED, charges.discount.into()),
        ("tax", charges.tax.into()),
        (REFUNDED, item.refunded.into()),
        (PAID, item.total.amount.into()),
    ];
    facts.is(Partition, item, &key, &sums);
    facts.part(Partition, &key, "total", charges.shipping_total);
    facts.part(Partition, &key, "discount", charges.shipping_discount);
    for promotion in item.promotions() {
        facts.part(Partition, &key, NAMED, promotion.discount);
        if item.status != OrderStatus::Cancelled && promotion.counted {
            facts.part(Table, &PromotionUses::key_of(&promotion.id)?, USES, 1);
        }
        if item.status != OrderStatus::Cancelled && promotion.counted_per_customer {
            facts.part(Table, &CustomerUses::key_of(&promotion.id, &item.customer_id)?, USES, 1);
        }
    }
    facts.part(Partition, &key, "tax", charges.tax_lines.iter().map(|line| i128::from(line.tax)).sum::<i128>());
    if !item.status.is_sale() || item.status == OrderStatus::Pending {
        facts.push(Partition, &key, PAID, Says::Open);
    }
    // While an order is being placed, lines are added or removed. The lines of an expired
    // order disappear one by one. In both cases the sums cannot be checked.
    if item.status == OrderStatus::Placing || item.is_expired(now) {
        for field in ["line_count", "total", "items", "discount", NAMED, REFUNDED, PAID] {
            facts.push(Partition, &key, field, Says::Open);
        }
    }
    Ok(())
}

pub(super) fn payment(facts: &mut Facts, item: &Stored<Payment>) -> Result<(), OpsError> {
    let (head, key) = (order::head(&item.order_id)?.key().clone(), item.key()?);
    facts.under(&head);
    facts.part(Partition, &head, REFUNDED, item.refunded);
    // An authorisation that has expired made the order `paid` before.
    facts.part(Partition, &head, PAID, item.authorised);
    facts.push(Partition, &key, HEAD, Says::Held(item.meta.rev));
    let pending =
        [("captured_pending", item.captured_pending.into()), ("refunded_pending", item.refunded_pending.into())];
    facts.is(Partition, item, &key, &pending);
    // Other payments can also be refunded without an operation, by the cancellation of the order.
    if item.method == PaymentMethod::Card {
        facts.is(Partition, item, &key, &[(REFUNDED, item.refunded.into())]);
    }
    Ok(())
}

pub(super) fn operation(facts: &mut Facts, item: &Stored<PaymentOperation>) -> Result<(), OpsError> {
    let payment = item.payment_key()?;
    facts.under(&payment);
    let field = match (item.kind, item.state) {
        (OperationKind::Capture, state) if state.is_unsettled() => "captured_pending",
        (OperationKind::Refund, state) if state.is_unsettled() => "refunded_pending",
        (OperationKind::Refund, OperationState::Done) => REFUNDED,
        _ => return Ok(()),
    };
    facts.part(Partition, &payment, field, item.amount);
    Ok(())
}

pub(super) fn line(facts: &mut Facts, item: &OrderLine) -> Result<(), OpsError> {
    let head = order::head(&item.order_id)?.key().clone();
    facts.under(&head);
    facts.part(Partition, &head, "line_count", 1);
    facts.part(Partition, &head, "total", item.total.amount);
    facts.part(Partition, &head, "discount", item.discount);
    let named: i128 = item.discounts.iter().map(|discount| i128::from(discount.amount)).sum();
    facts.part(Partition, &head, NAMED, named);
    let added = if item.tax_rate.is_some_and(|rate| !rate.included) { item.tax } else { 0 };
    let items = i128::from(item.total.amount) + i128::from(item.discount) - i128::from(added);
    facts.part(Partition, &head, "items", items);
    Ok(())
}
