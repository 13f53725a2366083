//! Tests of whole systems under load, faults and crashes. They share one program, because each test
//! program links all of Bodega.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod history;
mod imports;
mod money;
mod schedules;
mod support;
