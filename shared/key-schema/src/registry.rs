//! The list of all access patterns, which docs, model and cost snapshot are generated from.

use crate::pattern::Pattern;

/// Every access pattern, by area.
pub fn all() -> impl Iterator<Item = &'static Pattern> {
    [
        crate::customer::PATTERNS,
        crate::session::PATTERNS,
        crate::cart::PATTERNS,
        crate::product::PATTERNS,
        crate::category::PATTERNS,
        crate::review::PATTERNS,
        crate::order::PATTERNS,
        crate::sales::PATTERNS,
        crate::idempotency::PATTERNS,
        crate::quarantine::PATTERNS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
