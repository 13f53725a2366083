//! Imports a history of 1,000 baskets. The consumer then processes the recorded stream twice more,
//! with the batches in random order.
//!
//! To replay the real two weeks: `cargo run --release -p bodega-bench -- replay --products … --households
//! … --baskets …`.

use std::fmt::Write as _;

use bench::replay::{Shop, compare, record, replay};
use fastrand::Rng;
use local::import::{ImportArgs, run};
use serde_json::{Value, json};

use crate::support::{Clients, ended_session, products, start, stop, template, write};

const BASKETS: usize = 1_000;
const PRODUCTS: usize = 400;
const HOUSEHOLDS: u32 = 50;
const STORES: u32 = 6;
/// Records in a batch.
const BATCH: usize = 100;
/// Sessions that expire after the import.
const SESSIONS: usize = 20;
/// Cancelled orders. Their sales are subtracted again.
const CANCELLED: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_baskets_replayed_twice_in_random_order_leave_everything_equal_to_the_table() {
    let system = start().await;
    let clients = Clients::new(&system);
    let folder = std::env::temp_dir().join(format!("bodega-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files = ImportArgs {
        port: 0,
        products: Some(write(&folder, "products.csv", &products(PRODUCTS))),
        households: None,
        baskets: Some(write(&folder, "baskets.ndjson", &baskets(&mut Rng::with_seed(11)))),
        limit: None,
        stock: 1_000_000,
        data: None,
    };
    // The exit code has no `PartialEq`. The assertions below count the imported records.
    let _ = run(files, system.url(), system.token("import", &["staff".to_owned()])).await;
    std::fs::remove_dir_all(&folder).unwrap();
    cancel(&clients).await;
    for n in 0..SESSIONS {
        ended_session(&system, &format!("s{n}")).await;
    }
    clients.local("POST", "/_local/ttl-sweep", None).await;

    let shop = Shop::of(&system).await.unwrap();
    shop.drain().await.unwrap();
    let recorded = record(&system, &template(), &shop).await.unwrap();
    let once = compare(&shop, &recorded).await.unwrap();
    assert!(once.is_equal(), "{once}");
    assert_eq!(once.published, once.events, "nothing failed, so nothing was published twice");
    let expected = (u64::try_from(BASKETS + PRODUCTS).unwrap(), BASKETS + CANCELLED);
    assert_eq!((once.documents, once.events), expected, "{once}");
    assert_eq!(once.expirations, SESSIONS);
    for seed in [1, 2] {
        replay(&system, &recorded, BATCH, seed).await.unwrap();
        shop.drain().await.unwrap();
        // Published events are marked, so they are not published again either.
        assert_eq!(compare(&shop, &recorded).await.unwrap(), once, "seed {seed}");
    }
    stop(system).await;
}

async fn cancel(clients: &Clients) {
    let page =
        clients.staff("GET", &format!("/v1/orders?status=pending&limit={CANCELLED}"), &[], None).await.expect(200);
    for order in page.body["items"].as_array().unwrap() {
        let version = [("if-match", "\"1\"".to_owned())];
        let path = format!("/v1/orders/{}/status", order["id"].as_str().unwrap());
        clients.staff("POST", &path, &version, Some(&json!({"to": "cancelled"}))).await.expect(200);
    }
}

fn baskets(rng: &mut Rng) -> String {
    let mut lines = String::new();
    for basket in 0..BASKETS {
        let first = rng.usize(0..PRODUCTS);
        let line = |n: usize| {
            let quantity = n % 3 + 1;
            json!({"product_id": (first + n * 7) % PRODUCTS + 1, "quantity": quantity, "sales_value": 1.25})
        };
        let bought: Vec<Value> = (0..rng.usize(1..9)).map(line).collect();
        let placed_at = format!("2017-01-{:02}T{:02}:00:00Z", basket / 80 + 1, basket % 24);
        let basket = json!({
            "basket_id": 31_000_000_000_u64 + u64::try_from(basket).unwrap(), "household_id": rng.u32(1..=HOUSEHOLDS),
            "store_id": rng.u32(1..=STORES), "placed_at": placed_at, "lines": bought,
        });
        writeln!(lines, "{basket}").unwrap();
    }
    lines
}
