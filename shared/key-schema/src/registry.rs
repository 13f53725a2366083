//! The registry of all access patterns, by area. Tests generate the pages of patterns in the docs and
//! the cost snapshot from it.

use crate::pattern::Pattern;
use crate::{agents, catalogue, community, content, customers, operations, orders, payments, webhooks};

/// The areas of the table's data, each with its access patterns.
pub const AREAS: &[(&str, &[&[&Pattern]])] = &[
    ("customers", customers::PATTERNS),
    ("catalogue", catalogue::PATTERNS),
    ("orders", orders::PATTERNS),
    ("payments", payments::PATTERNS),
    ("community", community::PATTERNS),
    ("content", content::PATTERNS),
    ("agents", agents::PATTERNS),
    ("webhooks", webhooks::PATTERNS),
    ("operations", operations::PATTERNS),
];

/// Returns every access pattern.
pub fn all() -> impl Iterator<Item = &'static Pattern> {
    AREAS.iter().flat_map(|(_, lists)| lists.iter()).flat_map(|list| list.iter()).copied()
}
