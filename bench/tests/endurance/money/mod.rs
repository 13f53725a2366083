//! Orders and money under random concurrent clients: orders of 1 to 400 lines, carts that are checked out, cancellations, returns, payments, refunds,
//! invoices, deposits, transfers, by staff and by owners, requests sent twice, clients that go away; functions that die at every named point, the
//! janitor at any moment, and a table that throttles, conflicts and loses answers.
//!
//! The model is small: every request that creates something has a key of its own, and in the end each key must have been done once or not at all. What
//! a client does not know it asks again with the same key, after the trouble, and is then told. A cart is checked out without a key as well: it is
//! filled once, so that it becomes one order or stays. At the end every effect is known, and the table is compared with them, item by item.
//!
//! Beside the pinned seeds a shorter schedule of a fresh seed runs each time. Before a schedule begins, what it takes to run it again is printed:
//! `BODEGA_SEED` and `BODEGA_STEPS`, for `cargo test -p bench --test endurance money`.

mod books;
mod goods;
mod purse;
mod steps;
mod tampered;
mod troubles;
mod world;

use bench::replay::Shop;
use fastrand::Rng;
use futures::StreamExt as _;

use self::books::{Books, Report};
use self::world::World;
use crate::support::{start_embedded, stop};

/// A seed that once found something stays here.
const SEEDS: [u64; 1] = [4];
/// A step is a call or some: with those of the fresh seed a run makes well over 10,000 calls, which it counts.
const STEPS: usize = 6_000;
const CALLS: u64 = 10_000;
/// The schedule of the fresh seed is shorter by this.
const FRESH: usize = 10;
/// Calls under way at once.
const CLIENTS: usize = 16;

#[test]
fn whatever_clients_crashes_and_faults_do_goods_and_money_are_exact() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let steps = number("BODEGA_STEPS").map_or(STEPS, |steps| usize::try_from(steps).unwrap());
    let runs = match number("BODEGA_SEED") {
        Some(seed) => vec![(seed, steps)],
        None => SEEDS.map(|seed| (seed, steps)).into_iter().chain([(fastrand::u64(..), steps / FRESH)]).collect(),
    };
    let mut calls = 0;
    for (seed, steps) in runs {
        println!("BODEGA_SEED={seed} BODEGA_STEPS={steps}");
        calls += run(seed, steps);
    }
    println!("{calls} calls");
    if steps >= STEPS {
        assert!(calls >= CALLS, "{calls} calls");
    }
}

#[tokio::main]
async fn run(seed: u64, steps: usize) -> u64 {
    let system = start_embedded().await;
    let world = World::open(&system, steps).await;
    let mut rng = Rng::with_seed(seed);
    let schedule: Vec<(u64, u8)> = (0..steps).map(|_| (rng.u64(..), rng.u8(0..100))).collect();
    futures::stream::iter(schedule)
        .for_each_concurrent(CLIENTS, |(seed, dice)| world.step(Rng::with_seed(seed), dice))
        .await;
    world.clients.local("DELETE", "/_local/faults", None).await;
    world.settle().await;
    let shop = Shop::of(&system).await.unwrap();
    let books = Books::of(&shop).await;
    let report = books.compare(&world);
    println!("{report}");
    assert!(report.wrong.is_empty(), "BODEGA_SEED={seed} BODEGA_STEPS={steps}\n{report}");
    let seen = books.tampered(&world);
    println!("{seen} changes of the table, and all of them are found");
    // With a schedule of some length everything that can happen has happened.
    if steps >= STEPS {
        assert_eq!(seen, Books::TAMPERINGS, "{report}");
        let goods = [report.large, report.giant, report.undone, report.giant_undone, report.checked_out];
        let money = [report.refused, report.payments, report.refunds, report.remainders, report.invoices];
        assert!(goods.iter().chain(&money).all(|count| *count > 0), "{report}");
    }
    stop(system).await;
    world.clients.calls.into_inner()
}
