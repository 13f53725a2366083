//! What it costs to build Bodega: from nothing, and after a change of what everything or one function rests on.
//!
//! Each build goes to an empty folder, with cargo's own settings for this workspace. The CPU time of all its processes is what is compared: how long one waits
//! depends on the cores, and on what else they do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;

use crate::{BenchError, performance};

#[derive(Debug, Args)]
pub(crate) struct BuildsArgs {
    /// Build here instead of in a temporary folder. What lies there already is not built again.
    #[arg(long, value_name = "FOLDER")]
    target: Option<PathBuf>,
    /// Write the table into docs/performance.md.
    #[arg(long)]
    write: bool,
}

/// The unit of times under /proc, on every architecture.
const TICKS_PER_SECOND: u64 = 100;

/// A build, and the file that changes before it.
const BUILDS: [(&str, &str, &[&str]); 6] = [
    ("`cargo build`, from nothing", "", &["build"]),
    ("`cargo build` after a change of key-schema", "shared/key-schema/src/lib.rs", &["build"]),
    ("`cargo build` after a change of orders", "functions/orders/src/lib.rs", &["build"]),
    ("`cargo test --workspace --no-run` after that", "", &["test", "--workspace", "--no-run"]),
    (
        "`cargo test --workspace --no-run` after a change of key-schema",
        "shared/key-schema/src/lib.rs",
        &["test", "--workspace", "--no-run"],
    ),
    (
        "`cargo test -p orders --no-run` after a change of orders",
        "functions/orders/src/lib.rs",
        &["test", "-p", "orders", "--no-run"],
    ),
];

/// Builds, and prints the table.
pub(crate) fn run(args: &BuildsArgs) -> Result<(), BenchError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir()?;
    let target = args.target.as_deref().unwrap_or_else(|| folder.path());
    let mut table = format!(
        "{} crates, of which {} are others'.\n\n| build | CPU s | crates compiled | waited s |\n|---|---|---|---|\n",
        crates(&root, "")?,
        crates(&root, "registry")?
    );
    for (name, changed, arguments) in BUILDS {
        if !changed.is_empty() {
            // As an editor that saves the file; what it says stays as it is.
            std::fs::File::options().append(true).open(root.join(changed))?.set_modified(SystemTime::now())?;
        }
        let (cpu, began) = (children_cpu()?, Instant::now());
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(arguments)
            .args(["--locked", "--color", "never", "--target-dir"])
            .arg(target)
            .current_dir(&root)
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(BenchError::Wrong(format!("{name}: {said}")));
        }
        let waited = began.elapsed().as_secs();
        let compiled = said.lines().filter(|line| line.trim_start().starts_with("Compiling ")).count();
        let row = format!("| {name} | {} | {compiled} | {waited} |\n", (children_cpu()? - cpu).as_secs());
        eprint!("{row}");
        table += &row;
    }
    print!("{table}");
    if args.write {
        performance::write("builds", &table)?;
    }
    Ok(())
}

/// How many packages a build of the workspace takes whose source contains this text.
fn crates(root: &Path, source: &str) -> Result<usize, BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--locked", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(root).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(BenchError::wrong)?;
    let packages = metadata.get("packages").and_then(serde_json::Value::as_array);
    let packages = packages.ok_or_else(|| BenchError::Wrong("cargo names no packages".to_owned()))?;
    let is_from = |package: &serde_json::Value| {
        package.get("source").and_then(serde_json::Value::as_str).unwrap_or_default().contains(source)
    };
    Ok(packages.iter().filter(|package| is_from(package)).count())
}

/// The CPU time of all processes that this one has waited for, and theirs.
fn children_cpu() -> Result<Duration, BenchError> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The program's name may hold spaces, and ends with a parenthesis; after it come the third field and the next: the children's times are 16th and 17th.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::process::Command;

    use super::{BUILDS, children_cpu, crates};

    #[test]
    fn every_file_that_changes_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(BUILDS.iter().all(|(_, changed, _)| root.join(changed).exists()));
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
