//! Money, the wallets that hold it, and the payments of orders.

use crate::pattern::Pattern;

mod ledger;
pub mod money;
mod operation;
pub mod payment;
pub mod provider_event;
pub mod wallet;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[wallet::PATTERNS, payment::PATTERNS, provider_event::PATTERNS];
