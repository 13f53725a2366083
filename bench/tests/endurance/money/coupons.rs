use std::collections::BTreeMap;

use key_schema::order::{Order, OrderLine, OrderStatus};
use key_schema::quota::CustomerHash;

use super::books::{Books, Report};
use super::world::{COUPON, COUPON_USES, DISCOUNT_BASIS_POINTS, PRICE, SHIPPING, TAX_BASIS_POINTS};

/// Returns a part of an amount, rounded half up.
fn part(amount: i64, basis_points: i64) -> i64 {
    (amount * basis_points + 5_000) / 10_000
}

impl Books {
    /// An order without a quote costs the catalogue's prices. An order with a quote has shipping
    /// and tax, and may have the coupon.
    pub fn priced(&self, order: &Order, lines: &[OrderLine], report: &mut Report) {
        let id = &order.id;
        let price = |line: &OrderLine| i64::try_from(line.quantity).unwrap() * PRICE;
        let items: i64 = lines.iter().map(price).sum();
        let Some(charges) = &order.charges else {
            report.same(|| format!("the total of {id}"), order.total.amount, items);
            return;
        };
        report.quoted += 1;
        report.discounted += usize::from(!charges.promotions.is_empty());
        let discount = if charges.promotions.is_empty() { 0 } else { part(items, DISCOUNT_BASIS_POINTS) };
        let sum = |of: fn(&OrderLine) -> i64| lines.iter().map(of).sum::<i64>();
        report.same(|| format!("the discounts of the lines of {id}"), sum(|line| line.discount), discount);
        for line in lines {
            let left = price(line) - line.discount;
            let tax = part(left, TAX_BASIS_POINTS);
            report.same(|| format!("a line of {id}"), (line.tax, line.total.amount), (tax, left + tax));
        }
        let shipping_tax = part(SHIPPING, TAX_BASIS_POINTS);
        let parts = (charges.items, charges.discount, charges.shipping, charges.tax, order.total.amount);
        let wanted = (
            items,
            discount,
            SHIPPING,
            sum(|line| line.tax) + shipping_tax,
            sum(|line| line.total.amount) + SHIPPING + shipping_tax,
        );
        report.same(|| format!("the totals of {id}"), parts, wanted);
    }

    /// Checks that each order with the coupon has one counted use, unless it was cancelled. The
    /// uses must not exceed the limits.
    pub fn coupons(&self, report: &mut Report) {
        let used = |order: &&Order| order.promotions().iter().any(|promotion| promotion.id.as_str() == COUPON);
        let kept = self.orders.values().map(|order| &order.data).filter(used);
        let mut customers: BTreeMap<String, u64> = BTreeMap::new();
        for order in kept.filter(|order| order.status != OrderStatus::Cancelled) {
            *customers.entry(format!("{:?}", CustomerHash::of(&order.customer_id))).or_default() += 1;
        }
        report.same(|| "the uses of the coupon".to_owned(), self.uses, customers.values().sum());
        report.same(|| "the uses of the coupon by customer".to_owned(), &self.customer_uses, &customers);
        if self.uses > COUPON_USES || customers.values().any(|uses| *uses > 1) {
            report.wrong.push(format!("the coupon was used more often than its limits allow: {customers:?}"));
        }
    }
}
