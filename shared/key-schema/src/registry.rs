//! The registry of all access patterns. Tests generate the list of patterns in the docs and the
//! cost snapshot from it.

use crate::pattern::Pattern;

/// Returns every access pattern, by area.
pub fn all() -> impl Iterator<Item = &'static Pattern> {
    [
        crate::customer::PATTERNS,
        crate::verification::PATTERNS,
        crate::residence::PATTERNS,
        crate::session::PATTERNS,
        crate::revocation::PATTERNS,
        crate::cart::PATTERNS,
        crate::guest_cart::PATTERNS,
        crate::product::PATTERNS,
        crate::product::copies::PATTERNS,
        crate::variant::PATTERNS,
        crate::membership::PATTERNS,
        crate::picture::PATTERNS,
        crate::media::PATTERNS,
        crate::category::PATTERNS,
        crate::category::relocation::PATTERNS,
        crate::review::PATTERNS,
        crate::review::recent::PATTERNS,
        crate::leaderboard::PATTERNS,
        crate::order::PATTERNS,
        crate::order::addresses::PATTERNS,
        crate::order::parts::PATTERNS,
        crate::order::daily_log::PATTERNS,
        crate::order::open::PATTERNS,
        crate::order::staged::PATTERNS,
        crate::invoice::PATTERNS,
        crate::sales::PATTERNS,
        crate::place::PATTERNS,
        crate::pricing::PATTERNS,
        crate::promotion::PATTERNS,
        crate::wallet::PATTERNS,
        crate::follow::PATTERNS,
        crate::like::PATTERNS,
        crate::graph::PATTERNS,
        crate::question::PATTERNS,
        crate::settings::PATTERNS,
        crate::metric::PATTERNS,
        crate::counter::PATTERNS,
        crate::idempotency::PATTERNS,
        crate::expiration::PATTERNS,
        crate::erasure::PATTERNS,
        crate::archive::PATTERNS,
        crate::mark::PATTERNS,
        crate::mail::PATTERNS,
        crate::recipient::PATTERNS,
        crate::picking::PATTERNS,
        crate::organization::PATTERNS,
        crate::organization::invitation::PATTERNS,
        crate::document::PATTERNS,
        crate::reach::PATTERNS,
        crate::heartbeat::PATTERNS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
