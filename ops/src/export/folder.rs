//! The folder of an export. It contains `export.json` and one file of items for each segment. Until
//! the export is complete, it also contains the position of each segment.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use key_schema::instant::Instant;
use key_schema::item::{Item, MAX_ITEM_BYTES, entity_name, key_of};
use key_schema::key::Key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_dynamo::AttributeValue;

use crate::error::OpsError;

const MANIFEST: &str = "export.json";
const VERSION: u32 = 1;
/// The maximum length of a line. An escaped character of an item takes up to six characters.
const MAX_LINE: u64 = MAX_ITEM_BYTES as u64 * 6 + 65_536;

/// The content of `export.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub table: String,
    /// The exported entities. Empty for all.
    pub entities: Vec<String>,
    /// The number of segments, and so of files.
    pub segments: i32,
    pub started_at: Instant,
    /// The time at which the export was complete, or [`None`] before that.
    pub completed_at: Option<Instant>,
    pub files: Vec<Contents>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    pub name: String,
    pub bytes: u64,
    pub items: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Position {
    contents: Contents,
    /// The key after which the scan continues, in DynamoDB's JSON.
    next: Option<Item>,
    complete: bool,
}

#[derive(Debug)]
pub struct Export {
    folder: PathBuf,
    manifest: Manifest,
}

impl Export {
    /// Creates the folder of an export, or opens the folder that an earlier run began.
    pub(super) fn begin(folder: PathBuf, table: &str, entities: &[String], segments: i32) -> Result<Self, OpsError> {
        let path = folder.join(MANIFEST);
        if path.exists() {
            let manifest: Manifest = read(&path)?;
            let same = manifest.version == VERSION && manifest.table == table && manifest.entities == entities;
            if !same || manifest.completed_at.is_some() {
                let what = if same { "a complete export" } else { "the export of another table or of other entities" };
                return Err(OpsError::Usage(format!("{} has {what}: give another folder", folder.display())));
            }
            return Ok(Self { folder, manifest });
        }
        if fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some()) {
            return Err(OpsError::Usage(format!(
                "{} is not empty, and has no export: give another folder",
                folder.display()
            )));
        }
        private_folder(&folder)?;
        let manifest = Manifest {
            version: VERSION,
            table: table.to_owned(),
            entities: entities.to_vec(),
            segments,
            started_at: Instant::now(),
            completed_at: None,
            files: Vec::new(),
        };
        write(&path, &manifest)?;
        Ok(Self { folder, manifest })
    }

    /// Opens a complete export.
    ///
    /// # Errors
    /// [`OpsError::Usage`] when the folder has no complete export, or when a file was truncated or
    /// extended.
    pub fn open(folder: PathBuf) -> Result<Self, OpsError> {
        let shown = folder.display();
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Err(OpsError::Usage(format!("{shown} has no export: there is no {MANIFEST}")));
        }
        let manifest: Manifest = read(&path)?;
        if manifest.version != VERSION || manifest.completed_at.is_none() {
            let reason = "is not complete, or has another version of the layout: run the export again";
            return Err(OpsError::Usage(format!("the export in {shown} {reason}")));
        }
        for file in &manifest.files {
            let length = fs::metadata(folder.join(&file.name)).map(|data| data.len());
            if !is_plain(&file.name) || length.ok() != Some(file.bytes) {
                let reason = "is missing, or does not have the length that export.json names";
                return Err(OpsError::Usage(format!("{shown}: the file {:?} {reason}", file.name)));
            }
        }
        Ok(Self { folder, manifest })
    }

    pub(super) const fn segments(&self) -> i32 {
        self.manifest.segments
    }

    /// Opens the file of each segment at its stored position.
    pub(super) fn parts(&self) -> Result<Vec<SegmentFile>, OpsError> {
        (0..self.manifest.segments).map(|segment| SegmentFile::open(&self.folder, segment)).collect()
    }

    /// Marks the export as complete, and removes the positions.
    pub(super) fn complete(&mut self, parts: Vec<SegmentFile>) -> Result<(), OpsError> {
        self.manifest.files = parts.iter().map(|part| part.position.contents.clone()).collect();
        self.manifest.completed_at = Some(Instant::now());
        write(&self.folder.join(MANIFEST), &self.manifest)?;
        for part in parts {
            fs::remove_file(&part.path).map_err(|error| failed(&part.path, error))?;
        }
        Ok(())
    }

    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (entity, count) in self.manifest.files.iter().flat_map(|file| &file.items) {
            *counts.entry(entity.clone()).or_default() += count;
        }
        counts
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    pub fn lines(&self) -> impl Iterator<Item = Result<Line, OpsError>> {
        self.manifest.files.iter().flat_map(|file| Lines::open(&self.folder, &file.name))
    }
}

#[derive(Debug)]
pub struct Line {
    /// The file and the number of the line.
    pub place: String,
    /// The item, or [`None`] if the line is not an item.
    pub item: Option<Item>,
}

#[derive(Serialize, Deserialize)]
struct Wrapped<T> {
    #[serde(rename = "Item")]
    item: T,
}

struct Lines {
    name: String,
    file: Result<BufReader<File>, Option<OpsError>>,
    number: u64,
}

impl Lines {
    fn open(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        let file = File::open(&path).map(BufReader::new).map_err(|error| Some(failed(&path, error)));
        Self { name: name.to_owned(), file, number: 0 }
    }
}

impl Iterator for Lines {
    type Item = Result<Line, OpsError>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = match &mut self.file {
            Ok(file) => file,
            Err(error) => return error.take().map(Err),
        };
        let mut line = Vec::new();
        match file.take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                self.number += 1;
                let place = format!("{}:{}", self.name, self.number);
                let item = serde_json::from_slice(&line).ok().map(|Wrapped { item }: Wrapped<Item>| item);
                Some(Ok(Line { place, item }))
            }
            Err(error) => {
                let error = failed(Path::new(&self.name), error);
                self.file = Err(None);
                Some(Err(error))
            }
        }
    }
}

/// The file of a segment, and the position of its scan.
#[derive(Debug)]
pub(super) struct SegmentFile {
    file: File,
    path: PathBuf,
    position: Position,
}

impl SegmentFile {
    fn open(folder: &Path, segment: i32) -> Result<Self, OpsError> {
        let (name, path) = (format!("segment-{segment:02}.json"), folder.join(format!("position-{segment:02}.json")));
        let mut position: Position = if path.exists() { read(&path)? } else { Position::default() };
        position.contents.name.clone_from(&name);
        let data = folder.join(name);
        let file = private(OpenOptions::new().create(true).append(true)).open(&data);
        let file = file.map_err(|error| failed(&data, error))?;
        // An earlier run may have stopped after it wrote a page and before it stored the position.
        // The truncation removes that page.
        file.set_len(position.contents.bytes).map_err(|error| failed(&data, error))?;
        Ok(Self { file, path, position })
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.position.complete
    }

    /// Returns the key after which the scan continues.
    pub(super) fn next(&self) -> Option<Key> {
        self.position.next.as_ref().and_then(key_of)
    }

    /// Appends a page of items, and stores the position after it.
    pub(super) fn append(&mut self, items: &[Item], next: Option<&Key>) -> Result<(), OpsError> {
        let mut text = Vec::new();
        for item in items {
            serde_json::to_writer(&mut text, &Wrapped { item }).map_err(OpsError::failed)?;
            text.push(b'\n');
            let entity = entity_name(item).unwrap_or_default().to_owned();
            *self.position.contents.items.entry(entity).or_default() += 1;
        }
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        written.map_err(|error| failed(&self.path.with_file_name(&self.position.contents.name), error))?;
        self.position.contents.bytes += u64::try_from(text.len()).unwrap_or_default();
        self.position.next = next.map(position_of);
        self.position.complete = next.is_none();
        write(&self.path, &self.position)
    }
}

fn position_of(key: &Key) -> Item {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let key = [("PK".to_owned(), text(key.pk.as_str())), ("SK".to_owned(), text(key.sk.as_str()))];
    Item::from(HashMap::from(key))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, OpsError> {
    let text = fs::read(path).map_err(|error| failed(path, error))?;
    serde_json::from_slice(&text).map_err(|error| OpsError::Failed(format!("{}: {error}", path.display())))
}

/// Replaces a file atomically. If the command stops, the old or the new file remains.
fn write(path: &Path, value: &impl Serialize) -> Result<(), OpsError> {
    let new = path.with_extension("new");
    let text = serde_json::to_vec(value).map_err(OpsError::failed)?;
    let written = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&new);
    let written = written.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&new, path)).map_err(|error| failed(path, error))
}

/// Writes a new file that only the owner can read.
///
/// # Errors
/// [`OpsError::Usage`] when the file exists.
pub(crate) fn write_private(path: &Path, value: &impl Serialize) -> Result<(), OpsError> {
    let text = serde_json::to_vec_pretty(value).map_err(OpsError::failed)?;
    let opened = private(OpenOptions::new().write(true).create_new(true)).open(path);
    let mut file = opened.map_err(|error| OpsError::Usage(format!("{}: {error}", path.display())))?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(|error| failed(path, error))
}

/// Returns whether a name is a plain file name, so that the file is in the folder itself.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|plain| plain == name)
}

/// Lets only the owner read a new file, because it contains personal data.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn private_folder(path: &Path) -> Result<(), OpsError> {
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(path).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: std::io::Error) -> OpsError {
    OpsError::Failed(format!("{}: {error}", path.display()))
}
