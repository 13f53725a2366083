//! The object store on one machine: the part of S3's REST interface that Bodega uses.
//!
//! [`ObjectServer`] answers path-style requests: `PUT` (with `If-None-Match: *`, storage class, CRC-32, SHA-256), copy, `GET`, `HEAD`, `DELETE` of an object,
//! `HEAD` of a bucket and `ListObjectsV2`. What it does not know (versions, ranges, parts, delimiters, trailers, …) it refuses with
//! `NotImplemented`, so that what works here means the same to S3. A request must be signed; the signature is checked where it is in the query
//! (`presigned.rs`), not in the headers, which functions alone send. Who may not list a bucket is told 403 of an object that is not there, as by S3.
//!
//! The handlers are our own: `s3s-fs` 0.14 (139 crates) looks whether a name is taken before it writes, so that two writers can both be the
//! first, and makes a name a path, so that `a` and `a/b` exclude each other; neither it nor `winterbaume-s3` lets requests fail on purpose.
//!
//! Pages of other origins are answered by the rules of [`ObjectServer::let_pages_in`].
//!
//! Objects are kept in memory, or in a folder, where they survive the end of this process (not of the machine: nothing is flushed).
//!
//! # Faults
//!
//! [`ObjectServer::faults`] makes requests fail: `throttle` answers 503 `SlowDown`, `error` 500 `InternalError`, `reset` closes
//! the connection, all three with nothing done; `slow` answers late, `timeout` does what was asked and never answers. `conflict` answers a
//! conditional `PUT` with 409 `ConditionalRequestConflict`, nothing done. `partial` has no meaning here.

mod cors;
mod files;
mod presigned;
mod problem;
mod request;
mod server;
mod store;
mod xml;

use std::io;
use std::path::PathBuf;

pub use cors::CorsRule;
pub use server::ObjectServer;
pub use store::{ObjectInfo, ObjectPage};

/// Why the object store cannot run, or not keep an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of the data, or a file in it, cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or folder in question.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A file in the data folder is not what this store wrote.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// Not 3 to 63 letters, digits, dots and hyphens that begin and end with a letter or digit.
    #[error("{0} is no name of a bucket")]
    BucketName(String),
    /// There is no such bucket.
    #[error("there is no bucket {0}")]
    NoBucket(String),
    /// A name that S3 refuses.
    #[error("not a name of an object")]
    Name,
    /// No port could be opened on the loopback interface.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}
