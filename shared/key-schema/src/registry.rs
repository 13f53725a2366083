//! The registry of all access patterns, by area. Tests generate the pages of patterns in the docs and
//! the cost snapshot from it.

use crate::pattern::Pattern;

/// The areas of the table's data, each with its access patterns.
pub const AREAS: &[(&str, &[&[&Pattern]])] = &[
    (
        "customers",
        &[
            crate::customer::PATTERNS,
            crate::verification::PATTERNS,
            crate::residence::PATTERNS,
            crate::session::PATTERNS,
            crate::revocation::PATTERNS,
            crate::erasure::PATTERNS,
        ],
    ),
    (
        "catalogue",
        &[
            crate::product::PATTERNS,
            crate::product::copies::PATTERNS,
            crate::variant::PATTERNS,
            crate::membership::PATTERNS,
            crate::category::PATTERNS,
            crate::category::relocation::PATTERNS,
            crate::review::PATTERNS,
            crate::review::recent::PATTERNS,
            crate::leaderboard::PATTERNS,
        ],
    ),
    (
        "orders",
        &[
            crate::cart::PATTERNS,
            crate::guest_cart::PATTERNS,
            crate::order::PATTERNS,
            crate::order::addresses::PATTERNS,
            crate::order::parts::PATTERNS,
            crate::order::daily_log::PATTERNS,
            crate::order::open::PATTERNS,
            crate::order::staged::PATTERNS,
            crate::invoice::PATTERNS,
            crate::sales::PATTERNS,
            crate::region::PATTERNS,
            crate::pricing::PATTERNS,
            crate::promotion::PATTERNS,
            crate::picking::PATTERNS,
        ],
    ),
    ("payments", &[crate::wallet::PATTERNS]),
    (
        "community",
        &[
            crate::follow::PATTERNS,
            crate::like::PATTERNS,
            crate::graph::PATTERNS,
            crate::question::PATTERNS,
            crate::organization::PATTERNS,
            crate::organization::invitation::PATTERNS,
        ],
    ),
    ("content", &[crate::document::PATTERNS, crate::picture::PATTERNS, crate::media::PATTERNS]),
    (
        "operations",
        &[
            crate::settings::PATTERNS,
            crate::metric::PATTERNS,
            crate::counter::PATTERNS,
            crate::idempotency::PATTERNS,
            crate::expiration::PATTERNS,
            crate::archive::PATTERNS,
            crate::mark::PATTERNS,
            crate::mail::PATTERNS,
            crate::recipient::PATTERNS,
            crate::reach::PATTERNS,
            crate::heartbeat::PATTERNS,
        ],
    ),
];

/// Returns every access pattern.
pub fn all() -> impl Iterator<Item = &'static Pattern> {
    AREAS.iter().flat_map(|(_, lists)| lists.iter()).flat_map(|list| list.iter()).copied()
}
