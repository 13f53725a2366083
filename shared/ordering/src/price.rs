//! Computes the price of a basket from promotions, shipping zones and tax rules.

use ::pricing::{Discounted, Line, Priced, PricingError, Rate, Rates, ShippingTax, Taxes, Tier};
use http_api::{Code, Problem};
use key_schema::address::{Country, PostalAddress};
use key_schema::id::{MethodId, OrderId};
use key_schema::money::{Currency, Money};
use key_schema::order::{self, Charges, ChosenMethod, MAX_TOTAL, TaxRate, TaxRounding};
use key_schema::pricing::{LocalRules, Rules, SHIPPING, STANDARD, ShippingMethod, ShippingRate, ShippingZone};
use key_schema::promotion::{Promotion, Use};

use crate::lines::Sold;
use crate::promotions::{Candidate, Codes, reason_of};

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

/// The part of an address on which shipping and tax depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub country: &'a Country,
    pub region: Option<&'a str>,
}

impl<'a> From<&'a PostalAddress> for Place<'a> {
    fn from(address: &'a PostalAddress) -> Self {
        Self { country: &address.country, region: address.region.as_deref() }
    }
}

/// The data that determines a price, besides the lines.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    pub rules: &'a Rules,
    pub place: Option<Place<'a>>,
    /// Whether shipping and tax are left out while the place is not known.
    pub is_estimate: bool,
    /// The shipping method that the customer wants, or `None` for the cheapest one.
    pub method: Option<&'a MethodId>,
    pub rounding: TaxRounding,
    pub shipping_tax: order::ShippingTax,
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
    /// - 409 `promotion_not_applicable` if a code does not reduce the price with the chosen method.
    pub fn of(sold: &[Sold], currency: Currency, terms: Terms<'a>) -> Result<Self, Problem> {
        let Terms { rules, place, is_estimate, method, rounding, shipping_tax, promotions, codes } = terms;
        let is_shipped = sold.iter().any(|sold| sold.product.is_shippable()) && !rules.zones.is_empty();
        let is_unknown = place.is_none() && (is_shipped || !rules.tax_rules.is_empty());
        if is_unknown && !is_estimate {
            let problem = Problem::new(Code::InvalidBody, "Shipping and tax depend on the address.");
            return Err(problem.error("/shipping_address", "is required"));
        }
        let lines: Vec<_> = sold.iter().map(line).collect();
        let candidates: Vec<&Candidate> = promotions.iter().filter(|candidate| candidate.refused.is_none()).collect();
        let usable: Vec<&Promotion> = candidates.iter().map(|candidate| &candidate.promotion).collect();
        let local = place.map(|place| rules.at(place.country, place.region)).unwrap_or_default();
        let zone = local.zone.filter(|_| is_shipped);
        let offered = |grams, amount| zone.map_or_else(Vec::new, |zone| offers(zone, grams, amount, currency));
        let shipping = |grams, amount| choose(&offered(grams, amount), method).map_or(0, |offer| offer.price);
        let basket = Discounted::new(&lines, currency, &usable, shipping).map_err(refused)?;
        let offers = offered(basket.grams(), basket.amount().map_err(refused)?);
        let chosen = choose(&offers, method);
        // If nothing is shipped, the wanted method has no effect.
        if chosen.is_none() && is_shipped && !is_unknown {
            return Err(unavailable(method, currency));
        }
        let taxes = taxes(sold, &local, is_shipped, shipping_tax, rounding);
        let priced = basket.price(chosen.map_or(0, |offer| offer.price), &taxes).map_err(refused)?;
        if priced.totals.total > MAX_TOTAL {
            let problem = Problem::new(Code::InvalidBody, "The order's total is invalid.");
            return Err(problem.error("", format!("is more than {MAX_TOTAL} minor units")));
        }
        let discounts = priced.discounts.iter();
        let applied: Vec<_> = discounts.filter_map(|(at, discount)| Some((*candidates.get(*at)?, *discount))).collect();
        let reason = |candidate: &Candidate| {
            let fits = |fitting: &&Candidate| fitting.promotion.id == candidate.promotion.id;
            let Some(at) = candidates.iter().position(fits) else { return candidate.refused };
            basket.unused().iter().find(|(unused, _)| *unused == at).map(|(_, unused)| reason_of(*unused))
        };
        let mut unused: Vec<_> =
            promotions.iter().filter_map(|candidate| Some((candidate.code?, reason(candidate)?))).collect();
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
            shipping_tax_lines: shipping.tax_lines.clone(),
            method: self.chosen.as_ref().map(|offer| ChosenMethod::from(offer.method)),
            promotions: self.applied.iter().map(|(candidate, discount)| candidate.applied(*discount)).collect(),
            tax_lines: tax_lines.clone(),
            tax_rounding: self.rounding,
        }
    }

    /// Returns the uses of the promotions, in the sequence of [`Charges::promotions`].
    pub fn uses(&self, order: &OrderId) -> Vec<Use> {
        self.applied.iter().map(|(candidate, _)| Use::of(&candidate.promotion, order)).collect()
    }

    /// Returns the amount that the customer pays.
    pub const fn total(&self) -> Money {
        Money::new(self.priced.totals.total, self.currency)
    }
}

fn taxes(
    sold: &[Sold],
    local: &LocalRules<'_>,
    is_shipped: bool,
    shipping_tax: order::ShippingTax,
    rounding: TaxRounding,
) -> Taxes {
    let rate = |category: &str| {
        let rule = local.tax_rule(category)?;
        Some(TaxRate { rate_millionths: rule.rate_millionths, included: rule.included })
    };
    let own_rate = rate(SHIPPING).or_else(|| rate(STANDARD)).filter(|_| is_shipped);
    let shipping = match shipping_tax {
        order::ShippingTax::Rule => ShippingTax::Rate(own_rate),
        order::ShippingTax::Apportioned => {
            let shipped = sold.iter().enumerate().filter(|(_, sold)| is_shipped && sold.product.is_shippable());
            ShippingTax::Apportioned { lines: shipped.map(|(at, _)| at).collect(), otherwise: own_rate }
        }
    };
    Taxes { lines: sold.iter().map(|sold| rate(sold.product.tax_category())).collect(), shipping, rounding }
}

fn line(sold: &Sold) -> Line<'_> {
    let grams = sold.product.weight_grams.filter(|_| sold.product.is_shippable());
    Line { product: &sold.product, quantity: sold.quantity, amount: sold.total.amount, grams: grams.unwrap_or(0) }
}

/// Returns the zone's methods that can send a basket, cheapest first. Of two methods with the same
/// price, the faster one comes first.
fn offers(zone: &ShippingZone, grams: i64, amount: i64, currency: Currency) -> Vec<Offer<'_>> {
    let mut offers: Vec<_> = zone
        .methods
        .iter()
        .filter(|method| method.rates.iter().all(|rate| rate.price.currency == currency))
        .filter_map(|method| Some(Offer { method, price: rates(method).price(grams, amount)? }))
        .collect();
    offers.sort_by_key(|offer| (offer.price, offer.method.days.1));
    offers
}

/// Returns the offer of the wanted method, or the cheapest offer.
fn choose<'o, 'a>(offers: &'o [Offer<'a>], wanted: Option<&MethodId>) -> Option<&'o Offer<'a>> {
    match wanted {
        Some(wanted) => offers.iter().find(|offer| offer.method.id == *wanted),
        None => offers.first(),
    }
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
