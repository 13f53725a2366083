//! `ops capacity`: compares on-demand with provisioned capacity, and recommends a mode.
//!
//! The command reads the consumed units of each minute from CloudWatch, or from a file. From these
//! units it computes two bills for a month: on demand, and with the capacity that auto scaling
//! would have provisioned ([`simulation`]).
//!
//! A table and its indexes share one mode, so the recommendation compares the sums of their bills.
//! The mode is a parameter of the template. `--apply` updates the stack and not the table, because
//! the next deployment would undo a change of the table.

mod apply;
mod metrics;
mod report;
mod simulation;

use std::fs;
use std::path::PathBuf;

use aws::CloudWatch;
use clap::Args;
use key_schema::instant::Instant;
use serde::Serialize;

pub use apply::Stack;
pub use metrics::{Kind, Series, parse};
pub use report::{Mode, Report, Throughput};
pub use simulation::{Bounds, Simulated, simulate};

use crate::cost::prices::Prices;
use crate::error::OpsError;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  ops capacity --days 14
  ops capacity --print-queries > queries.json
  aws cloudwatch get-metric-data --metric-data-queries file://queries.json --start-time 2026-11-11T00:00:00Z \
  --end-time 2026-11-25T00:00:00Z > metrics.json
  ops capacity --metrics metrics.json --region eu-central-1
  ops capacity --apply --stack bodega-prod

Without --apply, the command changes nothing.";

/// Compare on-demand with provisioned capacity for the consumed units, and recommend a mode.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct CapacityArgs {
    /// Read the consumed units from this file, the output of `aws cloudwatch get-metric-data`.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// The number of days to read from CloudWatch. CloudWatch keeps the values of each minute for
    /// 15 days.
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(u16).range(1..=15))]
    days: u16,
    /// Print the queries for `aws cloudwatch get-metric-data`, and do nothing else.
    #[arg(long, conflicts_with_all = ["metrics", "apply"])]
    print_queries: bool,
    /// The target utilization of auto scaling, in percent of the provisioned capacity.
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u64).range(20..=90))]
    target: u64,
    /// Region of the prices. The default is AWS_REGION, or us-east-1.
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Read the prices from this file, in the format of ops/prices.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Update the stack with the recommended parameters.
    #[arg(long, requires = "stack")]
    apply: bool,
    /// The name of the stack to update.
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Queries(Vec<metrics::Query>);

impl std::fmt::Display for Queries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string_pretty(&self.0).map_err(|_| std::fmt::Error)?)
    }
}

pub(crate) async fn run(args: CapacityArgs) -> Result<Outcome, OpsError> {
    if args.print_queries {
        return Ok(Outcome::new(&Queries(metrics::queries(&aws::variable("TABLE_NAME")?)), true));
    }
    let series = match &args.metrics {
        Some(path) => parse(&read(path)?)?,
        None => {
            let table = aws::variable("TABLE_NAME")?;
            let now = Instant::now().as_seconds();
            metrics::fetch(&CloudWatch::from_env()?, &table, now - i64::from(args.days) * 86_400, now).await?
        }
    };
    let region = args.region.or_else(|| aws::variable("AWS_REGION").ok()).unwrap_or_else(|| "us-east-1".to_owned());
    let prices = match &args.prices {
        Some(path) => Prices::parse(&read(path)?, &region)?,
        None => Prices::built_in(&region)?,
    };
    let mut report = Report::new(&series, &prices, args.target)?;
    if let (true, Some(stack)) = (args.apply, &args.stack) {
        // If the update fails, the operator still sees the parameters.
        eprintln!("{stack}: {}", report.change());
        Stack::from_env(stack)?.update(&report.parameters).await?;
        report.updated = Some(stack.clone());
    }
    Ok(Outcome::new(&report, true))
}

fn read(path: &PathBuf) -> Result<String, OpsError> {
    fs::read_to_string(path).map_err(|error| OpsError::Usage(format!("{} cannot be read: {error}", path.display())))
}
