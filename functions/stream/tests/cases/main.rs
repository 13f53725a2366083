//! Tests of the consumer under bad schedules of deliveries, with scripted sinks, the embedded table
//! and the embedded search engine.
//!
//! The number in the name of a test stands for a guarantee of the consumer. Tests of one guarantee
//! have the same number in all crates. Tests with the number 11, for instance, deliver a batch
//! twice, and its effects must happen once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod audit;
mod batches;
mod bus;
mod contention;
mod copies;
mod correlation;
mod counters;
mod derived;
mod engine;
mod index;
mod memberships;
mod publisher;
mod quarantine;
mod ranks;
mod regions;
mod sales;
mod store;
mod support;
mod transitions;
mod variants;
