//! Tests of the read at a function's start. The read opens the connection for the first client
//! request. A failure of the read delays the start only briefly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Config;
use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use key_schema::{customer, reach};
use table::Table;
use tokio::net::{TcpListener, TcpStream};

use crate::data;

/// Starts a proxy to the table. Returns its address and the number of its connections.
async fn counted(endpoint: &str) -> (String, Arc<AtomicU32>) {
    let upstream = endpoint.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, connections) = (format!("http://{}", listener.local_addr().unwrap()), Arc::<AtomicU32>::default());
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let mut table = TcpStream::connect(&upstream).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut table).await });
        }
    });
    (url, connections)
}

fn at_endpoint(test: &TestTable, url: &str) -> Table {
    let config: Config = test.client().config().to_builder().endpoint_url(url).build();
    Table::new(Client::from_conf(config), test.name().to_owned())
}

#[tokio::test]
async fn the_first_request_reuses_the_connection_of_the_read_at_the_start() {
    let test = TestTable::create().await;
    test.table().transact(&customer::create(&data::customer(1)).unwrap()).await.unwrap().unwrap();
    let (url, connections) = counted(test.endpoint()).await;
    let table = at_endpoint(&test, &url);
    table.reach(&reach::nothing().unwrap()).await;
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert!(table.meter().take().is_empty(), "the meter counted the read at the start");
    let found = table.get(&customer::get(&data::customer_id(1)).unwrap()).await.unwrap();
    assert!(found.is_some());
    assert_eq!(connections.load(Ordering::Relaxed), 1, "the first request opened another connection");
}

#[tokio::test]
async fn a_failed_read_at_the_start_is_not_retried() {
    let test = TestTable::create().await;
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset] {
        test.faults().add(Fault { kind, rate: 1.0, count: Some(9), seed: 1 }).unwrap();
        test.table().reach(&reach::nothing().unwrap()).await;
        let struck: u64 = test.faults().counts().iter().map(|count| count.fired).sum();
        assert_eq!(struck, 1, "{kind:?}");
        test.faults().clear();
    }
}

#[tokio::test]
async fn a_table_that_does_not_answer_delays_a_start_by_a_second_at_most() {
    let test = TestTable::create().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let started = Instant::now();
    let table = at_endpoint(&test, &format!("http://{}", silent.local_addr().unwrap()));
    table.reach(&reach::nothing().unwrap()).await;
    let waited = started.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&waited), "{waited:?}");
}
