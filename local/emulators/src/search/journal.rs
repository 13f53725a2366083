//! The file of an index: every write and deletion of a document, one JSON object per line.
//!
//! The index itself is in memory, and the start rebuilds it from the file. A write is acknowledged
//! when the operating system has it. So it survives the end of this process, but not a power
//! failure.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Error;

/// The maximum ratio of lines to documents. At the start, a file with a higher ratio is rewritten.
const LINES_PER_DOCUMENT: usize = 2;

/// A write of a document. Without a source it is a deletion.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry<'a> {
    pub id: &'a str,
    pub version: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a RawValue>,
}

pub(super) struct Journal {
    path: PathBuf,
    file: BufWriter<File>,
    lines: usize,
}

impl Journal {
    /// Opens or creates the file, and passes each entry to `replay`. It removes an incomplete last
    /// line, left by a process that ended during a write. That write was never acknowledged.
    pub(super) fn open(path: &Path, mut replay: impl FnMut(Entry<'_>) -> Result<(), String>) -> Result<Self, Error> {
        let at = |source| Error::File { path: path.to_owned(), source };
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let mut reader = BufReader::new(options.open(path).map_err(at)?);
        let (mut line, mut lines, mut length) = (String::new(), 0, 0);
        loop {
            line.clear();
            let read = reader.read_line(&mut line).map_err(at)?;
            if read == 0 || !line.ends_with('\n') {
                break;
            }
            let damaged = |reason: String| Error::Damaged {
                path: path.to_owned(),
                reason: format!("line {}: {reason}", lines + 1),
            };
            let entry: Entry<'_> = serde_json::from_str(&line).map_err(|error| damaged(error.to_string()))?;
            replay(entry).map_err(damaged)?;
            lines += 1;
            length += read as u64;
        }
        let mut file = reader.into_inner();
        file.set_len(length).map_err(at)?;
        file.seek(SeekFrom::End(0)).map_err(at)?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), lines })
    }

    /// Adds an entry. [`Journal::flush`] passes it to the operating system.
    pub(super) fn append(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, entry)?;
        self.file.write_all(b"\n")?;
        self.lines += 1;
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// If the file has many more lines than these entries, rewrites it with only these entries.
    pub(super) fn compact(&mut self, entries: &[Entry<'_>]) -> Result<(), Error> {
        if self.lines <= entries.len().saturating_mul(LINES_PER_DOCUMENT) {
            return Ok(());
        }
        self.rewrite(entries).map_err(|source| Error::File { path: self.path.clone(), source })
    }

    fn rewrite(&mut self, entries: &[Entry<'_>]) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let mut file = BufWriter::new(File::create(&next)?);
        let mut lines = 0;
        for entry in entries {
            serde_json::to_writer(&mut file, entry)?;
            file.write_all(b"\n")?;
            lines += 1;
        }
        file.flush()?;
        fs::rename(&next, &self.path)?;
        self.file = file;
        self.lines = lines;
        Ok(())
    }
}
