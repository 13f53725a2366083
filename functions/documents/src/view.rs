use std::collections::BTreeMap;

use http_api::url::location;
use key_schema::document::{Document, DocumentSection, DocumentVersion, Draft, Manifest};
use key_schema::id::{CustomerId, DocumentId, OrganizationId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde::Serialize;

/// The longest note about a version, in bytes of UTF-8.
pub const MAX_NOTE: usize = 500;

pub fn version_location(id: &DocumentId, number: u64) -> String {
    location(&["documents", id.as_str(), "versions", &number.to_string()])
}

/// A document. `S` is the form of its sections.
#[derive(Serialize)]
pub struct DocumentBody<'a, S> {
    id: &'a DocumentId,
    title: &'a str,
    owner_id: Option<&'a CustomerId>,
    organization_id: Option<&'a OrganizationId>,
    editors: Vec<&'a CustomerId>,
    current: u64,
    sections: S,
    /// Present only for callers who may write the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft: Option<Option<DraftView<'a>>>,
    /// The cursor for the sections that did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Option<&'a str>>,
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

/// A document without its texts. Each section has the number of the version that last changed its
/// text.
pub type HeadView<'a> = DocumentBody<'a, &'a Manifest>;

pub type DocumentView<'a> = DocumentBody<'a, Sections<'a>>;

type Sections<'a> = BTreeMap<&'a SectionName, SectionView<'a>>;

type NamedSection<'a> = (&'a SectionName, SectionView<'a>);

impl<'a> HeadView<'a> {
    pub fn new(document: &'a Stored<Document>, is_writer: bool) -> Self {
        shown(document, &document.sections, is_writer, None)
    }
}

impl<'a> DocumentView<'a> {
    pub fn new(
        document: &'a Stored<Document>,
        parts: &[NamedSection<'a>],
        kept: usize,
        is_writer: bool,
        next_cursor: Option<&'a str>,
    ) -> Self {
        shown(document, first(parts, kept), is_writer, Some(next_cursor))
    }
}

fn shown<'a, S>(
    document: &'a Stored<Document>,
    sections: S,
    is_writer: bool,
    next_cursor: Option<Option<&'a str>>,
) -> DocumentBody<'a, S> {
    let Document { id, owner_id, organization_id, editors, title, current, draft, .. } = &document.data;
    let draft = is_writer.then(|| draft.as_ref().map(|draft| DraftView::new(document, draft)));
    DocumentBody {
        id,
        title,
        owner_id: owner_id.as_ref(),
        organization_id: organization_id.as_ref(),
        editors: editors.iter().collect(),
        current: *current,
        sections,
        draft,
        next_cursor,
        version: document.meta.version,
        created_at: document.meta.created_at,
        updated_at: document.meta.updated_at,
    }
}

#[derive(Serialize)]
pub struct DraftView<'a> {
    number: u64,
    sections: &'a Manifest,
    by: &'a CustomerId,
    at: Instant,
}

impl<'a> DraftView<'a> {
    const fn new(document: &'a Stored<Document>, draft: &'a Draft) -> Self {
        Self { number: document.data.next(), sections: &draft.sections, by: &draft.by, at: draft.at }
    }
}

/// A section's text, with the version that added it.
#[derive(Clone, Copy, Serialize)]
pub struct SectionView<'a> {
    text: &'a str,
    version: u64,
    by: &'a CustomerId,
    at: Instant,
}

pub fn parts(texts: &BTreeMap<SectionName, DocumentSection>) -> Vec<NamedSection<'_>> {
    texts.iter().map(|(name, section)| (name, SectionView::from(section))).collect()
}

fn first<'a>(parts: &[NamedSection<'a>], kept: usize) -> Sections<'a> {
    parts.iter().take(kept).copied().collect()
}

#[derive(Serialize)]
pub struct OneSection<'a> {
    document_id: &'a DocumentId,
    name: &'a SectionName,
    #[serde(flatten)]
    section: SectionView<'a>,
}

impl<'a> From<&'a DocumentSection> for OneSection<'a> {
    fn from(section: &'a DocumentSection) -> Self {
        Self { document_id: &section.id, name: &section.name, section: section.into() }
    }
}

impl<'a> From<&'a DocumentSection> for SectionView<'a> {
    fn from(section: &'a DocumentSection) -> Self {
        let DocumentSection { number, text, by, at, .. } = section;
        Self { text, version: *number, by, at: *at }
    }
}

/// A version with its texts, or the draft under its future number.
#[derive(Serialize)]
pub struct VersionView<'a> {
    document_id: &'a DocumentId,
    number: u64,
    draft: bool,
    sections: Sections<'a>,
    /// The cursor for the sections that did not fit.
    next_cursor: Option<&'a str>,
    by: &'a CustomerId,
    at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_from: Option<u64>,
}

impl<'a> VersionView<'a> {
    pub fn published(
        version: &'a DocumentVersion,
        parts: &[NamedSection<'a>],
        kept: usize,
        next_cursor: Option<&'a str>,
    ) -> Self {
        let DocumentVersion { id, number, by, at, note, restored_from, .. } = version;
        Self {
            document_id: id,
            number: *number,
            draft: false,
            sections: first(parts, kept),
            next_cursor,
            by,
            at: *at,
            note: note.as_deref(),
            restored_from: *restored_from,
        }
    }

    pub fn draft(
        document: &'a Document,
        draft: &'a Draft,
        parts: &[NamedSection<'a>],
        kept: usize,
        next_cursor: Option<&'a str>,
    ) -> Self {
        Self {
            document_id: &document.id,
            number: document.next(),
            draft: true,
            sections: first(parts, kept),
            next_cursor,
            by: &draft.by,
            at: draft.at,
            note: None,
            restored_from: None,
        }
    }
}

/// A version in a list. For each section it has the version of the text, but not the text.
#[derive(Serialize)]
pub struct VersionSummaryView<'a> {
    number: u64,
    sections: &'a Manifest,
    by: &'a CustomerId,
    at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_from: Option<u64>,
}

impl<'a> From<&'a DocumentVersion> for VersionSummaryView<'a> {
    fn from(version: &'a DocumentVersion) -> Self {
        let DocumentVersion { number, sections, by, at, note, restored_from, .. } = version;
        Self { number: *number, sections, by, at: *at, note: note.as_deref(), restored_from: *restored_from }
    }
}

#[derive(Serialize)]
pub struct EditorView<'a> {
    pub document_id: &'a DocumentId,
    pub customer_id: &'a CustomerId,
}
