//! The whole document: creating and reading it.

use std::collections::BTreeSet;

use http_api::fields::{long_text, map, parsed, text};
use http_api::url::location;
use http_api::{Code, Problem, Request, Response, Services, read_fields};
use key_schema::document::{self, Document, DocumentAction, DocumentSection, MAX_SECTIONS, MAX_TEXT};
use key_schema::id::{DocumentId, OrganizationId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::quota::Quota;

use crate::access::{Access, access_by_head, no_such_document};
use crate::versions::{Texts, part_after_cursor, texts};
use crate::view::{DocumentView, HeadView, parts};

/// The longest title, in bytes of UTF-8.
const MAX_TITLE: usize = 200;

/// POST documents: creates a document, at the request of a customer with a profile or of staff. Its
/// initial content is version 1. Only staff may choose the id. So no customer can find out which
/// ids exist, or take an id.
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    read_fields!(request.object()? => {
        id: optional(parsed::<DocumentId>),
        title: required(text(1..=MAX_TITLE)),
        organization_id: optional(parsed::<OrganizationId>),
        sections: required(map::<SectionName, String>(MAX_SECTIONS, long_text(0..=MAX_TEXT))),
    });
    if id.is_some() && !caller.is_staff() {
        return Err(Problem::new(Code::Forbidden, "Only staff can choose the id of a document."));
    }
    let (at, by, is_staff) = (Instant::now(), caller.id(), caller.is_staff());
    let born = services.born(at)?;
    let id = match id {
        Some(id) => id,
        None => DocumentId::generate(at, services.random()?),
    };
    let head = Document {
        id: id.clone(),
        owner_id: Some(by.clone()),
        organization_id,
        editors: BTreeSet::new(),
        deleting: false,
        discarded: [].into(),
        removing_since: None,
        title,
        current: 1,
        sections: sections.keys().map(|name| (name.clone(), 1)).collect(),
        draft: None,
    };
    let head = Stored::new(head, born.clone(), at);
    let section = |(name, text)| {
        let section = DocumentSection { id: id.clone(), name, number: 1, text, by: by.clone(), at };
        Stored::new(section, born.clone(), at)
    };
    let texts: Vec<Stored<DocumentSection>> = sections.into_iter().map(section).collect();
    let location = location(&["documents", head.id.as_str()]);
    match services.table.transact(&document::create(&head, &texts, by, is_staff)?).await? {
        Ok(()) => Ok(Response::created(location, &HeadView::new(&head, true)).etag(head.meta.version)),
        Err(refusals) if refusals.names(DocumentAction::Author) => Err(Problem::not_found("customer")),
        Err(refusals) if refusals.names(DocumentAction::Document) => {
            Err(Problem::new(Code::AlreadyExists, "A document with this id already exists.").location(location))
        }
        Err(refusals) if refusals.names(DocumentAction::Quota) => Err(Problem::quota_exceeded(Quota::Documents, at)),
        Err(_) => {
            let problem = Problem::new(Code::InvalidBody, "The document cannot belong to this organization.");
            Err(problem.error("/organization_id", "is not an organization that you belong to"))
        }
    }
}

/// GET documents/{id}: returns the current version. Each page costs two requests to DynamoDB, for a
/// version of any size. The first reads the head, which names the texts. The second reads the texts
/// by key. It also reads the caller's membership, if the membership decides about access.
///
/// Texts that do not fit into one response come in pages. A cursor is valid only for the version of
/// its page, so no reader mixes two versions.
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: DocumentId = request.path("id")?;
    // Requests for later pages use a strongly consistent read of the head. An eventually consistent
    // read could return an older version than the previous page has. Then the cursor would be
    // refused.
    let is_first_page = request.query("cursor")?.is_none();
    let get = if is_first_page { document::get(&id)? } else { document::read_for_update(&id)? };
    let head = services.table.get(&get).await?.filter(|head| !head.deleting);
    let head = head.ok_or_else(no_such_document)?;
    let known = access_by_head(&caller, &head);
    if known == Ok(Access::Stranger) {
        return Err(no_such_document());
    }
    let number = head.current.to_string();
    let born = head.meta.born.as_str();
    let parameters = [("document", id.as_str()), ("born", born), ("version", number.as_str()), ("draft", "")];
    let page = request.page_of_parts(&services.cursors, document::TEXTS.id, &parameters).await;
    let Texts { sections, standing } = texts(services, &head, &part_after_cursor(&head.sections, &page), known).await?;
    let (parts, is_writer) = (parts(&sections), standing >= Access::Writer);
    let view = |kept, next: Option<&str>| Response::ok(&DocumentView::new(&head, &parts, kept, is_writer, next));
    Ok(page?.answer_parts(&parts, view).await?.etag(head.meta.version))
}
