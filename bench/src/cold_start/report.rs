//! The table of a measurement.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::memory::Size;
use super::peers::USUAL;
use super::process::Run;
use super::programs::Measured;

/// Callgrind's counts of one function.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Instructions {
    /// Until it requests its first invocation.
    pub init: u64,
    /// From there to its first response.
    pub first: u64,
    /// For one warm request.
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
            init_ms: millis(quantile(&of(|run| run.init), 0.5)),
            first_ms: millis(quantile(&first, 0.5)),
            first_quartiles_ms: (millis(quantile(&first, 0.25)), millis(quantile(&first, 0.75))),
            first_128mb_ms: (!measured.shared.is_empty()).then(|| millis(quantile(&measured.shared, 0.5))),
            cold_cpu_ms: millis(quantile(&of(|run| run.cpu_cold), 0.5)),
            instructions,
            warm_p50_us: millis(quantile(&warm, 0.5)) * 1e3,
            warm_p99_us: millis(quantile(&warm, 0.99)) * 1e3,
            warm_cpu_us: millis(quantile(&warm_cpu, 0.5)) * 1e3,
            peak_kb: peaks.get(peaks.len() / 2).copied().unwrap_or_default(),
        }
    }

    fn cold_instructions(&self) -> Option<f64> {
        self.instructions.map(|counted| (counted.init + counted.first) as f64)
    }

    fn warm_instructions(&self) -> Option<f64> {
        self.instructions.map(|counted| counted.warm as f64)
    }
}

pub(super) fn quantile(durations: &[Duration], at: f64) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * at).round() as usize).copied().unwrap_or_default()
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn or_dash(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.digits$}"))
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "Medians of {} processes of each function, in turns, with {} requests after the first.\n\n",
            self.runs, self.warm
        );
        text.push_str(
            "| function | binary MB | zip MB | init ms | first answer ms (quartiles) | the same, 128 MB share | CPU to \
            first answer ms | M instructions, init + first | warm p50 µs | p99 | CPU µs | M instructions | peak MB |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for figures in &self.figures {
            let millions = |part: fn(Instructions) -> u64| {
                or_dash(figures.instructions.map(|counted| part(counted) as f64 / 1e6), 2)
            };
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {} | {:.2} | {:.2} | {:.2} | {:.2} ({:.2}–{:.2}) | {} | {:.2} | {} + {} | {:.0} | {:.0} | {:.0} | \
                {} | {:.1} |",
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
            );
        }
        text.push_str(&self.ratios());
        text.push_str(&self.sizes());
        text
    }

    /// Returns the factors by which each takes less than the usual function.
    fn ratios(&self) -> String {
        let Some(usual) = self.figures.iter().find(|figures| figures.name == USUAL) else { return String::new() };
        let mut text = "\nThe factors by which each takes less than (b):\n\n\
            | function | instructions | CPU to first answer | first answer | the same, 128 MB share | warm CPU | warm \
            instructions |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
        for figures in self.figures.iter().filter(|figures| figures.name != USUAL) {
            let ratio =
                |usual: Option<f64>, this: Option<f64>| or_dash(usual.zip(this).map(|(usual, this)| usual / this), 1);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                figures.name,
                ratio(usual.cold_instructions(), figures.cold_instructions()),
                ratio(Some(usual.cold_cpu_ms), Some(figures.cold_cpu_ms)),
                ratio(Some(usual.first_ms), Some(figures.first_ms)),
                ratio(usual.first_128mb_ms, figures.first_128mb_ms),
                ratio(Some(usual.warm_cpu_us), Some(figures.warm_cpu_us)),
                ratio(usual.warm_instructions(), figures.warm_instructions()),
            );
        }
        text
    }

    fn sizes(&self) -> String {
        if self.memory.is_empty() {
            return String::new();
        }
        let mut text = "\n\
            From the first request on, each memory size has its share of a core. Dollars are for the GB-seconds of a \
            million warm requests, each with 3 ms of waiting for the table:\n\n\
            | function | memory MB | first answer ms | warm p50 ms | p99 | dollars |\n|---|---|---|---|---|---|\n"
            .to_owned();
        for size in &self.memory {
            let _ = writeln!(
                text,
                "| {} | {} | {:.2} | {:.2} | {:.2} | {:.3} |",
                size.function,
                size.memory_mb,
                size.first_ms,
                size.warm_p50_ms,
                size.warm_p99_ms,
                size.dollars_per_million
            );
        }
        text
    }
}
