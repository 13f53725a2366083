//! The consumer under bad schedules: what it must get right, case by case, against scripted sinks, the embedded table and the embedded search
//! engine. The numbers are those of the list of cases that the design keeps for its stream consumer.
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
