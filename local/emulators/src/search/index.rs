//! One index: its documents, and tantivy's index of their words.
//!
//! The table of documents is authoritative. It has ids, versions, sources and sort values. Tantivy
//! finds the documents that match a query, and returns their slots in this table.
//!
//! Each write goes to the table and to tantivy at once, but searches see it only after tantivy's
//! commit. A commit costs as much as hundreds of writes, so usually only a search commits. Without
//! a search, the index commits after [`UNCOMMITTED`] writes. So the first search after an import
//! does not have to index the whole import.

use std::collections::HashMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, Searcher, Term};

use super::Error;
use super::journal::{Entry, Journal};
use super::mapping::{Mapping, Row};
use super::problem::Problem;
use super::version::{Current, Deleted, WriteVersion};

/// Memory in bytes for documents that tantivy collects before it creates a segment.
const WRITER_MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// Number of writes after which the index commits even without a search. Without this limit,
/// tantivy would queue up to 10,000 documents. In an unoptimised build a search would then index
/// them for ten seconds, longer than a search may take.
const UNCOMMITTED: usize = 2_000;

pub(super) struct Index {
    pub mapping: Mapping,
    /// The documents by slot. A deleted document is `None`.
    documents: Vec<Option<Document>>,
    slots: HashMap<String, usize>,
    deleted: Deleted,
    next_seq_no: u64,
    /// A number that changes whenever the index is opened. Earlier sequence numbers are then
    /// invalid.
    primary_term: u64,
    writer: IndexWriter,
    reader: IndexReader,
    /// Number of writes that searches do not see yet.
    uncommitted: usize,
    journal: Option<Journal>,
}

pub(super) struct Document {
    pub id: String,
    pub version: u64,
    /// The sequence number of the last write of the document.
    pub seq_no: u64,
    /// The document as the client sent it.
    pub source: Box<RawValue>,
    pub row: Row,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub version: u64,
    pub seq_no: u64,
    pub primary_term: u64,
    pub existed: bool,
}

impl Index {
    /// Opens the index with this definition. The documents are in memory. If `file` is given, the
    /// index restores them from that journal, and records later writes there.
    pub(super) fn open(definition: &Value, file: Option<&Path>) -> Result<Self, OpenError> {
        let mut index = Self::empty(Mapping::parse(definition)?)?;
        if let Some(path) = file {
            let mut journal = Journal::open(path, |entry| {
                let done = match entry.source {
                    Some(source) => index.replace(entry.id, entry.version, source).map(drop),
                    None => {
                        index.remove(entry.id);
                        Ok(())
                    }
                };
                done.map_err(|problem| problem.reason)
            })?;
            let entries: Vec<_> = index.documents.iter().flatten().map(Document::entry).collect();
            journal.compact(&entries)?;
            index.journal = Some(journal);
            // Otherwise the first search after the start would have to index all documents.
            index.refresh()?;
        }
        Ok(index)
    }

    fn empty(mapping: Mapping) -> Result<Self, Problem> {
        let mut tantivy = tantivy::Index::create_in_ram(mapping.schema.clone());
        tantivy.set_tokenizers(mapping.tokenizers.clone());
        let writer = tantivy.writer_with_num_threads(1, WRITER_MEMORY_BYTES).map_err(Problem::internal)?;
        let reader = tantivy.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        let opened = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            mapping,
            documents: Vec::new(),
            slots: HashMap::new(),
            deleted: Deleted::default(),
            next_seq_no: 0,
            primary_term: u64::try_from(opened.as_micros()).map_err(Problem::internal)?,
            writer,
            reader: reader.map_err(Problem::internal)?,
            uncommitted: 0,
            journal: None,
        })
    }

    /// Applies another definition, which must be valid for all existing documents.
    pub(super) fn redefine(&mut self, definition: &Value) -> Result<(), Problem> {
        let mut next = Self::empty(Mapping::parse(definition)?)?;
        for document in self.documents.iter().flatten() {
            next.replace(&document.id, document.version, &document.source)?;
        }
        next.journal = self.journal.take();
        next.deleted = std::mem::take(&mut self.deleted);
        *self = next;
        Ok(())
    }

    /// Writes a document unless its version conflicts. After
    /// [`Index::flush`] the write survives a killed process.
    pub(super) fn write(&mut self, id: &str, version: WriteVersion, source: &RawValue) -> Result<Written, Problem> {
        let (current, primary_term) = (self.current(id), self.primary_term);
        let version = version.after(id, current, self.deleted.version(id))?;
        let seq_no = self.replace(id, version, source)?;
        self.deleted.forget(id);
        self.record(&Entry { id, version, source: Some(source) })?;
        if self.uncommitted >= UNCOMMITTED {
            self.refresh()?;
        }
        Ok(Written { version, seq_no, primary_term, existed: current.is_some() })
    }

    /// Deletes a document, if it exists, unless the version conflicts. After [`Index::flush`] the
    /// deletion survives a killed process.
    pub(super) fn delete(&mut self, id: &str, version: WriteVersion) -> Result<Written, Problem> {
        let (current, primary_term) = (self.current(id), self.primary_term);
        let version = version.after(id, current, self.deleted.version(id))?;
        self.remove(id);
        self.deleted.remember(id, version);
        if current.is_some() {
            self.record(&Entry { id, version, source: None })?;
        }
        Ok(Written { version, seq_no: self.take_seq_no(), primary_term, existed: current.is_some() })
    }

    fn record(&mut self, entry: &Entry<'_>) -> Result<(), Problem> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.append(entry)).map_err(Problem::internal)
    }

    pub(super) fn current(&self, id: &str) -> Option<Current> {
        let primary_term = self.primary_term;
        self.get(id).map(|document| Current { version: document.version, seq_no: document.seq_no, primary_term })
    }

    pub(super) fn primary_term(&self) -> u64 {
        self.primary_term
    }

    /// Passes all earlier writes to the operating system, so that they survive the end of this
    /// process.
    pub(super) fn flush(&mut self) -> Result<(), Problem> {
        self.journal.as_mut().map_or(Ok(()), Journal::flush).map_err(Problem::internal)
    }

    /// Makes all earlier writes visible to [`Index::searcher`].
    pub(super) fn refresh(&mut self) -> Result<(), Problem> {
        if self.uncommitted > 0 {
            self.writer.commit().map_err(Problem::internal)?;
            self.reader.reload().map_err(Problem::internal)?;
            self.uncommitted = 0;
        }
        Ok(())
    }

    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    pub(super) fn document(&self, slot: usize) -> Option<&Document> {
        self.documents.get(slot).and_then(Option::as_ref)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Document> {
        self.slots.get(id).and_then(|slot| self.document(*slot))
    }

    /// Replaces the document with this id, or adds it. Returns the sequence number.
    fn replace(&mut self, id: &str, version: u64, source: &RawValue) -> Result<u64, Problem> {
        let object: Map<String, Value> =
            serde_json::from_str(source.get()).map_err(|error| Problem::mapping(error.to_string()))?;
        let (row, mut indexed) = self.mapping.document(&object)?;
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
        self.uncommitted += 1;
        let seq_no = self.take_seq_no();
        let document = Some(Document { id: id.to_owned(), version, seq_no, source: source.to_owned(), row });
        match self.documents.get_mut(slot) {
            Some(place) => *place = document,
            None => {
                self.slots.insert(id.to_owned(), slot);
                self.documents.push(document);
            }
        }
        Ok(seq_no)
    }

    fn remove(&mut self, id: &str) {
        let Some(slot) = self.slots.remove(id) else { return };
        self.writer.delete_term(Term::from_field_text(self.mapping.id, id));
        self.uncommitted += 1;
        if let Some(place) = self.documents.get_mut(slot) {
            *place = None;
        }
    }

    fn take_seq_no(&mut self) -> u64 {
        let seq_no = self.next_seq_no;
        self.next_seq_no += 1;
        seq_no
    }
}

impl Document {
    fn entry(&self) -> Entry<'_> {
        Entry { id: &self.id, version: self.version, source: Some(&self.source) }
    }
}

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

    use serde_json::json;

    use super::*;

    #[test]
    fn the_number_of_uncommitted_writes_stays_below_the_maximum() {
        let definition = json!({
            "settings": {"analysis": {}},
            "mappings": {"dynamic": "strict", "properties": {"name": {"type": "keyword"}}},
        });
        let mut index = Index::open(&definition, None).ok().unwrap();
        let source = RawValue::from_string(json!({"name": "cheese"}).to_string()).unwrap();
        for n in 0..3 * UNCOMMITTED {
            index.write(&n.to_string(), WriteVersion::Internal, &source).unwrap();
            let invisible = n + 1 - usize::try_from(index.searcher().num_docs()).unwrap();
            assert!(invisible < UNCOMMITTED, "{invisible} documents wait for a search");
        }
    }
}
