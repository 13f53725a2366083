//! The embedded search engine in a process of its own, so that its CPU time is not the consumer's.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use emulators::search::SearchServer;
use tokio::io::AsyncReadExt as _;

use crate::BenchError;

/// The engine's process. Ends with this value.
pub(crate) struct Engine {
    process: Child,
    pub(crate) url: String,
}

impl Engine {
    /// Starts this program again as the engine.
    pub(crate) fn start() -> Result<Self, BenchError> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("engine")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut url)?;
        }
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Gone already, which is as well.
        let _ = self.process.wait();
    }
}

/// Is the engine: prints its address and serves until standard input ends.
pub(crate) async fn serve() -> Result<(), BenchError> {
    let server = SearchServer::start(None).await?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}
