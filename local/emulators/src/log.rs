//! Keeps the newest entries that an endpoint has accepted, for inspection. With a file, some of the
//! entries survive a restart.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum number of entries that are restored after a restart. The file has at most twice as many
/// lines.
const RESTORED: usize = 20_000;

/// A page of the entries, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Number of accepted entries up to the end of this page. The next page starts after them.
    pub next: u64,
    /// Whether later entries exist.
    pub more: bool,
}

#[derive(Debug)]
pub(crate) struct Log<T> {
    entries: Mutex<Entries<T>>,
    capacity: usize,
}

#[derive(Debug)]
struct Entries<T> {
    items: VecDeque<T>,
    dropped: u64,
    history: Option<History>,
}

/// A file with one line of JSON for each entry.
#[derive(Debug)]
struct History {
    path: PathBuf,
    file: File,
    lines: usize,
}

impl<T: Clone + Serialize + DeserializeOwned> Log<T> {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { entries: Mutex::new(Entries { items: VecDeque::new(), dropped: 0, history: None }), capacity }
    }

    /// Unreadable lines are skipped, because the entries serve only for inspection.
    pub(crate) fn open(path: &Path, capacity: usize) -> io::Result<Self> {
        let (mut newest, mut line) = (VecDeque::new(), Vec::new());
        let mut reader = BufReader::new(OpenOptions::new().read(true).append(true).create(true).open(path)?);
        while reader.read_until(b'\n', &mut line)? > 0 {
            if newest.len() == RESTORED.min(capacity) {
                newest.pop_front();
            }
            newest.push_back(std::mem::take(&mut line));
        }
        let items: VecDeque<T> = newest.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let history = Some(History::written(path, &items)?);
        Ok(Self { entries: Mutex::new(Entries { items, dropped: 0, history }), capacity })
    }

    pub(crate) fn push(&self, item: T) {
        let mut entries = self.lock();
        entries.note(&item);
        if entries.items.len() == self.capacity {
            entries.items.pop_front();
            entries.dropped += 1;
        }
        entries.items.push_back(item);
    }

    /// Skips the first `after` accepted entries, and returns at most `limit` of the following
    /// entries.
    pub(crate) fn page(&self, after: u64, limit: usize) -> Page<T> {
        let entries = self.lock();
        let skipped = after.max(entries.dropped);
        let start = usize::try_from(skipped - entries.dropped).unwrap_or(usize::MAX);
        let items: Vec<T> = entries.items.iter().skip(start).take(limit).cloned().collect();
        let next = skipped.min(entries.total()).saturating_add(length(items.len()));
        Page { items, next, more: next < entries.total() }
    }

    /// Returns the number of entries that the log has dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Serialize> Entries<T> {
    fn note(&mut self, item: &T) {
        let Some(history) = &mut self.history else { return };
        let mut noted = history.add(item);
        if history.lines >= 2 * RESTORED {
            let newest = self.items.iter().skip(self.items.len().saturating_sub(RESTORED - 1)).chain([item]);
            noted = noted.and_then(|()| History::written(&history.path, newest)).map(|anew| *history = anew);
        }
        if let Err(error) = noted {
            tracing::warn!(
                %error, path = %history.path.display(),
                "the history cannot be written, so new entries are only in memory",
            );
            self.history = None;
        }
    }
}

impl History {
    fn written<'a, T: Serialize + 'a>(path: &Path, items: impl IntoIterator<Item = &'a T>) -> io::Result<Self> {
        let next = path.with_extension("next");
        let (mut text, mut lines) = (Vec::new(), 0);
        for item in items {
            serde_json::to_writer(&mut text, item)?;
            text.push(b'\n');
            lines += 1;
        }
        fs::write(&next, text)?;
        let file = OpenOptions::new().append(true).open(&next)?;
        fs::rename(&next, path)?;
        Ok(Self { path: path.to_owned(), file, lines })
    }

    fn add(&mut self, item: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(item)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.lines += 1;
        Ok(())
    }
}

impl<T> Entries<T> {
    fn total(&self) -> u64 {
        self.dropped.saturating_add(length(self.items.len()))
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_newest_entries_are_read_in_pages_and_dropped_entries_are_counted() {
        let log = Log::new(3);
        assert_eq!(log.page(0, 10), Page { items: vec![], next: 0, more: false });
        (1..=5).for_each(|n| log.push(n));
        assert_eq!(log.dropped(), 2);
        assert_eq!(log.page(0, 2), Page { items: vec![3, 4], next: 4, more: true });
        assert_eq!(log.page(4, 2), Page { items: vec![5], next: 5, more: false });
        assert_eq!(log.page(5, 2), Page { items: vec![], next: 5, more: false });
        assert_eq!(log.page(u64::MAX, 2), Page { items: vec![], next: 5, more: false });
    }
    #[test]
    fn the_newest_entries_survive_a_restart_and_the_file_is_bounded() {
        let path = std::env::temp_dir().join(format!("bodega-log-{:016x}", fastrand::u64(..)));
        let log = Log::open(&path, 100_000).unwrap();
        (0..45_000).for_each(|n| log.push(n));
        drop(log);
        assert!(fs::read_to_string(&path).unwrap().lines().count() < 40_000);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"[7").unwrap();
        let log: Log<u32> = Log::open(&path, 100_000).unwrap();
        log.push(45_000);
        let all = log.page(0, 100_000);
        // The incomplete line is one of the 20,000 lines to restore, but has no entry.
        assert_eq!(all.items, (25_001..=45_000).collect::<Vec<_>>());
        assert_eq!((all.next, log.dropped()), (20_000, 0));
        fs::remove_file(path).unwrap();
    }
}
