//! Measures the stream's consumer, batch by batch. The variants are the sinks of `StreamSearch`,
//! the sinks of `StreamEvents`, all sinks together, and a search sink with one call per record.
//!
//! The consumer and its backends run in separate processes. So the consumer's CPU time includes its
//! clients, and excludes the backends.
//!
//! A file contains the batches as JSON texts, in the form that Lambda passes. Every variant starts
//! with the same table and empty indices. Afterwards the search index must have the expected
//! documents.
//!
//! Valgrind's tool DHAT counts allocations in separate runs. The figure is the difference between a
//! longer and a shorter run, divided by the additional records.

mod backends;
mod taker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use search_index::{Collection, SearchClient, SearchConfig};
use serde::Serialize;

use crate::report::{Output, Table, or_dash};
use crate::{BenchError, records};
use backends::Backends;
use taker::{Calls, Totals};

pub(crate) use backends::serve;
pub(crate) use taker::{TakerArgs, run as take};

/// Records of the shorter run under DHAT. The longer run has twice as many.
const COUNTED: u64 = 1_000;
/// Documents on a page when [`SearchClient::list`] reads the search index.
const PAGE: u32 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    /// Number of records.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    records: u64,
    /// Do not count allocations. Counting needs valgrind.
    #[arg(long)]
    no_allocations: bool,
    #[command(flatten)]
    output: Output,
}

/// A consumer, and the batches of its records.
struct Variant {
    name: &'static str,
    sinks: &'static str,
    batch: usize,
    one_by_one: bool,
    records: fn(u64) -> Result<Vec<String>, BenchError>,
}

impl Variant {
    const fn search(name: &'static str, batch: usize, one_by_one: bool) -> Self {
        Self { name, sinks: "search", batch, one_by_one, records: records::records }
    }

    const fn mixed(name: &'static str, sinks: &'static str) -> Self {
        Self { name, sinks, batch: 100, one_by_one: false, records: records::mixed }
    }
}

/// The measured variants.
///
/// The search sink takes small batches, and batches near the size limit of Lambda. The other sinks,
/// and all four together, take a mix of records as in a shop. The last variant is the simplest
/// search sink, with one call per record.
const VARIANTS: [Variant; 5] = [
    Variant::search("search, batches of 100", 100, false),
    Variant::search("search, batches of 1,000", 1_000, false),
    Variant::mixed("bus, audit, derived, batches of 100", "bus,audit,derived"),
    Variant::mixed("all four, batches of 100", "search,bus,audit,derived"),
    Variant::search("search, one call a record", 100, true),
];

/// The figures of one variant.
#[derive(Debug, Serialize)]
struct Figures {
    variant: &'static str,
    records: u64,
    batches: u64,
    records_per_second: f64,
    records_per_second_and_core: f64,
    cpu_us_per_record: f64,
    /// `None` if allocations were not counted.
    allocations_per_record: Option<f64>,
    allocated_bytes_per_record: Option<f64>,
    calls: Calls,
}

/// The calls and the CPU time of the variant with one call per record, each divided by the same
/// figure of a variant with batches.
#[derive(Debug, Serialize)]
struct Ratios {
    variant: &'static str,
    fewer_calls: f64,
    less_cpu: f64,
}

#[derive(Debug, Serialize)]
struct Measured {
    figures: Vec<Figures>,
    ratios: Vec<Ratios>,
}

/// Measures, prints the table, and writes the figures to a file.
pub(crate) async fn run(args: StreamArgs) -> Result<(), BenchError> {
    let folder = tempfile::tempdir()?;
    let mut figures = Vec::new();
    for variant in &VARIANTS {
        figures.push(variant.measure(folder.path(), args.records, !args.no_allocations).await?);
    }
    let ratios = ratios(&figures);
    let measured = Measured { figures, ratios };
    args.output.publish("consumer", &measured.table(), &measured)
}

impl Variant {
    async fn measure(&self, folder: &Path, number: u64, allocations: bool) -> Result<Figures, BenchError> {
        let backends = Backends::start(number)?;
        let batches = self.write(folder, number)?;
        let totals = self.take(&backends, &batches, None)?;
        if self.sinks.contains("search") {
            self.check(&backends, number).await?;
        }
        // Under valgrind a consumer may exceed its clients' timeouts. The other figures remain
        // valid.
        let not_counted = |error: &BenchError| eprintln!("bench: allocations were not counted: {error}");
        let counted = allocations.then(|| self.allocations(folder).inspect_err(not_counted).ok()).flatten();
        let each = (number as f64).max(1.0);
        let cpu = (totals.cpu_us as f64).max(1.0);
        Ok(Figures {
            variant: self.name,
            records: number,
            batches: number.div_ceil(u64::try_from(self.batch).unwrap_or(u64::MAX)),
            records_per_second: each * 1e6 / (totals.wall_us as f64).max(1.0),
            records_per_second_and_core: each * 1e6 / cpu,
            cpu_us_per_record: cpu / each,
            allocations_per_record: counted.map(|(blocks, _)| blocks),
            allocated_bytes_per_record: counted.map(|(_, bytes)| bytes),
            calls: totals.calls,
        })
    }

    /// Writes the batches to a file, one per line.
    fn write(&self, folder: &Path, number: u64) -> Result<PathBuf, BenchError> {
        let records = (self.records)(number)?;
        let lines = records.chunks(self.batch).map(|records| format!("{{\"Records\":[{}]}}\n", records.join(",")));
        let path = folder.join("batches");
        std::fs::write(&path, lines.collect::<String>())?;
        Ok(path)
    }

    /// Runs a consumer over the batches, under DHAT if `dhat` names a report file.
    fn take(&self, backends: &Backends, batches: &Path, dhat: Option<&Path>) -> Result<Totals, BenchError> {
        let program = std::env::current_exe()?;
        let mut command = match dhat {
            None => Command::new(program),
            Some(report) => {
                let mut command = Command::new("valgrind");
                command.args(["--tool=dhat", "--dhat-out-file=/dev/null"]);
                command.arg(format!("--log-file={}", report.display())).arg(program);
                command
            }
        };
        command.arg("taker").arg("--batches").arg(batches).args(["--sinks", self.sinks]);
        if self.one_by_one {
            command.arg("--one-by-one");
        }
        let output = command.envs(backends.environment()).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| wrong!("{}: {error}", self.name))?;
        if !output.status.success() {
            return Err(wrong!("{}: the consumer ended with {}", self.name, output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(BenchError::from)
    }

    /// Checks that the indices have exactly the expected documents, each with its last `rev`.
    async fn check(&self, backends: &Backends, number: u64) -> Result<(), BenchError> {
        let client = SearchClient::new(&SearchConfig::new(backends.search(), "bench")?);
        client.refresh().await?;
        let mut found = BTreeMap::new();
        for collection in Collection::ALL {
            let mut after = None;
            // The loop ends, because every page starts after the previous one.
            loop {
                let page = client.list(collection, PAGE, after.as_ref()).await?;
                found.extend(page.items.into_iter().map(|document| (document.document_id, document.rev)));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        let expected = records::documents(&(self.records)(number)?)?;
        if found == expected {
            return Ok(());
        }
        let unequal = expected.iter().filter(|(id, rev)| found.get(*id) != Some(rev)).count();
        let (name, found, expected) = (self.name, found.len(), expected.len());
        Err(wrong!(
            "{name}: the index has {found} documents instead of {expected}; {unequal} are missing or have another rev"
        ))
    }

    /// Returns the allocations and their bytes, both per record.
    fn allocations(&self, folder: &Path) -> Result<(f64, f64), BenchError> {
        let count = |number: u64| {
            let (backends, report) = (Backends::start(number)?, folder.join("dhat"));
            self.take(&backends, &self.write(folder, number)?, Some(&report))?;
            total(&std::fs::read_to_string(&report)?)
        };
        let (shorter, longer) = (count(COUNTED)?, count(2 * COUNTED)?);
        let each = |longer: u64, shorter: u64| longer.saturating_sub(shorter) as f64 / (COUNTED as f64);
        Ok((each(longer.1, shorter.1), each(longer.0, shorter.0)))
    }
}

/// Returns bytes and blocks of DHAT's line `==1== Total:     1,024 bytes in 3 blocks`.
fn total(report: &str) -> Result<(u64, u64), BenchError> {
    let line = report.lines().find_map(|line| line.split_once("Total:").map(|(_, rest)| rest));
    let numbers: Vec<u64> = line
        .into_iter()
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.replace(',', "").parse().ok())
        .collect();
    match numbers[..] {
        [bytes, blocks] => Ok((bytes, blocks)),
        _ => Err(wrong!("the report of DHAT has no total")),
    }
}

/// Compares the search sink's batches with one call per record.
fn ratios(figures: &[Figures]) -> Vec<Ratios> {
    let Some((alone, batched)) = figures.split_last() else { return Vec::new() };
    let ratio = |figures: &Figures| Ratios {
        variant: figures.variant,
        fewer_calls: alone.calls.search as f64 / (figures.calls.search as f64).max(1.0),
        less_cpu: alone.cpu_us_per_record / figures.cpu_us_per_record.max(f64::EPSILON),
    };
    batched.iter().take(2).map(ratio).collect()
}

impl Measured {
    /// Returns the figures in Markdown.
    fn table(&self) -> String {
        let mut table = Table::new(
            "variant | records | records/s | records/s per core | CPU µs per record | allocations per record | \
             KB per record | calls per batch: table | search | bus | objects",
        );
        for figures in &self.figures {
            let Figures { variant, records, batches, calls, .. } = figures;
            let [tables, search, bus, objects] = [calls.table, calls.search, calls.bus, calls.objects]
                .map(|calls| format!("{:.1}", calls as f64 / (*batches as f64).max(1.0)));
            table.row(format_args!(
                "{variant} | {records} | {:.0} | {:.0} | {:.1} | {} | {} | {tables} | {search} | {bus} | {objects}",
                figures.records_per_second,
                figures.records_per_second_and_core,
                figures.cpu_us_per_record,
                or_dash(figures.allocations_per_record, 0),
                or_dash(figures.allocated_bytes_per_record.map(|bytes| bytes / 1024.0), 1),
            ));
        }
        let ratios = self.ratios.iter().map(|Ratios { variant, fewer_calls, less_cpu }| {
            format!(
                "- {variant}: {fewer_calls:.0} times fewer calls (goal 20) and {less_cpu:.1} times less CPU (goal \
                5) than with one call per record\n"
            )
        });
        format!("{table}\n{}", ratios.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::total;

    #[test]
    fn the_total_of_a_report_is_read() {
        let report = "==7== DHAT, a dynamic heap analysis tool\n==7== \n\
            ==7== Total:     1,226,976 bytes in 1,102 blocks\n==7== At t-gmax: 1 bytes in 1 blocks\n";
        assert_eq!(total(report).unwrap(), (1_226_976, 1_102));
        assert!(total("==7== killed").is_err());
    }
}
