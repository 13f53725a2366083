//! One index: its documents, and tantivy's index of their words.
//!
//! The table of documents is what counts: ids, versions, sources and the values to sort by. Tantivy
//! knows only where in this table the documents lie that a query matches. Writes go to both at once,
//! and tantivy is committed when somebody searches, because a commit costs as much as hundreds of writes.

use std::collections::HashMap;
use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, Searcher, Term};

use super::Error;
use super::journal::{Entry, Journal};
use super::mapping::{Mapping, Row};
use super::problem::Problem;

/// Memory in which tantivy collects documents before it makes a segment of them.
const WRITER_MEMORY_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct Index {
    pub mapping: Mapping,
    documents: Vec<Document>,
    slots: HashMap<String, usize>,
    writer: IndexWriter,
    reader: IndexReader,
    /// Whether there are writes that the reader does not see.
    dirty: bool,
    journal: Option<Journal>,
}

pub(super) struct Document {
    pub id: String,
    pub version: u64,
    /// The document as it was sent.
    pub source: Box<RawValue>,
    pub row: Row,
}

/// The version that a write carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteVersion {
    /// One more than the document has, whatever that is.
    Internal,
    /// `external`: must be higher than what the document has.
    External(u64),
    /// `external_gte`: must not be lower than what the document has.
    ExternalGte(u64),
}

/// A write that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub version: u64,
    pub created: bool,
}

impl Index {
    /// Opens the index of this definition; its documents are in `file`, or only in memory.
    pub(super) fn open(definition: &Value, file: Option<&Path>) -> Result<Self, OpenError> {
        let mapping = Mapping::parse(definition)?;
        let mut tantivy = tantivy::Index::create_in_ram(mapping.schema.clone());
        tantivy.set_tokenizers(mapping.tokenizers.clone());
        let writer = tantivy.writer_with_num_threads(1, WRITER_MEMORY_BYTES).map_err(Problem::internal)?;
        let reader = tantivy.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        let mut index = Self {
            mapping,
            documents: Vec::new(),
            slots: HashMap::new(),
            writer,
            reader: reader.map_err(Problem::internal)?,
            dirty: false,
            journal: None,
        };
        if let Some(path) = file {
            let mut journal = Journal::open(path, |entry| {
                index.replace(entry.id, entry.version, entry.source).map_err(|problem| problem.reason)
            })?;
            journal.compact(index.documents.iter().map(Document::entry))?;
            index.journal = Some(journal);
            // The first search after the start should not be the one that waits for all of it.
            index.refresh()?;
        }
        Ok(index)
    }

    /// Writes a document unless its version forbids it. Durable after [`Index::flush`].
    pub(super) fn write(&mut self, id: &str, version: WriteVersion, source: &RawValue) -> Result<Written, Problem> {
        let current = self.get(id).map(|document| document.version);
        let version = version.after(id, current)?;
        self.replace(id, version, source)?;
        if let Some(journal) = &mut self.journal {
            journal.append(&Entry { id, version, source }).map_err(Problem::internal)?;
        }
        Ok(Written { version, created: current.is_none() })
    }

    /// Makes the writes so far outlive this process.
    pub(super) fn flush(&mut self) -> Result<(), Problem> {
        self.journal.as_mut().map_or(Ok(()), Journal::flush).map_err(Problem::internal)
    }

    /// Makes the writes so far visible to [`Index::searcher`].
    pub(super) fn refresh(&mut self) -> Result<(), Problem> {
        if self.dirty {
            self.writer.commit().map_err(Problem::internal)?;
            self.reader.reload().map_err(Problem::internal)?;
            self.dirty = false;
        }
        Ok(())
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    /// The document at a place that a search found.
    pub(super) fn document(&self, slot: usize) -> Option<&Document> {
        self.documents.get(slot)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Document> {
        self.slots.get(id).and_then(|slot| self.document(*slot))
    }

    fn replace(&mut self, id: &str, version: u64, source: &RawValue) -> Result<(), Problem> {
        let object: Map<String, Value> =
            serde_json::from_str(source.get()).map_err(|error| Problem::mapping(error.to_string()))?;
        let (row, mut indexed) = self.mapping.document(&object)?;
        let document = Document { id: id.to_owned(), version, source: source.to_owned(), row };
        let slot = match self.slots.get(id) {
            Some(slot) => {
                self.writer.delete_term(Term::from_field_text(self.mapping.id, id));
                *slot
            }
            None => self.documents.len(),
        };
        indexed.add_text(self.mapping.id, id);
        indexed.add_u64(self.mapping.slot, slot as u64);
        self.writer.add_document(indexed).map_err(Problem::internal)?;
        self.dirty = true;
        match self.documents.get_mut(slot) {
            Some(place) => *place = document,
            None => {
                self.slots.insert(id.to_owned(), slot);
                self.documents.push(document);
            }
        }
        Ok(())
    }
}

impl Document {
    fn entry(&self) -> Entry<'_> {
        Entry { id: &self.id, version: self.version, source: &self.source }
    }
}

impl WriteVersion {
    /// The version of a document after this write, given the one before.
    fn after(self, id: &str, current: Option<u64>) -> Result<u64, Problem> {
        let conflict = |provided| Err(Problem::version_conflict(id, current.unwrap_or_default(), provided));
        match self {
            Self::Internal => Ok(current.unwrap_or_default().saturating_add(1)),
            Self::External(version) if current.is_some_and(|current| version <= current) => conflict(version),
            Self::ExternalGte(version) if current.is_some_and(|current| version < current) => conflict(version),
            Self::External(version) | Self::ExternalGte(version) => Ok(version),
        }
    }
}

/// Why an index cannot be opened: its definition, or its file.
#[derive(Debug)]
pub(super) enum OpenError {
    Definition(Problem),
    File(Error),
}

impl From<Problem> for OpenError {
    fn from(problem: Problem) -> Self {
        Self::Definition(problem)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_external_version_must_rise_or_at_least_not_fall() {
        let conflict = |version: WriteVersion, current| version.after("a", current).is_err();
        for (version, current, conflicts) in [
            (WriteVersion::External(5), None, false),
            (WriteVersion::External(5), Some(4), false),
            (WriteVersion::External(5), Some(5), true),
            (WriteVersion::ExternalGte(5), Some(5), false),
            (WriteVersion::ExternalGte(5), Some(6), true),
            (WriteVersion::Internal, Some(6), false),
        ] {
            assert_eq!(conflict(version, current), conflicts, "{version:?} after {current:?}");
        }
    }
}
