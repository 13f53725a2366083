//! `bench instructions` counts the instructions of each part of a function.
//!
//! The measured function is compared with peer (b), the package `usual` in `bench/peers`. Both are
//! built as for a deployment, but with symbols and with thin link-time optimization. Callgrind
//! counts the instructions of each symbol including its callees. A part has one symbol, or several
//! symbols of which one calls the others. The table indents a part that belongs to the part above
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::endpoint::Endpoint;
use super::process::{Program, Until};
use super::{functions, peers, programs};
use crate::BenchError;
use crate::loaded::LoadedTable;
use crate::report::{Output, Table, or_dash};

#[derive(Debug, Args)]
pub(crate) struct InstructionsArgs {
    #[command(flatten)]
    output: Output,
}

/// The measured function. The peer (b) serves the same route.
const PACKAGE: &str = "customers";
/// The number of warm requests over which the instructions are averaged.
const WARM: usize = 100;
/// The build folder of the programs with symbols.
const TARGET: &str = "target/with-symbols";

/// A row of the table: its name, its depth, and its symbols. Each entry of `functions` is the start
/// of a symbol's name. An entry that begins with an asterisk can match anywhere in the name.
struct Part {
    name: &'static str,
    depth: usize,
    functions: &'static [&'static str],
}

const fn part(depth: usize, name: &'static str, functions: &'static [&'static str]) -> Part {
    Part { name, depth, functions }
}

const PARTS: &[Part] = &[
    part(0, "loading and dynamic linking", &["_dl_start"]),
    part(0, "TLS handshake with the table", &["tokio_rustls::common::Stream<IO,C>::handshake"]),
    part(1, "two certificate signatures", &["<ring::ec::suite_b::ecdsa::verification::EcdsaVerificationAlgorithm"]),
    part(1, "key exchange", &["ring::ec::curve25519::x25519::x25519_ecdh"]),
    part(0, "roots from PEM", &["aws::connector::tls::Tls::trusting"]),
    part(
        0,
        "creation of the SDK's client",
        &["aws_sdk_dynamodb::client::Client::from_conf", "aws_sdk_dynamodb::client::Client::new"],
    ),
    part(
        1,
        "AWS partitions from JSON",
        &["aws_sdk_dynamodb::endpoint_lib::partition::PartitionResolver::new_from_json"],
    ),
    part(0, "GetItem by the SDK", &["aws_sdk_dynamodb::operation::get_item::builders::GetItemFluentBuilder::send"]),
    part(1, "signature", &["<aws_runtime::auth::sigv4::SigV4Signer"]),
    part(2, "SHA-256, in software under valgrind", &["sha2::sha256::compress256"]),
    part(1, "response from JSON", &["<aws_sdk_dynamodb::operation::get_item::GetItemResponseDeserializer"]),
    part(1, "configuration of each call", &["aws_smithy_runtime::client::orchestrator::apply_configuration"]),
    part(1, "user agent", &["<aws_runtime::user_agent::interceptor::UserAgentInterceptor"]),
    part(1, "connection", &["aws::connector::Connector::exchange"]),
    part(0, "reading the event", &["http_api::event::Event::parse"]),
    part(0, "reading the item", &["<key_schema::item::Stored<T> as key_schema::item::FromItem>::from_item"]),
    part(0, "writing the response", &["customers::profile::respond"]),
    part(0, "metrics line", &["telemetry::emf::Line::print"]),
    part(0, "the runtime's span", &["<lambda_runtime::layers::trace::TracingService"]),
];

/// Parts that only the peer (b) has.
const PEER_PARTS: &[Part] = &[
    part(
        0,
        "entropy from clock jitter",
        &["*jent_read_entropy", "*jent_entropy_init", "*jent_entropy_collector_alloc"],
    ),
    part(0, "reading the system's roots", &["rustls_native_certs::load_native_certs"]),
];

/// Instructions by symbol, including callees.
type Counted = BTreeMap<String, u64>;

/// Callgrind's counts of a program.
struct Stages {
    ready: (u64, Counted),
    first: (u64, Counted),
    many: (u64, Counted),
}

/// Builds, counts and prints the table.
///
/// # Errors
/// [`BenchError`] when a build fails, or when the function has no symbol of a part.
pub(crate) async fn run(args: InstructionsArgs) -> Result<(), BenchError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir()?;
    let table = LoadedTable::create().await?;
    let subject = functions::customers()?;
    table.load(subject.items.into_iter().map(Ok)).await?;
    let endpoint = Endpoint::start("table", table.url(), folder.path()).await?;
    let environment = programs::environment(&root, &endpoint, None, folder.path())?;
    let event = subject.event;
    let mut columns = Vec::new();
    for (at, package) in [(root.clone(), PACKAGE), (root.join(peers::FOLDER), "usual")] {
        let program = with_symbols(&at, package)?;
        let program = Program {
            command: vec![program.display().to_string()],
            environment: environment.clone(),
            event: event.clone(),
        };
        columns.push(Stages {
            ready: counted(&program, folder.path(), Until::Ready).await?,
            first: counted(&program, folder.path(), Until::Answers(1)).await?,
            many: counted(&program, folder.path(), Until::Answers(1 + WARM)).await?,
        });
    }
    let [ours, usual] = columns.as_slice() else { return Err(wrong!("bench counts two programs")) };
    let rows = rows(ours, usual)?;
    args.output.publish("instructions", &markdown(&rows), &rows)
}

fn with_symbols(workspace: &Path, package: &str) -> Result<PathBuf, BenchError> {
    // With fat link-time optimization, the compiler would inline half of these symbols into others.
    let thin = ["--config", "profile.release.strip=false", "--config", "profile.release.lto='thin'"];
    programs::build_package(workspace, package, &[&thin[..], &["--target-dir", TARGET]].concat())?;
    Ok(workspace.join(TARGET).join("release").join(package))
}

async fn counted(program: &Program, folder: &Path, until: Until) -> Result<(u64, Counted), BenchError> {
    let file = folder.join("callgrind.out");
    let total = program.counted(&file, until).await?;
    let output = Command::new("callgrind_annotate").args(["--inclusive=yes", "--threshold=100"]).arg(&file).output()?;
    if !output.status.success() {
        return Err(BenchError(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok((total, parse(&String::from_utf8_lossy(&output.stdout))))
}

/// Parses lines of the form ` 12,345 (6.7%)  file:function [object]`. A recursive function has a
/// second line for its recursive calls.
fn parse(text: &str) -> Counted {
    let mut counted = Counted::new();
    for line in text.lines() {
        let Some((count, rest)) = line.trim_start().split_once(" (") else { continue };
        let Some((_, name)) = rest.split_once("%)") else { continue };
        let Ok(count) = count.replace(',', "").parse::<u64>() else { continue };
        let name = name.trim_start();
        let name = name.split_once(':').map_or(name, |(_, name)| name);
        let most = counted.entry(name.to_owned()).or_default();
        *most = count.max(*most);
    }
    counted
}

/// Returns the highest count of the matching symbols. The symbol with this count calls the others.
fn of(counted: &Counted, part: &Part) -> Option<u64> {
    let is_it = |name: &str, function: &str| match function.strip_prefix('*') {
        Some(inner) => name.contains(inner),
        None => name.starts_with(function),
    };
    let is_one = |name: &str| part.functions.iter().any(|function| is_it(name, function));
    counted.iter().filter(|(name, _)| is_one(name)).map(|(_, count)| *count).max()
}

/// A row of the table. The first three figures are the instructions until the first event, from
/// there to the first response, and for a warm request. The last two belong to peer (b): until the
/// first response, and for a warm request.
type Row = (String, [Option<u64>; 5]);

fn rows(ours: &Stages, usual: &Stages) -> Result<Vec<Row>, BenchError> {
    let row = |name: String, of: &dyn Fn(&(u64, Counted)) -> Option<u64>| {
        let stage = |stage: &(u64, Counted)| of(stage).unwrap_or_default();
        let warm = |stages: &Stages| stage(&stages.many).saturating_sub(stage(&stages.first)) / WARM as u64;
        let first = stage(&ours.first).saturating_sub(stage(&ours.ready));
        let theirs = of(&usual.many).map(|_| (stage(&usual.first), warm(usual)));
        let (usual_first, usual_warm) = theirs.unzip();
        (name, [Some(stage(&ours.ready)), Some(first), Some(warm(ours)), usual_first, usual_warm])
    };
    let mut rows = Vec::new();
    for (whose, counted, parts) in [(PACKAGE, &ours.many.1, PARTS), ("(b)", &usual.many.1, PEER_PARTS)] {
        for part in parts {
            if of(counted, part).is_none() {
                return Err(wrong!("{whose} has no symbol of the part {}", part.name));
            }
            let name = format!("{}{}", "&ensp;&ensp;of which ".repeat(part.depth.min(1)), part.name);
            rows.push(row(name, &|(_, counted)| of(counted, part)));
        }
    }
    rows.push(row("**all**".to_owned(), &|(total, _)| Some(*total)));
    Ok(rows)
}

fn markdown(rows: &[Row]) -> String {
    let mut table = Table::new(
        "part | until the first event | from there to the first answer | a warm request | (b): until the first answer \
        | (b): a warm request",
    );
    for (name, figures) in rows {
        let [ready, first, warm, usual_first, usual_warm] =
            figures.map(|count| or_dash(count.map(|count| count as f64 / 1e3), 0));
        table.row(format_args!("{name} | {ready} | {first} | {warm} | {usual_first} | {usual_warm}"));
    }
    format!(
        "Thousands of instructions of `{PACKAGE}` and of (b) for the same request. The figures of a warm request are \
         the average of {WARM} requests after the first.\n\n{table}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_highest_count_of_its_symbols() {
        let text = "\
--------------------------------------------------------------------------------
176,312,438 (100.0%)  PROGRAM TOTALS

 40,500,998 (22.97%)  ???:a::sign [/x/customers]
  9,000,000 ( 5.10%)  /rustc/lib.rs:a::sign::{{closure}} [/x/customers]
  1,000 ( 0.00%)  ???:b::sign [/x/customers]
";
        let counted = parse(text);
        assert_eq!(of(&counted, &part(0, "signature", &["a::sign"])), Some(40_500_998));
        assert_eq!(of(&counted, &part(0, "signature", &["*::sign"])), Some(40_500_998));
        assert_eq!(of(&counted, &part(0, "none", &["sign"])), None);
    }
}
