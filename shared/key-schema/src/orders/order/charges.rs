//! The parts of an order's total, for an order from a quote or with discounts of its lines.

use serde::{Deserialize, Serialize};

use super::Order;
use crate::id::MethodId;
use crate::pricing::ShippingMethod;
use crate::promotion::AppliedPromotion;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaxRounding {
    /// Tax is rounded for each line.
    #[default]
    Line,
    /// Tax is rounded once for each rate of the order.
    Order,
}

/// How shipping is taxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShippingTax {
    /// By the tax rule of the category `shipping`, or else of `standard`.
    #[default]
    Rule,
    /// At the rates of the shipped goods, in proportion to their prices.
    Apportioned,
}

/// The parts of the total of an order. Amounts are in minor units of the total's currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charges {
    /// The price of all lines before discounts.
    pub items: i64,
    /// All discounts, including the discount of shipping.
    pub discount: i64,
    /// The price of shipping before its discount.
    pub shipping: i64,
    #[serde(skip_serializing_if = "super::is_zero", default)]
    pub shipping_discount: i64,
    /// All taxes, whether prices include them or not.
    pub tax: i64,
    /// The part of the total that is not in the lines: shipping, with its tax.
    pub shipping_total: i64,
    /// The tax of shipping, whether the price of shipping includes it or not.
    #[serde(skip_serializing_if = "super::is_zero", default)]
    pub shipping_tax: i64,
    /// The tax of shipping for each rate.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shipping_tax_lines: Vec<TaxLine>,
    /// The shipping method, if the order has goods that are shipped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<ChosenMethod>,
    /// The promotions, in the order in which they were applied.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub promotions: Vec<AppliedPromotion>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tax_lines: Vec<TaxLine>,
    pub tax_rounding: TaxRounding,
}

impl Charges {
    /// Returns the parts of a total without shipping, tax and promotions. `total` is the sum of
    /// the lines after discounts, and `discount` is the sum of these discounts.
    #[must_use]
    pub const fn of_lines(total: i64, discount: i64) -> Self {
        Self {
            items: total + discount,
            discount,
            shipping: 0,
            shipping_discount: 0,
            tax: 0,
            shipping_total: 0,
            shipping_tax: 0,
            shipping_tax_lines: Vec::new(),
            method: None,
            promotions: Vec::new(),
            tax_lines: Vec::new(),
            tax_rounding: TaxRounding::Line,
        }
    }
}

/// The shipping method of an order, as it was when the order was placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenMethod {
    pub id: MethodId,
    pub name: String,
    /// The lowest and the highest number of days until delivery.
    pub days: (u64, u64),
}

impl From<&ShippingMethod> for ChosenMethod {
    fn from(method: &ShippingMethod) -> Self {
        Self { id: method.id.clone(), name: method.name.clone(), days: method.days }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaxRate {
    /// The rate in millionths: 190,000 is 19 %, and 88,750 is the 8.875 % of New York City.
    pub rate_millionths: u32,
    /// Whether prices include the tax. If they do not, the tax is added to the prices.
    pub included: bool,
}

/// A discount that staff entered for a line, such as a coupon at the till.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineDiscount {
    pub name: String,
    /// The amount in minor units of the total's currency.
    pub amount: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaxLine {
    #[serde(flatten)]
    pub rate: TaxRate,
    /// The sum of the prices with this rate, after discounts. It includes the tax if the prices
    /// include it.
    pub amount: i64,
    pub tax: i64,
}

impl Order {
    #[must_use]
    pub fn promotions(&self) -> &[AppliedPromotion] {
        self.charges.as_ref().map_or(&[], |charges| &charges.promotions)
    }

    /// Returns the parts of the total. An order without a quote and without discounts has only
    /// items.
    #[must_use]
    pub fn charges(&self) -> Charges {
        self.charges.clone().unwrap_or_else(|| Charges::of_lines(self.total.amount, 0))
    }
}
