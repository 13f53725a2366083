//! CPU time and memory of a function's processes, which are child processes of this process.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::BenchError;

/// Interval of the readings. An idle function computes for less than [`IDLE_CPU`] in this time.
const READING_INTERVAL: Duration = Duration::from_millis(150);
const IDLE_CPU: Duration = Duration::from_millis(1);
/// The maximum number of readings. If the function is busy even in the last, the measurement fails.
const MAX_READINGS: usize = 400;

/// The CPU time and memory of a function's processes so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// CPU time of all threads, with a resolution of nanoseconds.
    pub cpu: Duration,
    /// Memory in bytes.
    pub memory: u64,
    pub processes: usize,
}

/// Reads the values from /proc.
pub(crate) fn of(function: &str) -> Result<Spent, BenchError> {
    let variable = format!("AWS_LAMBDA_FUNCTION_NAME={function}");
    let mut spent = Spent::default();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let is_process = folder.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        // Ignore a process that ends during the scan.
        if !is_process || parent(&folder) != Some(std::process::id()) {
            continue;
        }
        let Ok(environment) = fs::read(folder.join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|pair| pair == variable.as_bytes()) {
            spent.cpu += of_threads(&folder)?;
            spent.memory += memory(&folder);
            spent.processes += 1;
        }
    }
    if spent.processes == 0 {
        return Err(wrong!("{function} has no process"));
    }
    Ok(spent)
}

/// Waits until a function is idle. Without requests it may still start processes or collect
/// garbage.
///
/// # Errors
/// Like [`of`], and when the function is still busy after the last reading.
pub(crate) async fn at_rest(function: &str) -> Result<(), BenchError> {
    let mut before = of(function)?;
    for _ in 0..MAX_READINGS {
        tokio::time::sleep(READING_INTERVAL).await;
        let now = of(function)?;
        if now.processes == before.processes && now.cpu.saturating_sub(before.cpu) < IDLE_CPU {
            return Ok(());
        }
        before = now;
    }
    Err(wrong!("{function} is still busy after {MAX_READINGS} readings"))
}

fn parent(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name may contain any character and ends with the last parenthesis. The state follows it.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the private memory of a process in bytes, or 0 if the process has just ended.
fn memory(process: &Path) -> u64 {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let own = status.lines().filter_map(|line| line.strip_prefix("RssAnon:"));
    own.filter_map(|size| size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .sum()
}

/// Returns the CPU time of all threads of a process so far, given its folder below /proc. The
/// resolution is nanoseconds. The value comes from a file, because valgrind does not support the
/// clock that measures CPU time.
pub(crate) fn of_threads(process: &Path) -> Result<Duration, BenchError> {
    let mut nanos = 0;
    for thread in fs::read_dir(process.join("task"))? {
        // The thread may have ended since the listing.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanos += text.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default();
    }
    Ok(Duration::from_nanos(nanos))
}
