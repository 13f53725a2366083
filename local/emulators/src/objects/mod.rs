//! Emulates the part of S3's REST interface that Bodega uses.
//!
//! [`ObjectServer`] serves path-style requests: `PUT` (with `If-None-Match: *`, storage class,
//! CRC-32, SHA-256), copy, `GET`, `HEAD` and `DELETE` of an object, `HEAD` of a bucket and
//! `ListObjectsV2`. It rejects unsupported features (versions, ranges, parts, delimiters, trailers,
//! …) with `NotImplemented`, so that every accepted request means the same here and in S3.
//!
//! Requests must be signed. The store verifies a signature in the query (`presigned.rs`). It does
//! not verify a signature in the headers, because only functions sign in the headers. As in S3, a
//! caller without the permission to list a bucket gets 403 for a missing object.
//!
//! Existing crates do not fit. `s3s-fs` 0.14 needs 139 crates. It checks whether a name is taken
//! before it writes, so two writers can both succeed. It also maps names to paths, so the objects
//! `a` and `a/b` cannot both exist. Neither `s3s-fs` nor `winterbaume-s3` can inject faults.
//!
//! [`ObjectServer::set_cors_rules`] sets the CORS rules for web pages.
//!
//! Objects are kept in memory or in a folder. In a folder they survive a crash of this process.
//! They may not survive a crash of the machine, because the store does not flush files.
//!
//! # Faults
//!
//! [`ObjectServer::faults`] makes requests fail. These faults prevent the processing:
//! - `throttle` returns 503 `SlowDown`.
//! - `error` returns 500 `InternalError`.
//! - `reset` closes the connection.
//! - `conflict` returns 409 `ConditionalRequestConflict` to a conditional `PUT`.
//!
//! Despite these faults the request is processed:
//! - `slow` delays the response.
//! - `timeout` never responds.
//! - `truncate` closes the connection in the middle of the response.
//!
//! `partial` has no effect.

mod cors;
mod files;
mod presigned;
mod problem;
mod request;
mod server;
mod store;

use std::io;
use std::path::PathBuf;

pub use cors::CorsRule;
pub use server::ObjectServer;
pub use store::{ObjectInfo, ObjectPage};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder, or a file in it, cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file in the data folder is damaged, or another program has written it.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// The name is not 3 to 63 letters, digits, dots and hyphens, or does not begin and end with a
    /// letter or digit.
    #[error("{0} is not a valid bucket name")]
    BucketName(String),
    #[error("there is no bucket {0}")]
    NoBucket(String),
    /// S3 would reject the name of the object.
    #[error("not a valid object name")]
    Name,
    /// No port could be opened on the loopback interface.
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}
