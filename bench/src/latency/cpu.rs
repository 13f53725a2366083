//! What the processes of a function have computed, and what memory they have: those that this process has started as the function's environments.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::BenchError;

/// A function computes less than [`LITTLE`] in this time when it has nothing to do.
const GLANCE: Duration = Duration::from_millis(150);
const LITTLE: Duration = Duration::from_millis(1);
/// Glances until a function that still computes is given up.
const GLANCES: usize = 400;

/// What a function's processes have computed so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// All threads together, to the nanosecond.
    pub cpu: Duration,
    /// What they have in memory, in bytes.
    pub memory: u64,
    pub processes: usize,
}

/// Reads it off /proc.
///
/// # Errors
/// When there is no /proc, or no process of the function.
pub(crate) fn of(function: &str) -> Result<Spent, BenchError> {
    let variable = format!("AWS_LAMBDA_FUNCTION_NAME={function}");
    let mut spent = Spent::default();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let is_process = folder.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        // A process that ends while it is looked at is none any more.
        if !is_process || parent(&folder) != Some(std::process::id()) {
            continue;
        }
        let Ok(environment) = fs::read(folder.join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|pair| pair == variable.as_bytes()) {
            spent.cpu += cpu(&folder)?;
            spent.memory += memory(&folder);
            spent.processes += 1;
        }
    }
    if spent.processes == 0 {
        return Err(BenchError::Wrong(format!("{function} has no process")));
    }
    Ok(spent)
}

/// Waits until all that a function has begun is done: processes that start, garbage that is collected.
///
/// # Errors
/// As [`of`]; when it takes too long.
pub(crate) async fn at_rest(function: &str) -> Result<(), BenchError> {
    let mut before = of(function)?;
    for _ in 0..GLANCES {
        tokio::time::sleep(GLANCE).await;
        let now = of(function)?;
        if now.processes == before.processes && now.cpu.saturating_sub(before.cpu) < LITTLE {
            return Ok(());
        }
        before = now;
    }
    Err(BenchError::Wrong(format!("{function} comes to no rest")))
}

fn parent(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name before may contain anything but ends with the last parenthesis; the state follows.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// What a process has for itself. A process that has just ended has nothing.
fn memory(process: &Path) -> u64 {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let own = status.lines().filter_map(|line| line.strip_prefix("RssAnon:"));
    own.filter_map(|size| size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .sum()
}

fn cpu(process: &Path) -> Result<Duration, BenchError> {
    let mut nanos = 0;
    for thread in fs::read_dir(process.join("task"))? {
        // A thread may end between the two.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanos += text.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default();
    }
    Ok(Duration::from_nanos(nanos))
}
