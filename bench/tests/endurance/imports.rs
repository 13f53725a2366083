//! Imports 120 baskets. In one test, some baskets are large, and the function that places the orders
//! crashes at random at its crash points. In the other test, the consumer then processes the recorded
//! stream twice more, with the batches in random order.
//!
//! To import or replay files of the "Complete Journey" data set (docs/local-system.md):
//! `cargo run --release -p bodega-bench -- import --products … --households … --baskets …`, or
//! `replay` with the same options.

use bench::import::import;
use bench::replay::{Shop, compare, record, replay};
use local::import::{ImportArgs, run};
use serde_json::json;

use crate::history::History;
use crate::support::{Clients, ended_session, start, start_embedded, stop, template};

const BASKETS: usize = 120;
/// One basket in thirty has more lines than fit into a transaction, as in the "Complete Journey"
/// data set. The largest has 161 lines.
const LARGE: usize = 4;
const LARGEST: usize = 161;
const BATCH: usize = 100;
/// Sessions that expire after the import.
const SESSIONS: usize = 20;
/// Cancelled orders. Their sales are subtracted again.
const CANCELLED: usize = 15;

#[tokio::test(flavor = "multi_thread")]
async fn baskets_of_every_size_are_placed_exactly_once_while_functions_crash() {
    const SEED: u64 = 31;
    let system = start_embedded().await;
    let files = History::write(SEED, 200, BASKETS, |basket, rng| match basket {
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

#[tokio::test(flavor = "multi_thread")]
async fn baskets_replayed_twice_in_random_order_leave_everything_equal_to_the_table() {
    const PRODUCTS: usize = 80;
    let system = start().await;
    let clients = Clients::new(&system);
    let history = History::write(11, PRODUCTS, BASKETS, |_, rng| rng.usize(1..9));
    let files = ImportArgs {
        port: 0,
        products: Some(history.products()),
        households: None,
        baskets: Some(history.baskets()),
        limit: None,
        stock: 1_000_000,
        data: None,
    };
    // An `ExitCode` cannot be compared. The assertions below count the imported records.
    let _ = run(files, system.url(), system.token("import", &["staff".to_owned()])).await;
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
    // An order that is placed has an event.
    let expected = (u64::try_from(BASKETS + PRODUCTS).unwrap(), BASKETS + CANCELLED);
    assert_eq!((once.documents, once.events), expected, "{once}");
    assert_eq!(once.expirations, SESSIONS);
    for seed in [1, 2] {
        replay(&system, &recorded, BATCH, seed).await.unwrap();
        shop.drain().await.unwrap();
        // The consumer marked the published events, so a replay does not publish them again.
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
