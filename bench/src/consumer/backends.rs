//! The consumer's backends: search engine, table, event bus and object store. They run in a
//! separate process, so that the consumer's CPU time does not include theirs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use emulators::events::EventBusServer;
use emulators::objects::ObjectServer;
use emulators::search::SearchServer;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use crate::loaded::{self, LoadedTable};
use crate::{BenchError, records};

const BUS: &str = "bench";
const ARCHIVE: &str = "bench-archive";

/// The URLs of the backends.
#[derive(Debug, Serialize, Deserialize)]
struct Urls {
    search: String,
    table: String,
    events: String,
    objects: String,
}

/// The process of the backends. Dropping the value ends the process.
pub(super) struct Backends {
    process: Child,
    urls: Urls,
}

impl Backends {
    /// Starts the backends in a new process of this program. `records` is the number of records
    /// that the consumer will take. The table gets the items to which these records refer.
    pub(super) fn start(records: u64) -> Result<Self, BenchError> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["backends", "--records", &records.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut urls = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut urls)?;
        }
        let urls = serde_json::from_str(&urls)?;
        Ok(Self { process, urls })
    }

    /// Returns the search engine's URL.
    pub(super) fn search(&self) -> &str {
        &self.urls.search
    }

    /// Returns the environment variables with which a consumer reaches the backends.
    pub(super) fn environment(&self) -> [(&'static str, &str); 10] {
        [
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "bench"),
            ("AWS_SECRET_ACCESS_KEY", "bench"),
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.urls.table),
            ("AWS_ENDPOINT_URL_EVENTBRIDGE", &self.urls.events),
            ("AWS_ENDPOINT_URL_S3", &self.urls.objects),
            ("TABLE_NAME", loaded::NAME),
            ("BUS_NAME", BUS),
            ("ARCHIVE_BUCKET", ARCHIVE),
            ("SEARCH_ENDPOINT", &self.urls.search),
        ]
    }
}

impl Drop for Backends {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // An error means that the process has already ended.
        let _ = self.process.wait();
    }
}

/// Runs the backends: prints their URLs and serves until standard input ends.
pub(crate) async fn serve(records: u64) -> Result<(), BenchError> {
    let search = SearchServer::start(None).await?;
    let table = LoadedTable::create().await?;
    table.load(records::around(records)).await?;
    let events = EventBusServer::start(&[BUS.to_owned()]).await?;
    let objects = ObjectServer::start(None, &[ARCHIVE.to_owned()]).await?;
    let urls = Urls {
        search: search.url().to_owned(),
        table: table.url().to_owned(),
        events: events.url().to_owned(),
        objects: objects.url().to_owned(),
    };
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::to_string(&urls)?)?;
    out.flush()?;
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}
