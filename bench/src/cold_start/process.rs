//! One process of a function, from its start to its first answer and beyond.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::runtime::{RuntimeApi, Step};
use super::share::Share;
use crate::BenchError;

/// So often instructions are counted. Valgrind translates every piece of a program before it runs, so a start may not get its connection within the second that it
/// waits for one: then the handshake is begun twice. Of the counts the one is taken in which it was not.
const COUNTS: usize = 3;
/// Under valgrind everything takes some fifty times as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is measured, and how it is started.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The event of every invocation.
    pub event: String,
}

/// How far a process is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// It asks for its first invocation.
    Ready,
    /// It has answered so many.
    Answers(usize),
}

/// What one process took.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    /// From its start until it asks for its first invocation.
    pub init: Duration,
    /// From when it got the first until it answered.
    pub first: Duration,
    /// The same for the others.
    pub warm: Vec<Duration>,
    /// CPU time of all its threads until the first answer, and after the last.
    pub cpu_cold: Duration,
    pub cpu: Duration,
    /// The most memory that it held, in kilobytes.
    pub peak_kb: u64,
}

impl Program {
    /// Starts a process, gives it invocations, and ends it. A share of a core holds from the first invocation on, as Lambda has it.
    pub async fn run(&self, until: Until, share: Option<&Share>) -> Result<Run, BenchError> {
        let mut api = RuntimeApi::start(self.event.clone()).await?;
        let started = Instant::now();
        let mut child = Process(self.spawn(&api.address.to_string())?);
        let (mut run, mut answers, mut given) = (Run::default(), 0, started);
        loop {
            let step = tokio::time::timeout(PATIENCE, api.steps.recv()).await;
            let step = step.ok().flatten().ok_or_else(|| BenchError::Wrong(format!("{self}: nothing happens")))?;
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
                        // It has finished what an answer leaves to be done.
                        let cpu = cpu_time(child.0.id())?;
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
                    return Err(BenchError::Wrong(format!("{self}: {}", String::from_utf8_lossy(&body))));
                }
            }
        }
        child.end()?;
        Ok(run)
    }

    /// Instructions of all its threads so far, as callgrind counts them; what it has to say about them is left in the file.
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
            // Until the first event a start without a connection takes fewest, after it one that connects twice takes most.
            let is_better = |taken: u64| if until == Until::Ready { count > taken } else { count < taken };
            if taken.is_none_or(is_better) {
                fs::rename(&attempt, file)?;
                taken = Some(count);
            }
        }
        taken.ok_or_else(|| BenchError::wrong("nothing was counted"))
    }

    fn spawn(&self, runtime_api: &str) -> Result<Child, BenchError> {
        let (program, arguments) = self.command.split_first().ok_or_else(|| BenchError::wrong("no command"))?;
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
        child.map_err(|error| BenchError::Wrong(format!("{program}: {error}")))
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.command.last().map_or("", String::as_str))
    }
}

/// The answer of an HTTP function must be a success, and that of a consumer name no failure: a refusal
/// costs less.
fn check(program: &Program, body: &[u8]) -> Result<(), BenchError> {
    let answer: Value = serde_json::from_slice(body).map_err(BenchError::wrong)?;
    let is_success = answer.get("statusCode").and_then(Value::as_u64) == Some(200);
    let is_taken = answer.get("batchItemFailures").and_then(Value::as_array).is_some_and(Vec::is_empty);
    if is_success || is_taken { Ok(()) } else { Err(BenchError::Wrong(format!("{program} answered {answer}"))) }
}

/// A process that ends with the value, if not before.
struct Process(Child);

impl Process {
    /// Asks it to end, which lets valgrind write down what it has counted.
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

/// What all threads of a process have computed so far, to the nanosecond.
fn cpu_time(pid: u32) -> Result<Duration, BenchError> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the two.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanos += text.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default();
    }
    Ok(Duration::from_nanos(nanos))
}

fn peak_kb(pid: u32) -> Result<u64, BenchError> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse().ok());
    peak.ok_or_else(|| BenchError::wrong("the system does not say how much memory a process has held"))
}

/// How many instructions callgrind counted.
fn instructions(file: &Path) -> Result<u64, BenchError> {
    let text = fs::read_to_string(file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")));
    let total = total.and_then(|rest| rest.split_whitespace().next()).and_then(|count| count.parse().ok());
    total.ok_or_else(|| BenchError::Wrong(format!("{} has no total", file.display())))
}
