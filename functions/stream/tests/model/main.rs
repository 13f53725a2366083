//! Every schedule of small worlds, against the consumer's own code with its ports in memory.
//!
//! Two shards, three items, six writes of the shop, deliveries of every length. Each world is explored
//!
//! - with a crash between any two calls of any delivery or before its answer arrives, and a repetition of any stretch at any later time, the deliveries of
//!   the two shards in every order;
//! - with the deliveries of both shards, and the shop's writes, interleaved call by call; once as it is, once with a crash, once with a repetition.
//!
//! What was explored is printed: `cargo test -p stream --test model -- --nocapture`. Everything at once, for whoever has the time:
//! `cargo test -p stream --test model -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod check;
mod explore;
mod history;
mod memory;
mod ports;
mod process;
mod records;
mod run;
mod world;

use explore::{Bounds, explore};
use history::History;

/// Explores a world; it has at least this many states.
fn explored(name: &str, history: &History, bounds: Bounds, least: usize) {
    let explored = explore(history, bounds);
    println!("{name}, {bounds:?}: {explored}");
    assert!(explored.states >= least && explored.ends > 1, "{explored}");
}

const ONE_AFTER_THE_OTHER: Bounds = Bounds { crashes: 1, repeats: 1, side_by_side: false };
const SIDE_BY_SIDE: Bounds = Bounds { crashes: 0, repeats: 0, side_by_side: true };

#[tokio::test(start_paused = true)]
async fn case_39_a_crash_and_a_repetition_anywhere_leave_orders_and_sessions_as_the_history_says() {
    explored("sold and cancelled", &history::sold_and_cancelled(), ONE_AFTER_THE_OTHER, 1_000);
}

#[tokio::test(start_paused = true)]
async fn case_39_a_crash_and_a_repetition_anywhere_leave_copies_as_their_sources_say() {
    explored("copied from elsewhere", &history::copied_from_elsewhere(), ONE_AFTER_THE_OTHER, 1_000);
}

#[tokio::test(start_paused = true)]
async fn case_39_consumers_side_by_side_leave_orders_and_sessions_as_the_history_says() {
    explored("sold and cancelled", &history::sold_and_cancelled(), SIDE_BY_SIDE, 1_000);
}

#[tokio::test(start_paused = true)]
async fn case_39_consumers_side_by_side_leave_copies_as_their_sources_say() {
    explored("copied from elsewhere", &history::copied_from_elsewhere(), SIDE_BY_SIDE, 1_000);
}

#[tokio::test(start_paused = true)]
#[ignore = "takes hours: everything at once"]
async fn case_39_everything_at_once() {
    let bounds = Bounds { crashes: 1, repeats: 1, side_by_side: true };
    explored("sold and cancelled", &history::sold_and_cancelled(), bounds, 1_000);
    explored("copied from elsewhere", &history::copied_from_elsewhere(), bounds, 1_000);
}
