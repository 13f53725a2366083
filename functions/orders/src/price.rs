//! Computes the price of a basket from promotions, shipping zones and tax rules.

use ::pricing::{
    Discounted, Line, Priced, PricingError, Promotion, Rate, Rates, Reduction, Rounding, TaxRate, Taxes, Tier,
};
use http_api::{Code, Problem};
use key_schema::id::MethodId;
use key_schema::money::{Currency, Money};
use key_schema::order::addresses::PostalAddress;
use key_schema::order::{self, Charges, ChosenMethod, MAX_TOTAL, TaxLine, TaxRounding};
use key_schema::pricing::{Rules, SHIPPING, STANDARD, ShippingMethod, ShippingRate, ShippingZone};
use key_schema::promotion::{self, Use};

use crate::lines::Sold;
use crate::promotions::{Candidate, Codes};

/// A shipping method that can send the basket, with its price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer<'a> {
    pub method: &'a ShippingMethod,
    /// The price in minor units.
    pub price: i64,
}

#[derive(Debug)]
pub struct Price<'a> {
    pub currency: Currency,
    pub priced: Priced,
    /// The shipping methods that can send the basket, cheapest first. The list is empty if nothing
    /// is shipped, or if there are no shipping zones.
    pub offers: Vec<Offer<'a>>,
    pub chosen: Option<Offer<'a>>,
    /// The promotions that reduce the price, with their discounts.
    applied: Vec<(&'a Candidate, i64)>,
    rounding: TaxRounding,
}

/// The data that determines a price, besides the lines.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    pub rules: &'a Rules,
    pub address: Option<&'a PostalAddress>,
    /// The shipping method that the customer wants, or `None` for the cheapest one.
    pub method: Option<&'a MethodId>,
    pub rounding: TaxRounding,
    pub promotions: &'a [Candidate],
    pub codes: Codes<'a>,
}

impl<'a> Price<'a> {
    /// Computes the price of sold lines, which have one currency.
    ///
    /// # Errors
    /// - 422 `invalid_body` if shipping or tax depend on a missing address, or if the price is
    ///   invalid.
    /// - 409 `shipping_unavailable` if no method can send the goods to the address, or if the
    ///   wanted method cannot.
    /// - 409 `promotion_not_applicable` if a code reduces neither this price nor the price with
    ///   another offered method.
    pub fn of(sold: &[Sold], currency: Currency, terms: Terms<'a>) -> Result<Self, Problem> {
        let Terms { rules, address, method, rounding, promotions, codes } = terms;
        let is_shipped = sold.iter().any(|sold| sold.product.is_shippable()) && !rules.zones.is_empty();
        if address.is_none() && (is_shipped || !rules.tax_rules.is_empty()) {
            let problem = Problem::new(Code::InvalidBody, "Shipping and tax depend on the address.");
            return Err(problem.error("/shipping_address", "is required"));
        }
        let lines: Vec<_> = sold.iter().map(line).collect();
        let (candidates, reductions): (Vec<_>, Vec<_>) = promotions
            .iter()
            .filter(|candidate| is_shipped || candidate.promotion.reduction != promotion::Reduction::FreeShipping)
            .filter_map(|candidate| Some((candidate, reduction(&candidate.promotion, sold, currency)?)))
            .unzip();
        let basket = Discounted::new(&lines, &reductions).map_err(refused)?;
        let local = address.map(|address| rules.at(&address.country, address.region.as_deref())).unwrap_or_default();
        let offers = match local.zone.filter(|_| is_shipped) {
            Some(zone) => offers(zone, &basket, currency)?,
            None => Vec::new(),
        };
        let chosen = match method {
            Some(wanted) => offers.iter().find(|offer| offer.method.id == *wanted),
            None => offers.first(),
        };
        // If nothing is shipped, the wanted method has no effect.
        if chosen.is_none() && is_shipped {
            return Err(unavailable(method, currency));
        }
        let rate = |category: &str| {
            let rule = local.tax_rule(category)?;
            Some(TaxRate { millionths: rule.rate_millionths, included: rule.included })
        };
        let taxes = Taxes {
            lines: sold.iter().map(|sold| rate(sold.product.tax_category())).collect(),
            shipping: chosen.and_then(|_| rate(SHIPPING).or_else(|| rate(STANDARD))),
            rounding: match rounding {
                TaxRounding::Line => Rounding::Line,
                TaxRounding::Order => Rounding::Order,
            },
        };
        let priced = basket.price(chosen.map_or(0, |offer| offer.price), &taxes).map_err(refused)?;
        if priced.totals.total > MAX_TOTAL {
            let problem = Problem::new(Code::InvalidBody, "The order's total is invalid.");
            return Err(problem.error("", format!("is more than {MAX_TOTAL} minor units")));
        }
        let discounts = priced.discounts.iter().filter(|(_, discount)| *discount > 0);
        let applied: Vec<_> = discounts.filter_map(|(at, discount)| Some((*candidates.get(*at)?, *discount))).collect();
        // Free shipping has no effect on a free method, but the customer may choose another one.
        let is_dear = offers.iter().any(|offer| offer.price > 0);
        let free = basket.frees_shipping().and_then(|at| candidates.get(at)).map(|candidate| &candidate.promotion.id);
        let has_effect = |promotion: &promotion::Promotion| {
            let is_applied = applied.iter().any(|(applied, _)| applied.promotion.id == promotion.id);
            is_applied || (is_dear && free == Some(&promotion.id))
        };
        let mut unused: Vec<_> = promotions
            .iter()
            .filter(|candidate| !has_effect(&candidate.promotion))
            .filter_map(|candidate| Some((candidate.code?, reason(&candidate.promotion, &applied, free.is_some()))))
            .collect();
        unused.sort_by_key(|(code, _)| *code);
        if !unused.is_empty() {
            return Err(codes.not_applicable(&unused));
        }
        let chosen = chosen.cloned();
        Ok(Self { currency, priced, offers, chosen, applied, rounding })
    }

    /// Returns the parts of the total, as the order keeps them.
    pub fn charges(&self) -> Charges {
        let Priced { totals, shipping, tax_lines, .. } = &self.priced;
        Charges {
            items: totals.items,
            discount: totals.discount,
            shipping: totals.shipping,
            shipping_discount: shipping.discount,
            tax: totals.tax,
            shipping_total: shipping.total,
            shipping_tax: shipping.tax,
            shipping_rate: shipping.rate.map(tax_rate),
            method: self.chosen.as_ref().map(|offer| ChosenMethod::from(offer.method)),
            promotions: self.applied.iter().map(|(candidate, discount)| candidate.applied(*discount)).collect(),
            tax_lines: tax_lines
                .iter()
                .map(|line| TaxLine {
                    rate_millionths: line.rate.millionths,
                    included: line.rate.included,
                    amount: line.amount,
                    tax: line.tax,
                })
                .collect(),
            tax_rounding: self.rounding,
        }
    }

    /// Returns the uses of the promotions, in the sequence of [`Charges::promotions`].
    pub fn uses(&self) -> Vec<Use> {
        self.applied.iter().map(|(candidate, _)| candidate.usage()).collect()
    }

    /// Returns the amount that the customer pays.
    pub const fn total(&self) -> Money {
        Money::new(self.priced.totals.total, self.currency)
    }
}

pub const fn tax_rate(TaxRate { millionths, included }: TaxRate) -> order::TaxRate {
    order::TaxRate { rate_millionths: millionths, included }
}

/// Returns the reduction of a promotion, or [`None`] if its amounts are in another currency.
fn reduction(promotion: &promotion::Promotion, sold: &[Sold], currency: Currency) -> Option<Promotion> {
    let amount = |money: &Money| (money.currency == currency).then_some(money.amount);
    let reduction = match &promotion.reduction {
        promotion::Reduction::Percentage(basis_points) => Reduction::Percentage(*basis_points),
        promotion::Reduction::Amount(money) => Reduction::Amount(amount(money)?),
        promotion::Reduction::BuyXGetY { buy, get } => Reduction::BuyGet { buy: *buy, get: *get },
        promotion::Reduction::FreeShipping => Reduction::FreeShipping,
    };
    let min_amount = match &promotion.conditions.min_amount {
        Some(min) => Some(amount(min)?),
        None => None,
    };
    let lines = sold.iter().enumerate().filter(|(_, sold)| promotion.applies_to.include(&sold.product));
    Some(Promotion {
        reduction,
        lines: lines.map(|(at, _)| at).collect(),
        min_amount,
        exclusive: promotion.exclusive,
        priority: promotion.priority,
    })
}

/// Returns the reason why a promotion has no effect.
fn reason(unused: &promotion::Promotion, applied: &[(&Candidate, i64)], is_free: bool) -> &'static str {
    if is_free && unused.reduction == promotion::Reduction::FreeShipping {
        "is not needed, because another promotion makes shipping free"
    } else if applied.iter().any(|(other, _)| other.promotion.exclusive) {
        "cannot be combined with another promotion of this cart"
    } else {
        "does not reduce the price of this cart"
    }
}

fn line(sold: &Sold) -> Line {
    let grams = sold.product.weight_grams.filter(|_| sold.product.is_shippable());
    Line { quantity: sold.quantity, amount: sold.total.amount, grams: grams.unwrap_or(0) }
}

/// Returns the zone's methods that can send the basket, cheapest first.
fn offers<'a>(zone: &'a ShippingZone, basket: &Discounted, currency: Currency) -> Result<Vec<Offer<'a>>, Problem> {
    let amount = basket.amount().map_err(refused)?;
    let mut offers: Vec<_> = zone
        .methods
        .iter()
        .filter(|method| method.rates.iter().all(|rate| rate.price.currency == currency))
        .filter_map(|method| Some(Offer { method, price: rates(method).price(basket.grams(), amount)? }))
        .collect();
    offers.sort_by_key(|offer| (offer.price, offer.method.days.1));
    Ok(offers)
}

fn rates(method: &ShippingMethod) -> Rates {
    let tier = |limit: i64, rate: &ShippingRate| Tier { limit, price: rate.price.amount };
    let by_amount: Vec<_> = method.rates.iter().filter_map(|rate| Some(tier(rate.from_amount?.amount, rate))).collect();
    let by_weight: Vec<_> = method
        .rates
        .iter()
        .filter_map(|rate| Some(tier(i64::try_from(rate.up_to_grams?).unwrap_or(i64::MAX), rate)))
        .collect();
    let rate = match method.rates.first() {
        Some(rate) if by_amount.is_empty() && by_weight.is_empty() => Rate::Flat(rate.price.amount),
        _ if by_weight.is_empty() => Rate::ByAmount(by_amount),
        _ => Rate::ByWeight(by_weight),
    };
    Rates { rate, free_from: method.free_from.map(|money| money.amount) }
}

fn unavailable(method: Option<&MethodId>, currency: Currency) -> Problem {
    let problem = Problem::new(Code::ShippingUnavailable, "The goods cannot be sent to this address in this way.");
    match method {
        Some(_) => problem.error("/shipping_method", "cannot send these goods to this address"),
        None => {
            let detail = format!("no shipping method with prices in {currency} sends these goods there");
            problem.error("/shipping_address", detail)
        }
    }
}

fn refused(error: PricingError) -> Problem {
    Problem::new(Code::InvalidBody, "The price of the cart cannot be computed.").error("", error.to_string())
}
