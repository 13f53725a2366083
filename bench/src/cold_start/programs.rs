use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::functions::{self, Subject};
use super::peers;
use super::process::{Program, Run};
use crate::BenchError;
use crate::loaded::NAME;

const AMAZON_ROOTS: &str = "shared/aws/roots/amazon-trust-services.pem";
pub(super) const SEARCH_PREFIX: &str = "bench";
/// The root certificates that the peer `usual` trusts.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

pub(super) struct Measured {
    pub name: String,
    pub artifact: PathBuf,
    pub program: Program,
    pub is_native: bool,
    pub runs: Vec<Run>,
    /// The times of the first responses with the CPU share of the smallest memory.
    pub shared: Vec<Duration>,
}

/// Returns the peers, and then the functions.
pub(super) fn all(
    root: &Path,
    subjects: &[Subject],
    environment: &[(String, String)],
) -> Result<Vec<Measured>, BenchError> {
    let event = functions::customers()?.event;
    let measured = |name: &str, artifact: PathBuf, command: Vec<String>, event: String, is_native: bool| {
        let program = Program { command, environment: environment.to_vec(), event };
        Measured { name: name.to_owned(), artifact, program, is_native, runs: Vec::new(), shared: Vec::new() }
    };
    let peers = peers::all(&root.join(peers::FOLDER))
        .into_iter()
        .map(|peer| measured(peer.name, peer.artifact, peer.command, event.clone(), peer.is_native));
    let functions = subjects.iter().map(|subject| {
        let binary = built(root, subject.name);
        let command = vec![binary.display().to_string()];
        measured(subject.name, binary, command, subject.event.clone(), true)
    });
    Ok(peers.chain(functions).collect())
}

/// Builds each package separately, as for a deployment. One build would combine their features.
pub(super) fn build(root: &Path, subjects: &[Subject]) -> Result<(), BenchError> {
    for subject in subjects {
        build_package(root, &format!("bodega-{}", subject.name))?;
    }
    peers::build(&root.join(peers::FOLDER))
}

pub(super) fn build_package(folder: &Path, package: &str) -> Result<(), BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--release", "--locked", "-p", package]).current_dir(folder);
    if build.status()?.success() { Ok(()) } else { Err(wrong!("cannot build {package}")) }
}

pub(super) fn built(folder: &Path, name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    target.join("release").join(name)
}

/// An ARN of a secret. The endpoint of the table answers for every secret.
const SECRET: &str = "arn:aws:secretsmanager:us-east-1:000000000000:secret:bench";

pub(super) fn environment(
    root: &Path,
    table: &Endpoint,
    search: &Endpoint,
    folder: &Path,
) -> Result<Vec<(String, String)>, BenchError> {
    // A bundle adds the endpoints' issuers to the roots that a program trusts when it is deployed.
    let issuers = std::fs::read_to_string(&table.issuer)? + &std::fs::read_to_string(&search.issuer)?;
    let bundle = |name: &str, roots: &Path| -> Result<String, BenchError> {
        let path = folder.join(name);
        std::fs::write(&path, std::fs::read_to_string(roots)? + "\n" + &issuers)?;
        Ok(path.display().to_string())
    };
    let ours = bundle("amazon.pem", &root.join(AMAZON_ROOTS))?;
    let system = bundle("system.pem", Path::new(SYSTEM_ROOTS))?;
    let all = [
        ("TABLE_NAME", NAME.to_owned()),
        ("CURSOR_KEYS_SECRET", SECRET.to_owned()),
        ("EMAIL_CODE_KEYS_SECRET", SECRET.to_owned()),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", table.url()),
        ("STAGE", "bench".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        // Lambda sets two variables with the region. boto3 reads only `AWS_DEFAULT_REGION`.
        ("AWS_DEFAULT_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "bench".to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB", table.url()),
        ("MEDIA_BUCKET", "bench".to_owned()),
        ("FAILED_RECORDS_BUCKET", "bench".to_owned()),
        ("SINKS", "search".to_owned()),
        ("SEARCH_ENDPOINT", search.url()),
        ("SEARCH_INDEX_PREFIX", SEARCH_PREFIX.to_owned()),
        ("SEARCH_SERVICE", "es".to_owned()),
        ("AWS_CA_BUNDLE", ours),
        ("NODE_EXTRA_CA_CERTS", table.issuer.display().to_string()),
        ("SSL_CERT_FILE", system),
        ("AWS_LAMBDA_FUNCTION_NAME", "measured".to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/measured".to_owned()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/22/[$LATEST]0".to_owned()),
    ];
    Ok(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
