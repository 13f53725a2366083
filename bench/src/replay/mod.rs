//! Replays the records of a table's stream. The consumer processes all records once as they arrive,
//! and twice more in batches in random order. Then the measurement compares the results with the
//! table.
//!
//! The consumers are functions of a running local system, in separate processes as in a deployment.
//! Tests with other data can use each part alone. [`record`] reads the stream's records, and
//! [`replay`] gives them to the functions again. [`compare`] returns the differences between the
//! table and the results of the consumers.

mod compare;
mod copies;
mod recorder;
mod run;
mod shop;

use std::time::Duration;

use bytes::Bytes;
use local::System;
use serde_json::Value;
use tokio::time::Instant;

pub use compare::{Compared, compare};
pub use recorder::{Recorded, record};
pub use run::{ReplayArgs, run};
pub use shop::Shop;

use crate::BenchError;

pub const FUNCTIONS: [&str; 2] = ["StreamSearch", "StreamEvents"];
/// Time limit of one invocation, including the wait for a process.
const INVOCATION: Duration = Duration::from_secs(300);
const ATTEMPTS: usize = 5;

/// Gives each function its records again, in batches of `size`. `seed` determines the order of the
/// batches. Returns the number of records.
pub async fn replay(system: &System, recorded: &Recorded, size: usize, seed: u64) -> Result<u64, BenchError> {
    let mut taken = 0;
    for (function, records) in recorded.by_function() {
        let mut batches: Vec<&[String]> = records.chunks(size.max(1)).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut batches);
        for batch in batches {
            invoke(system, function, batch).await?;
            taken += u64::try_from(batch.len()).unwrap_or_default();
        }
    }
    Ok(taken)
}

async fn invoke(system: &System, function: &str, records: &[String]) -> Result<(), BenchError> {
    let event = Bytes::from(format!(r#"{{"Records":[{}]}}"#, records.join(",")));
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let answer = system.functions().invoke(function, event.clone(), Instant::now() + INVOCATION).await;
        let answer = answer?;
        let value: Value = serde_json::from_slice(&answer)?;
        match value.get("batchItemFailures").and_then(Value::as_array) {
            Some(failures) if failures.is_empty() => return Ok(()),
            _ => last = value.to_string(),
        }
    }
    Err(wrong!("{function} fails on a batch of {} records: {last}", records.len()))
}
