//! Relations between customers: follows, likes, organizations and questions.

use crate::pattern::Pattern;

pub mod follow;
pub mod graph;
pub mod like;
pub mod organization;
pub mod question;

pub(crate) const PATTERNS: &[&[&Pattern]] = &[
    follow::PATTERNS,
    like::PATTERNS,
    graph::PATTERNS,
    question::PATTERNS,
    organization::PATTERNS,
    organization::invitation::PATTERNS,
];
