//! `--local`: runs a command in the environment of a running local system.
//!
//! Environment variables are the whole configuration of a function, and of this tool. So the tool
//! gets the variables from the local system, and starts itself again with them.

use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::error::OpsError;

const WHAT: &str = "the local system";
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the address of a local system if it is an http or https URL.
pub(crate) fn address(text: &str) -> Result<String, String> {
    let is_whole = reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if is_whole { Ok(text.to_owned()) } else { Err("must be a URL such as http://127.0.0.1:3000".to_owned()) }
}

/// Runs this program with the same arguments in the environment of the local system at `url`.
pub(crate) async fn run_again(url: &str, args: &[String]) -> Result<ExitCode, OpsError> {
    let variables = variables(url).await?;
    let program = std::env::current_exe().map_err(OpsError::failed)?;
    let mut command = Command::new(program);
    command.args(args).envs(variables);
    run(&mut command)
}

/// Replaces this process, so that there is only one process to interrupt.
#[cfg(unix)]
fn run(command: &mut Command) -> Result<ExitCode, OpsError> {
    use std::os::unix::process::CommandExt as _;

    Err(OpsError::failed(command.exec()))
}

#[cfg(not(unix))]
fn run(command: &mut Command) -> Result<ExitCode, OpsError> {
    let status = command.status().map_err(OpsError::failed)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

async fn variables(url: &str) -> Result<Vec<(String, String)>, OpsError> {
    let unreachable = |error: reqwest::Error| OpsError::Unreachable { what: WHAT, reason: error.to_string() };
    let client = reqwest::Client::builder().timeout(TIMEOUT).build().map_err(unreachable)?;
    let url = format!("{}/_local/environment", url.trim_end_matches('/'));
    let answer = client.get(url).send().await.and_then(reqwest::Response::error_for_status).map_err(unreachable)?;
    let variables: Map<String, Value> = answer.json().await.map_err(unreachable)?;
    let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
    Ok(variables.into_iter().filter_map(text).collect())
}
