//! Money, the wallets that hold it, and the payments of orders.

use crate::pattern::Pattern;

pub mod money;
pub mod payment;
pub mod wallet;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[wallet::PATTERNS];
