#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let (_, of) = state(id)?;
        (of == parent).then_some(id)
    });
    processes.collect()
}

/// Returns whether a process still runs, and its parent. Returns `None` if the process is gone.
fn state(id: u32) -> Option<(bool, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The format is `<id> (<name>) <state> <parent> …`. The name may contain any character.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_running = !matches!(fields.next()?, "Z" | "X");
    Some((is_running, fields.next()?.parse().ok()?))
}

#[test]
fn the_functions_end_at_once_when_the_system_is_killed() {
    let mut system = Command::new(env!("CARGO_BIN_EXE_bodega-under-test"))
        .args(["--port", "0", "--quiet", "--template"])
        .arg(crate::support::root().join("template.yaml"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(system.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready: "), "{line}");
    let functions = children(system.id());
    assert!(functions.len() >= 9, "one process each: {functions:?}");

    system.kill().unwrap();
    system.wait().unwrap();
    let killed = Instant::now();
    while functions.iter().any(|id| state(*id).is_some_and(|(is_running, _)| is_running)) {
        assert!(killed.elapsed() < Duration::from_secs(2), "a function outlives the system");
        std::thread::yield_now();
    }
}
