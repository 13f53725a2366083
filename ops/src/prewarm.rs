//! `ops prewarm`: prepares the table for a sale, before its traffic begins.
//!
//! A new on-demand table serves 4,000 write units and 12,000 read units a second at once, and grows
//! over minutes. Warm throughput is the rate that the table serves at once. A higher warm
//! throughput gives the table more partitions, for a charge that is paid once. It cannot be lowered
//! again, so the command never repeats the charge. The template does not set it, so a deployment
//! does not undo it.
//!
//! Source: Developer Guide, "Understanding DynamoDB warm throughput".

use std::fmt;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::types::{GlobalSecondaryIndexUpdate, UpdateGlobalSecondaryIndexAction, WarmThroughput};
use clap::Args;
use serde::Serialize;

use crate::error::OpsError;
use crate::outcome::Outcome;

const PRICE: &str = "https://aws.amazon.com/dynamodb/pricing/on-demand/";
const TABLE: &str = "table";
/// The units a second that a new account allows for a table.
const QUOTA: i64 = 40_000;

const EXAMPLES: &str = "Examples:
  ops prewarm --writes 40000 --dry-run
  ops prewarm --writes 40000 --reads 20000 --index-writes 10000
  ops prewarm --dry-run --json

An order of one line takes about 17 write units, and the consumers of the stream as many again.
AWS charges once for each added unit, and warm throughput cannot be lowered again.";

/// Prepare the table and its indexes for a sale: raise their warm throughput.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrewarmArgs {
    /// Write units a second that the table serves at once.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub writes: Option<i64>,
    /// Read units a second that the table serves at once.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub reads: Option<i64>,
    /// Write units a second that each index serves at once.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub index_writes: Option<i64>,
    /// Read units a second that each index serves at once.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub index_reads: Option<i64>,
    /// Only show the present and the new values, and the units that AWS charges.
    #[arg(long)]
    pub dry_run: bool,
}

/// The warm throughput of the table or of an index, in units a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warmth {
    pub place: String,
    pub reads: i64,
    pub writes: i64,
    pub new_reads: i64,
    pub new_writes: i64,
}

impl Warmth {
    const fn is_raised(&self) -> bool {
        self.new_reads > self.reads || self.new_writes > self.writes
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prewarmed {
    pub places: Vec<Warmth>,
    /// The added units, for which AWS charges once.
    pub charged_reads: i64,
    pub charged_writes: i64,
    /// Whether DynamoDB has begun to raise the values.
    pub begun: bool,
}

impl fmt::Display for Prewarmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "place     write units a second     read units a second")?;
        for Warmth { place, reads, writes, new_reads, new_writes } in &self.places {
            let shown = |now: &i64, new: &i64| if now == new { now.to_string() } else { format!("{now} → {new}") };
            writeln!(f, "{place:<8}  {:>20}  {:>22}", shown(writes, new_writes), shown(reads, new_reads))?;
        }
        let Self { charged_reads, charged_writes, begun, .. } = self;
        if *charged_reads + *charged_writes == 0 {
            return writeln!(f, "nothing to do: the table is already as warm");
        }
        writeln!(f, "AWS charges once for {charged_writes} write units and {charged_reads} read units: {PRICE}")?;
        if self.places.iter().any(|place| place.new_reads.max(place.new_writes) > QUOTA) {
            writeln!(f, "beyond {QUOTA} units, the account needs a higher quota of DynamoDB (Service Quotas)")?;
        }
        if *begun {
            writeln!(f, "DynamoDB has begun. Run the command again with --dry-run to see when it is done.")?;
        }
        Ok(())
    }
}

/// Raises the warm throughput, unless it is a dry run. A place that is already as warm stays as it
/// is.
pub async fn prewarm(client: &Client, table: &str, args: &PrewarmArgs) -> Result<Prewarmed, OpsError> {
    let described = client.describe_table().table_name(table).send().await.map_err(refused)?.table;
    let described = described.ok_or_else(|| OpsError::Failed("the table has no description".to_owned()))?;
    let warmth = |place: &str, (reads, writes): (Option<i64>, Option<i64>), wanted: (Option<i64>, Option<i64>)| {
        let missing = || OpsError::Failed(format!("DynamoDB does not report the warm throughput of {place}"));
        let (reads, writes) = (reads.ok_or_else(missing)?, writes.ok_or_else(missing)?);
        let raised = |now: i64, wanted: Option<i64>| wanted.map_or(now, |wanted| wanted.max(now));
        let (new_reads, new_writes) = (raised(reads, wanted.0), raised(writes, wanted.1));
        Ok::<_, OpsError>(Warmth { place: place.to_owned(), reads, writes, new_reads, new_writes })
    };
    let now = described.warm_throughput.as_ref();
    let now = now.map_or((None, None), |warm| (warm.read_units_per_second, warm.write_units_per_second));
    let mut places = vec![warmth(TABLE, now, (args.reads, args.writes))?];
    for index in described.global_secondary_indexes.unwrap_or_default() {
        let now = index.warm_throughput.as_ref();
        let now = now.map_or((None, None), |warm| (warm.read_units_per_second, warm.write_units_per_second));
        let name = index.index_name.unwrap_or_default();
        places.push(warmth(&name, now, (args.index_reads, args.index_writes))?);
    }
    let charged = |added: fn(&Warmth) -> i64| places.iter().map(added).sum();
    let mut prewarmed = Prewarmed {
        charged_reads: charged(|place| place.new_reads - place.reads),
        charged_writes: charged(|place| place.new_writes - place.writes),
        begun: false,
        places,
    };
    if !args.dry_run && prewarmed.places.iter().any(Warmth::is_raised) {
        raise(client, table, &prewarmed.places).await?;
        prewarmed.begun = true;
    }
    Ok(prewarmed)
}

async fn raise(client: &Client, table: &str, places: &[Warmth]) -> Result<(), OpsError> {
    let mut update = client.update_table().table_name(table);
    for place in places.iter().filter(|place| place.is_raised()) {
        let warm = WarmThroughput::builder().read_units_per_second(place.new_reads);
        let warm = warm.write_units_per_second(place.new_writes).build();
        update = if place.place == TABLE {
            update.warm_throughput(warm)
        } else {
            let action = UpdateGlobalSecondaryIndexAction::builder().index_name(&place.place).warm_throughput(warm);
            let action = action.build().map_err(OpsError::failed)?;
            update.global_secondary_index_updates(GlobalSecondaryIndexUpdate::builder().update(action).build())
        };
    }
    update.send().await.map(drop).map_err(refused)
}

fn refused<E, R>(error: aws_sdk_dynamodb::error::SdkError<E, R>) -> OpsError
where
    E: std::error::Error + aws_sdk_dynamodb::error::ProvideErrorMetadata + 'static,
    R: fmt::Debug + 'static,
{
    match error.as_service_error() {
        Some(service) => {
            let reason = service.message().unwrap_or("DynamoDB gave no reason");
            OpsError::Failed(format!("the table was not changed: {reason}"))
        }
        None => OpsError::Unreachable { what: "the table", reason: DisplayErrorContext(&error).to_string() },
    }
}

pub(crate) async fn run(args: PrewarmArgs) -> Result<Outcome, OpsError> {
    let is_empty = [args.writes, args.reads, args.index_writes, args.index_reads].iter().all(Option::is_none);
    if is_empty && !args.dry_run {
        let hint = "give --writes, --reads, --index-writes or --index-reads, or use --dry-run";
        return Err(OpsError::Usage(format!("prewarm has no value to set: {hint}")));
    }
    let table = aws::variable("TABLE_NAME")?;
    let prewarmed = prewarm(&Client::new(&aws::config().await?), &table, &args).await?;
    Ok(Outcome::new(&prewarmed, true))
}
