pub mod category;
pub mod leaderboard;
pub mod location;
pub mod membership;
pub mod product;
pub mod review;
pub mod variant;

use crate::pattern::Pattern;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[
    product::PATTERNS,
    product::copies::PATTERNS,
    product::old_stock::PATTERNS,
    variant::PATTERNS,
    membership::PATTERNS,
    category::PATTERNS,
    category::relocation::PATTERNS,
    review::PATTERNS,
    review::recent::PATTERNS,
    leaderboard::PATTERNS,
    location::PATTERNS,
];
