//! The price of a basket: discounts, shipping and tax.
//!
//! All amounts are whole minor units of one currency (cents for USD), and no amount is negative.
//! This crate does no I/O and knows no customer: the caller chooses the promotions that the customer
//! may use, the shipping method and the tax rates that apply. Promotions, rates and tax lines are
//! those of `key-schema`. The price is computed in this order:
//!
//! 1. **Items.** The caller gives the price of each line, which is quantity times unit price.
//! 2. **Discounts** ([`Discounted`]). Each promotion reduces the prices that its lines have after
//!    the earlier promotions. Its discount is spread over these lines to the minor unit. Promotions
//!    that would reduce nothing are left out.
//! 3. **Shipping** ([`Rates`]). The price depends on the weight, or on the amount after discounts.
//! 4. **Tax** ([`Taxes`]). The tax of a line is computed from its amount after discounts. Prices
//!    may include the tax. The tax is rounded half up, either for each line or once for each rate
//!    of the order. Shipping has a rate of its own, or the rates of the lines.
//!
//! Every total is the sum of its parts. Property tests check this for random baskets:
//!
//! - The discounts of the lines and of shipping add up to the discounts of the promotions.
//! - The taxes of the lines and of shipping add up to the tax lines.
//! - The totals of the lines and of shipping add up to the total of the basket.

mod arithmetic;
mod basket;
mod promotions;
mod shipping;
mod tax;

pub use arithmetic::{part, spread};
pub use basket::{Discounted, Line, Priced, PricedLine, PricedShipping, Totals};
pub use promotions::Unused;
pub use shipping::{Rate, Rates, Tier};
pub use tax::{ShippingTax, Taxes, tax_of};

/// One hundred percent, in basis points.
pub const WHOLE: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PricingError {
    /// An amount does not fit in 64 bits.
    #[error("the amount is too large")]
    Overflow,
    #[error("an amount is negative")]
    Negative,
    /// An amount is to be spread over parts that are all zero.
    #[error("an amount cannot be spread over parts that are all zero")]
    Unspreadable,
}
