pub mod cart;
pub mod guest_cart;
pub mod invoice;
pub mod order;
pub mod picking;
pub mod pricing;
pub mod promotion;
pub mod region;
pub mod sales;

use crate::pattern::Pattern;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[
    cart::PATTERNS,
    guest_cart::PATTERNS,
    order::PATTERNS,
    order::addresses::PATTERNS,
    order::guest::PATTERNS,
    order::parts::PATTERNS,
    order::daily_log::PATTERNS,
    order::open::PATTERNS,
    order::staged::PATTERNS,
    invoice::PATTERNS,
    sales::PATTERNS,
    region::PATTERNS,
    pricing::PATTERNS,
    promotion::PATTERNS,
    picking::PATTERNS,
];
