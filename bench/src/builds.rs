//! Measures how long newcomers and contributors wait for a build. The steps start the local system
//! from an empty build folder and after a source file was touched. Then they build and run the
//! tests.
//!
//! Each step uses the workspace's own Cargo settings, except the faster `sam build` for
//! development. To compare two runs, use the CPU time. It covers all processes of a step. The
//! elapsed time also depends on the number of cores and on other work on the machine.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use serde::Serialize;

use crate::BenchError;
use crate::report::{Output, Table};

#[derive(Debug, Args)]
pub(crate) struct BuildsArgs {
    /// Run only the first N steps.
    #[arg(long, value_name = "N", default_value_t = STEPS.len())]
    steps: usize,
    /// Also run the steps of a deployment. They need the SAM CLI and cargo-lambda.
    #[arg(long)]
    sam: bool,
    /// Run all steps N times, each time from an empty folder.
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    #[command(flatten)]
    output: Output,
}

/// /proc counts CPU time in ticks. On x86-64 and Arm, a second has this many ticks.
const TICKS_PER_SECOND: u64 = 100;

/// The command of a step, and the event that ends the step.
#[derive(Clone, Copy)]
enum Until {
    /// Cargo with these arguments. The step ends when Cargo exits.
    Exit(&'static [&'static str]),
    /// `cargo run`. The step ends when it prints `ready:`.
    Ready,
    /// `sam build` with these environment variables. The step ends when it exits.
    Sam(&'static [(&'static str, &'static str)]),
}

/// A step's name, the file that is touched before it, and its command.
type Step = (&'static str, &'static str, Until);

/// The steps of every run.
const STEPS: [Step; 7] = [
    ("clean folder → `ready:` of `cargo run`", "", Until::Ready),
    ("`orders` touched → `ready:`", "functions/orders/src/lib.rs", Until::Ready),
    ("`key-schema` touched → `ready:`", "shared/key-schema/src/lib.rs", Until::Ready),
    ("`cargo test --workspace --no-run` after that", "", Until::Exit(&["test", "--workspace", "--no-run"])),
    ("`cargo test --workspace` after that", "", Until::Exit(&["test", "--workspace"])),
    (
        "`cargo test --workspace --no-run`, `key-schema` touched",
        "shared/key-schema/src/lib.rs",
        Until::Exit(&["test", "--workspace", "--no-run"]),
    ),
    (
        "`cargo test -p bodega-orders --no-run`, `orders` touched",
        "functions/orders/src/lib.rs",
        Until::Exit(&["test", "-p", "bodega-orders", "--no-run"]),
    ),
];

/// The steps of a deployment. The second is the faster build for development of
/// docs/operations/deploy.md.
const SAM_STEPS: [Step; 2] = [
    ("`sam build`, clean", "", Until::Sam(&[])),
    (
        "`sam build` for development, clean",
        "",
        Until::Sam(&[("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")]),
    ),
];

/// The figures of one run of a step.
#[derive(Serialize)]
struct StepFigures {
    waited: u64,
    cpu: u64,
    compiled: usize,
    megabytes: u64,
}

/// Runs the steps and prints the table.
pub(crate) fn run(args: &BuildsArgs) -> Result<(), BenchError> {
    let root = std::env::current_dir()?;
    if !root.join("functions").is_dir() {
        return Err(wrong!("start bench builds in the top folder of a checkout"));
    }
    let mut steps: Vec<_> = STEPS.into_iter().take(args.steps).collect();
    steps.extend(SAM_STEPS.into_iter().filter(|_| args.sam));
    let mut figures: Vec<Vec<StepFigures>> = steps.iter().map(|_| Vec::new()).collect();
    for number in 1..=args.runs {
        let folder = tempfile::tempdir()?;
        for ((name, changed, until), runs) in steps.iter().zip(&mut figures) {
            let one = run_step(&root, folder.path(), changed, *until)?;
            eprintln!("{name}: {} s, {} s of CPU", one.waited, one.cpu);
            runs.push(one);
        }
        // Each run rewrites the table, so an interrupted measurement keeps the finished runs.
        let text = markdown(&root, &steps, &figures, number)?;
        args.output.publish("builds", &text, &figures)?;
    }
    Ok(())
}

/// Returns the table of the runs so far.
fn markdown(root: &Path, steps: &[Step], figures: &[Vec<StepFigures>], number: usize) -> Result<String, BenchError> {
    let mut table = Table::new("step | waited s | CPU s | crates compiled | target folder, MB");
    for ((name, ..), runs) in steps.iter().zip(figures) {
        let (waited, cpu) = (listed(runs, |one| one.waited), listed(runs, |one| one.cpu));
        let Some(StepFigures { compiled, megabytes, .. }) = runs.last() else { continue };
        table.row(format_args!("{name} | {waited} | {cpu} | {compiled} | {megabytes}"));
    }
    let (all, registry) = (crates(root, "")?, crates(root, "registry")?);
    Ok(format!("{all} crates, {registry} of them from a registry. Runs of each step: {number}.\n\n{table}"))
}

/// Touches a file, if `changed` names one, and runs a step.
fn run_step(root: &Path, target: &Path, changed: &str, until: Until) -> Result<StepFigures, BenchError> {
    if !changed.is_empty() {
        // A new modification time makes Cargo rebuild, and the content stays unchanged.
        std::fs::File::options().append(true).open(root.join(changed))?.set_modified(SystemTime::now())?;
    }
    let (cpu, began) = (children_cpu()?, Instant::now());
    // SAM and Cargo do not reuse each other's build results.
    let own = target.join(if matches!(until, Until::Sam(_)) { "sam" } else { "" });
    let (said, waited) = match until {
        Until::Exit(arguments) => (finished(cargo(root, &own, arguments))?, began.elapsed()),
        Until::Ready => ready(cargo(root, &own, &["run"]), began)?,
        Until::Sam(environment) => (finished(sam(root, &own, environment))?, began.elapsed()),
    };
    let cpu = (children_cpu()? - cpu).as_secs();
    let compiled = said.lines().filter(|line| line.trim_start().starts_with("Compiling ")).count();
    let megabytes = size(&own)? / 1_000_000;
    if matches!(until, Until::Sam(_)) {
        std::fs::remove_dir_all(&own)?;
    }
    Ok(StepFigures { waited: waited.as_secs(), cpu, compiled, megabytes })
}

/// Lists one figure of all runs, in ascending order.
fn listed(runs: &[StepFigures], figure: impl Fn(&StepFigures) -> u64) -> String {
    let mut figures: Vec<u64> = runs.iter().map(figure).collect();
    figures.sort_unstable();
    figures.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn sam(root: &Path, folder: &Path, environment: &[(&str, &str)]) -> Command {
    let mut sam = Command::new("sam");
    sam.args(["build", "--build-dir"]).arg(folder.join("build")).env("CARGO_TARGET_DIR", folder.join("target"));
    sam.env("SAM_CLI_TELEMETRY", "0").envs(environment.iter().copied());
    sam.current_dir(root).stdin(Stdio::null());
    sam
}

fn cargo(root: &Path, target: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).args(["--locked", "--color", "never", "--target-dir"]).arg(target);
    cargo.current_dir(root).stdin(Stdio::null());
    cargo
}

/// Runs Cargo or SAM to its end and returns its messages. If the command fails, the error contains
/// the messages.
fn finished(mut cargo: Command) -> Result<String, BenchError> {
    let output = cargo.stdout(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(wrong!("{cargo:?}: {said}")) }
}

/// Starts the local system and stops it when it is ready. Returns Cargo's messages and the time
/// until the system was ready.
fn ready(mut cargo: Command, began: Instant) -> Result<(String, Duration), BenchError> {
    // The system listens on this port only after its build. The port is most likely still free
    // then.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut system = cargo.args(["--", "--port", &port]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (Some(stdout), Some(mut stderr)) = (system.stdout.take(), system.stderr.take()) else {
        return Err(wrong!("cannot read the output of cargo run"));
    };
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).map(|_| said)
    });
    let is_ready = BufReader::new(stdout).lines().map_while(Result::ok).any(|line| line.starts_with("ready:"));
    let waited = began.elapsed();
    // On Unix, Cargo replaces itself with the program, and the program ends on this signal.
    if let Some(pid) = i32::try_from(system.id()).ok().and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(std::io::Error::from)?;
    }
    system.wait()?;
    let said = said.join().map_err(|_| wrong!("cannot read the messages of cargo run"))??;
    if is_ready { Ok((said, waited)) } else { Err(wrong!("{cargo:?}: {said}")) }
}

/// Returns the bytes that a folder takes on disk. A file with several hard links counts once.
fn size(folder: &Path) -> Result<u64, BenchError> {
    let output = Command::new("du").arg("-sk").arg(folder).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kilobytes = text.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| wrong!("du: {text}"))
}

/// Counts the packages of the dependency graph whose source contains `source`, such as `registry`.
/// An empty `source` counts all packages, including the workspace's own.
fn crates(root: &Path, source: &str) -> Result<usize, BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--locked", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(root).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata.get("packages").and_then(serde_json::Value::as_array);
    let packages = packages.ok_or_else(|| wrong!("cargo metadata has no packages"))?;
    let is_from = |package: &serde_json::Value| {
        package.get("source").and_then(serde_json::Value::as_str).unwrap_or_default().contains(source)
    };
    Ok(packages.iter().filter(|package| is_from(package)).count())
}

/// Returns the CPU time of all child processes that this process has waited for, and of their
/// children.
fn children_cpu() -> Result<Duration, BenchError> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses, which may contain spaces. The
    // children's times are the 16th and 17th fields.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::process::Command;

    use super::{STEPS, children_cpu, crates};

    #[test]
    fn steps_change_only_files_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(STEPS.iter().all(|(_, changed, _)| root.join(changed).exists()));
        let (all, registry) = (crates(&root, "").unwrap(), crates(&root, "registry").unwrap());
        assert!(all > registry && registry > 100, "{all} crates, {registry} from the registry");
    }

    #[test]
    fn the_time_of_children_is_counted() {
        let before = children_cpu().unwrap();
        Command::new("sh").args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"]).status().unwrap();
        assert!(children_cpu().unwrap() > before);
    }
}
