//! The notifier over a real table and a post office that does as it is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod crashes;
mod messages;
mod ses;
mod support;
