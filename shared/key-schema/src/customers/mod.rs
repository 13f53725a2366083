pub mod address;
pub mod code;
pub mod customer;
pub mod erasure;
pub mod quota;
pub mod residence;
pub mod revocation;
pub mod session;
pub mod verification;

use crate::pattern::Pattern;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[
    customer::PATTERNS,
    verification::PATTERNS,
    residence::PATTERNS,
    session::PATTERNS,
    revocation::PATTERNS,
    erasure::PATTERNS,
];
