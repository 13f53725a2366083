//! The history: every published version, with author and time. It is never rewritten.

use std::collections::BTreeMap;

use http_api::contract::{self, route};
use http_api::{Code, PageRequest, Problem, Request, Response, Services};
use key_schema::document::TextItem;
use key_schema::document::{self, Document, DocumentSection, DocumentVersion, Manifest};
use key_schema::id::{CustomerId, DocumentId, OrganizationId, SectionName};
use key_schema::item::{Stored, take};

use crate::access::{Access, access_by_head, by_membership, no_such_document, standing};
use crate::edit::read_request;
use crate::view::{HeadView, Restoration, VersionSummaryView, VersionView, parts};

/// List the versions of a document
///
/// Returns the versions, newest first. `sections` has, for each section, the version in which its
/// text was written.
#[route(GET "/v1/documents/{id}/versions", id = "listVersions", who = reader, task = "documents", path(id: DocumentId),
    parameters(Limit, Cursor),
    answers(200 = contract::Page<VersionSummaryView<'_>> "A page of versions" [Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: DocumentId = request.path("id")?;
    let parameters = [("document", id.as_str())];
    let page = request.page(&services.cursors, document::VERSIONS.id, &parameters).await?;
    // The head, which decides about access, is read concurrently.
    let head = document::get(&id)?;
    let head = async { Ok::<_, Problem>(services.table.get(&head).await?) };
    let (head, list) = tokio::try_join!(head, page.read(services, document::versions(&id)?))?;
    let head = head.filter(|head| !head.deleting).ok_or_else(no_such_document)?;
    if standing(services, &caller, &head).await? == Access::Stranger {
        return Err(no_such_document());
    }
    list.answer(|version| VersionSummaryView::from(&version.data)).await
}

/// Read a version with its texts
///
/// Returns the version. Callers who may edit the document can also read the draft, under its future
/// version number. `next_cursor` leads to the sections that did not fit into the response. A cursor
/// of a draft is valid until the document changes.
#[route(GET "/v1/documents/{id}/versions/{n}", id = "readVersion", who = reader, task = "documents",
    path(id: DocumentId, VersionNumber), parameters(Cursor),
    answers(200 = VersionView<'_> "The version" [ETag, Link, LeftOut]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: DocumentId = request.path("id")?;
    let number = request.path_number("n", "version")?;
    let (head, version) = read_version(services, &id, number).await?;
    let head = head.filter(|head| !head.deleting).ok_or_else(no_such_document)?;
    let known = access_by_head(&caller, &head);
    if known == Ok(Access::Stranger) {
        return Err(no_such_document());
    }
    let born = head.meta.born.as_str();
    match (version, &head.draft) {
        (Some(version), _) => {
            let number = number.to_string();
            let parameters = [("document", id.as_str()), ("born", born), ("version", number.as_str()), ("draft", "")];
            let page = request.page_of_parts(&services.cursors, document::TEXTS.id, &parameters).await;
            let Texts { sections, .. } =
                texts(services, &head, &part_after_cursor(&version.sections, &page), known).await?;
            let parts = parts(&sections);
            let view =
                |kept, next: Option<&str>| Response::ok(&VersionView::published(&version.data, &parts, kept, next));
            Ok(page?.answer_parts(&parts, view).await?.etag_of_parts(version.meta.version))
        }
        (None, Some(draft)) if number == head.next() => {
            let (number, seen) = (number.to_string(), head.meta.version.to_string());
            let parameters =
                [("document", id.as_str()), ("born", born), ("version", number.as_str()), ("draft", seen.as_str())];
            let page = request.page_of_parts(&services.cursors, document::TEXTS.id, &parameters).await;
            let Texts { sections, standing } =
                texts(services, &head, &part_after_cursor(&draft.sections, &page), known).await?;
            if standing < Access::Writer {
                return Err(no_such_version());
            }
            let parts = parts(&sections);
            let view = |kept, next: Option<&str>| Response::ok(&VersionView::draft(&head, draft, &parts, kept, next));
            Ok(page?.answer_parts(&parts, view).await?.etag_of_parts(head.meta.version))
        }
        // Strangers get the 404 of a missing document. The 404 of a missing version would reveal
        // that the document exists.
        (None, _) => {
            let standing = match known {
                Ok(standing) => standing,
                Err(_) => standing(services, &caller, &head).await?,
            };
            Err(if standing == Access::Stranger { no_such_document() } else { no_such_version() })
        }
    }
}

/// Restore an old version
///
/// Publishes the texts of an old version as a new version. The history does not change.
#[route(POST "/v1/documents/{id}/restore", id = "restoreVersion", who = editor, task = "documents",
    path(id: DocumentId),
    parameters(IfMatch), body = Restoration,
    answers(200 = HeadView<'_> "The document, without its texts" [ETag]),
    refuses(
        forbidden = "the caller may read the document but may not perform this operation",
        draft_open = "the draft would be lost",
        invalid_body = "also for an unknown version",
    ))]
pub async fn restore(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = read_request(request, Access::Writer)?;
    let Restoration { version, note } = request.body()?;
    let (head, version) = read_version(services, &asked.id, version).await?;
    let open = asked.open_read(services, head).await?.settled().await?;
    if open.document.draft.is_some() {
        let problem =
            Problem::new(Code::DraftOpen, "The document has a draft that would be lost. Publish or delete it first.");
        return Err(open.refuse(problem).await);
    }
    let Some(version) = version else {
        let problem = Problem::new(Code::InvalidBody, "The version does not exist.");
        return Err(open.refuse(problem.error("/version", "is not a version of this document")).await);
    };
    let (transaction, document) = document::restore(open.edit(), &version, note)?;
    open.commit(Ok(transaction)).await?;
    Ok(Response::ok(&HeadView::new(&document)).etag(document.meta.version))
}

async fn read_version(
    services: &Services,
    id: &DocumentId,
    number: u64,
) -> Result<(Option<Stored<Document>>, Option<Stored<DocumentVersion>>), Problem> {
    let mut found = services.table.batch_get(&document::version(id, number)?).await?;
    Ok((take(&mut found), take(&mut found)))
}

/// The texts of a version, for a caller who may read them.
pub struct Texts {
    pub sections: BTreeMap<SectionName, DocumentSection>,
    /// The caller's access, which is never `Stranger`.
    pub standing: Access,
}

/// Returns the part of a manifest after the cursor, or an empty manifest for an invalid cursor. The
/// access check comes before the error about the cursor, so that strangers cannot find out whether
/// a document exists.
pub fn part_after_cursor(manifest: &Manifest, page: &Result<PageRequest<'_>, Problem>) -> Manifest {
    let Ok(page) = page else { return Manifest::new() };
    let after = page.after_part();
    let is_left = |name: &SectionName| after.as_deref().is_none_or(|after| name.as_str() > after);
    manifest.iter().filter(|(name, _)| is_left(name)).map(|(name, number)| (name.clone(), *number)).collect()
}

/// Reads the texts that a manifest names. Also reads the membership, if the membership decides
/// about access.
///
/// # Errors
/// 404 `not_found` for strangers, and for a document that is deleted concurrently.
pub async fn texts(
    services: &Services,
    head: &Document,
    manifest: &Manifest,
    known: Result<Access, (&OrganizationId, &CustomerId)>,
) -> Result<Texts, Problem> {
    // If there are no texts to read and the access is known, the request would be empty, and
    // DynamoDB would refuse it.
    let (mut sections, mut member) = (BTreeMap::new(), None);
    let asks = !manifest.is_empty() || known.is_err();
    let found = if asks {
        services.table.batch_get(&document::texts(&head.id, manifest, known.err())?).await?
    } else {
        Vec::new()
    };
    for item in found.into_iter().flatten() {
        match item {
            TextItem::DocumentSection(section) => {
                sections.insert(section.data.name.clone(), section.data);
            }
            TextItem::Member(found) => member = Some(found),
        }
    }
    let standing = known.unwrap_or_else(|(_, customer)| by_membership(head, customer, member.as_ref()));
    if standing == Access::Stranger || sections.len() != manifest.len() {
        return Err(no_such_document());
    }
    Ok(Texts { sections, standing })
}

fn no_such_version() -> Problem {
    Problem::not_found("version")
}
