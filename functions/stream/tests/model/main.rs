//! Tests of every schedule of two small histories, with the consumer's own code on ports in memory.
//!
//! A history has two shards, three changing items, six writes to them, and deliveries of every
//! length. The deliveries of both shards and these writes are interleaved call by call. The tests
//! explore each history in two ways. In the first, a schedule has one crash and one repetition. The
//! delivery crashes between any two of its calls, or before its response arrives. Any earlier
//! records are delivered again at any later time. In the second, one call fails completely or in
//! part.
//!
//! The search skips schedules that are equivalent to others ([`territory`] explains why). For
//! shorter histories the tests also explore all schedules, and compare the ends.
//!
//! The tests print the extent of each search:
//! `cargo test -p bodega-stream --test model -- --nocapture`. The largest search takes minutes and
//! runs only with `--ignored`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod check;
mod explore;
mod history;
mod memory;
mod ports;
mod process;
mod run;
mod territory;
mod world;

use explore::{Bounds, Explored, explore};
use history::History;

/// Explores a history, which must have at least `least` states.
fn explored(name: &str, history: &History, bounds: Bounds, least: usize) -> Explored {
    let explored = explore(history, bounds);
    println!("{name}, {bounds:?}: {explored}");
    assert!(explored.states >= least && explored.ends > 1, "{explored}");
    explored
}

const REDUCED: Bounds = Bounds { crashes: 0, repeats: 0, failures: 0, side_by_side: true, reduced: true };
const CRASH_AND_REPETITION: Bounds = Bounds { crashes: 1, repeats: 1, ..REDUCED };
const FAILURE: Bounds = Bounds { failures: 1, ..REDUCED };

#[tokio::test(start_paused = true)]
async fn case_39_orders_and_sessions_match_their_history_after_any_crash_and_repetition() {
    explored("sold and cancelled", &history::sold_and_cancelled(), CRASH_AND_REPETITION, 100);
}

#[tokio::test(start_paused = true)]
async fn case_39_copies_equal_their_sources_after_any_crash_and_repetition() {
    explored(
        "copied from elsewhere, less",
        &history::copied_from_elsewhere().shortened([2, 2]),
        CRASH_AND_REPETITION,
        1_000,
    );
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes"]
async fn case_39_copies_equal_their_sources_in_longer_histories_with_crash_and_repetition() {
    explored("copied from elsewhere", &history::copied_from_elsewhere(), CRASH_AND_REPETITION, 100_000);
}

#[tokio::test(start_paused = true)]
async fn case_39_orders_and_sessions_match_their_history_after_any_failure() {
    explored("sold and cancelled", &history::sold_and_cancelled(), FAILURE, 100);
}

#[tokio::test(start_paused = true)]
async fn case_39_copies_equal_their_sources_after_any_failure() {
    explored("copied from elsewhere, less", &history::copied_from_elsewhere().shortened([2, 3]), FAILURE, 100);
}

/// The skipped schedules have the same ends as the explored ones.
///
/// Each kind of schedule has its own test, so that these long searches run on several cores.
mod skipped_schedules_have_the_same_ends_as_explored_ones {
    use super::{Bounds, CRASH_AND_REPETITION, FAILURE, History, REDUCED, explored, history};

    fn compare(name: &str, history: &History, bounds: Bounds) {
        let whole = explored(name, history, Bounds { reduced: false, ..bounds }, 1);
        let reduced = explored(name, history, bounds, 1);
        assert_eq!(whole.endings, reduced.endings, "{name} {bounds:?}");
        assert!(reduced.states < whole.states);
    }

    #[tokio::test(start_paused = true)]
    async fn orders_without_crash_or_failure() {
        compare("sold and cancelled, less", &history::sold_and_cancelled().shortened([2, 1]), REDUCED);
    }

    #[tokio::test(start_paused = true)]
    async fn orders_with_a_crash_and_a_repetition() {
        compare("sold and cancelled, less", &history::sold_and_cancelled().shortened([1, 1]), CRASH_AND_REPETITION);
    }

    #[tokio::test(start_paused = true)]
    async fn orders_with_a_failure() {
        compare("sold and cancelled, less", &history::sold_and_cancelled().shortened([1, 1]), FAILURE);
    }

    #[tokio::test(start_paused = true)]
    async fn copies_without_crash_or_failure() {
        compare("copied from elsewhere, less", &history::copied_from_elsewhere().shortened([2, 2]), REDUCED);
    }

    #[tokio::test(start_paused = true)]
    async fn copies_with_a_crash_and_a_repetition() {
        compare(
            "copied from elsewhere, less",
            &history::copied_from_elsewhere().shortened([1, 1]),
            CRASH_AND_REPETITION,
        );
    }

    #[tokio::test(start_paused = true)]
    async fn copies_with_a_failure() {
        compare("copied from elsewhere, less", &history::copied_from_elsewhere().shortened([1, 1]), FAILURE);
    }
}
