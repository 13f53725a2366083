//! Measures every route with a few requests. Every request must be counted, and the shop must have
//! exactly the placed orders. The test is a separate program, because the load of other tests could
//! make its requests fail.
//!
//! To compare with Node.js and Python: `cargo run --release -p bodega-bench -- latency`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "endurance/support.rs"]
mod support;

use bench::latency::{Plan, Route, Row, Server, measure};

use support::{start_embedded, stop};

const REQUESTS: u64 = 10;
const CLIENTS: [u16; 2] = [1, 3];

#[tokio::test(flavor = "multi_thread")]
async fn each_route_is_measured_with_each_number_of_clients_and_every_request_is_counted_once() {
    let system = start_embedded().await;
    let plan = Plan {
        requests: REQUESTS,
        // This is long enough for any machine, because a slow machine is not a failure.
        seconds: 3_600,
        warm: 1,
        clients: CLIENTS.to_vec(),
        environments: 3,
        only: String::new(),
        products: 8,
        customers: 2,
        orders: 2,
    };
    // `measure` fails by itself on an unexpected response or a wrong stock.
    let rows = measure(&system, &plan, &[]).await.unwrap();
    let measured: Vec<(u16, Route)> = rows.iter().map(|row| (row.clients, row.route)).collect();
    let expected: Vec<(u16, Route)> =
        CLIENTS.into_iter().flat_map(|clients| Route::ALL.map(|route| (clients, route))).collect();
    assert_eq!(measured, expected);
    for row in &rows {
        let Row { server, requests, requests_per_second, p50_ms, p90_ms, p99_ms, max_ms, cpu_us, processes, .. } = row;
        assert_eq!((*server, *requests), (Server::Bodega, usize::try_from(REQUESTS).unwrap()), "{row:?}");
        assert!(0.0 < *p50_ms && p50_ms <= p90_ms && p90_ms <= p99_ms && p99_ms <= max_ms, "{row:?}");
        assert!(*requests_per_second > 0.0 && *cpu_us > 0.0, "{row:?}");
        assert!((1..=3).contains(processes), "{row:?}");
    }
    stop(system).await;
}
