//! Measures a function from its start to its first response, and its warm responses.
//!
//! Each function runs as in a deployment. A Runtime API gives the function the same request
//! repeatedly, and the function reaches its table through TLS. Bodega's functions run in turns with
//! their peers: functions that do nothing, and other functions that read a customer (see
//! [`peers`]). Callgrind counts instructions, and the kernel counts CPU time.

mod endpoint;
mod functions;
mod memory;
mod peers;
mod process;
mod programs;
mod report;
mod runtime;

use std::path::Path;

use clap::Args;
use emulators::search::SearchServer;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use search_index::{SearchClient, SearchConfig};

use crate::BenchError;
use crate::loaded::LoadedTable;
use crate::report::Output;
use endpoint::Endpoint;
use functions::Subject;
use process::{Share, Until};
use programs::Measured;
use report::{Figures, Instructions, Report};

/// The smallest memory size that Lambda offers.
const LEAST_MEMORY_MB: u32 = 128;

#[derive(Debug, Args)]
pub(crate) struct ColdStartArgs {
    /// Processes of each function. The figures are medians.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    runs: u16,
    /// Requests to each process after its first request.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    warm: u16,
    /// Only functions whose name contains this text. The peers are always measured.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Do not build. Measure the programs of the last build.
    #[arg(long)]
    built: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: ColdStartArgs) -> Result<(), BenchError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let subjects: Vec<Subject> =
        functions::all()?.into_iter().filter(|subject| subject.name.contains(&args.only)).collect();
    if !args.built {
        programs::build(&root, &subjects)?;
    }
    let folder = tempfile::tempdir()?;
    let table = LoadedTable::create().await?;
    table.load(subjects.iter().flat_map(|subject| subject.items.iter().cloned().map(Ok))).await?;
    table.load(functions::customers()?.items.into_iter().map(Ok)).await?;
    let endpoint = Endpoint::start("table", table.url(), folder.path()).await?;
    let engine = SearchServer::start(None).await?;
    let index = SearchClient::new(&SearchConfig::new(engine.url(), programs::SEARCH_PREFIX)?);
    index.ensure_indices().await?;
    index.bulk(&[functions::indexed()?]).await?;
    index.refresh().await?;
    let search = Endpoint::start("search", engine.url(), folder.path()).await?;
    let environment = programs::environment(&root, &endpoint, &search, folder.path())?;
    let share = Share::create(LEAST_MEMORY_MB);
    let mut all = programs::all(&root, &subjects, &environment)?;
    // The programs run in turns, so that other load on the machine affects all of them alike.
    for _ in 0..args.runs {
        for measured in &mut all {
            measured.runs.push(measured.program.run(Until::Answers(usize::from(args.warm) + 1), None).await?);
            if let Some(share) = &share {
                measured.shared.push(measured.program.run(Until::Answers(1), Some(share)).await?.first);
            }
        }
    }
    let mut figures = Vec::new();
    for measured in &all {
        let instructions = if measured.is_native { Some(count(measured, folder.path()).await?) } else { None };
        figures.push(Figures::new(measured, deflated(&measured.artifact)?, instructions));
    }
    drop(share);
    let memory = memory::curve(&all, args.runs).await?;
    let report = Report { figures, memory, runs: args.runs, warm: args.warm };
    args.output.publish("cold-start", &report.markdown(), &report)
}

/// The number of warm requests over which the instructions are averaged.
const COUNTED_WARM: u8 = 40;

async fn count(measured: &Measured, folder: &Path) -> Result<Instructions, BenchError> {
    let file = folder.join("callgrind.out");
    let ready = measured.program.counted(&file, Until::Ready).await?;
    let answered = measured.program.counted(&file, Until::Answers(1)).await?;
    let many = measured.program.counted(&file, Until::Answers(1 + usize::from(COUNTED_WARM))).await?;
    let warm = many.saturating_sub(answered) / u64::from(COUNTED_WARM);
    Ok(Instructions { init: ready, first: answered.saturating_sub(ready), warm })
}

/// Returns a program's size and its compressed size in bytes. A zip file is a few bytes larger.
fn deflated(binary: &Path) -> Result<(u64, u64), BenchError> {
    let bytes = std::fs::read(binary).map_err(|error| wrong!("{}: {error}", binary.display()))?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    std::io::Write::write_all(&mut encoder, &bytes)?;
    let size = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    Ok((size(bytes.len()), size(encoder.finish()?.len())))
}
