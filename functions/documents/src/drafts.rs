//! Drafts: the next version, which readers cannot see until one write publishes it.

use http_api::contract::route;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::document::{self, Document, Draft};
use key_schema::id::DocumentId;
use key_schema::item::Stored;
use table::Budget;
use workflows::removal;

use crate::access::Access;
use crate::edit::{OpenChange, finish_discard, read_request, removal_failed};
use crate::view::{HeadView, Publication, version_location};

/// Start a draft of the next version
///
/// Creates a draft with the texts of the current version. Readers cannot read it before it is
/// published. Location is the URL of the draft.
#[route(POST "/v1/documents/{id}/drafts", id = "beginDraft", who = editor, task = "documents", path(id: DocumentId),
    parameters(IfMatch), answers(201 = HeadView<'_> "The document" [Location, ETag]),
    refuses(
        forbidden = "the caller may read the document but may not perform this operation",
        draft_open = "there is a draft already",
    ))]
pub async fn begin(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = read_request(request, Access::Writer)?;
    let open = asked.open(services).await?.settled().await?;
    if open.document.draft.is_some() {
        let problem = Problem::new(Code::DraftOpen, "The document already has a draft. Publish or delete it first.");
        return Err(open.refuse(problem).await);
    }
    let (transaction, document) = document::begin_draft(open.edit())?;
    open.commit(Ok(transaction)).await?;
    let location = version_location(&document.id, document.next());
    Ok(Response::created(location, &HeadView::new(&document)).etag(document.meta.version))
}

/// Discard the draft
///
/// Deletes the draft with its texts. As soon as the deletion starts, no caller sees the draft. If
/// the response is 503, some texts of the draft remain. To continue, repeat the same request after
/// the time in Retry-After. Until these texts are removed, every other change of the content
/// continues their removal first.
#[route(DELETE "/v1/documents/{id}/drafts", id = "discardDraft", who = editor, task = "documents", path(id: DocumentId),
    parameters(IfMatch), answers(204 = () "Done"),
    refuses(
        forbidden = "the caller may read the document but may not perform this operation",
        draft_missing,
    ))]
pub async fn discard(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = read_request(request, Access::Writer)?;
    let document = services.table.get(&document::read_for_update(&asked.id)?).await?;
    if let Some(document) = document.as_ref().filter(|document| is_discarding(document, asked.version)) {
        finish_discard(services, &asked, document).await?;
        return Ok(Response::no_content());
    }
    let open = asked.open_read(services, document).await?;
    let draft = draft_of(&open).await?;
    let (transaction, document) = document::discard_draft(open.edit(), &draft)?;
    open.commit(Ok(transaction)).await?;
    telemetry::crash_point("documents.draft.discarded");
    if !document.discarded.is_empty() {
        let budget = Budget::begin(&services.table);
        removal::discard(&services.table, &document.id, &budget).await.map_err(removal_failed)?;
    }
    Ok(Response::no_content())
}

/// Returns whether a request with this If-Match continues the removal of a discarded draft. The
/// discard must be the document's last change. The If-Match must have the version before or after
/// the discard.
fn is_discarding(document: &Stored<Document>, version: u64) -> bool {
    let is_repeated = document.meta.version == version || document.meta.version == version.saturating_add(1);
    !document.deleting && !document.discarded.is_empty() && is_repeated
}

/// Publish the draft
///
/// Makes the whole draft the current version, with the next number.
#[route(POST "/v1/documents/{id}/publish", id = "publishDraft", who = editor, task = "documents", path(id: DocumentId),
    parameters(IfMatch), body = Publication,
    answers(200 = HeadView<'_> "The document, without its texts" [ETag]),
    refuses(
        forbidden = "the caller may read the document but may not perform this operation",
        draft_missing,
    ))]
pub async fn publish(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = read_request(request, Access::Writer)?;
    let Publication { note } = request.body()?;
    let open = asked.open(services).await?;
    let draft = draft_of(&open).await?;
    let (transaction, document) = document::publish(open.edit(), &draft, note)?;
    open.commit(Ok(transaction)).await?;
    Ok(Response::ok(&HeadView::new(&document)).etag(document.meta.version))
}

async fn draft_of(open: &OpenChange<'_>) -> Result<Draft, Problem> {
    match &open.document.draft {
        Some(draft) => Ok(draft.clone()),
        None => {
            Err(open.refuse(Problem::new(Code::DraftMissing, "The document has no draft. Create one first.")).await)
        }
    }
}
