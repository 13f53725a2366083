//! Tests of the price of a basket.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod promotions;
mod properties;
mod shipping;
mod taxes;

use std::sync::LazyLock;

use key_schema::money::{Currency, Money};
use key_schema::order::{TaxRate, TaxRounding};
use key_schema::product::{CategoryPath, Product};
use key_schema::promotion::{Conditions, Goods, Promotion, Reduction};
use pricing::{Discounted, Priced, PricingError, ShippingTax, Taxes};

/// The products of the lines, by position.
static PRODUCTS: LazyLock<Vec<Product>> = LazyLock::new(|| {
    let category = CategoryPath::new(vec!["GROCERY".to_owned()]).unwrap();
    let product = |at: usize| {
        let (id, price) = (format!("p{at}").parse().unwrap(), usd(129));
        Product::new(id, "Ice".to_owned(), "Private".to_owned(), price, category.clone())
    };
    (0..10).map(product).collect()
});

/// A basket line, whose product is the one at the line's position.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub quantity: u64,
    pub amount: i64,
    pub grams: u64,
}

pub const fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

pub const fn amount(amount: i64) -> Reduction {
    Reduction::Amount(usd(amount))
}

/// Returns a basket line of `quantity` pieces at `unit_price` each.
pub fn line(quantity: u64, unit_price: i64) -> Line {
    Line { quantity, amount: unit_price * i64::try_from(quantity).unwrap(), grams: 0 }
}

/// Returns a promotion that applies to the lines at these positions.
pub fn promotion(reduction: Reduction, lines: &[usize]) -> Promotion {
    Promotion {
        id: "p".parse().unwrap(),
        code: None,
        name: "Summer".to_owned(),
        reduction,
        applies_to: Goods::Products(lines.iter().map(|at| PRODUCTS[*at].id.clone()).collect()),
        conditions: Conditions::default(),
        limit_total: None,
        limit_per_customer: None,
        limit_since: 0,
        exclusive: false,
        priority: 0,
    }
}

/// Adds a minimum to a promotion.
pub fn from_amount(amount: i64, promotion: Promotion) -> Promotion {
    Promotion { conditions: Conditions { min_amount: Some(usd(amount)), ..Conditions::default() }, ..promotion }
}

/// Prices the discounts of lines. `shipping` returns the price of shipping.
pub fn discounted_with(
    lines: &[Line],
    promotions: &[Promotion],
    shipping: impl Fn(i64, i64) -> i64,
) -> Result<Discounted, PricingError> {
    let line = |(Line { quantity, amount, grams }, product): (&Line, _)| pricing::Line {
        product,
        quantity: *quantity,
        amount: *amount,
        grams: *grams,
    };
    let lines: Vec<_> = lines.iter().zip(PRODUCTS.iter()).map(line).collect();
    Discounted::new(&lines, Currency::USD, &promotions.iter().collect::<Vec<_>>(), shipping)
}

/// Returns one rate for every line and for shipping.
pub fn one_rate(lines: usize, rate: TaxRate, rounding: TaxRounding) -> Taxes {
    Taxes { lines: vec![Some(rate); lines], shipping: ShippingTax::Rate(Some(rate)), rounding }
}

/// Applies promotions to lines whose shipping has one price.
pub fn discounted(lines: &[Line], promotions: &[Promotion], shipping: i64) -> Result<Discounted, PricingError> {
    discounted_with(lines, promotions, |_, _| shipping)
}

/// Prices lines without shipping and without tax.
pub fn untaxed(lines: &[Line], promotions: &[Promotion]) -> Priced {
    let taxes = Taxes { lines: Vec::new(), shipping: ShippingTax::Rate(None), rounding: TaxRounding::Line };
    discounted(lines, promotions, 0).unwrap().price(0, &taxes).unwrap()
}

/// Returns the discount of each line.
pub fn discounts(priced: &Priced) -> Vec<i64> {
    priced.lines.iter().map(|line| line.discount).collect()
}
