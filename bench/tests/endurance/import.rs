//! Imports 1,000 baskets, some of them large, while the function that places them crashes at every
//! crash point. The totals must equal the data's.
//!
//! To import the real two weeks: `cargo run --release -p bodega-bench -- import --products … --households
//! … --baskets …`.

use std::fmt::Write as _;

use bench::import::import;
use fastrand::Rng;
use serde_json::{Value, json};

use crate::support::{products, start_embedded, stop, write};

const BASKETS: usize = 1_000;
/// As in the data, one basket in thirty has more lines than a transaction takes. The largest has
/// 161.
const LARGE: usize = 33;
const LARGEST: usize = 161;
const PRODUCTS: usize = 300;
const SEED: u64 = 31;

#[tokio::test(flavor = "multi_thread")]
async fn baskets_of_every_size_are_placed_exactly_while_functions_die() {
    let system = start_embedded().await;
    let folder = std::env::temp_dir().join(format!("bodega-import-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let products = write(&folder, "products.csv", &products(PRODUCTS));
    let baskets = write(&folder, "baskets.ndjson", &baskets(&mut Rng::with_seed(SEED)));
    let totals = import(&system, &products, None, &baskets, 15, SEED).await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    println!("{totals}");
    assert!(totals.is_equal(), "{totals}");
    assert_eq!((totals.orders, totals.large), (BASKETS, LARGE));
    assert!(totals.crashes > 0, "nothing died");
    stop(system).await;
}

fn baskets(rng: &mut Rng) -> String {
    let mut lines = String::new();
    for basket in 0..BASKETS {
        let first = rng.usize(0..PRODUCTS);
        let count = match basket {
            0 => LARGEST,
            _ if basket % (BASKETS / LARGE) == 0 && basket / (BASKETS / LARGE) < LARGE => rng.usize(48..LARGEST),
            _ => rng.usize(1..9),
        };
        let bought: Vec<Value> = (0..count)
            .map(|n| json!({"product_id": (first + n) % PRODUCTS + 1, "quantity": n % 3 + 1, "sales_value": 1.25}))
            .collect();
        let placed_at = format!("2017-01-{:02}T{:02}:00:00Z", basket / 80 + 1, basket % 24);
        let basket = json!({
            "basket_id": 32_000_000_000_u64 + u64::try_from(basket).unwrap(), "household_id": rng.u32(1..=50),
            "store_id": rng.u32(1..=6), "placed_at": placed_at, "lines": bought,
        });
        writeln!(lines, "{basket}").unwrap();
    }
    lines
}
