pub mod agent;
pub mod checkout_session;

use crate::pattern::Pattern;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[agent::PATTERNS, checkout_session::PATTERNS];
