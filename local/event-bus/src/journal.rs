//! What is under way, kept in a file, so that it outlives the process.
//!
//! One JSON object a line: an event that was accepted, a message that was given up, one of these that was put back, and
//! what is settled. A line has reached the operating system when its call returns: it survives the end of this
//! process, not a power cut. Only what is not settled is kept in memory, and the file is written anew with just that
//! when it holds much more.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::queue::GivenUp;

/// Lines beyond twice those that are needed, from which on the file is written anew.
const SLACK: usize = 10_000;

/// An event that a bus accepted and some target has not finished with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The bus's own id of it.
    pub id: String,
    /// The bus.
    pub bus: String,
    /// The event in the form in which targets get it.
    pub event: Value,
}

/// What was not settled when a journal was closed, or its process ended.
#[derive(Debug, Default, PartialEq)]
pub struct Unsettled {
    /// Events to be published again, in the order in which they were accepted.
    pub accepted: Vec<Accepted>,
    /// Messages that lie in a dead-letter queue.
    pub given_up: Vec<GivenUp>,
    /// Messages that lay there and were put back: to be handed over again.
    pub redriven: Vec<GivenUp>,
}

/// The journal of a bus and its queues.
#[derive(Debug)]
pub struct Journal(Mutex<State>);

#[derive(Debug)]
struct State {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
    lines: usize,
    /// Lines from which on the file is written anew.
    most: usize,
    live: Live,
    closed: bool,
}

/// What is not settled, in order, and where each id stands in it.
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
    /// Opens the file, creating it if need be, and reads what is not settled. A last line that was cut off (the process
    /// ended while writing) is removed; other lines that cannot be read are passed over.
    ///
    /// # Errors
    /// When the file cannot be used.
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

    /// What is not settled.
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

    /// Keeps an event until it is settled.
    ///
    /// # Errors
    /// When it cannot be kept: it must not be said to be accepted.
    pub fn accept(&self, accepted: Accepted) -> io::Result<()> {
        self.lock().add(Line::Accepted(accepted))
    }

    /// Takes nothing any more: what is under way now counts as unsettled. For the end of a system, in which calls fail that
    /// are to be made again.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Keeps a message that was given up until it is settled.
    pub(crate) fn give_up(&self, message: GivenUp) {
        self.note(Line::GivenUp(message));
    }

    /// A message that was given up is under way again.
    pub(crate) fn redrive(&self, id: &str) {
        self.note(Line::Redriven(id.to_owned()));
    }

    /// Nothing is left to do about this event or message.
    pub(crate) fn settle(&self, id: &str) {
        self.note(Line::Settled(id.to_owned()));
    }

    /// A line whose loss means only that something is done twice.
    fn note(&self, line: Line) {
        let mut state = self.lock();
        if !state.closed
            && let Err(error) = state.add(line)
        {
            tracing::error!(%error, path = %state.path.display(), "what happened cannot be kept");
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
            // What was written of the line would spoil the next one.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.lines += 1;
        self.live.apply(line);
        if self.lines > self.most
            && let Err(error) = self.rewrite()
        {
            tracing::warn!(%error, path = %self.path.display(), "the file cannot be written anew");
            self.most = self.lines.saturating_add(SLACK);
        }
        Ok(())
    }

    /// Writes the file anew with what is not settled.
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
