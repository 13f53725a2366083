use std::collections::BTreeMap;

use http_api::contract::rules::{
    Any, Component, Integer, ListOf, MapOf, Named, Text, VERSION, any, component, integer, list_of, long_text, map_of,
    named, text,
};
use http_api::contract::{Body, Schema};
use http_api::url::location;
use key_schema::document::{
    Document, DocumentSection, DocumentVersion, Draft, MAX_EDITORS, MAX_SECTIONS, MAX_TEXT, Manifest,
};
use key_schema::id::{CustomerId, DocumentId, OrganizationId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde::Serialize;

const TITLE: Text = text(1..=200);
const NOTE: Text = text(1..=500);
const CONTENT: Named<Text> = named(
    "SectionContent",
    "Up to 100 KB. Line feeds and tabs are the only allowed control characters.",
    long_text(0..=MAX_TEXT),
);
const NUMBER: Integer<u64> = integer(1..=u64::MAX);
/// A number that every JSON reader represents exactly.
const GIVEN_NUMBER: Integer<u64> = integer(1..=9_007_199_254_740_991);
const MANIFEST: Named<MapOf<SectionName, Integer<u64>>> =
    named("Manifest", "For each section, the version in which its text was written.", map_of(NUMBER, MAX_SECTIONS));
const EDITORS: ListOf<Any<CustomerId>> = list_of(any(), 0..=MAX_EDITORS);
const NEXT_CURSOR: Component = component("NextCursor", "null");

const fn texts<'a>() -> MapOf<SectionName, Any<SectionView<'a>>> {
    map_of(any(), MAX_SECTIONS)
}

#[derive(Body)]
pub struct NewDocument {
    /// Chosen by staff only. The default is a generated id.
    #[field(example = null)]
    pub id: Option<DocumentId>,
    /// 1 to 200 bytes.
    #[field(rule = TITLE, example = "Statutes")]
    pub title: String,
    /// An organization of which the caller is a member.
    #[field(example = null)]
    pub organization_id: Option<OrganizationId>,
    /// Texts by section name. The whole body, names included, has at most 256 KB. Add further
    /// sections with separate requests.
    #[field(rule = map_of::<SectionName, _>(CONTENT, MAX_SECTIONS), example = {"purpose": "To play chess."})]
    pub sections: BTreeMap<SectionName, String>,
}

#[derive(Body)]
pub struct SectionText {
    #[field(rule = CONTENT, example = "To play chess.")]
    pub text: String,
}

#[derive(Body)]
pub struct Publication {
    /// A note about the version, 1 to 500 bytes.
    #[field(rule = NOTE, example = "as agreed")]
    pub note: Option<String>,
}

#[derive(Body)]
pub struct Restoration {
    /// The number of the version.
    #[field(rule = GIVEN_NUMBER, example = 1)]
    pub version: u64,
    /// A note about the version, 1 to 500 bytes.
    #[field(rule = NOTE, example = "as it was")]
    pub note: Option<String>,
}

pub fn version_location(id: &DocumentId, number: u64) -> String {
    location(&["documents", id.as_str(), "versions", &number.to_string()])
}

/// The fields that a document has with and without its texts.
#[derive(Serialize, Schema)]
struct DocumentFields<'a> {
    #[field(example = "statutes")]
    id: &'a DocumentId,
    /// 1 to 200 bytes.
    #[field(rule = TITLE, example = "Statutes")]
    title: &'a str,
    /// The customer who created the document. It is null after the erasure of that customer, if the
    /// document belongs to an organization.
    owner_id: Option<&'a CustomerId>,
    #[field(example = null)]
    organization_id: Option<&'a OrganizationId>,
    /// The customers other than the owner who may edit the document.
    #[field(rule = EDITORS, example = [])]
    editors: Vec<&'a CustomerId>,
    /// The number of the current version.
    #[field(rule = NUMBER, example = 1)]
    current: u64,
    #[field(rule = VERSION)]
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> DocumentFields<'a> {
    fn new(document: &'a Stored<Document>) -> Self {
        let Document { id, owner_id, organization_id, editors, title, current, .. } = &document.data;
        Self {
            id,
            title,
            owner_id: owner_id.as_ref(),
            organization_id: organization_id.as_ref(),
            editors: editors.iter().collect(),
            current: *current,
            version: document.meta.version,
            created_at: document.meta.created_at,
            updated_at: document.meta.updated_at,
        }
    }
}

// Without its texts. Only callers who may edit the document get it.
#[derive(Serialize, Schema)]
#[schema(name = "DocumentHead")]
pub struct HeadView<'a> {
    #[serde(flatten)]
    document: DocumentFields<'a>,
    #[field(rule = MANIFEST, example = {"purpose": 1})]
    sections: &'a Manifest,
    /// Only for callers who may edit the document.
    #[field(example = null)]
    draft: Option<DraftView<'a>>,
}

impl<'a> HeadView<'a> {
    pub fn new(document: &'a Stored<Document>) -> Self {
        let draft = document.draft.as_ref().map(|draft| DraftView::new(document, draft));
        Self { document: DocumentFields::new(document), sections: &document.sections, draft }
    }
}

#[derive(Serialize, Schema)]
pub struct DocumentView<'a> {
    #[serde(flatten)]
    document: DocumentFields<'a>,
    /// The texts by section name.
    #[field(
        rule = texts(),
        example = {"purpose": {"text": "To play chess.", "version": 1, "by": "ann", "at": "2026-11-20T12:00:00.000Z"}},
    )]
    sections: Sections<'a>,
    #[field(rule = NEXT_CURSOR, not_null)]
    next_cursor: Option<&'a str>,
    /// Only for callers who may edit the document.
    #[field(example = null)]
    #[serde(skip_serializing_if = "Option::is_none")]
    draft: Option<Option<DraftView<'a>>>,
}

type Sections<'a> = BTreeMap<&'a SectionName, SectionView<'a>>;

type NamedSection<'a> = (&'a SectionName, SectionView<'a>);

impl<'a> DocumentView<'a> {
    pub fn new(
        document: &'a Stored<Document>,
        parts: &[NamedSection<'a>],
        kept: usize,
        is_writer: bool,
        next_cursor: Option<&'a str>,
    ) -> Self {
        let draft = is_writer.then(|| document.draft.as_ref().map(|draft| DraftView::new(document, draft)));
        Self { document: DocumentFields::new(document), sections: first(parts, kept), next_cursor, draft }
    }
}

/// The next version, which is not published yet.
#[derive(Serialize, Schema)]
pub struct DraftView<'a> {
    /// The draft's future version number.
    #[field(rule = NUMBER, example = 2)]
    number: u64,
    #[field(rule = MANIFEST, example = {"purpose": 2})]
    sections: &'a Manifest,
    by: &'a CustomerId,
    at: Instant,
}

impl<'a> DraftView<'a> {
    const fn new(document: &'a Stored<Document>, draft: &'a Draft) -> Self {
        Self { number: document.data.next(), sections: &draft.sections, by: &draft.by, at: draft.at }
    }
}

#[derive(Clone, Copy, Serialize, Schema)]
#[schema(name = "DocumentText")]
pub struct SectionView<'a> {
    #[field(rule = CONTENT, example = "To play chess.")]
    text: &'a str,
    /// The version in which this text was written.
    #[field(rule = NUMBER, example = 1)]
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

#[derive(Serialize, Schema)]
#[schema(name = "DocumentSection")]
pub struct OneSection<'a> {
    #[field(example = "statutes")]
    document_id: &'a DocumentId,
    #[field(example = "purpose")]
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

#[derive(Serialize, Schema)]
#[schema(name = "DocumentVersion")]
pub struct VersionView<'a> {
    #[field(example = "statutes")]
    document_id: &'a DocumentId,
    #[field(rule = NUMBER, example = 2)]
    number: u64,
    /// Whether the version is still a draft.
    #[field(example = false)]
    draft: bool,
    /// The texts by section name.
    #[field(
        rule = texts(),
        example = {"purpose": {"text": "To play chess.", "version": 1, "by": "ann", "at": "2026-11-20T12:00:00.000Z"}},
    )]
    sections: Sections<'a>,
    #[field(rule = NEXT_CURSOR, not_null)]
    next_cursor: Option<&'a str>,
    by: &'a CustomerId,
    at: Instant,
    #[field(example = "as it was")]
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// The old version whose texts this version restored.
    #[field(rule = NUMBER, example = 1)]
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

#[derive(Serialize, Schema)]
pub struct VersionSummaryView<'a> {
    #[field(rule = NUMBER, example = 2)]
    number: u64,
    #[field(rule = MANIFEST, example = {"purpose": 2})]
    sections: &'a Manifest,
    by: &'a CustomerId,
    at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[field(rule = NUMBER)]
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_from: Option<u64>,
}

impl<'a> From<&'a DocumentVersion> for VersionSummaryView<'a> {
    fn from(version: &'a DocumentVersion) -> Self {
        let DocumentVersion { number, sections, by, at, note, restored_from, .. } = version;
        Self { number: *number, sections, by, at: *at, note: note.as_deref(), restored_from: *restored_from }
    }
}

#[derive(Serialize, Schema)]
pub struct EditorView<'a> {
    #[field(example = "statutes")]
    pub document_id: &'a DocumentId,
    #[field(example = "bob")]
    pub customer_id: &'a CustomerId,
}
