use std::io;
use std::path::PathBuf;

/// Why the embedded table or the proxy cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of the database cannot be made or read.
    #[error("cannot use the folder {}: {source}", path.display())]
    Folder {
        /// The folder in question.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Another process keeps its table in this data folder.
    #[error("the data folder {} is in use by another running system", .0.display())]
    InUse(PathBuf),
    /// The DynamoDB engine refused to open or to sweep.
    #[error("the embedded table failed: {0}")]
    Engine(#[from] dynoxide::DynoxideError),
    /// What was to be imported is not in the form of DynamoDB's JSON.
    #[error("no item of a table: {0}")]
    Item(#[source] serde_json::Error),
    /// A connection beside the engine's own failed.
    #[error("the database of the embedded table failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// A sweep left expired items, as often as it was tried.
    #[error("expired items are left: the table grows faster than it can be swept")]
    Unswept,
    /// The engine keeps its stream records in another way than this crate knows.
    #[error(
        "the embedded table keeps its stream in an unknown way (no column `{missing}` in \
         `_stream_records`): this crate is written for dynoxide-rs 3.2.0"
    )]
    UnknownSchema {
        /// The column that was looked for.
        missing: &'static str,
    },
    /// Not a sequence number that this table's stream could have given out.
    #[error("`{0}` is no sequence number of this stream")]
    SequenceNumber(String),
    /// No port could be opened on the loopback interface, or no thread started.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
    /// The address of the table behind the proxy is not an `http://` URL.
    #[error("`{0}` is no http:// address of a table")]
    Upstream(String),
}
