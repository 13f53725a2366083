//! `ops cost`: the monthly bill of a traffic profile.
//!
//! The tests measure the cost of each access pattern and the patterns of each route ([`measured`]).
//! A bill multiplies these measurements by the requests of a profile and by the prices of a Region.
//! It adds everything of `template.yaml` that costs money even if no request arrives. The command
//! needs no account and sends no request.
//!
//! # Left out
//! A bill ignores free tiers and volume discounts. It has no costs of users of the user pool, of
//! names in Route 53, or of a search engine outside the stack.

mod access_logs;
pub mod bill;
pub mod capacity;
mod choices;
mod html;
pub mod measured;
pub mod money;
pub mod prices;
pub mod profile;
pub mod report;
pub mod stack;
pub mod svg;

use std::fs;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::error::OpsError;
use crate::outcome::Outcome;
use prices::Prices;
use profile::Profile;
use report::Report;
use stack::Stack;

const EXAMPLES: &str = "Examples:
  ops cost
  ops cost --example-profile > profile.toml
  ops cost --profile profile.toml --region eu-central-1 --html bill.html
  ops cost --access-logs access.jsonl --covers-hours 24 --csv bill.csv";

/// Compute the monthly bill of a traffic profile, without an account.
///
/// Without --profile and --access-logs, the bill is that of a shop without traffic. Free tiers and
/// volume discounts are left out.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct CostArgs {
    /// Read the traffic from this file (TOML).
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Print a profile with comments, and do nothing else.
    #[arg(long, conflicts_with_all = ["profile", "access_logs", "csv", "html"])]
    example_profile: bool,
    /// Count the requests of each route in this access log of the API, a file of JSON lines.
    #[arg(long, value_name = "FILE", requires = "covers_hours")]
    access_logs: Option<PathBuf>,
    /// The hours that the access log covers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=8_784))]
    covers_hours: Option<u64>,
    /// Region of the prices. Overrides the Region of the profile.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Read the prices from this file, in the format of ops/prices.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Write each line of the bill to this file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Serialize)]
struct Example {
    profile: &'static str,
}

impl std::fmt::Display for Example {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.profile)
    }
}

pub fn run(args: &CostArgs) -> Result<Outcome, OpsError> {
    if args.example_profile {
        return Ok(Outcome::new(&Example { profile: profile::EXAMPLE }, true));
    }
    let mut profile = match &args.profile {
        Some(path) => Profile::parse(&read(path)?)?,
        None => Profile::idle()?,
    };
    if let (Some(path), Some(hours)) = (&args.access_logs, args.covers_hours) {
        let log = File::open(path).map_err(|error| unreadable(path, &error))?;
        access_logs::read(BufReader::new(log), hours, &mut profile)?;
    }
    if let Some(region) = &args.region {
        profile.region.clone_from(region);
    }
    let prices = match &args.prices {
        Some(path) => Prices::parse(&read(path)?, &profile.region)?,
        None => Prices::built_in(&profile.region)?,
    };
    let report = report(&profile, &prices)?;
    if let Some(path) = &args.csv {
        write(path, &report.csv())?;
    }
    if let Some(path) = &args.html {
        write(path, &html::page(&report))?;
    }
    Ok(Outcome::new(&report, true))
}

pub fn report(profile: &Profile, prices: &Prices) -> Result<Report, OpsError> {
    let stack = Stack::read(&prices.region, &profile.parameters)?;
    let bill = bill::bill(profile, &stack, prices)?;
    Report::new(&bill, profile, prices)
}

fn read(path: &Path) -> Result<String, OpsError> {
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> OpsError {
    OpsError::Usage(format!("{} cannot be read: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), OpsError> {
    fs::write(path, text).map_err(|error| OpsError::Failed(format!("{} cannot be written: {error}", path.display())))
}
