//! The whole document: creating and reading it.

use std::collections::BTreeSet;

use http_api::contract::route;
use http_api::url::location;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::document::{self, Document, DocumentAction, DocumentSection};
use key_schema::id::DocumentId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::quota::Quota;

use crate::access::{Access, access_by_head, no_such_document};
use crate::versions::{Texts, part_after_cursor, texts};
use crate::view::{DocumentView, HeadView, NewDocument, parts};

/// Create a document
///
/// Creates a document with its content as version 1. The caller becomes its owner. The caller must
/// have a profile or be staff. The creator of an organization's document must be a member or staff.
/// The organization's members can read its documents, and its admins can edit, share and delete
/// them. The owner and the editors of such a document keep their own rights while they are members.
/// Only staff may choose the `id`.
#[route(POST "/v1/documents", id = "createDocument", who = customer, task = "documents", body = NewDocument,
    answers(201 = HeadView<'_> "The document, without its texts" [Location, ETag]),
    refuses(
        not_found = "the caller is not staff and has no profile, or no longer has one",
        already_exists,
        invalid_body = "also for an organization of which the caller is not a member",
        quota_exceeded = "retry after the time in Retry-After",
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let NewDocument { id, title, organization_id, sections } = request.body()?;
    // Otherwise a customer could find out which ids exist, or take an id.
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
        Ok(()) => Ok(Response::created(location, &HeadView::new(&head)).etag(head.meta.version)),
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

/// Read a document
///
/// Returns the current version with its texts. The owner, the editors, staff and members of the
/// document's organization may read it. An owner or editor of an organization's document who is no
/// longer a member may not read it. Other callers get 404. Only callers who may edit the document
/// get `draft`. Sections are sorted by the bytes of their names. A response has at most 4 MB.
/// `next_cursor` leads to the sections that did not fit. A cursor is valid only for one version.
/// When another version becomes current, the cursor is refused with `cursor_invalid`. Then read the
/// document again.
#[route(GET "/v1/documents/{id}", id = "readDocument", who = reader, task = "documents", path(id: DocumentId),
    parameters(Cursor), answers(200 = DocumentView<'_> "The document" [ETag, Link, LeftOut]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    // Each page costs two requests to DynamoDB, for a version of any size. The first reads the head,
    // which names the texts. The second reads the texts by key, and the caller's membership if it
    // decides about access.
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
    Ok(page?.answer_parts(&parts, view).await?.etag_of_parts(head.meta.version))
}
