//! Tests the warehouse's queue through the routes of staff.

use local::System;
use serde_json::Value as Json;

use crate::support::client::Call;
use crate::support::{drain, shop, with_own_system};

/// Returns the orders that have a station, and the orders that wait for one.
async fn queue(system: &System) -> (Vec<Json>, Vec<Json>) {
    let page = Call::new("GET", "/v1/picking?limit=1").staff().send(system).await.expect(200).body;
    let ids = |list: &[Json]| list.iter().map(|job| job["order_id"].clone()).collect();
    let waiting = shop::listed(system, "/v1/picking", 1, |path| Call::new("GET", path).staff()).await;
    (ids(page["jobs"].as_array().unwrap()), ids(&waiting))
}

#[test]
fn paid_orders_get_the_picking_stations_and_free_them_after_picking() {
    with_own_system(async |system| {
        let stations = crate::support::template().functions.iter().find_map(|function| {
            function.environment.get("PICKING_STATIONS").map(|number| number.parse::<usize>().unwrap())
        });
        let stations = stations.unwrap();
        shop::customer(system, "picking-ann").await;
        shop::products(system, &["picking-tea"], 1000).await;
        let mut orders = Vec::new();
        for number in 0..stations + 2 {
            let key = format!("picking-{number}");
            let order = shop::order(system, "picking-ann", &[("picking-tea", 1)], &key).await;
            orders.push(shop::moved(system, order, &["paid"]).await);
            // Wait after each payment, because the queue does not preserve the order of messages.
            drain(system).await;
        }
        let id = |index: usize| orders[index]["id"].clone();
        let ids = |range: std::ops::Range<usize>| range.map(id).collect::<Vec<_>>();
        assert_eq!(queue(system).await, (ids(0..stations), ids(stations..stations + 2)));

        // An order that is shipped or cancelled frees its station for the next waiting order.
        shop::moved(system, orders[0].clone(), &["picking", "shipped"]).await;
        drain(system).await;
        assert_eq!(queue(system).await, (ids(1..stations + 1), ids(stations + 1..stations + 2)));
        shop::moved(system, orders[stations + 1].clone(), &["cancelled"]).await;
        shop::moved(system, orders[1].clone(), &["cancelled"]).await;
        drain(system).await;
        assert_eq!(queue(system).await, (ids(2..stations + 1), Vec::new()));
        Call::new("GET", "/v1/picking").customer("picking-ann").send(system).await.expect(403);
    });
}
