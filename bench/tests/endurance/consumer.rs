//! Runs `bench stream` with few records: every variant must process all of them with the expected
//! number of calls.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_variant_takes_all_records_in_as_few_calls_as_its_batches_allow() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().join("figures.json");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    bench.args(["stream", "--records", "600", "--no-allocations", "--json"]).arg(&figures);
    let output = bench.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&std::fs::read(&figures).unwrap()).unwrap();
    let rows = measured["figures"].as_array().unwrap();
    let calls = |row: usize, port: &str| rows[row]["calls"][port].as_u64().unwrap();
    assert_eq!(rows.len(), 5);
    // A batch takes one search call. Only the last variant makes one call for each record.
    assert_eq!([0, 1, 3, 4].map(|row| calls(row, "search")), [6, 1, 6, 600]);
    for whole in [2, 3] {
        // Each of the sixty expired sessions has an archive object. Each new order, each paid order
        // and each stock that ran low causes at least one event.
        assert_eq!(calls(whole, "objects"), 60);
        assert!((6..=6 * 10).contains(&calls(whole, "bus")), "{}", calls(whole, "bus"));
        assert!(calls(whole, "table") > 600);
    }
    assert_eq!([0, 1, 4].map(|row| calls(row, "table")), [0, 0, 0]);
    let faster = &rows[0]["records_per_second_and_core"];
    assert!(faster.as_f64().unwrap() > 0.0 && rows[0]["allocations_per_record"].is_null());
}
