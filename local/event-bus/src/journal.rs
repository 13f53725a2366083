//! Keeps unfinished work in a file, so that it survives the process.
//!
//! The file has one JSON object per line. A line is an accepted event, a given-up message, the id
//! of a redriven message, or the id of settled work. Work is settled when the next start need not
//! restore it. When the call that writes a line returns, the operating system has the line. So the
//! line survives the end of this process, but not a power failure. Memory has only the unsettled
//! work. When the file has become much larger than the unsettled work, the journal rewrites the
//! file with only this work.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::queue::GivenUp;

/// The journal rewrites the file when the number of lines exceeds this number plus twice the number
/// of lines after the previous rewrite.
const SLACK: usize = 10_000;

/// An event that a bus has accepted and that at least one target has not finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub id: String,
    pub bus: String,
    /// The event in the form that targets receive.
    pub event: Value,
}

#[derive(Debug, Default, PartialEq)]
pub struct Unsettled {
    /// Events to publish again, in the order in which they were accepted.
    pub accepted: Vec<Accepted>,
    pub given_up: Vec<GivenUp>,
    /// Messages that were redriven from a dead-letter queue, to be delivered again.
    pub redriven: Vec<GivenUp>,
}

#[derive(Debug)]
pub struct Journal(Mutex<State>);

#[derive(Debug)]
struct State {
    path: PathBuf,
    file: File,
    length: u64,
    lines: usize,
    /// Number of lines above which the file is rewritten.
    most: usize,
    live: Live,
    closed: bool,
}

/// The unsettled entries, in order. Each entry has a number. `numbers` maps the id of an entry to
/// its number.
#[derive(Debug, Default)]
struct Live {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    numbers: HashMap<String, u64>,
}

#[derive(Debug)]
enum Entry {
    Accepted(Accepted),
    GivenUp { message: GivenUp, redriven: bool },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Accepted(Accepted),
    GivenUp(GivenUp),
    Redriven(String),
    Settled(String),
}

impl Journal {
    /// Opens or creates the file, and reads the unsettled entries.
    ///
    /// It removes an incomplete last line, left by a process that ended during a write. It skips
    /// other unreadable lines with a warning.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let mut reader = BufReader::new(appending(path)?);
        let (mut line, mut lines, mut length, mut live) = (Vec::new(), 0, 0, Live::default());
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            if read == 0 || !line.ends_with(b"\n") {
                break;
            }
            lines += 1;
            length += u64::try_from(read).unwrap_or(u64::MAX);
            match serde_json::from_slice(&line) {
                Ok(entry) => live.apply(entry),
                Err(error) => tracing::warn!(%error, path = %path.display(), lines, "a line cannot be read"),
            }
        }
        let file = reader.into_inner();
        file.set_len(length)?;
        let mut state = State { path: path.to_owned(), file, length, lines, most: 0, live, closed: false };
        state.rewrite()?;
        Ok(Arc::new(Self(Mutex::new(state))))
    }

    #[must_use]
    pub fn unsettled(&self) -> Unsettled {
        let mut unsettled = Unsettled::default();
        for entry in self.lock().live.entries.values() {
            match entry {
                Entry::Accepted(accepted) => unsettled.accepted.push(accepted.clone()),
                Entry::GivenUp { message, redriven: false } => unsettled.given_up.push(message.clone()),
                Entry::GivenUp { message, redriven: true } => unsettled.redriven.push(message.clone()),
            }
        }
        unsettled
    }

    /// Stores an event until it is settled.
    ///
    /// # Errors
    /// If the event cannot be stored. Then the caller must not acknowledge it.
    pub fn accept(&self, accepted: Accepted) -> io::Result<()> {
        self.lock().add(Line::Accepted(accepted))
    }

    /// Closes the journal, so that work in progress stays unsettled. A system calls this when it
    /// ends. The next start then repeats the interrupted calls.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    pub(crate) fn give_up(&self, message: GivenUp) {
        self.note(Line::GivenUp(message));
    }

    /// Records that a given-up message is in delivery again.
    pub(crate) fn redrive(&self, id: &str) {
        self.note(Line::Redriven(id.to_owned()));
    }

    pub(crate) fn settle(&self, id: &str) {
        self.note(Line::Settled(id.to_owned()));
    }

    /// Writes a line unless the journal is closed. Logs an error. If the line of a settled id is
    /// lost, the next start repeats its work, which does no harm. If the line of a given-up message
    /// is lost, the message does not survive the process.
    fn note(&self, line: Line) {
        let mut state = self.lock();
        if !state.closed
            && let Err(error) = state.add(line)
        {
            tracing::error!(%error, path = %state.path.display(), "the journal cannot be written");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, line: Line) -> io::Result<()> {
        if self.closed {
            return Err(io::Error::other("the journal is closed"));
        }
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        if let Err(error) = self.file.write_all(&text) {
            // An incomplete line would corrupt the next line.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.lines += 1;
        self.live.apply(line);
        if self.lines > self.most
            && let Err(error) = self.rewrite()
        {
            tracing::warn!(%error, path = %self.path.display(), "the journal cannot be compacted");
            self.most = self.lines.saturating_add(SLACK);
        }
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let next = self.path.with_extension("next");
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = appending(&next)?;
        let (mut text, mut lines) = (Vec::new(), 0);
        for entry in self.live.entries.values() {
            for line in entry.lines() {
                serde_json::to_writer(&mut text, &line)?;
                text.push(b'\n');
                lines += 1;
            }
        }
        file.write_all(&text)?;
        fs::rename(&next, &self.path)?;
        (self.file, self.lines) = (file, lines);
        self.length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.most = lines.saturating_mul(2).saturating_add(SLACK);
        Ok(())
    }
}

impl Live {
    fn apply(&mut self, line: Line) {
        match line {
            Line::Accepted(accepted) => self.enter(accepted.id.clone(), Entry::Accepted(accepted)),
            Line::GivenUp(message) => {
                self.enter(message.message.id.clone(), Entry::GivenUp { message, redriven: false });
            }
            Line::Redriven(id) => {
                let number = self.numbers.get(&id);
                if let Some(Entry::GivenUp { redriven, .. }) = number.and_then(|number| self.entries.get_mut(number)) {
                    *redriven = true;
                }
            }
            Line::Settled(id) => self.leave(&id),
        }
    }

    fn enter(&mut self, id: String, entry: Entry) {
        self.leave(&id);
        self.numbers.insert(id, self.next);
        self.entries.insert(self.next, entry);
        self.next += 1;
    }

    fn leave(&mut self, id: &str) {
        if let Some(number) = self.numbers.remove(id) {
            self.entries.remove(&number);
        }
    }
}

impl Entry {
    fn lines(&self) -> Vec<Line> {
        match self {
            Self::Accepted(accepted) => vec![Line::Accepted(accepted.clone())],
            Self::GivenUp { message, redriven } => {
                let again = redriven.then(|| Line::Redriven(message.message.id.clone()));
                std::iter::once(Line::GivenUp(message.clone())).chain(again).collect()
            }
        }
    }
}

fn appending(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}
