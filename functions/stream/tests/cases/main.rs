//! Tests of the consumer under bad schedules, with scripted sinks, the embedded table and the
//! embedded search engine. The numbers in names are those of the design's list of cases.
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
mod places;
mod publisher;
mod quarantine;
mod sales;
mod store;
mod support;
mod transitions;
