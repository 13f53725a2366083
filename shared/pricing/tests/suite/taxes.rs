//! Tests of tax with published examples.

use key_schema::order::{TaxRate, TaxRounding};
use pricing::{PricingError, ShippingTax, Taxes, part, tax_of};

use crate::{discounted, line, one_rate, untaxed};

/// An example from a published text. The lines are pairs of quantity and unit price.
struct Example {
    source: &'static str,
    lines: &'static [(u64, i64)],
    millionths: u32,
    included: bool,
    rounding: TaxRounding,
    tax: i64,
    total: i64,
}

const EXAMPLES: &[Example] = &[
    // Invoices by Stripe and TaxJar for four items of 2.50 dollars at 8.625 %.
    Example {
        source: "https://github.com/saleor/saleor/issues/12348",
        lines: &[(1, 250), (1, 250), (1, 250), (1, 250)],
        millionths: 86_250,
        included: false,
        rounding: TaxRounding::Order,
        tax: 86,
        total: 1086,
    },
    // The same basket, with the tax of each line rounded.
    Example {
        source: "https://github.com/saleor/saleor/issues/12348",
        lines: &[(1, 250), (1, 250), (1, 250), (1, 250)],
        millionths: 86_250,
        included: false,
        rounding: TaxRounding::Line,
        tax: 88,
        total: 1088,
    },
    // Two products at 1.24 and 10 %: a tax of 0.124 is rounded to 0.12 for each.
    Example {
        source: "https://wiki.dolibarr.org/index.php?title=VAT_setup,_calculation_and_rounding_rules",
        lines: &[(1, 124), (1, 124)],
        millionths: 100_000,
        included: false,
        rounding: TaxRounding::Line,
        tax: 24,
        total: 272,
    },
    // The same products, with a tax of 0.248 that is rounded once.
    Example {
        source: "https://wiki.dolibarr.org/index.php?title=VAT_setup,_calculation_and_rounding_rules",
        lines: &[(1, 124), (1, 124)],
        millionths: 100_000,
        included: false,
        rounding: TaxRounding::Order,
        tax: 25,
        total: 273,
    },
    // 2.99 dollars include 4 %, and the tax amount of 0.115 is rounded up.
    Example {
        source: "https://docs.zuora.com/zuora-billing/set-up-zuora-billing/apply-taxes/\
            additional-resources-on-taxes/rounding-rule-for-inclusive-tax-mode",
        lines: &[(1, 299)],
        millionths: 40_000,
        included: true,
        rounding: TaxRounding::Line,
        tax: 12,
        total: 299,
    },
    // Nine nights at 9.99 pounds include 20 %: a sixth of 89.91 is 14.985, which is rounded up.
    Example {
        source: "https://support.caterbook.net/hc/en-gb/articles/28438479223185-How-is-VAT-calculated-on-invoices",
        lines: &[(9, 999)],
        millionths: 200_000,
        included: true,
        rounding: TaxRounding::Order,
        tax: 1499,
        total: 8991,
    },
    // A hundred pieces at 1.41 and 20 %: the tax is computed and rounded once for all pieces.
    Example {
        source: "https://github.com/craftcms/commerce/pull/697",
        lines: &[(100, 141)],
        millionths: 200_000,
        included: false,
        rounding: TaxRounding::Line,
        tax: 2820,
        total: 16920,
    },
    // Ten pieces at 38.23 pounds that include 20 % cost 382.30, not 382.32.
    Example {
        source: "https://github.com/vendurehq/vendure/issues/2662",
        lines: &[(10, 3823)],
        millionths: 200_000,
        included: true,
        rounding: TaxRounding::Line,
        tax: 6372,
        total: 38230,
    },
];

#[test]
fn the_computed_tax_equals_the_tax_of_the_published_examples() {
    for example in EXAMPLES {
        let Example { source, lines, millionths, included, rounding, tax, total } = *example;
        let lines: Vec<_> = lines.iter().map(|(quantity, unit_price)| line(*quantity, *unit_price)).collect();
        let taxes = one_rate(lines.len(), TaxRate { rate_millionths: millionths, included }, rounding);
        let priced = discounted(&lines, &[], 0).unwrap().price(0, &taxes).unwrap();
        assert_eq!((priced.totals.tax, priced.totals.total), (tax, total), "{source}, {rounding:?}");
    }
}

/// A New Tax System (Goods and Services Tax) Act 1999, section 9-90: "rounding 0.5 cents upwards",
/// <https://www.ato.gov.au/law/view/print?DocID=PAC%2F19990055%2F9-90&PiT=99991231235958>.
#[test]
fn half_a_minor_unit_is_rounded_up() {
    for (amount, tax) in [(4, 0), (5, 1), (14, 1), (15, 2), (0, 0)] {
        assert_eq!(tax_of(TaxRate { rate_millionths: 100_000, included: false }, amount).unwrap(), tax, "{amount}");
    }
    assert_eq!(part(-1, 1, 2), Err(PricingError::Negative));
    assert_eq!(part(1, 1, 0), Err(PricingError::Overflow));
    assert_eq!(part(i64::MAX, 2, 1), Err(PricingError::Overflow));
    assert_eq!(part(i64::MAX, u64::MAX, u64::MAX), Ok(i64::MAX));
}

#[test]
fn each_rate_has_one_tax_line_and_basket_lines_without_a_rate_are_not_taxed() {
    let standard = TaxRate { rate_millionths: 190_000, included: true };
    let reduced = TaxRate { rate_millionths: 70_000, included: true };
    let lines = [line(1, 1190), line(2, 535), line(1, 300), line(1, 1190)];
    let taxes = Taxes {
        lines: vec![Some(standard), Some(reduced), None, Some(standard)],
        shipping: ShippingTax::Rate(Some(standard)),
        rounding: TaxRounding::Line,
    };
    let priced = discounted(&lines, &[], 0).unwrap().price(595, &taxes).unwrap();
    let by_rate: Vec<_> = priced.tax_lines.iter().map(|line| (line.rate, line.amount, line.tax)).collect();
    assert_eq!(by_rate, [(reduced, 1070, 70), (standard, 2975, 475)]);
    assert_eq!(priced.lines.iter().map(|line| line.tax).collect::<Vec<_>>(), [190, 70, 0, 190]);
    assert_eq!((priced.shipping.tax, priced.totals.total), (95, 1190 + 1070 + 300 + 1190 + 595));
}

#[test]
fn a_shop_without_tax_rules_shows_no_tax() {
    let priced = untaxed(&[line(3, 199)], &[]);
    assert_eq!((priced.totals.tax, priced.totals.total, priced.tax_lines.len()), (0, 597, 0));
}

#[test]
fn apportioned_shipping_has_the_rates_of_the_lines_in_proportion_to_their_prices() {
    let rate = |millionths| Some(TaxRate { rate_millionths: millionths, included: true });
    let (standard, reduced) = (rate(190_000), rate(70_000));
    let price = |amounts: &[i64], rates: &[Option<TaxRate>], shipped: &[usize], rounding| {
        let lines: Vec<_> = amounts.iter().map(|amount| line(1, *amount)).collect();
        let shipping = ShippingTax::Apportioned { lines: shipped.to_vec(), otherwise: standard };
        let taxes = Taxes { lines: rates.to_vec(), shipping, rounding };
        discounted(&lines, &[], 500).unwrap().price(500, &taxes).unwrap().shipping
    };
    let parts = |amounts: &[i64], rates: &[Option<TaxRate>], shipped: &[usize]| {
        let shipping = price(amounts, rates, shipped, TaxRounding::Line);
        shipping.tax_lines.iter().map(|line| (Some(line.rate), line.amount, line.tax)).collect::<Vec<_>>()
    };
    assert_eq!(parts(&[1190, 1070], &[standard, reduced], &[0, 1]), [(reduced, 237, 16), (standard, 263, 42)]);
    assert_eq!(parts(&[1190, 1070], &[standard, reduced], &[1]), [(reduced, 500, 33)], "only this line is shipped");
    assert_eq!(parts(&[100, 100], &[standard, None], &[0, 1]), [(standard, 250, 40)], "the other half is not taxed");
    assert_eq!(parts(&[0, 0], &[reduced, reduced], &[0, 1]), [(standard, 500, 80)], "the goods cost nothing");
    assert_eq!(price(&[1190, 1070], &[standard, reduced], &[0, 1], TaxRounding::Order).tax, 58);
}
