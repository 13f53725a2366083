//! Tests of promotions and of the spreading of their discounts.

use key_schema::money::Money;
use key_schema::promotion::{Promotion, Reduction};
use pricing::{PricingError, Unused, spread};

use crate::{amount, discounted, discounts, from_amount, line, promotion, untaxed, usd};

#[test]
fn a_percentage_is_rounded_once_and_spread_by_the_largest_remainder() {
    let lines = [line(1, 333), line(1, 333), line(1, 334)];
    let priced = untaxed(&lines, &[promotion(Reduction::Percentage(1000), &[0, 1, 2])]);
    assert_eq!(discounts(&priced), [33, 33, 34]);
    assert_eq!(priced.discounts, [(0, 100)]);
    let priced = untaxed(&[line(1, 5), line(1, 5)], &[promotion(Reduction::Percentage(1000), &[0, 1])]);
    assert_eq!(discounts(&priced), [1, 0], "a tie goes to the earlier line");
    assert_eq!(spread(10, &[6, 1, 4]).unwrap(), [5, 1, 4], "the remainders are 5, 10 and 7 elevenths");
}

#[test]
fn a_discount_is_never_more_than_its_lines_cost() {
    let lines = [line(1, 100), line(1, 900)];
    let priced = untaxed(&lines, &[promotion(amount(500), &[0])]);
    assert_eq!((discounts(&priced), priced.totals.total), (vec![100, 0], 900));
    let twice = [promotion(Reduction::Percentage(20_000), &[0, 1]), promotion(amount(1), &[0, 1])];
    let priced = untaxed(&lines, &twice);
    assert_eq!((priced.totals.total, priced.discounts), (0, vec![(0, 1000)]));
}

#[test]
fn the_cheapest_pieces_of_all_lines_are_free() {
    let three_for_two = [promotion(Reduction::BuyXGetY { buy: 2, get: 1 }, &[0, 1])];
    for (quantities, expected) in
        [((1, 1), [0, 0]), ((2, 1), [0, 500]), ((1, 2), [0, 500]), ((4, 2), [0, 1000]), ((8, 1), [2000, 500])]
    {
        let lines = [line(quantities.0, 1000), line(quantities.1, 500), line(9, 1)];
        let mut expected = expected.to_vec();
        expected.push(0);
        assert_eq!(discounts(&untaxed(&lines, &three_for_two)), expected, "{quantities:?}");
    }
    // A piece of the first line costs less than the piece of the second, although the whole first
    // line costs more.
    let lines = [line(10, 100), line(1, 500)];
    let eleventh = [promotion(Reduction::BuyXGetY { buy: 10, get: 1 }, &[0, 1])];
    assert_eq!(discounts(&untaxed(&lines, &eleventh)), [100, 0]);
    for (buy, get) in [(0, 0), (u64::MAX, u64::MAX)] {
        let priced = untaxed(&[line(3, 100)], &[promotion(Reduction::BuyXGetY { buy, get }, &[0])]);
        assert_eq!(discounts(&priced), [0], "{buy} and {get}");
    }
    let priced = untaxed(&[line(3, 100)], &[promotion(Reduction::BuyXGetY { buy: 0, get: 1 }, &[0])]);
    assert_eq!(discounts(&priced), [300]);
}

#[test]
fn the_cheapest_pieces_are_those_with_the_lowest_price_after_earlier_promotions() {
    let lines = [line(1, 20_000), line(1, 15_000)];
    let clearance = Promotion { priority: 1, ..promotion(Reduction::Percentage(7_000), &[0]) };
    let one_free = promotion(Reduction::BuyXGetY { buy: 1, get: 1 }, &[0, 1]);
    assert_eq!(discounts(&untaxed(&lines, &[clearance, one_free])), [20_000, 0]);
}

#[test]
fn promotions_with_a_higher_priority_are_applied_first() {
    let half = Promotion { priority: 1, ..promotion(Reduction::Percentage(5000), &[0]) };
    let ten = promotion(amount(10), &[0]);
    assert_eq!(untaxed(&[line(1, 100)], &[ten.clone(), half.clone()]).discounts, [(1, 50), (0, 10)]);
    let last = Promotion { priority: -1, ..half };
    assert_eq!(untaxed(&[line(1, 100)], &[ten, last]).discounts, [(0, 10), (1, 45)]);
}

#[test]
fn an_exclusive_promotion_excludes_all_others() {
    let lines = [line(1, 1000)];
    let open = Promotion { priority: 9, ..promotion(amount(1), &[0]) };
    let exclusive = |priority| Promotion { priority, exclusive: true, ..promotion(amount(2), &[0]) };
    let priced = untaxed(&lines, &[open.clone(), exclusive(1), exclusive(2)]);
    assert_eq!(priced.discounts, [(2, 2)]);
    let too_small = from_amount(1001, exclusive(2));
    assert_eq!(untaxed(&lines, &[open, too_small]).discounts, [(0, 1)]);
}

#[test]
fn each_promotion_that_does_not_apply_has_its_reason() {
    let lines = [line(1, 1000), line(1, 1000)];
    let one = promotion(amount(1), &[0]);
    let low = from_amount(1001, one.clone());
    let three = promotion(Reduction::BuyXGetY { buy: 2, get: 1 }, &[0, 1]);
    let none = promotion(amount(1), &[]);
    let mut foreign = promotion(amount(1), &[0]);
    foreign.reduction = Reduction::Amount(Money { currency: "EUR".parse().unwrap(), ..usd(1) });
    let mut foreign_minimum = from_amount(1, one.clone());
    foreign_minimum.conditions.min_amount = Some(Money { currency: "EUR".parse().unwrap(), ..usd(1) });
    let misfits = [low, three, none, foreign, foreign_minimum];
    let expected = [
        (0, Unused::MinimumNotReached),
        (1, Unused::NothingToReduce),
        (2, Unused::NoGoods),
        (3, Unused::OtherCurrency),
        (4, Unused::OtherCurrency),
    ];
    let reasons = |promotions: &[Promotion]| {
        let mut unused = discounted(&lines, promotions, 0).unwrap().unused().to_vec();
        unused.sort_by_key(|(at, _)| *at);
        unused
    };
    assert_eq!(reasons(&misfits), expected);
    // A promotion that does not fit keeps its reason below an exclusive one.
    let exclusive = Promotion { exclusive: true, ..one.clone() };
    let below = [&misfits[..], &[one.clone(), exclusive]].concat();
    assert_eq!(reasons(&below), [&expected[..], &[(5, Unused::NotCombinable)]].concat());
    let all = Promotion { priority: 1, ..promotion(Reduction::Percentage(10_000), &[0]) };
    assert_eq!(reasons(&[vec![one.clone(); 5], vec![one]].concat()), [(5, Unused::TooMany)]);
    assert_eq!(reasons(&[all, promotion(amount(1), &[0])]), [(1, Unused::NothingToReduce)]);
}

#[test]
fn the_minimum_is_compared_with_the_undiscounted_price_of_the_lines_in_the_promotion() {
    let lines = [line(1, 600), line(1, 600)];
    let minimum = |lines: &[usize]| from_amount(1200, promotion(amount(100), lines));
    assert_eq!(untaxed(&lines, &[minimum(&[0, 1])]).totals.discount, 100);
    assert_eq!(untaxed(&lines, &[minimum(&[0])]).totals.discount, 0);
    let first = Promotion { priority: 1, ..promotion(amount(100), &[0]) };
    assert_eq!(untaxed(&lines, &[first, minimum(&[0, 1])]).totals.discount, 200);
    assert_eq!(untaxed(&lines, &[promotion(amount(1), &[])]).discounts, []);
}

#[test]
fn a_nonzero_amount_needs_a_nonzero_weight_and_no_value_may_be_negative() {
    assert_eq!(spread(0, &[]), Ok(vec![]));
    assert_eq!(spread(0, &[0, 0]), Ok(vec![0, 0]));
    assert_eq!(spread(1, &[0, 0]), Err(PricingError::Unspreadable));
    assert_eq!(spread(1, &[1, -1]), Err(PricingError::Negative));
    assert_eq!(spread(-1, &[1]), Err(PricingError::Negative));
    assert_eq!(spread(i64::MAX, &[i64::MAX, i64::MAX]).unwrap(), [i64::MAX / 2 + 1, i64::MAX / 2]);
}
