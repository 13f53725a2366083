//! What functions are usually made of, to compare with: a workspace of their own, and two scripts.
//!
//! All but the first two answer `GET /v1/customers/{id}`. Node.js and Python speak to the Runtime API without the client that Lambda puts before them, and the
//! SDK of the one is bundled with it: both start quicker so than usual. Where this machine has not got them, their rows are left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::{build_package, built};
use crate::BenchError;

/// Where they lie.
pub(super) const FOLDER: &str = "bench/peers";
/// A function that does nothing.
const EMPTY: &str = "(a) does nothing";
/// The same on `lambda_http`.
const EMPTY_HTTP: &str = "does nothing, lambda_http";
/// The one that the others are compared with.
pub(super) const USUAL: &str = "(b) as usual";
/// What the product stands on, without the product.
const LEAN: &str = "(c) `GetItem` as Bodega's, no handler";
const BARE: &str = "(c) without retries and timeouts";
const NODE: &str = "Node.js, SDK v3";
const PYTHON: &str = "Python, boto3";

pub(super) struct Peer {
    pub name: &'static str,
    /// What is deployed of it.
    pub artifact: PathBuf,
    pub command: Vec<String>,
    pub is_native: bool,
}

/// Those that can be built.
pub(super) fn build(folder: &Path) -> Result<(), BenchError> {
    for package in ["empty", "empty-http", "lean", "usual"] {
        build_package(folder, package)?;
    }
    let node = folder.join("cold-node");
    for arguments in [["ci", "--ignore-scripts", "--prefer-offline"], ["run", "build", "--silent"]] {
        let built = Command::new("npm").args(arguments).current_dir(&node).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("bench: without Node.js: npm {} fails", arguments.join(" "));
            break;
        }
    }
    Ok(())
}

/// Those that are there.
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
    // The program itself, and not what may stand before it in the path to choose among versions.
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

/// What a program says, when there is one and it succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
