pub mod archive;
pub mod counter;
pub mod expiration;
pub mod heartbeat;
pub mod idempotency;
pub mod lists;
pub mod mail;
pub mod mark;
pub mod metric;
pub mod month;
pub mod recipient;
pub mod settings;

use crate::pattern::Pattern;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[
    settings::PATTERNS,
    metric::PATTERNS,
    counter::PATTERNS,
    idempotency::PATTERNS,
    expiration::PATTERNS,
    archive::PATTERNS,
    mark::PATTERNS,
    mail::PATTERNS,
    recipient::PATTERNS,
    crate::reach::PATTERNS,
    heartbeat::PATTERNS,
];
