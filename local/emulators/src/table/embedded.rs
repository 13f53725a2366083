use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use dynoxide::{Database, DynoxideError, ImportOptions, Item};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::expiry::Expiry;
use super::files::Files;
use super::stream_store::StreamStore;
use super::{Error, proxy};

/// An in-process DynamoDB with its streams, served over HTTP on a loopback port.
///
/// It runs on a separate thread with its own runtime, because the engine (`dynoxide`) blocks during
/// each request. Dropping the value ends the server. It also removes the data unless the caller
/// gave a data folder.
pub struct EmbeddedTable {
    url: String,
    // The fields are dropped in this order: the server with its handles, the engine, the other
    // connections, and the files last.
    server: Server,
    engine: Database,
    stream: StreamStore,
    expiry: Expiry,
    _files: Files,
}

impl EmbeddedTable {
    /// Opens the database in `data_dir` and serves it. Without a folder it uses a temporary
    /// database, in memory if the machine has a large memory file system. The server is ready when
    /// this function returns. Blocks for some milliseconds.
    pub fn start(data_dir: Option<&Path>) -> Result<Self, Error> {
        let files = match data_dir {
            Some(folder) => Files::kept(folder)?,
            None => Files::scratch()?,
        };
        let path = files.database();
        let engine = Database::new(&path.to_string_lossy())?;
        // These are the engine's names for settings of SQLite. `enable_bulk_loading` turns off
        // syncing, which temporary data does not need. With `disable_bulk_loading`, SQLite syncs at
        // checkpoints, which keeps the file valid.
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

    /// Returns the endpoint of both the table and its stream: `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Deletes the stream records of `table` up to and including `up_to_sequence_number`. Call it
    /// only when no reader needs these records any more. Returns the number of deleted records.
    ///
    /// It never deletes the newest record of a table, because the engine derives the next number
    /// from it. Blocks for about a millisecond per 500 records.
    ///
    /// # Errors
    /// [`Error::SequenceNumber`] if this stream did not issue the number, [`Error::Database`] if
    /// SQLite fails. A busy database is not an error: the next call deletes the remaining records.
    pub fn trim_stream(&self, table: &str, up_to_sequence_number: &str) -> Result<u64, Error> {
        self.stream.trim(table, up_to_sequence_number)
    }

    /// Writes items, in DynamoDB's JSON, directly into the engine: all or none, and without stream
    /// records. It is much faster than requests to the server. Use it to fill a table before its
    /// first use. Blocks for about a second per 10,000 items.
    pub fn import(&self, table: &str, items: Vec<Value>) -> Result<(), Error> {
        let items =
            items.into_iter().map(serde_json::from_value).collect::<Result<Vec<Item>, _>>().map_err(Error::Item)?;
        self.engine.import_items(table, items, ImportOptions::default())?;
        Ok(())
    }

    /// Deletes the expired items of every table with TTL, and returns their number. The engine
    /// deletes expired items only by this call.
    ///
    /// The call blocks until the sweep is done. The sweep reads whole tables, in steps that let
    /// other requests run in between. When the call returns, all items that had expired at its
    /// beginning are deleted.
    pub fn sweep_ttl(&self) -> Result<usize, Error> {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let beside_requests = self.engine.sweep_ttl()?;
        if !self.expiry.is_left(began)? {
            return Ok(beside_requests);
        }
        // Concurrent writes made the sweep miss items (see `expiry`). So it runs a second time,
        // and the requests wait meanwhile.
        let alone = self.server.between_requests(|engine| engine.sweep_ttl()).ok_or(Error::Unswept)??;
        if self.expiry.is_left(began)? { Err(Error::Unswept) } else { Ok(beside_requests + alone) }
    }

    /// Answers a request in the caller's thread, without the server. Blocks until the engine has
    /// processed it. It knows the operations on items, and those that a stream's reader
    /// and a table's creation need.
    pub(super) fn answer(&self, operation: &str, body: &[u8]) -> Result<String, DynoxideError> {
        let engine = &self.engine;
        match operation {
            "BatchGetItem" => call(body, |request| engine.batch_get_item(request)),
            "BatchWriteItem" => call(body, |request| engine.batch_write_item(request)),
            "CreateTable" => call(body, |request| engine.create_table(request)),
            "DeleteItem" => call(body, |request| engine.delete_item(request)),
            "DescribeTable" => call(body, |request| engine.describe_table(request)),
            "DescribeStream" => call(body, |request| engine.describe_stream(request)),
            "GetItem" => call(body, |request| engine.get_item(request)),
            "GetRecords" => call(body, |request| engine.get_records(request)),
            "GetShardIterator" => call(body, |request| engine.get_shard_iterator(request)),
            "PutItem" => call(body, |request| engine.put_item(request)),
            "Query" => call(body, |request| engine.query(request)),
            "TransactGetItems" => call(body, |request| engine.transact_get_items(request)),
            "TransactWriteItems" => call(body, |request| engine.transact_write_items(request)),
            "UpdateItem" => call(body, |request| engine.update_item(request)),
            other => Err(DynoxideError::ValidationException(format!("{other} is not an operation on items"))),
        }
    }

    /// Ends the server and closes the database. Dropping the value does the same.
    pub fn shutdown(mut self) {
        self.server.stop();
    }
}

fn call<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    run: impl FnOnce(Q) -> Result<A, DynoxideError>,
) -> Result<String, DynoxideError> {
    let refused = |error: serde_json::Error| DynoxideError::SerializationException(error.to_string());
    serde_json::to_string(&run(serde_json::from_slice(body).map_err(refused)?)?).map_err(refused)
}

struct Server {
    port: u16,
    /// Work that the server's thread does between two requests. Closing the channel ends the
    /// server.
    jobs: Option<UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&Database) + Send>;

impl Server {
    fn start(engine: Database) -> Result<Self, Error> {
        let (jobs, wanted) = unbounded_channel();
        let (opened, port) = mpsc::channel();
        // The thread creates and drops the runtime, because the caller may itself be inside a
        // runtime.
        let thread = std::thread::Builder::new().name("embedded-table".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            runtime.block_on(serve(engine, &opened, wanted));
            // Dropping the runtime drops the connections. No request is in progress, because the
            // engine completes each request before this thread continues.
        })?;
        let port = port.recv().unwrap_or_else(|gone| Err(io::Error::other(gone)))?;
        Ok(Self { port, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `work` on the server's thread, which serves no requests in the meantime. Returns `None`
    /// if the server has ended.
    fn between_requests<T: Send + 'static>(&self, work: impl FnOnce(&Database) -> T + Send + 'static) -> Option<T> {
        let (done, result) = mpsc::channel();
        let job = move |engine: &Database| {
            // An error is ignored, because the caller may no longer wait for the result.
            let _ = done.send(work(engine));
        };
        self.jobs.as_ref()?.send(Box::new(job)).ok()?;
        result.recv().ok()
    }

    fn stop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // An error means that the thread panicked. Either way, the thread has ended.
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

/// Opens a listener with `TCP_NODELAY`, which accepted sockets inherit. Without this option, large
/// responses wait for the client's delayed acknowledgement.
fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(1024)
}
