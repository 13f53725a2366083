use std::time::Duration;

use serde::Serialize;

use super::memory::Size;
use super::process::Run;
use super::programs::Measured;
use crate::report::{Table, millis, or_dash, quantile};

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Instructions {
    /// The instructions until the function requests its first invocation.
    pub init: u64,
    /// The instructions from the first invocation to its response.
    pub first: u64,
    /// The instructions of one warm request.
    pub warm: u64,
}

/// Medians of one function's runs.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    name: String,
    binary_bytes: u64,
    zip_bytes: u64,
    init_ms: f64,
    first_ms: f64,
    /// The first and the third quartile.
    first_quartiles_ms: (f64, f64),
    first_128mb_ms: Option<f64>,
    cold_cpu_ms: f64,
    instructions: Option<Instructions>,
    warm_p50_us: f64,
    warm_p99_us: f64,
    warm_cpu_us: f64,
    peak_kb: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub figures: Vec<Figures>,
    pub memory: Vec<Size>,
    pub runs: u16,
    pub warm: u16,
}

impl Figures {
    pub fn new(measured: &Measured, (binary_bytes, zip_bytes): (u64, u64), instructions: Option<Instructions>) -> Self {
        let runs = &measured.runs;
        let of = |each: fn(&Run) -> Duration| runs.iter().map(each).collect::<Vec<_>>();
        let first = of(|run| run.first);
        let warm: Vec<Duration> = runs.iter().flat_map(|run| run.warm.iter().copied()).collect();
        let warm_cpu: Vec<Duration> = runs
            .iter()
            .map(|run| (run.cpu - run.cpu_cold) / u32::try_from(run.warm.len().max(1)).unwrap_or(u32::MAX))
            .collect();
        let mut peaks: Vec<u64> = runs.iter().map(|run| run.peak_kb).collect();
        peaks.sort_unstable();
        Self {
            name: measured.name.clone(),
            binary_bytes,
            zip_bytes,
            init_ms: millis(quantile(&of(|run| run.init), 500)),
            first_ms: millis(quantile(&first, 500)),
            first_quartiles_ms: (millis(quantile(&first, 250)), millis(quantile(&first, 750))),
            first_128mb_ms: (!measured.shared.is_empty()).then(|| millis(quantile(&measured.shared, 500))),
            cold_cpu_ms: millis(quantile(&of(|run| run.cpu_cold), 500)),
            instructions,
            warm_p50_us: millis(quantile(&warm, 500)) * 1e3,
            warm_p99_us: millis(quantile(&warm, 990)) * 1e3,
            warm_cpu_us: millis(quantile(&warm_cpu, 500)) * 1e3,
            peak_kb: peaks.get(peaks.len() / 2).copied().unwrap_or_default(),
        }
    }
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut table = Table::new(
            "function | binary MB | zip MB | init ms | first answer ms (quartiles) | first answer ms, 128 MB share | \
            CPU to first answer ms | M instructions, init + first | warm p50 µs | p99 | CPU µs | M instructions | peak MB",
        );
        for figures in &self.figures {
            let millions = |part: fn(Instructions) -> u64| {
                or_dash(figures.instructions.map(|counted| part(counted) as f64 / 1e6), 2)
            };
            table.row(format_args!(
                "{} | {:.2} | {:.2} | {:.2} | {:.2} ({:.2}–{:.2}) | {} | {:.2} | {} + {} | {:.0} | {:.0} | {:.0} | {} \
                | {:.1}",
                figures.name,
                figures.binary_bytes as f64 / 1e6,
                figures.zip_bytes as f64 / 1e6,
                figures.init_ms,
                figures.first_ms,
                figures.first_quartiles_ms.0,
                figures.first_quartiles_ms.1,
                or_dash(figures.first_128mb_ms, 2),
                figures.cold_cpu_ms,
                millions(|counted| counted.init),
                millions(|counted| counted.first),
                figures.warm_p50_us,
                figures.warm_p99_us,
                figures.warm_cpu_us,
                millions(|counted| counted.warm),
                figures.peak_kb as f64 / 1024.0,
            ));
        }
        let Self { runs, warm, .. } = self;
        format!(
            "Medians of {runs} processes of each function, in turns, with {warm} requests after the first.\n\n\
            {table}{}",
            self.sizes()
        )
    }

    fn sizes(&self) -> String {
        if self.memory.is_empty() {
            return String::new();
        }
        let mut table = Table::new("function | memory MB | first answer ms | warm p50 ms | p99 | dollars");
        for Size { function, memory_mb, first_ms, warm_p50_ms, warm_p99_ms, dollars_per_million } in &self.memory {
            table.row(format_args!(
                "{function} | {memory_mb} | {first_ms:.2} | {warm_p50_ms:.2} | {warm_p99_ms:.2} | \
                {dollars_per_million:.3}"
            ));
        }
        format!(
            "\nFrom the first request on, each memory size has its share of a core. Dollars are for the GB-seconds of \
            a million warm requests, each with 3 ms of waiting for the table:\n\n{table}"
        )
    }
}
