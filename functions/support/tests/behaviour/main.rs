//! Tests of the function through its routes, over a table that is created from the template.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod answers;
mod concurrency;
mod desk;
mod lists;
mod questions;

use fixture::Recorder;

use crate::desk::{Desk, answer, ask, open, question, questions_of, support_of};

#[tokio::test]
async fn every_route_uses_exactly_the_recorded_patterns() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    let mut recorder = Recorder::new(&desk);
    for call in [
        ask("ann", "Ice").header("idempotency-key", "k1"),
        ask("ann", "Ice").header("idempotency-key", "k1"),
        answer(&id, "No.").header("idempotency-key", "k2"),
        answer(&id, "No.").header("idempotency-key", "k2"),
        questions_of("ann").staff("s1"),
        support_of("ann").staff("s1"),
        open().staff("s1"),
        question(&id).staff("s1"),
    ] {
        recorder.ok(call).await;
    }
    recorder.assert_recorded();
}
