//! Deletes a document with its history.
//!
//! A history is unbounded, so one transaction cannot delete it. The function first marks the head,
//! on the condition that the client's version is current. From then on no caller can see or write
//! the document. Then the function deletes the texts of the versions, the versions, and last the
//! head.
//!
//! A long history takes several requests, each with a [`Budget`]. After an interruption the
//! remaining items are invisible. The head still reserves the id, and a repeated request continues
//! the deletion.

use http_api::contract::route;
use http_api::{Problem, Request, Response, Services};
use key_schema::document::{self, Document};
use key_schema::id::DocumentId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::Budget;
use workflows::removal;

use crate::access::{Access, no_such_document, refused, right_to_manage, standing};
use crate::edit::{RequestedChange, read_request, removal_failed};

/// Delete a document with its history
///
/// Deletes the document. The owner, staff and admins of the document's organization may call this.
/// As soon as the deletion starts, reads of the document get 404. If the response is 503, a part of
/// the history remains. To continue, repeat the same request after the time in Retry-After. If no
/// client repeats it, the janitor continues after some minutes. One request removes a few thousand
/// small texts, or about 25 texts of 100 KB.
#[route(DELETE "/v1/documents/{id}", id = "deleteDocument", who = editor, task = "documents", path(id: DocumentId),
    parameters(IfMatch), answers(204 = () "Done"),
    refuses(forbidden = "the caller may read the document but may not perform this operation"))]
pub async fn delete(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = read_request(request, Access::Manager)?;
    let RequestedChange { caller, id, version, .. } = &asked;
    let owner = (!caller.is_staff()).then(|| caller.id());
    let document = match services.table.update(&document::retire(id, *version, owner, Instant::now())?).await? {
        Ok(document) => Some(document),
        Err(refusal) => {
            let document = refusal.stored()?.ok_or_else(no_such_document)?;
            shared_or_interrupted(services, &asked, document).await?
        }
    };
    let Some(document) = document else { return Ok(Response::no_content()) };
    telemetry::crash_point("documents.retired");
    let budget = Budget::begin(&services.table);
    removal::delete(&services.table, &document, &budget).await.map_err(removal_failed)?;
    Ok(Response::no_content())
}

/// Handles a refusal of the first write. If an earlier deletion was interrupted, returns the
/// document. If the document belongs to an organization, marks it in a transaction that checks the
/// caller's membership. If a concurrent request has deleted it meanwhile, returns [`None`].
async fn shared_or_interrupted(
    services: &Services,
    asked: &RequestedChange,
    document: Stored<Document>,
) -> Result<Option<Stored<Document>>, Problem> {
    let RequestedChange { caller, id, needed, .. } = asked;
    if document.deleting {
        let may = standing(services, caller, &document).await? >= *needed;
        return if may { Ok(Some(document)) } else { Err(no_such_document()) };
    }
    if caller.is_staff() || document.organization_id.is_none() {
        return Err(refused(services, caller, &document, *needed, Problem::version_mismatch()).await);
    }
    let open = asked.open_read(services, Some(document)).await?;
    let right = right_to_manage(caller, &open.document);
    open.commit(document::retire_shared(&open.document, right, open.at)).await?;
    // No editor can be added from now on. The head is read again, because editors may have been
    // added since the last read.
    Ok(services.table.get(&document::read_for_update(id)?).await?)
}
