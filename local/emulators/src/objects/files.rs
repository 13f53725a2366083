use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::Error;
use super::store::Properties;

/// The line has a name of up to 1,024 bytes, escaped, and the properties.
const MAX_HEADER: u64 = 64 * 1024;
const OBJECT: &str = "object";
const UNFINISHED: &str = "unfinished";

/// The folder of a bucket. The name of a file is the hash of the object's name. So an object's
/// name can neither lead out of the folder nor be too long for the file system. Names that differ
/// only in case do not collide. The first line of a file is JSON with the name and the properties.
/// The rest of the file is the body.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

#[derive(Serialize, Deserialize)]
struct Header {
    name: String,
    #[serde(flatten)]
    properties: Properties,
}

impl Folder {
    /// Creates the folder if it is missing, and removes files of interrupted writes.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let folder = Self(path.to_owned());
        fs::create_dir_all(path).map_err(failed(path))?;
        for file in folder.files(UNFINISHED)? {
            fs::remove_file(&file).map_err(failed(&file))?;
        }
        Ok(folder)
    }

    pub(super) fn each(&self, mut take: impl FnMut(String, Properties)) -> Result<(), Error> {
        for path in self.files(OBJECT)? {
            let mut file = BufReader::new(File::open(&path).map_err(failed(&path))?);
            let header = header(&mut file, &path)?;
            let length = file.get_ref().metadata().map_err(failed(&path))?.len();
            let start = io::Seek::stream_position(&mut file).map_err(failed(&path))?;
            if start + header.properties.size != length || self.path(&header.name) != path {
                return Err(Error::Damaged(path));
            }
            take(header.name, header.properties);
        }
        Ok(())
    }

    /// Writes an object atomically: writes a temporary file, then renames it.
    pub(super) fn write(&self, name: &str, properties: &Properties, body: &[u8]) -> Result<(), Error> {
        let path = self.path(name);
        let unfinished = path.with_extension(UNFINISHED);
        let header = Header { name: name.to_owned(), properties: properties.clone() };
        let mut bytes = serde_json::to_vec(&header).map_err(|error| failed(&path)(error.into()))?;
        bytes.push(b'\n');
        let written = File::create(&unfinished).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.write_all(body)
        });
        written.map_err(failed(&unfinished))?;
        fs::rename(&unfinished, &path).map_err(failed(&path))
    }

    pub(super) fn read(&self, name: &str) -> Result<Bytes, Error> {
        let path = self.path(name);
        let mut file = BufReader::new(File::open(&path).map_err(failed(&path))?);
        header(&mut file, &path)?;
        let mut body = Vec::new();
        file.read_to_end(&mut body).map_err(failed(&path))?;
        Ok(body.into())
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(failed(&path))
    }

    fn path(&self, name: &str) -> PathBuf {
        let hash = digest(&SHA256, name.as_bytes());
        let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.join(hex).with_extension(OBJECT)
    }

    /// Returns the files with this extension. It ignores other files, such as those of a file
    /// manager.
    fn files(&self, ending: &str) -> Result<Vec<PathBuf>, Error> {
        let entries = fs::read_dir(&self.0).map_err(failed(&self.0))?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.map_err(failed(&self.0))?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == ending));
        Ok(paths)
    }
}

fn header(file: &mut BufReader<File>, path: &Path) -> Result<Header, Error> {
    let mut line = Vec::new();
    file.take(MAX_HEADER).read_until(b'\n', &mut line).map_err(failed(path))?;
    serde_json::from_slice(&line).map_err(|_| Error::Damaged(path.to_owned()))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::File { path: path.to_owned(), source }
}
