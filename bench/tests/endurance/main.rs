//! Whole systems under load, faults and kills. One program, because each links all of Bodega, and most
//! of the time these tests wait.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod consumer;
mod import;
mod money;
mod replay;
mod schedules;
mod support;
