//! `bodega import`: loads retail data through the public API, with a staff token.
//!
//! The import uses only calls that any client with a staff token can make. It can stop and start
//! again at any time, because the API reports resources that already exist. The summary reports all
//! rows that were not loaded, with the reasons.

pub(crate) mod client;
mod load;
mod source;

use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use client::Client;
use load::Tally;
use source::{HouseholdRow, ProductRow, SourceError};

const EXIT_NOTHING_LISTENS: u8 = 3;
/// Exit code if no file is given, or if a file cannot be used.
const EXIT_USAGE: u8 = 2;
const NAMES_SHOWN: usize = 500;

/// The data to load, and the target system.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// Port of the running system.
    #[arg(long, default_value_t = 3000)]
    pub port: u16,
    /// File of products: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    pub products: Option<PathBuf>,
    /// File of households: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    pub households: Option<PathBuf>,
    /// File of baskets: newline-delimited JSON, plain or gzip.
    #[arg(long, value_name = "FILE")]
    pub baskets: Option<PathBuf>,
    /// Load only the first N baskets.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Stock of each new product.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub stock: u64,
    /// Data folder of the running system, if the system has one. It contains the signing key.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Loads the files into the system at `base` and prints the summary. `token` is a staff token.
pub async fn run(args: ImportArgs, base: String, token: String) -> ExitCode {
    if args.products.is_none() && args.households.is_none() && args.baskets.is_none() {
        eprintln!("bodega import: give at least one of --products, --households and --baskets");
        return ExitCode::from(EXIT_USAGE);
    }
    let run = key_schema::id::time_ordered(key_schema::instant::Instant::now(), [0; 10]);
    let client = match Client::new(base.clone(), token, run) {
        Ok(client) => client,
        Err(error) => {
            eprintln!("bodega import: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !client.is_up().await {
        eprintln!("bodega import: nothing listens at {base}; start the system first");
        return ExitCode::from(EXIT_NOTHING_LISTENS);
    }
    let loaded = tokio::select! {
        loaded = load(&client, &args) => loaded,
        () = client.unauthorized() => {
            eprintln!(
                "bodega import: the system at {base} refuses the import's token (401): \
                 start import with the same --data as the server"
            );
            return ExitCode::FAILURE;
        }
        () = client.gone() => {
            eprintln!("bodega import: the system at {base} has stopped; start it, and run the import again");
            return ExitCode::from(EXIT_NOTHING_LISTENS);
        }
    };
    match loaded {
        Ok(summary) => {
            // An error is ignored, because standard output may be a closed pipe.
            let _ = io::stdout().write_all(summary.to_string().as_bytes());
            if summary.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("bodega import: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

#[derive(Debug)]
struct Summary {
    phases: Vec<(&'static str, Tally, Duration)>,
    retried: u64,
}

async fn load(client: &Client, args: &ImportArgs) -> Result<Summary, SourceError> {
    // Every file is opened before the first call, so that a wrong path is reported at once.
    let products: Option<Vec<ProductRow>> = args.products.as_deref().map(source::rows).transpose()?;
    let households: Option<Vec<HouseholdRow>> = args.households.as_deref().map(source::rows).transpose()?;
    let survey = args.baskets.as_deref().map(|path| source::survey(path, args.limit)).transpose()?.unwrap_or_default();
    let mut phases = Vec::new();
    if let Some(rows) = products {
        let bar = progress("products", u64::try_from(rows.len()).unwrap_or_default());
        let started = Instant::now();
        let tally = load::products(client, rows, &survey, args.stock, &bar).await;
        bar.finish_and_clear();
        phases.push(("products", tally, started.elapsed()));
    }
    if households.is_some() || !survey.households.is_empty() {
        let bar = progress("customers", 0);
        let started = Instant::now();
        let tally = load::customers(client, households.unwrap_or_default(), &survey, &bar).await;
        bar.finish_and_clear();
        phases.push(("customers", tally, started.elapsed()));
    }
    if let Some(path) = &args.baskets {
        let bar = progress("orders", survey.baskets);
        let started = Instant::now();
        let tally = load::orders(client, path, args.limit, &bar).await?;
        bar.finish_and_clear();
        phases.push(("orders", tally, started.elapsed()));
    }
    Ok(Summary { phases, retried: client.retried() })
}

fn progress(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // The template is a constant. If it were invalid, the default style would be used.
    if let Ok(style) = ProgressStyle::with_template("{prefix:>10} {bar:40} {human_pos}/{human_len} {per_sec} {eta}") {
        bar.set_style(style);
    }
    bar.set_prefix(what);
    bar
}

impl Summary {
    fn is_complete(&self) -> bool {
        self.phases.iter().all(|(_, tally, _)| tally.failed.is_empty())
    }

    /// Returns whether earlier runs have already loaded all rows that the API accepts.
    fn changed_nothing(&self) -> bool {
        let mut done = self.phases.iter().flat_map(|(_, tally, _)| tally.done.keys()).peekable();
        self.is_complete() && done.peek().is_some() && done.all(|outcome| outcome == "already there")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, tally, took) in &self.phases {
            let seconds = took.as_secs_f64();
            writeln!(f, "{what}: {} in {seconds:.1} s ({:.0} a second)", tally.taken(), rate(tally, seconds))?;
            for (outcome, count) in &tally.done {
                writeln!(f, "  {outcome}: {count}")?;
            }
            for (reason, count) in &tally.left_out {
                writeln!(f, "  lines left out, {reason}: {count}")?;
            }
            for (reason, names) in &tally.refused {
                writeln!(f, "  refused, {reason}: {} ({})", names.len(), listed(names))?;
            }
            if !tally.failed.is_empty() {
                writeln!(f, "  FAILED: {}", tally.failed.len())?;
                for (name, error) in tally.failed.iter().take(NAMES_SHOWN) {
                    writeln!(f, "    {name}: {error}")?;
                }
            }
        }
        if self.changed_nothing() {
            writeln!(f, "nothing changed: everything was already there")?;
        }
        if self.retried > 0 {
            writeln!(f, "calls retried after a temporary failure: {}", self.retried)?;
        }
        Ok(())
    }
}

fn rate(tally: &Tally, seconds: f64) -> f64 {
    // A rate for display needs no exact precision.
    u32::try_from(tally.taken()).map_or(0.0, f64::from) / seconds.max(0.001)
}

fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
    let rest = names.len() - shown.len();
    if rest > 0 { format!("{}, and {rest} more", shown.join(", ")) } else { shown.join(", ") }
}
