//! `bench replay`: imports a whole history into a separate local system and replays it.

use std::path::PathBuf;
use std::time::Instant;

use local::import::{self, ImportArgs};
use local::{Options, System};
use template::Template;

use super::shop::Shop;
use super::{compare, record, replay};
use crate::BenchError;

/// The files of the history, and the options of the replay.
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
    /// Seed of the order of the batches.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Records in a batch.
    #[arg(long, value_name = "N", default_value_t = 100)]
    batch: usize,
}

/// Imports the history, replays it twice, and compares after each step.
///
/// # Errors
/// [`BenchError::Wrong`] when the shop differs from its table.
pub async fn run(args: ReplayArgs) -> Result<(), BenchError> {
    let mut options = Options::from_environment(std::env::current_exe()?);
    options.port = 0;
    options.keeps_stream = true;
    let template = Template::read(&crate::template_file(&options)).map_err(BenchError::wrong)?;
    let system = System::start(options).await.map_err(BenchError::wrong)?;
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
    // The importer's summary has the refusals and their reasons. The comparison below detects
    // losses.
    let _ = import::run(files, system.url(), system.token("import", &["staff".to_owned()])).await;
    shop.drain().await?;
    let recorded = record(system, template, &shop).await?;
    println!("taken as it happened: {} records, {:.0} s", recorded.len(), started.elapsed().as_secs_f64());
    let mut right = report(&compare(&shop, &recorded).await?);
    for round in 0..2_u64 {
        let (started, seed) = (Instant::now(), args.seed.wrapping_add(round));
        let taken = replay(system, &recorded, args.batch, seed).await?;
        shop.drain().await?;
        println!("replayed with seed {seed}: {taken} records, {:.0} s", started.elapsed().as_secs_f64());
        right &= report(&compare(&shop, &recorded).await?);
    }
    if right { Ok(()) } else { Err(BenchError::Wrong("the shop differs from what its table says".to_owned())) }
}

fn report(compared: &super::Compared) -> bool {
    println!("{compared}");
    compared.is_equal()
}
