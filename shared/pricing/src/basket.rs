use key_schema::money::Currency;
use key_schema::order::{TaxLine, TaxRate};
use key_schema::product::Product;
use key_schema::promotion::Promotion;

use crate::arithmetic::sum;
use crate::promotions::{Basket, Selection, Unused};
use crate::tax::tax;
use crate::{PricingError, Taxes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The product, by which promotions include or exclude the line.
    pub product: &'a Product,
    pub quantity: u64,
    /// The price of all pieces before discounts.
    pub amount: i64,
    /// The weight of one piece in grams. It is 0 for a product that is not shipped.
    pub grams: u64,
}

/// A basket after its discounts, before shipping and tax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discounted {
    /// The price of each line before discounts.
    amounts: Vec<i64>,
    selection: Selection,
    /// The weight of the basket in grams.
    grams: i64,
}

impl Discounted {
    /// Selects the promotions and applies them. `shipping` returns the price of shipping for a
    /// weight in grams and an amount after discounts.
    pub fn new(
        lines: &[Line<'_>],
        currency: Currency,
        promotions: &[&Promotion],
        shipping: impl Fn(i64, i64) -> i64,
    ) -> Result<Self, PricingError> {
        let amounts: Vec<i64> = lines.iter().map(|line| line.amount).collect();
        if amounts.iter().any(|amount| *amount < 0) {
            return Err(PricingError::Negative);
        }
        let grams = lines.iter().try_fold(0_u64, |sum, line| sum.checked_add(line.grams.checked_mul(line.quantity)?));
        let grams = grams.and_then(|grams| i64::try_from(grams).ok()).ok_or(PricingError::Overflow)?;
        let shipping = |amount| shipping(grams, amount);
        let selection = Basket { lines, currency, promotions, amounts: &amounts, shipping }.select()?;
        Ok(Self { amounts, selection, grams })
    }

    #[must_use]
    pub const fn grams(&self) -> i64 {
        self.grams
    }

    /// Returns the price of all lines after discounts.
    pub fn amount(&self) -> Result<i64, PricingError> {
        sum(self.selection.left.iter().copied())
    }

    /// Returns the positions of the promotions that do not apply, with the reasons.
    #[must_use]
    pub fn unused(&self) -> &[(usize, Unused)] {
        &self.selection.unused
    }

    /// Adds shipping and tax. `shipping` is the price of the chosen method.
    pub fn price(&self, shipping: i64, taxes: &Taxes) -> Result<Priced, PricingError> {
        if shipping < 0 {
            return Err(PricingError::Negative);
        }
        let free = self.selection.frees_shipping();
        let shipping_discount = if free.is_some() { shipping } else { 0 };
        let rates = taxes.lines.iter().copied().chain(std::iter::repeat(None));
        let mut taxed: Vec<_> = self.selection.left.iter().copied().zip(rates).collect();
        taxed.extend(taxes.shipping_parts(shipping - shipping_discount, &self.selection.left)?);
        let (shares, tax_lines) = tax(&taxed, taxes.rounding)?;
        let total = |((amount, rate), tax): (&(i64, Option<TaxRate>), &i64)| {
            let added = rate.filter(|rate| !rate.included).map_or(0, |_| *tax);
            amount.checked_add(added).ok_or(PricingError::Overflow)
        };
        let mut totals = taxed.iter().zip(&shares).map(total).collect::<Result<Vec<_>, _>>()?;
        let shipping_total = sum(totals.split_off(self.amounts.len()))?;
        let shipping_parts = taxed.iter().zip(&shares).skip(self.amounts.len());
        let shipping_taxes: Vec<_> = shipping_parts
            .filter_map(|((amount, rate), tax)| Some(TaxLine { rate: (*rate)?, amount: *amount, tax: *tax }))
            .collect();
        let lines: Vec<_> = (self.amounts.iter().zip(&self.selection.left))
            .zip(shares.iter().zip(&totals))
            .zip(&taxed)
            .map(|(((amount, left), (tax, total)), (_, rate))| PricedLine {
                discount: amount - left,
                tax: *tax,
                total: *total,
                rate: *rate,
            })
            .collect();
        let discounts = self.selection.applied.iter().map(|applied| {
            let of_shipping = if free == Some(applied.promotion) { shipping_discount } else { 0 };
            Ok((applied.promotion, sum(applied.discounts.iter().copied().chain([of_shipping]))?))
        });
        let discounts = discounts.collect::<Result<Vec<_>, PricingError>>()?;
        let totals = Totals {
            items: sum(self.amounts.iter().copied())?,
            discount: sum(discounts.iter().map(|(_, discount)| *discount))?,
            shipping,
            tax: sum(shares)?,
            total: sum(lines.iter().map(|line| line.total).chain([shipping_total]))?,
        };
        let shipping = PricedShipping {
            price: shipping,
            discount: shipping_discount,
            tax: sum(shipping_taxes.iter().map(|line| line.tax))?,
            total: shipping_total,
            tax_lines: shipping_taxes,
        };
        Ok(Priced { lines, shipping, discounts, tax_lines, totals })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priced {
    pub lines: Vec<PricedLine>,
    pub shipping: PricedShipping,
    /// The promotions that apply, by position, with their discounts.
    pub discounts: Vec<(usize, i64)>,
    pub tax_lines: Vec<TaxLine>,
    pub totals: Totals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedLine {
    pub discount: i64,
    /// The tax, whether the price includes it or not.
    pub tax: i64,
    /// The amount that the customer pays for the line.
    pub total: i64,
    /// The rate of the tax. A line without it is not taxed.
    pub rate: Option<TaxRate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedShipping {
    pub price: i64,
    pub discount: i64,
    /// The tax, whether the price includes it or not.
    pub tax: i64,
    /// The amount that the customer pays for shipping.
    pub total: i64,
    /// The tax of each rate. Shipping without a tax line is not taxed.
    pub tax_lines: Vec<TaxLine>,
}

/// The totals of a basket: `total = items − discount + shipping`, plus the tax that prices do not
/// include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// The price of all lines before discounts.
    pub items: i64,
    /// All discounts, including the discount of shipping.
    pub discount: i64,
    pub shipping: i64,
    /// All taxes, whether prices include them or not.
    pub tax: i64,
    /// The amount that the customer pays.
    pub total: i64,
}
