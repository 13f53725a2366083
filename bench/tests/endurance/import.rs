//! Imports 120 baskets, some of them large. Meanwhile the function that places the orders crashes
//! at random at its crash points. The totals must equal those of the files.
//!
//! To import files of the "Complete Journey" data set (docs/local-system.md):
//! `cargo run --release -p bodega-bench -- import --products … --households … --baskets …`.

use bench::import::import;

use crate::history::History;
use crate::support::{start_embedded, stop};

const BASKETS: usize = 120;
/// One basket in thirty has more lines than fit into a transaction, as in the "Complete Journey"
/// data set. The largest has 161 lines.
const LARGE: usize = 4;
const LARGEST: usize = 161;
const PRODUCTS: usize = 200;
const SEED: u64 = 31;

#[tokio::test(flavor = "multi_thread")]
async fn baskets_of_every_size_are_placed_exactly_once_while_functions_crash() {
    let system = start_embedded().await;
    let files = History::write(SEED, PRODUCTS, BASKETS, |basket, rng| match basket {
        0 => LARGEST,
        _ if basket % (BASKETS / LARGE) == 0 && basket / (BASKETS / LARGE) < LARGE => rng.usize(48..LARGEST),
        _ => rng.usize(1..9),
    });
    let totals = import(&system, &files.products(), None, &files.baskets(), 15, SEED).await.unwrap();
    println!("{totals}");
    assert!(totals.is_equal(), "{totals}");
    assert_eq!((totals.orders, totals.large), (BASKETS, LARGE));
    assert!(totals.crashes > 0, "no function crashed");
    stop(system).await;
}
