use crate::arithmetic::sum;
use crate::promotion::{discounts, order_of};
use crate::tax::tax;
use crate::{PricingError, Promotion, Reduction, TaxLine, TaxRate, Taxes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
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
    /// The promotions that apply, with the discount of each line.
    applied: Vec<Applied>,
    /// The price of each line after discounts.
    left: Vec<i64>,
    /// The weight of the basket in grams.
    grams: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Applied {
    /// The position of the promotion.
    promotion: usize,
    discounts: Vec<i64>,
    frees_shipping: bool,
}

impl Discounted {
    pub fn new(lines: &[Line], promotions: &[Promotion]) -> Result<Self, PricingError> {
        let amounts: Vec<i64> = lines.iter().map(|line| line.amount).collect();
        if amounts.iter().any(|amount| *amount < 0) {
            return Err(PricingError::Negative);
        }
        let (mut left, mut applied) = (amounts.clone(), Vec::new());
        for at in order_of(promotions, lines)? {
            let Some(promotion) = promotions.get(at) else { continue };
            let discounts = discounts(promotion, lines, &left)?;
            for (left, discount) in left.iter_mut().zip(&discounts) {
                *left -= discount;
            }
            let frees_shipping = promotion.reduction == Reduction::FreeShipping;
            applied.push(Applied { promotion: at, discounts, frees_shipping });
        }
        let grams = lines.iter().try_fold(0_u64, |sum, line| sum.checked_add(line.grams.checked_mul(line.quantity)?));
        let grams = grams.and_then(|grams| i64::try_from(grams).ok()).ok_or(PricingError::Overflow)?;
        Ok(Self { amounts, applied, left, grams })
    }

    #[must_use]
    pub const fn grams(&self) -> i64 {
        self.grams
    }

    /// Returns the price of all lines after discounts.
    pub fn amount(&self) -> Result<i64, PricingError> {
        sum(self.left.iter().copied())
    }

    /// Returns the position of the promotion that makes shipping free. Further promotions of this
    /// kind have no effect.
    #[must_use]
    pub fn frees_shipping(&self) -> Option<usize> {
        self.applied.iter().find(|applied| applied.frees_shipping).map(|applied| applied.promotion)
    }

    /// Adds shipping and tax. `shipping` is the price of the chosen method.
    pub fn price(&self, shipping: i64, taxes: &Taxes) -> Result<Priced, PricingError> {
        if shipping < 0 {
            return Err(PricingError::Negative);
        }
        let free = self.frees_shipping();
        let shipping_discount = if free.is_some() { shipping } else { 0 };
        let rates = taxes.lines.iter().copied().chain(std::iter::repeat(None));
        let mut taxed: Vec<_> = self.left.iter().copied().zip(rates).collect();
        taxed.push((shipping - shipping_discount, taxes.shipping));
        let (shares, tax_lines) = tax(&taxed, taxes.rounding)?;
        let total = |((amount, rate), tax): (&(i64, Option<TaxRate>), &i64)| {
            amount.checked_add(rate.map_or(0, |rate| rate.added(*tax))).ok_or(PricingError::Overflow)
        };
        let mut totals = taxed.iter().zip(&shares).map(total).collect::<Result<Vec<_>, _>>()?;
        let (shipping_tax, shipping_total) =
            (shares.last().copied().unwrap_or_default(), totals.pop().unwrap_or_default());
        let lines: Vec<_> = (self.amounts.iter().zip(&self.left))
            .zip(shares.iter().zip(&totals))
            .zip(&taxed)
            .map(|(((amount, left), (tax, total)), (_, rate))| PricedLine {
                discount: amount - left,
                tax: *tax,
                total: *total,
                rate: *rate,
            })
            .collect();
        let discounts = self.applied.iter().map(|applied| {
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
            tax: shipping_tax,
            total: shipping_total,
            rate: taxes.shipping,
        };
        Ok(Priced { lines, shipping, discounts, tax_lines, totals })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priced {
    pub lines: Vec<PricedLine>,
    pub shipping: PricedShipping,
    /// The promotions that apply, by position, with their discounts. A discount is zero if the
    /// earlier promotions left nothing to reduce.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedShipping {
    pub price: i64,
    pub discount: i64,
    /// The tax, whether the price includes it or not.
    pub tax: i64,
    /// The amount that the customer pays for shipping.
    pub total: i64,
    /// The rate of the tax. Without it, shipping is not taxed.
    pub rate: Option<TaxRate>,
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
