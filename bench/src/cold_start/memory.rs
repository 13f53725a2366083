//! Measures the effect of more memory. Lambda gives a function a share of a core in proportion to
//! its memory. Lambda bills memory size times duration.
//!
//! The measured time is the function's computation. A deployed function also waits a few
//! milliseconds for the table. More memory does not shorten that wait, but Lambda bills the
//! wait at the price of the memory. So the smallest memory that is fast enough is the cheapest.

use std::time::Duration;

use serde::Serialize;

use super::peers::USUAL;
use super::process::Until;
use super::process::{CORE_MB, Share};
use super::programs::Measured;
use crate::BenchError;
use crate::report::{millis, quantile};

/// Memory sizes, from the smallest to the size with which a function has a whole core.
const SIZES_MB: [u32; 5] = [128, 256, 512, 1_024, CORE_MB];
/// The measured functions. The first reads one item, and the second reads several items with a
/// Query. The third is the peer with `lambda_http` and the SDK's default features.
const FUNCTIONS: [&str; 3] = ["customers", "orders", USUAL];
/// The number of requests to each process after its first request.
const WARM: usize = 50;
/// Dollars per GB-second, on x86 in us-east-1. <https://aws.amazon.com/lambda/pricing/>
const GB_SECOND_PRICE: f64 = 0.000_016_666_7;
/// The assumed wait for the table, with function and table in one region.
const TABLE_WAIT_MS: f64 = 3.0;

#[derive(Debug, Serialize)]
pub(super) struct Size {
    pub function: String,
    pub memory_mb: u32,
    pub first_ms: f64,
    pub warm_p50_ms: f64,
    pub warm_p99_ms: f64,
    /// The price of the GB-seconds of a million warm requests, including [`TABLE_WAIT_MS`] for
    /// each.
    pub dollars_per_million: f64,
}

/// Returns the figures, or an empty list if this process lacks the permission to limit CPU shares.
pub(super) async fn curve(all: &[Measured], runs: u16) -> Result<Vec<Size>, BenchError> {
    let mut curve = Vec::new();
    for measured in all.iter().filter(|measured| FUNCTIONS.contains(&measured.name.as_str())) {
        for memory_mb in SIZES_MB {
            let Some(share) = Share::create(memory_mb) else { return Ok(Vec::new()) };
            let (mut first, mut warm) = (Vec::new(), Vec::new());
            for _ in 0..runs.div_ceil(5) {
                let run = measured.program.run(Until::Answers(WARM + 1), Some(&share)).await?;
                first.push(run.first);
                warm.extend(run.warm);
            }
            curve.push(Size::new(measured, memory_mb, &first, &warm));
        }
    }
    Ok(curve)
}

impl Size {
    fn new(measured: &Measured, memory_mb: u32, first: &[Duration], warm: &[Duration]) -> Self {
        let mean = warm.iter().sum::<Duration>() / u32::try_from(warm.len().max(1)).unwrap_or(u32::MAX);
        let billed_seconds = (millis(mean) + TABLE_WAIT_MS).ceil() / 1e3;
        Self {
            function: measured.name.clone(),
            memory_mb,
            first_ms: millis(quantile(first, 500)),
            warm_p50_ms: millis(quantile(warm, 500)),
            warm_p99_ms: millis(quantile(warm, 990)),
            dollars_per_million: billed_seconds * f64::from(memory_mb) / 1_024.0 * GB_SECOND_PRICE * 1e6,
        }
    }
}
