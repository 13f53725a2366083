//! From the start of a function to its first answer, and what an answer costs when it is warm.
//!
//! Each function runs as it is deployed, behind a Runtime API that gives it the same request again and again, and reaches a table behind TLS. Beside it, in turns, run
//! a function that does nothing and one that is made as usual ([`PEERS`]). Instructions are counted by callgrind, CPU time by the kernel.

mod endpoint;
mod functions;
mod process;
mod report;
mod runtime;
mod share;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::loaded::{CURSOR_KEYS, LoadedTable, NAME};
use crate::{BenchError, performance};
use endpoint::TableEndpoint;
use functions::Subject;
use process::{Program, Run, Until};
use report::{Figures, Report};

/// The functions to compare with, in a workspace of their own.
const PEERS: &str = "bench/peers";
const AMAZON_ROOTS: &str = "shared/aws/roots/amazon-trust-services.pem";
/// Where the usual function finds its roots.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

#[derive(Debug, Args)]
pub(crate) struct ColdStartArgs {
    /// Processes of each function. The figures are medians.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    runs: u16,
    /// Requests to each process after the first.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    warm: u16,
    /// Only the functions whose name contains this text; the peers are always measured.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Take the programs as they are, instead of building them first.
    #[arg(long)]
    built: bool,
    /// Do not count instructions, which takes valgrind.
    #[arg(long)]
    without_instructions: bool,
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into docs/performance.md.
    #[arg(long)]
    write: bool,
}

/// What is measured: a program and its name in the table.
struct Measured {
    name: String,
    binary: PathBuf,
    program: Program,
    runs: Vec<Run>,
    /// The first answer with the share of a core that 128 MB have.
    shared: Vec<Duration>,
}

/// Builds, measures, prints the table.
pub(crate) async fn run(args: ColdStartArgs) -> Result<(), BenchError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let subjects: Vec<Subject> =
        functions::all()?.into_iter().filter(|subject| subject.package.contains(&args.only)).collect();
    if !args.built {
        build(&root, &subjects)?;
    }
    let folder = tempfile::tempdir()?;
    let table = LoadedTable::create().await?;
    table.load(subjects.iter().flat_map(|subject| subject.items.iter().cloned().map(Ok))).await?;
    table.load(functions::customers()?.items.into_iter().map(Ok)).await?;
    let endpoint = TableEndpoint::start(table.url(), folder.path()).await?;
    let environment = environment(&root, &endpoint, folder.path())?;
    let share = share::Share::create();
    let mut all = programs(&root, &subjects, &environment)?;
    // In turns, so that what else the machine does strikes all of them alike.
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
        let instructions = if args.without_instructions { None } else { Some(count(measured, folder.path()).await?) };
        figures.push(Figures::new(measured, deflated(&measured.binary)?, instructions));
    }
    let report = Report { figures, runs: args.runs, warm: args.warm };
    let text = report.markdown();
    print!("{text}");
    if let Some(path) = args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report).map_err(BenchError::wrong)? + "\n")?;
    }
    if args.write {
        performance::write("cold-start", &text)?;
    }
    Ok(())
}

/// Each package by itself, as it is deployed: built together they would have each other's features.
fn build(root: &Path, subjects: &[Subject]) -> Result<(), BenchError> {
    let peers = root.join(PEERS);
    let packages = subjects.iter().map(|subject| (root, subject.package));
    for (folder, package) in packages.chain([(peers.as_path(), "empty"), (peers.as_path(), "usual")]) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = std::process::Command::new(cargo)
            .args(["build", "--release", "--locked", "-p", package])
            .current_dir(folder)
            .status()?;
        if !built.success() {
            return Err(BenchError::Wrong(format!("{package} does not build")));
        }
    }
    Ok(())
}

/// Where cargo puts what it builds there.
fn target(folder: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from)
}

fn environment(root: &Path, endpoint: &TableEndpoint, folder: &Path) -> Result<Vec<(String, String)>, BenchError> {
    // With the roots that a deployed function has, and one more.
    let issuer = std::fs::read_to_string(&endpoint.issuer)?;
    let bundle = |name: &str, roots: &Path| -> Result<String, BenchError> {
        let path = folder.join(name);
        std::fs::write(&path, std::fs::read_to_string(roots)? + "\n" + &issuer)?;
        Ok(path.display().to_string())
    };
    let ours = bundle("amazon.pem", &root.join(AMAZON_ROOTS))?;
    let system = bundle("system.pem", Path::new(SYSTEM_ROOTS))?;
    let all = [
        ("TABLE_NAME", NAME.to_owned()),
        ("CURSOR_KEYS", CURSOR_KEYS.to_owned()),
        ("STAGE", "bench".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "bench".to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.url()),
        ("MEDIA_BUCKET", "bench".to_owned()),
        ("JWT_ISSUER", "https://issuer.invalid".to_owned()),
        ("JWT_AUDIENCE", "bench".to_owned()),
        ("AWS_CA_BUNDLE", ours),
        ("SSL_CERT_FILE", system),
        ("AWS_LAMBDA_FUNCTION_NAME", "measured".to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/measured".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/22/[$LATEST]0".to_owned()),
    ];
    Ok(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn programs(root: &Path, subjects: &[Subject], environment: &[(String, String)]) -> Result<Vec<Measured>, BenchError> {
    let measured = |name: &str, folder: PathBuf, binary: &str, event: String| {
        let binary = target(&folder).join("release").join(binary);
        let command = vec![binary.display().to_string()];
        let program = Program { command, environment: environment.to_vec(), event };
        Measured { name: name.to_owned(), binary, program, runs: Vec::new(), shared: Vec::new() }
    };
    let peer = functions::customers()?.call.event().to_string();
    let mut all = vec![
        measured(report::EMPTY, root.join(PEERS), "empty", peer.clone()),
        measured(report::USUAL, root.join(PEERS), "usual", peer),
    ];
    all.extend(
        subjects.iter().map(|subject| {
            measured(subject.package, root.to_owned(), subject.package, subject.call.event().to_string())
        }),
    );
    Ok(all)
}

/// Instructions until the process asks for its first invocation, and from there to its first answer.
async fn count(measured: &Measured, folder: &Path) -> Result<(u64, u64), BenchError> {
    let mut counts = Vec::new();
    for until in [Until::Ready, Until::Answers(1)] {
        let file = folder.join("callgrind.out");
        let mut program = measured.program.clone();
        let out = format!("--callgrind-out-file={}", file.display());
        let valgrind = ["valgrind", "--tool=callgrind", "-q", &out].map(str::to_owned);
        program.command.splice(0..0, valgrind);
        program.run(until, None).await?;
        counts.push(process::instructions(&file)?);
    }
    match counts[..] {
        [ready, answered] => Ok((ready, answered.saturating_sub(ready))),
        _ => Err(BenchError::wrong("two runs have two counts")),
    }
}

/// The size of a program in a zip, without the few bytes of the zip's own.
fn deflated(binary: &Path) -> Result<(u64, u64), BenchError> {
    let bytes = std::fs::read(binary).map_err(|error| BenchError::Wrong(format!("{}: {error}", binary.display())))?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    std::io::Write::write_all(&mut encoder, &bytes)?;
    let size = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    Ok((size(bytes.len()), size(encoder.finish()?.len())))
}
