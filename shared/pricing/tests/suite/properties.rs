//! Tests of properties that hold for every basket, such as totals that are the sum of their parts.

use key_schema::order::{TaxRate, TaxRounding};
use key_schema::promotion::{MAX_APPLIED, Promotion, Reduction};
use pricing::{Priced, ShippingTax, Taxes, spread};
use proptest::prelude::*;

use crate::{Line, amount, discounted, from_amount, promotion};

const LINES: usize = 8;

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (1..200_u64, 0..100_000_i64, 0..5_000_u64);
    let line = line.prop_map(|(quantity, amount, grams)| Line { quantity, amount, grams });
    prop::collection::vec(line, 1..LINES)
}

fn reductions() -> impl Strategy<Value = Reduction> {
    prop_oneof![
        (0..12_000_u32).prop_map(Reduction::Percentage),
        (0..300_000_i64).prop_map(amount),
        (0..4_u64, 0..4_u64).prop_map(|(buy, get)| Reduction::BuyXGetY { buy, get }),
        Just(Reduction::FreeShipping),
    ]
}

fn promotions() -> impl Strategy<Value = Vec<Promotion>> {
    let lines = prop::collection::vec(0..LINES, 0..LINES);
    let parts = (reductions(), lines, prop::option::of(0..50_000_i64), prop::bool::weighted(0.1), -2..3_i64);
    let promotion = parts.prop_map(|(reduction, lines, minimum, exclusive, priority)| {
        let promotion = Promotion { exclusive, priority, ..promotion(reduction, &lines) };
        match minimum {
            Some(minimum) => from_amount(minimum, promotion),
            None => promotion,
        }
    });
    prop::collection::vec(promotion, 0..8)
}

fn taxes() -> impl Strategy<Value = Taxes> {
    let rate = (prop::sample::select(vec![0, 50_000, 88_750, 190_000, 200_000]), any::<bool>());
    let rate =
        prop::option::of(rate.prop_map(|(millionths, included)| TaxRate { rate_millionths: millionths, included }));
    let rounding = prop::sample::select(vec![TaxRounding::Line, TaxRounding::Order]);
    let shipping = prop_oneof![
        rate.clone().prop_map(ShippingTax::Rate),
        (prop::collection::vec(0..LINES, 0..LINES), rate.clone())
            .prop_map(|(lines, otherwise)| ShippingTax::Apportioned { lines, otherwise }),
    ];
    (prop::collection::vec(rate, 0..LINES), shipping, rounding).prop_map(|(lines, shipping, rounding)| Taxes {
        lines,
        shipping,
        rounding,
    })
}

/// Returns the tax that prices do not include.
fn added(priced: &Priced) -> i64 {
    priced.tax_lines.iter().filter(|line| !line.rate.included).map(|line| line.tax).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn totals_are_the_sum_of_their_parts(
        lines in lines(), promotions in promotions(), shipping in 0..5_000_i64, taxes in taxes(),
    ) {
        let discounted = discounted(&lines, &promotions, shipping).unwrap();
        let priced = discounted.price(shipping, &taxes).unwrap();
        let totals = priced.totals;
        prop_assert_eq!(priced.lines.len(), lines.len());
        prop_assert_eq!(totals.items, lines.iter().map(|line| line.amount).sum::<i64>());
        prop_assert_eq!(totals.total, totals.items - totals.discount + totals.shipping + added(&priced));
        let of_lines = |part: fn(&pricing::PricedLine) -> i64| priced.lines.iter().map(part).sum::<i64>();
        prop_assert_eq!(totals.discount, of_lines(|line| line.discount) + priced.shipping.discount);
        prop_assert_eq!(totals.discount, priced.discounts.iter().map(|(_, discount)| discount).sum::<i64>());
        prop_assert_eq!(totals.tax, of_lines(|line| line.tax) + priced.shipping.tax);
        prop_assert_eq!(totals.tax, priced.tax_lines.iter().map(|line| line.tax).sum::<i64>());
        prop_assert_eq!(totals.total, of_lines(|line| line.total) + priced.shipping.total);
        prop_assert_eq!(priced.shipping.tax, priced.shipping.tax_lines.iter().map(|line| line.tax).sum::<i64>());
        prop_assert_eq!(totals.items - totals.discount + priced.shipping.discount, discounted.amount().unwrap());
    }

    #[test]
    fn no_part_is_negative_and_no_discount_exceeds_its_line(
        lines in lines(), promotions in promotions(), shipping in 0..5_000_i64, taxes in taxes(),
    ) {
        let priced = discounted(&lines, &promotions, shipping).unwrap().price(shipping, &taxes).unwrap();
        for (line, priced) in lines.iter().zip(&priced.lines) {
            prop_assert!((0..=line.amount).contains(&priced.discount));
            prop_assert!(priced.tax >= 0 && priced.total >= line.amount - priced.discount);
        }
        prop_assert!((0..=shipping).contains(&priced.shipping.discount));
    }

    #[test]
    fn each_applied_promotion_reduces_the_price_and_takes_one_of_five_places(
        lines in lines(), promotions in promotions(), shipping in prop_oneof![Just(0), 1..5_000_i64], taxes in taxes(),
    ) {
        let discounted = discounted(&lines, &promotions, shipping).unwrap();
        let priced = discounted.price(shipping, &taxes).unwrap();
        prop_assert!(priced.discounts.iter().all(|(_, discount)| *discount > 0));
        prop_assert!(priced.discounts.len() <= MAX_APPLIED);
        let applied = priced.discounts.iter().map(|(at, _)| *at);
        let mut all: Vec<_> = applied.chain(discounted.unused().iter().map(|(at, _)| *at)).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..promotions.len()).collect::<Vec<_>>());
    }

    #[test]
    fn without_promotions_a_basket_costs_the_same_in_any_order_of_its_lines(lines in lines(), taxes in taxes()) {
        let rate = taxes.lines.first().copied().flatten();
        let price = |lines: &[Line]| {
            let taxes = Taxes {
                lines: vec![rate; lines.len()],
                shipping: ShippingTax::Rate(rate),
                rounding: taxes.rounding,
            };
            discounted(lines, &[], 0).unwrap().price(0, &taxes).unwrap().totals
        };
        let turned: Vec<Line> = lines.iter().rev().copied().collect();
        prop_assert_eq!(price(&lines), price(&turned));
    }

    #[test]
    fn shares_add_up_and_differ_by_less_than_one_from_the_exact_shares(
        weights in prop::collection::vec(0..1_000_000_i64, 1..20), amount in 0..1_000_000_i64,
    ) {
        let sum: i64 = weights.iter().sum();
        prop_assume!(sum > 0);
        let shares = spread(amount, &weights).unwrap();
        prop_assert_eq!(shares.iter().sum::<i64>(), amount);
        for (share, weight) in shares.iter().zip(&weights) {
            // |share − amount · weight / sum| < 1, without a division.
            let difference = i128::from(*share) * i128::from(sum) - i128::from(amount) * i128::from(*weight);
            prop_assert!(difference.abs() < i128::from(sum));
        }
    }
}
