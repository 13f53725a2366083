//! Tests of the price of shipping.

use key_schema::order::{TaxRate, TaxRounding};
use key_schema::promotion::{Promotion, Reduction};
use pricing::{PricingError, Rate, Rates, ShippingTax, Taxes, Tier, Unused};

use crate::{Line, amount, discounted, discounted_with, line, one_rate, promotion};

fn tiers(tiers: &[(i64, i64)]) -> Vec<Tier> {
    tiers.iter().map(|(limit, price)| Tier { limit: *limit, price: *price }).collect()
}

#[test]
fn a_parcel_costs_the_price_of_the_lowest_weight_limit_that_it_does_not_exceed() {
    let rates = Rates { rate: Rate::ByWeight(tiers(&[(5000, 900), (1000, 500)])), free_from: None };
    for (grams, price) in [(0, Some(500)), (1000, Some(500)), (1001, Some(900)), (5000, Some(900)), (5001, None)] {
        assert_eq!(rates.price(grams, 100), price, "{grams} grams");
    }
}

#[test]
fn shipping_costs_the_price_of_the_highest_amount_that_the_order_reaches() {
    let rates = Rates { rate: Rate::ByAmount(tiers(&[(2000, 300), (1000, 500)])), free_from: Some(5000) };
    for (amount, price) in
        [(999, None), (1000, Some(500)), (1999, Some(500)), (2000, Some(300)), (4999, Some(300)), (5000, Some(0))]
    {
        assert_eq!(rates.price(1, amount), price, "{amount}");
    }
    assert_eq!(Rates { rate: Rate::Flat(700), free_from: None }.price(i64::MAX, 0), Some(700));
}

#[test]
fn free_shipping_does_not_apply_to_a_parcel_that_is_too_heavy() {
    let rates = Rates { rate: Rate::ByWeight(tiers(&[(1000, 500)])), free_from: Some(100) };
    assert_eq!(rates.price(1001, 100), None);
}

#[test]
fn the_weight_includes_all_pieces_and_the_amount_is_the_price_after_discounts() {
    let lines = [Line { quantity: 3, amount: 6000, grams: 250 }, Line { quantity: 1, amount: 0, grams: 0 }];
    let basket = discounted(&lines, &[promotion(Reduction::Percentage(5000), &[0])], 0).unwrap();
    assert_eq!((basket.grams(), basket.amount().unwrap()), (750, 3000));
    let heavy = [Line { quantity: u64::MAX, amount: 0, grams: 2 }];
    assert!(discounted(&heavy, &[], 0).is_err());
}

#[test]
fn free_shipping_is_a_discount_and_is_not_taxed() {
    let lines = [Line { quantity: 1, amount: 1000, grams: 1 }];
    let taxes = one_rate(1, TaxRate { rate_millionths: 100_000, included: false }, TaxRounding::Line);
    let free = [promotion(Reduction::FreeShipping, &[0]), promotion(Reduction::FreeShipping, &[0])];
    let priced = discounted(&lines, &free, 500).unwrap().price(500, &taxes).unwrap();
    assert_eq!(priced.discounts, [(0, 500)]);
    assert_eq!((priced.shipping.discount, priced.shipping.tax, priced.shipping.total), (500, 0, 0));
    assert_eq!((priced.totals.discount, priced.totals.shipping, priced.totals.total), (500, 500, 1100));
    assert_eq!(discounted(&lines, &[], 500).unwrap().price(-1, &taxes), Err(PricingError::Negative));
    let negative = Line { amount: -1, ..lines[0] };
    assert_eq!(discounted(&[negative], &[], 500), Err(PricingError::Negative));
}

/// The method costs 5.00, and nothing from 10.00. The goods cost 20.00.
#[test]
fn free_shipping_that_reduces_nothing_excludes_no_other_promotion() {
    let method = Rates { rate: Rate::Flat(500), free_from: Some(1000) };
    let shipping = |grams, amount| method.price(grams, amount).unwrap_or_default();
    let price = |goods: i64, promotions: &[Promotion]| {
        let basket = discounted_with(&[line(1, goods)], promotions, shipping).unwrap();
        let taxes = Taxes { lines: Vec::new(), shipping: ShippingTax::Rate(None), rounding: TaxRounding::Line };
        let priced = basket.price(shipping(0, basket.amount().unwrap()), &taxes).unwrap();
        (priced.discounts, priced.totals.total, basket.unused().to_vec())
    };
    let ten = promotion(Reduction::Percentage(1000), &[0]);
    let free = promotion(Reduction::FreeShipping, &[0]);
    let exclusive = Promotion { exclusive: true, ..free.clone() };
    let nothing = |at| vec![(at, Unused::NothingToReduce)];
    assert_eq!(price(2000, &[exclusive.clone(), ten.clone()]), (vec![(1, 200)], 1800, nothing(0)));
    assert_eq!(price(900, &[exclusive, ten.clone()]), (vec![(0, 500)], 900, vec![(1, Unused::NotCombinable)]));
    // Only the discount of the other promotion makes shipping cost something.
    assert_eq!(price(1000, &[free.clone(), ten]), (vec![(0, 500), (1, 100)], 900, vec![]));
    // Free shipping without an effect leaves its place to the fifth promotion of the goods.
    let one = promotion(amount(1), &[0]);
    let six = [&[Promotion { priority: 1, ..free }], vec![one; 5].as_slice()].concat();
    assert_eq!(price(2000, &six), ((1..6).map(|at| (at, 1)).collect(), 1995, nothing(0)));
    assert_eq!(price(900, &six).2, [(5, Unused::TooMany)]);
}
