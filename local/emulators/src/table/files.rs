use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::Error;

const MEMORY_FOLDER: &str = "/dev/shm";
/// A container often has only 64 MB, less than a retail import needs.
const ROOMY: u64 = 2 << 30;
const DATABASE: &str = "table.sqlite3";
const LOCK: &str = "table.lock";
/// The first bytes of a SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// The lock on a permanent data folder. `None` for a temporary database.
    lock: Option<File>,
}

impl Files {
    /// Opens a permanent database in `folder`, which is created if it is missing.
    pub(super) fn kept(folder: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Folder { path: folder.to_owned(), source };
        private_folder(folder).map_err(failed)?;
        private_file(&folder.join(DATABASE)).map_err(failed)?;
        let lock = File::create(folder.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder: folder.to_owned(), lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse(folder.to_owned())),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Creates a temporary database. Dropping the value removes it.
    pub(super) fn scratch() -> Result<Self, Error> {
        let name = format!("bodega-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let mut parents = Vec::new();
        if roomy_memory_folder() {
            parents.push(PathBuf::from(MEMORY_FOLDER));
        }
        parents.push(std::env::temp_dir());
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for parent in &parents {
            let folder = parent.join(&name);
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Self { folder, lock: None }),
                Err(error) => failure = error,
            }
        }
        Err(Error::Folder { path: parents.pop().unwrap_or_default(), source: failure })
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.lock.is_some()
    }

    /// Unlinks the files of a temporary database. Call it when every connection to the database is
    /// open. The kernel frees the files when the last connection closes, even if this process is
    /// killed. Windows cannot remove open files. So on Windows, dropping this value removes the
    /// files.
    pub(super) fn forget(&self) {
        if cfg!(unix) {
            self.remove();
        }
    }

    fn remove(&self) {
        if !self.is_kept() {
            // If this fails, the operating system removes the temporary files at some time.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Says whether a permanent data folder has a table. Changes nothing.
///
/// # Errors
/// The table cannot be opened: [`Error::InUse`], [`Error::NoTable`] or [`Error::Folder`].
pub fn look_at(folder: &Path) -> Result<bool, Error> {
    let failed = |source| Error::Folder { path: folder.to_owned(), source };
    let present = |file: io::Result<File>| match file {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    };
    if let Some(lock) = present(File::open(folder.join(LOCK)))? {
        // Closing the file releases the lock.
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse(folder.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    let path = folder.join(DATABASE);
    let Some(file) = present(File::open(&path))? else { return Ok(false) };
    let mut start = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
    // SQLite writes the first bytes with the first table.
    if start.is_empty() || start == MAGIC { Ok(!start.is_empty()) } else { Err(Error::NoTable(path)) }
}

/// Creates a folder that only the user can read, because the database has personal data.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(path)
}

/// Creates a file that only the user can read, or restricts an existing one. SQLite gives its further
/// files the same permissions.
fn private_file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}

fn roomy_memory_folder() -> bool {
    fs::read_to_string("/proc/self/mounts").is_ok_and(|mounts| mounts.lines().any(is_roomy_memory_mount))
}

/// Returns whether a line of `mounts(5)` describes a large enough memory file system. A line has
/// device, mount point, type, options and two numbers.
fn is_roomy_memory_mount(line: &str) -> bool {
    let mut fields = line.split(' ');
    let (Some(_), Some(MEMORY_FOLDER), Some("tmpfs"), Some(options)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return false;
    };
    let mut options = options.split(',');
    options.clone().any(|option| option == "rw")
        && options
            .find_map(|option| option.strip_prefix("size="))
            // Without a size, the kernel allows half of the machine's memory.
            .is_none_or(|size| bytes(size).is_some_and(|bytes| bytes >= ROOMY))
}

fn bytes(size: &str) -> Option<u64> {
    let (digits, unit) = match size.split_at_checked(size.len().checked_sub(1)?)? {
        (digits, "k") => (digits, 1 << 10),
        (digits, "m") => (digits, 1 << 20),
        (digits, "g") => (digits, 1 << 30),
        _ => (size, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_a_large_and_writable_memory_mount_at_dev_shm_is_used() {
        for (line, roomy) in [
            ("tmpfs /dev/shm tmpfs rw,relatime,size=24684100k 0 0", true),
            ("tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0", true),
            ("tmpfs /dev/shm tmpfs rw,size=4g 0 0", true),
            ("shm /dev/shm tmpfs rw,size=65536k 0 0", false),
            ("shm /dev/shm tmpfs ro,size=4g 0 0", false),
            ("shm /dev/shm tmpfs rw,size= 0 0", false),
            ("tmpfs /run tmpfs rw,size=24684100k 0 0", false),
            ("/dev/sda1 /dev/shm ext4 rw 0 0", false),
            ("", false),
        ] {
            assert_eq!(is_roomy_memory_mount(line), roomy, "{line}");
        }
    }

    #[test]
    fn a_data_folder_serves_one_system_at_a_time_and_is_not_deleted() {
        let folder = Files::scratch().unwrap();
        let data = folder.folder.join("data");
        let first = Files::kept(&data).unwrap();
        #[cfg(unix)]
        {
            let mode = |path: &Path| {
                std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777
            };
            assert_eq!((mode(&data), mode(&first.database())), (0o700, 0o600), "others cannot read the data");
        }
        assert!(matches!(Files::kept(&data), Err(Error::InUse(_))));
        drop(first);
        assert!(Files::kept(&data).is_ok());
        assert!(data.exists());
    }

    #[test]
    fn dropping_the_value_deletes_a_temporary_folder() {
        let files = Files::scratch().unwrap();
        let folder = files.folder.clone();
        assert!(folder.is_dir());
        drop(files);
        assert!(!folder.exists());
    }
}
