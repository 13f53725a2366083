//! `bench replay`: imports baskets into a separate local system, and replays its stream's records.

use std::path::PathBuf;
use std::time::Instant;

use local::import::{self, ImportArgs};
use local::{Options, System};
use template::Template;

use super::shop::Shop;
use super::{compare, record, replay};
use crate::BenchError;

/// Seeds that determine the order of the batches, one for each replay.
const SEEDS: [u64; 2] = [1, 2];
const BATCH: usize = 100;

/// The files of the import, and the maximum number of baskets.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// Products: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    products: Option<PathBuf>,
    /// Households: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    households: Option<PathBuf>,
    /// Baskets: newline-delimited JSON, plain or gzip.
    #[arg(long, value_name = "FILE")]
    baskets: PathBuf,
    /// Only the first N baskets.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// Imports the files and replays the stream's records twice. After each step, compares the results
/// of the consumers with the table.
pub async fn run(args: ReplayArgs) -> Result<(), BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.keeps_stream = true;
    let template = Template::read(&crate::template_file(&options))?;
    let system = System::start(options).await?;
    let measured = measure(&system, &template, args).await;
    system.shutdown().await;
    measured
}

async fn measure(system: &System, template: &Template, args: ReplayArgs) -> Result<(), BenchError> {
    let shop = Shop::of(system).await?;
    let files = ImportArgs {
        port: 0,
        products: args.products,
        households: args.households,
        baskets: Some(args.baskets),
        limit: args.limit,
        stock: 1_000_000,
        data: None,
    };
    let started = Instant::now();
    // The exit code is ignored. The comparison below covers only records that reached the table.
    // The import prints the rows that it did not load.
    let _ = import::run(files, system.url(), system.token("import", &["staff".to_owned()])).await;
    shop.drain().await?;
    let recorded = record(system, template, &shop).await?;
    println!("import: {} records, {:.0} s", recorded.len(), started.elapsed().as_secs_f64());
    let mut right = report(&compare(&shop, &recorded).await?);
    for seed in SEEDS {
        let started = Instant::now();
        let taken = replay(system, &recorded, BATCH, seed).await?;
        shop.drain().await?;
        println!("replay with seed {seed}: {taken} records, {:.0} s", started.elapsed().as_secs_f64());
        right &= report(&compare(&shop, &recorded).await?);
    }
    if right { Ok(()) } else { Err(wrong!("the backends differ from the table, as printed above")) }
}

fn report(compared: &super::Compared) -> bool {
    println!("{compared}");
    compared.is_equal()
}
