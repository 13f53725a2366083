//! Tests bad input on every route in `openapi.yaml`.
//!
//! Each request is valid except for one fault. The response must be a problem with the right status
//! and code, and the request must write nothing. At the end the same requests succeed without the
//! fault, so the fault caused the refusal. The module `authorization` tests the callers of each
//! route.

mod cursors;
mod faults;
mod ids;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::support::openapi::api;
use crate::support::trial::{self, Trial, run_all};
use crate::support::world::World;
use crate::support::{drain, table, with_own_system};

#[test]
fn every_route_refuses_every_fault_and_writes_nothing() {
    with_own_system(async |system| {
        let world = World::create(system).await;
        drain(system).await;
        let before = table::scan(system).await;
        let mut trials = Vec::new();
        let mut faults: BTreeMap<String, usize> = BTreeMap::new();
        for operation in api().operations() {
            let good = world.good(system, operation).await;
            for trial in faults::of(operation, &good) {
                *faults.entry(operation.key()).or_default() += 1;
                trials.push((operation, trial));
            }
        }
        // The loop above must have made trials.
        assert!(trials.len() > 1500, "{}", trials.len());
        assert!(api().operations().all(|operation| faults.contains_key(&operation.key())), "{faults:?}");
        run_all(system, trials).await;

        let import = world.good(system, api().operation("POST /v1/products/import").unwrap()).await;
        let (call, lines) = faults::bad_lines(&import);
        let report = call.send(system).await.expect(200);
        let results = report.body["results"].as_array().unwrap();
        assert_eq!(results.len(), lines);
        assert!(results.iter().all(|result| result["status"] == "refused"), "{}", report.body);
        drain(system).await;
        let mut after = table::scan(system).await;
        // `putContentUpload` copies the upload first and detects a stale If-Match afterwards. The
        // janitor removes the unused copy.
        after.retain(|_, item| item["entity"]["S"] != "UnsettledObject");
        let changed: Vec<_> =
            after.iter().filter(|(key, item)| before.get(key) != Some(item)).map(|(key, _)| key).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "written: {changed:?}");

        // The same requests succeed without the fault.
        for operation in api().in_working_order() {
            let answer = world.good(system, operation).await.call().send(system).await;
            let complaint = trial::unless_done(operation, &answer);
            assert_eq!(complaint, None, "{}", operation.key());
        }
    });
}

fn place<'v>(value: &'v mut Json, pointer: &str) -> &'v mut Json {
    value.pointer_mut(pointer).unwrap_or_else(|| panic!("there is no {pointer}"))
}
