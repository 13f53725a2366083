//! One section of a document. A write changes the open draft. Without a draft it publishes the
//! section at once as a new version.
//!
//! So a change of one section takes one request. A client that must publish several changes
//! together begins a draft first.

use http_api::contract::route;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::document::{self, MAX_SECTIONS};
use key_schema::id::{DocumentId, SectionName};

use crate::access::{Access, access_by_head, no_such_document};
use crate::edit::read_request;
use crate::versions::{Texts, texts};
use crate::view::{HeadView, OneSection, SectionText};

/// Read a section of the current version
///
/// Returns the section to every reader of the document. The ETag is that of the document. To change
/// the section, send this ETag in If-Match.
#[route(GET "/v1/documents/{id}/sections/{name}", id = "readSection", who = reader, task = "documents",
    path(id: DocumentId, name: SectionName), answers(200 = OneSection<'_> "The section" [ETag]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, name): (DocumentId, SectionName) = (request.path("id")?, request.path("name")?);
    let head = services.table.get(&document::get(&id)?).await?.filter(|head| !head.deleting);
    let head = head.ok_or_else(no_such_document)?;
    let known = access_by_head(&caller, &head);
    if known == Ok(Access::Stranger) {
        return Err(no_such_document());
    }
    // `texts` also reads the caller's membership. So it runs even for a missing section: the
    // membership decides whether the 404 names the section or the document.
    let wanted = head.sections.get(&name).map(|number| (name, *number)).into_iter().collect();
    let Texts { sections, .. } = texts(services, &head, &wanted, known).await?;
    let section = sections.values().next().ok_or_else(|| Problem::not_found("section"))?;
    Ok(Response::ok(&OneSection::from(section)).etag(head.meta.version))
}

/// Write a section
///
/// Writes the text into the open draft. Without a draft, the text is published at once as a new
/// version. Other sections do not change. A document can have at most 50 sections.
#[route(PUT "/v1/documents/{id}/sections/{name}", id = "putSection", who = editor, task = "documents",
    path(id: DocumentId, name: SectionName), parameters(IfMatch), body = SectionText,
    answers(200 = HeadView<'_> "The document, without its texts" [ETag]),
    refuses(
        forbidden = "the caller may read the document but may not perform this operation",
        invalid_body = "also for more than 50 sections",
    ))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let name = request.signed_in().and_then(|_| request.path::<SectionName>("name"))?;
    let asked = read_request(request, Access::Writer)?;
    let SectionText { text } = request.body()?;
    let open = asked.open(services).await?.settled().await?;
    let sections = open.document.draft.as_ref().map_or(&open.document.sections, |draft| &draft.sections);
    if sections.len() >= MAX_SECTIONS && !sections.contains_key(&name) {
        let full = Problem::new(Code::InvalidBody, format!("A document can have at most {MAX_SECTIONS} sections."));
        return Err(open.refuse(full).await);
    }
    let (transaction, document) = document::put_section(open.edit(), &name, text)?;
    open.commit(Ok(transaction)).await?;
    Ok(Response::ok(&HeadView::new(&document)).etag(document.meta.version))
}
