//! The folder of the tables.
//!
//! The items of an export are not sorted by time, so the rows of all days arrive mixed. The command
//! collects rows up to a limit, and then appends them to the files of their partitions. At the end
//! it compresses each file, because engines bill the bytes that they read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::rows::Row;
use crate::error::OpsError;

/// The number of bytes of rows that the command collects before it writes them.
const COLLECTED: usize = 64 << 20;
const DATA: &str = "data.ndjson";
/// The name of a file that marks a folder of tables. The command replaces only a folder that has
/// this file.
const MARK: &str = "_tables";

#[derive(Debug)]
pub(super) struct Partitions {
    to: PathBuf,
    /// The folder in which the tables are made.
    new: PathBuf,
    rows: BTreeMap<PathBuf, Vec<u8>>,
    /// The written files. Their number is small, because a day has one file per table.
    files: BTreeSet<PathBuf>,
    collected: usize,
}

impl Partitions {
    pub(super) fn begin(to: &Path) -> Result<Self, OpsError> {
        let is_ours = |path: &Path| !path.exists() || path.join(MARK).exists();
        let name = to.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| OpsError::Usage(format!("{} must name a folder", to.display())))?;
        let new = to.with_file_name(format!("{name}.new"));
        for path in [to, &new] {
            if !is_ours(path) {
                return Err(OpsError::Usage(format!(
                    "{} is not a folder of tables: give another folder",
                    path.display()
                )));
            }
        }
        remove(&new)?;
        fs::create_dir_all(&new).map_err(|error| failed(&new, error))?;
        let mark = new.join(MARK);
        File::create(&mark).map_err(|error| failed(&mark, error))?;
        Ok(Self { to: to.to_owned(), new, rows: BTreeMap::new(), files: BTreeSet::new(), collected: 0 })
    }

    pub(super) fn add(&mut self, row: &Row) -> Result<(), OpsError> {
        let folder = self.new.join(row.table);
        let folder = row.day.iter().fold(folder, |folder, day| folder.join(format!("day={day}")));
        let rows = self.rows.entry(folder.join(DATA)).or_default();
        rows.extend_from_slice(&row.json);
        rows.push(b'\n');
        self.collected += row.json.len() + 1;
        if self.collected >= COLLECTED { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), OpsError> {
        for (path, rows) in std::mem::take(&mut self.rows) {
            let append = || {
                fs::create_dir_all(path.parent().unwrap_or(&self.new))?;
                OpenOptions::new().create(true).append(true).open(&path)?.write_all(&rows)
            };
            append().map_err(|error| failed(&path, error))?;
            self.files.insert(path);
        }
        self.collected = 0;
        Ok(())
    }

    /// Compresses the files, replaces the folder, and returns the number of files.
    pub(super) fn complete(mut self) -> Result<usize, OpsError> {
        self.flush()?;
        for path in &self.files {
            compress(path).map_err(|error| failed(path, error))?;
        }
        remove(&self.to)?;
        fs::rename(&self.new, &self.to).map_err(|error| failed(&self.to, error))?;
        Ok(self.files.len())
    }
}

fn compress(path: &Path) -> io::Result<()> {
    let packed = BufWriter::new(File::create(path.with_extension("ndjson.gz"))?);
    let mut packer = GzEncoder::new(packed, Compression::default());
    io::copy(&mut BufReader::new(File::open(path)?), &mut packer)?;
    packer.finish()?.flush()?;
    fs::remove_file(path)
}

fn remove(folder: &Path) -> Result<(), OpsError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder, error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: io::Error) -> OpsError {
    OpsError::Failed(format!("{}: {error}", path.display()))
}
