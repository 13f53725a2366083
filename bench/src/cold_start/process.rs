use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::runtime::{RuntimeApi, Step};
use crate::BenchError;
use crate::latency::cpu;

/// The number of repetitions of a count. At its start, a function waits for its connection to the
/// table for at most one second. Under valgrind the connection may take longer, because valgrind
/// translates code before it runs. The process then connects again at its first request. The
/// measurement uses a count of a process that connected once.
const COUNTS: usize = 3;
/// The longest wait for a step. Under valgrind everything takes about fifty times as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A measured program: the command that starts it, its environment and its event.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub event: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// The process requests its first invocation.
    Ready,
    /// The process has responded this many times.
    Answers(usize),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    /// The time from the start of the process until it requests its first invocation.
    pub init: Duration,
    /// The time from the delivery of the first invocation to its response.
    pub first: Duration,
    /// The time from the delivery to the response, for each further invocation.
    pub warm: Vec<Duration>,
    /// CPU time of all threads until the first response. `cpu` covers the time until the last
    /// response.
    pub cpu_cold: Duration,
    pub cpu: Duration,
    /// The highest memory, in kilobytes.
    pub peak_kb: u64,
}

impl Program {
    /// The CPU share applies from the first invocation on, as in Lambda.
    pub async fn run(&self, until: Until, share: Option<&Share>) -> Result<Run, BenchError> {
        let mut api = RuntimeApi::start(self.event.clone()).await?;
        let started = Instant::now();
        let mut child = Process(self.spawn(&api.address.to_string())?);
        let (mut run, mut answers, mut given) = (Run::default(), 0, started);
        loop {
            let step = tokio::time::timeout(PATIENCE, api.steps.recv()).await;
            let step = step.ok().flatten().ok_or_else(|| wrong!("{self}: no request within {PATIENCE:?}"))?;
            match step {
                Step::Next(at, go_on) => {
                    if answers == 0 {
                        run.init = at - started;
                        if until == Until::Ready {
                            break;
                        }
                        if let Some(share) = share {
                            share.hold(child.0.id())?;
                        }
                    } else {
                        // A process has no work left after its response, so this time is complete.
                        let cpu = cpu::of_threads(&Path::new("/proc").join(child.0.id().to_string()))?;
                        if answers == 1 {
                            run.cpu_cold = cpu;
                        }
                        if until == Until::Answers(answers) {
                            run.cpu = cpu;
                            run.peak_kb = peak_kb(child.0.id())?;
                            break;
                        }
                    }
                    given = Instant::now();
                    let _ = go_on.send(());
                }
                Step::Answered(at, body) => {
                    check(self, &body)?;
                    answers += 1;
                    if answers == 1 { run.first = at - given } else { run.warm.push(at - given) }
                }
                Step::Failed(body) => {
                    return Err(wrong!("{self}: {}", String::from_utf8_lossy(&body)));
                }
            }
        }
        child.end()?;
        Ok(run)
    }

    /// Returns the instructions of all threads, as callgrind counts them. The file receives
    /// callgrind's output.
    pub async fn counted(&self, file: &Path, until: Until) -> Result<u64, BenchError> {
        let attempt = file.with_extension("attempt");
        let mut program = self.clone();
        let out = format!("--callgrind-out-file={}", attempt.display());
        let valgrind = ["valgrind", "--tool=callgrind", "-q", &out].map(str::to_owned);
        program.command.splice(0..0, valgrind);
        let mut taken = None;
        for _ in 0..COUNTS {
            program.run(until, None).await?;
            let count = instructions(&attempt)?;
            // Until the first event, the highest count is right: a process without a connection has
            // a lower count. Until a response, the lowest count is right: a process that connected
            // twice has a higher count.
            let is_better = |taken: u64| if until == Until::Ready { count > taken } else { count < taken };
            if taken.is_none_or(is_better) {
                fs::rename(&attempt, file)?;
                taken = Some(count);
            }
        }
        taken.ok_or_else(|| wrong!("callgrind counted nothing"))
    }

    fn spawn(&self, runtime_api: &str) -> Result<Child, BenchError> {
        let (program, arguments) = self.command.split_first().ok_or_else(|| wrong!("no command"))?;
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("AWS_LAMBDA_RUNTIME_API", runtime_api)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.map_err(|error| wrong!("{program}: {error}"))
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.command.last().map_or("", String::as_str))
    }
}

/// A refused request would cost less and falsify the figures.
fn check(program: &Program, body: &[u8]) -> Result<(), BenchError> {
    let answer: Value = serde_json::from_slice(body)?;
    let is_success = answer.get("statusCode").and_then(Value::as_u64) == Some(200);
    let is_taken = answer.get("batchItemFailures").and_then(Value::as_array).is_some_and(Vec::is_empty);
    if is_success || is_taken { Ok(()) } else { Err(wrong!("unexpected response of {program}: {answer}")) }
}

struct Process(Child);

impl Process {
    /// Sends a signal that ends the process, so that valgrind writes its counts.
    fn end(&mut self) -> Result<(), BenchError> {
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(std::io::Error::from)?;
        }
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn peak_kb(pid: u32) -> Result<u64, BenchError> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse().ok());
    peak.ok_or_else(|| wrong!("/proc has no peak memory of the process"))
}

fn instructions(file: &Path) -> Result<u64, BenchError> {
    let text = fs::read_to_string(file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")));
    let total = total.and_then(|rest| rest.split_whitespace().next()).and_then(|count| count.parse().ok());
    total.ok_or_else(|| wrong!("{} has no total", file.display()))
}

/// The memory size in MB with which a function gets one whole core.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
pub(super) const CORE_MB: u32 = 1_769;
const PERIOD_MICROS: u32 = 20_000;
/// The folders of control groups, version 1 and version 2.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];

/// A control group that limits a process to a share of a core, as Lambda limits a function in
/// proportion to its memory. Dropping the value removes the group.
pub(super) struct Share {
    folder: PathBuf,
}

impl Share {
    /// Creates a group, or returns `None` if this process lacks the permission.
    pub fn create(memory_mb: u32) -> Option<Self> {
        HIERARCHIES.iter().find_map(|hierarchy| {
            let folder = PathBuf::from(hierarchy).join(format!("bodega-bench-{}-{memory_mb}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let share = Self { folder };
            share.limit(memory_mb).map(|()| share)
        })
    }

    fn limit(&self, memory_mb: u32) -> Option<()> {
        let quota = PERIOD_MICROS * memory_mb / CORE_MB;
        let second = fs::write(self.folder.join("cpu.max"), format!("{quota} {PERIOD_MICROS}"));
        second
            .or_else(|_| {
                fs::write(self.folder.join("cpu.cfs_period_us"), PERIOD_MICROS.to_string())?;
                fs::write(self.folder.join("cpu.cfs_quota_us"), quota.to_string())
            })
            .ok()
    }

    pub fn hold(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // If this fails, an empty group remains until the machine restarts.
        let _ = fs::remove_dir(&self.folder);
    }
}
