use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::log::Lines;
use crate::{FunctionSpec, Log};

/// How long a process may take to exit before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// The Windows API's flag for a new process group.
#[cfg(windows)]
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

/// Starts the function's program. Dropping the handle kills the process.
pub(crate) fn spawn(
    spec: &FunctionSpec,
    variables: BTreeMap<String, OsString>,
    log: Log,
    lines: &Arc<Lines>,
) -> io::Result<Child> {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(variables)
        // The pipe stays open while this process runs. The function's process exits when the pipe
        // closes.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // In its own process group, the function does not receive Ctrl-C from the terminal. The local
    // system receives it, and ends its functions in an orderly way.
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(windows)]
    command.creation_flags(CREATE_NEW_PROCESS_GROUP);
    let mut child = command.spawn()?;
    if let Some(out) = child.stdout.take() {
        tokio::spawn(log.forward(Arc::clone(lines), spec.name.clone(), out));
    }
    if let Some(err) = child.stderr.take() {
        tokio::spawn(log.forward(Arc::clone(lines), spec.name.clone(), err));
    }
    Ok(child)
}

/// Requests the process to exit, and kills it if it does not exit in time.
pub(crate) async fn terminate(child: &mut Child) {
    ask_to_end(child);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        // The kill fails only if the process has already exited.
        let _ = child.kill().await;
    }
}

/// Describes the end of a process in Lambda's words.
pub(crate) fn describe(status: io::Result<ExitStatus>) -> String {
    let status = match status {
        Ok(status) => status,
        Err(error) => return format!("Runtime could not be watched: {error}"),
    };
    match status.code() {
        Some(code) => format!("Runtime exited with error: exit status {code}"),
        None => format!("Runtime exited with error: {}", signal(status)),
    }
}

#[cfg(unix)]
fn ask_to_end(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};

    // `id` is `None` after the process has exited and was waited for. So no other process with a
    // reused id gets the signal.
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = id.and_then(Pid::from_raw) {
        // Sending fails only if the process has already exited.
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match status.signal() {
        Some(number) => format!("signal {number}"),
        None => "unknown reason".to_owned(),
    }
}

#[cfg(not(unix))]
fn ask_to_end(child: &mut Child) {
    let _ = child.start_kill();
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> String {
    "unknown reason".to_owned()
}
