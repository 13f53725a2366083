//! The consumer under bad schedules: what it must get right, case by case, against scripted sinks, the embedded table and the embedded search
//! engine. The numbers are those of the list of cases that the design keeps for its stream consumer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod batches;
mod engine;
mod index;
mod quarantine;
mod sales;
mod support;
