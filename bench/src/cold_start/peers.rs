//! Functions for comparison (peers): Rust programs in a separate workspace, and two scripts.
//!
//! Two peers do nothing. All others answer `GET /v1/customers/{id}`. Node.js and Python call the
//! Runtime API without Lambda's own client, and the Node.js SDK is bundled. Both therefore start
//! faster than in Lambda. If Node.js or boto3 is missing, the table has no row for its peer.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::{build_package, built};
use crate::BenchError;

pub(super) const FOLDER: &str = "bench/peers";
const EMPTY: &str = "(a) does nothing";
const EMPTY_HTTP: &str = "does nothing, lambda_http";
/// The function with which the other functions are compared.
pub(super) const USUAL: &str = "(b) as usual";
/// The foundation of Bodega's functions, without their code.
const LEAN: &str = "(c) `GetItem` as Bodega's, no handler";
const BARE: &str = "(c) without retries and timeouts";
const NODE: &str = "Node.js, SDK v3";
const PYTHON: &str = "Python, boto3";

pub(super) struct Peer {
    pub name: &'static str,
    /// The deployed file.
    pub artifact: PathBuf,
    pub command: Vec<String>,
    pub is_native: bool,
}

/// Builds the peers. If npm fails, prints a message and continues.
pub(super) fn build(folder: &Path) -> Result<(), BenchError> {
    for package in ["empty", "empty-http", "lean", "usual"] {
        build_package(folder, package)?;
    }
    let node = folder.join("cold-node");
    for arguments in [["ci", "--ignore-scripts", "--prefer-offline"], ["run", "build", "--silent"]] {
        let built = Command::new("npm").args(arguments).current_dir(&node).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("bench: Node.js is not measured, because npm {} fails", arguments.join(" "));
            break;
        }
    }
    Ok(())
}

pub(super) fn all(folder: &Path) -> Vec<Peer> {
    let native = |name, package: &str, arguments: &[&str]| {
        let artifact = built(folder, package);
        let command = std::iter::once(artifact.display().to_string()).chain(arguments.iter().map(ToString::to_string));
        Peer { name, command: command.collect(), artifact, is_native: true }
    };
    let script = |name, interpreter: Option<String>, artifact: PathBuf| {
        let command = vec![interpreter?, artifact.display().to_string()];
        artifact.is_file().then_some(Peer { name, artifact, command, is_native: false })
    };
    // This is the path of the interpreter itself. `node` may be the wrapper of a version manager.
    let node = said("node", &["-p", "process.execPath"]);
    let python = said("python3", &["-c", "import boto3, sys; print(sys.executable)"]);
    [
        Some(native(EMPTY, "empty", &[])),
        Some(native(EMPTY_HTTP, "empty-http", &[])),
        Some(native(USUAL, "usual", &[])),
        Some(native(LEAN, "lean", &[])),
        Some(native(BARE, "lean", &["bare"])),
        script(NODE, node, folder.join("target/cold-node/index.cjs")),
        script(PYTHON, python, folder.join("cold-python/index.py")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a program's output, or `None` if the program is missing or fails.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
