use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use dynoxide::{Database, ImportOptions, Item};
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::expiry::Expiry;
use super::files::Files;
use super::stream_store::StreamStore;
use super::{Error, proxy};

/// A DynamoDB with its streams inside this process, served over HTTP on a loopback port.
///
/// It has a thread and a runtime of its own: the engine blocks while it works, one request at a time
/// in any case, and must not hold up the tasks of whoever embeds it. Dropping the value ends the
/// server, and removes the data unless a data folder was given.
pub struct EmbeddedTable {
    url: String,
    // Dropped in this order: the server and with it its handles, the engine, the connections beside it,
    // and only then the files.
    server: Server,
    engine: Database,
    stream: StreamStore,
    expiry: Expiry,
    _files: Files,
}

impl EmbeddedTable {
    /// Opens the database in `data_dir`, or a throw-away one in memory where the machine has a
    /// memory file system, and serves it. Ready when it returns; blocks for some milliseconds.
    ///
    /// # Errors
    /// [`Error::Folder`] or [`Error::InUse`] for the data folder, [`Error::Engine`] for a database
    /// that cannot be opened, [`Error::UnknownSchema`] when the engine's version is not the one
    /// this crate was written for, [`Error::Serve`] without a port or a thread.
    pub fn start(data_dir: Option<&Path>) -> Result<Self, Error> {
        let files = match data_dir {
            Some(folder) => Files::kept(folder)?,
            None => Files::scratch()?,
        };
        let path = files.database();
        let engine = Database::new(&path.to_string_lossy())?;
        // The engine's words for SQLite's settings: the first gives up syncing, for data that need
        // not outlive the machine; the second syncs at checkpoints only, which keeps the file whole.
        if files.is_kept() {
            engine.disable_bulk_loading()?;
        } else {
            engine.enable_bulk_loading()?;
        }
        let stream = StreamStore::open(&path, files.is_kept())?;
        let expiry = Expiry::open(&path)?;
        files.forget();
        let server = Server::start(engine.clone())?;
        Ok(Self { url: proxy::loopback_url(server.port), server, engine, stream, expiry, _files: files })
    }

    /// The endpoint of both the table and its stream: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Deletes the stream records of `table` up to and including `up_to_sequence_number`, which no
    /// reader needs any more, and gives their number. The newest record of a table always stays, for
    /// the engine numbers on from it. Blocks for about a millisecond per 500 records.
    ///
    /// # Errors
    /// [`Error::SequenceNumber`] for a number that this stream did not give out; [`Error::Database`]
    /// when SQLite fails. A busy database is no error: what is left goes with the next call.
    pub fn trim_stream(&self, table: &str, up_to_sequence_number: &str) -> Result<u64, Error> {
        self.stream.trim(table, up_to_sequence_number)
    }

    /// Writes items, in DynamoDB's JSON, straight into the engine: all or none, without records in the stream, and many times as fast as through the server. For
    /// a table that is filled before anybody uses it. Blocks for about a second per 10,000 items.
    ///
    /// # Errors
    /// [`Error::Item`] for what is no item, [`Error::Engine`] when the engine refuses one.
    pub fn import(&self, table: &str, items: Vec<Value>) -> Result<(), Error> {
        let items =
            items.into_iter().map(serde_json::from_value).collect::<Result<Vec<Item>, _>>().map_err(Error::Item)?;
        self.engine.import_items(table, items, ImportOptions::default())?;
        Ok(())
    }

    /// Deletes the expired items of every table with TTL and gives their number. The engine never
    /// does it by itself. It reads whole tables, in steps between which other requests go first;
    /// blocks as long as that takes. What had expired when it was called is gone when it returns.
    ///
    /// # Errors
    /// [`Error::Engine`] when the engine fails, [`Error::Unswept`] when the table grew otherwise than through the
    /// server while it was swept.
    pub fn sweep_ttl(&self) -> Result<usize, Error> {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let beside_requests = self.engine.sweep_ttl()?;
        if !self.expiry.is_left(began)? {
            return Ok(beside_requests);
        }
        // Somebody wrote ahead of it (see `expiry`). Once more, and requests wait until it is through.
        let alone = self.server.between_requests(|engine| engine.sweep_ttl()).ok_or(Error::Unswept)??;
        if self.expiry.is_left(began)? { Err(Error::Unswept) } else { Ok(beside_requests + alone) }
    }

    /// Ends the server and closes the database, as dropping does.
    pub fn shutdown(mut self) {
        self.server.stop();
    }
}

struct Server {
    port: u16,
    /// What to do between two requests. Closed, it ends the server.
    jobs: Option<UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&Database) + Send>;

impl Server {
    fn start(engine: Database) -> Result<Self, Error> {
        let (jobs, wanted) = unbounded_channel();
        let (opened, port) = mpsc::channel();
        // The runtime is made and dropped on its own thread, because the caller may be inside one.
        let thread = std::thread::Builder::new().name("embedded-table".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            runtime.block_on(serve(engine, &opened, wanted));
            // Dropping the runtime drops the connections, none of them inside a request: the
            // engine runs a request to its end before this thread goes on.
        })?;
        let port = port.recv().unwrap_or_else(|gone| Err(io::Error::other(gone)))?;
        Ok(Self { port, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does something on the thread of the server, which answers nobody meanwhile. `None` when the server has ended.
    fn between_requests<T: Send + 'static>(&self, work: impl FnOnce(&Database) -> T + Send + 'static) -> Option<T> {
        let (done, result) = mpsc::channel();
        let job = move |engine: &Database| {
            // Whoever asked may have gone.
            let _ = done.send(work(engine));
        };
        self.jobs.as_ref()?.send(Box::new(job)).ok()?;
        result.recv().ok()
    }

    fn stop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // An error means that the thread panicked; it is ended either way.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(engine: Database, opened: &mpsc::Sender<io::Result<u16>>, mut jobs: UnboundedReceiver<Job>) {
    let listener = match listen() {
        Ok(listener) => listener,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    let _ = opened.send(listener.local_addr().map(|address| address.port()));
    let serving = dynoxide::server::serve_with_shutdown(listener, engine.clone(), std::future::pending());
    tokio::pin!(serving);
    loop {
        tokio::select! {
            served = &mut serving => {
                if let Err(error) = served {
                    tracing::error!(error, "the embedded table stopped serving");
                }
                return;
            }
            job = jobs.recv() => match job {
                Some(job) => job(&engine),
                None => return,
            }
        }
    }
}

/// Accepted sockets inherit the option from the listening one: without it, large answers wait for
/// the other side's delayed acknowledgement.
fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(1024)
}
