//! Deletes a document with its history.
//!
//! A history is unbounded, so one transaction cannot delete it. The function first marks the head,
//! on the condition that the client's version is current. From then on no caller can see or write
//! the document. Then it deletes the texts of the versions, the versions, and last the head.
//!
//! After an interruption the remaining items are invisible. The head still reserves the id, and the
//! same request continues the deletion.

use http_api::{Problem, Request, Response, Services};
use key_schema::document::{self, Document};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::request::BatchWrite;
use table::TableError;

use crate::access::{Standing, no_such_document, refused, right_to_manage, standing};
use crate::edit::{Asked, asked};

/// The maximum number of rounds per request, because the function's time is bounded.
const MAX_ROUNDS: usize = 20;
/// The versions per round.
const ROUND: usize = 100;

/// DELETE documents/{id}: deletes a document at the request of its owner, of an admin of the
/// organization or of staff.
pub async fn delete(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = asked(request, Standing::Manager)?;
    let Asked { caller, id, version, .. } = &asked;
    let owner = (!caller.is_staff()).then(|| caller.id());
    let document = match services.table.update(&document::retire(id, *version, owner, Instant::now())?).await? {
        Ok(document) => Some(document),
        Err(refusal) => {
            let document = refusal.stored()?.ok_or_else(no_such_document)?;
            shared_or_interrupted(services, &asked, document).await?
        }
    };
    let Some(document) = document else { return Ok(Response::no_content()) };
    sweep(services, &document).await?;
    for delete in document::delete(&document)? {
        // A refusal means that a concurrent request has deleted the document.
        let _ = services.table.transact(&delete).await?;
    }
    Ok(Response::no_content())
}

/// Explains a refusal of the first write, or continues. It returns the document of an interrupted
/// deletion. It hides an organization's document in a transaction that checks the membership. It
/// returns [`None`] if a concurrent request has deleted the document.
async fn shared_or_interrupted(
    services: &Services,
    asked: &Asked,
    document: Stored<Document>,
) -> Result<Option<Stored<Document>>, Problem> {
    let Asked { caller, id, needed, .. } = asked;
    if document.deleting {
        let may = standing(services, caller, &document).await? >= *needed;
        return if may { Ok(Some(document)) } else { Err(no_such_document()) };
    }
    if caller.is_staff() || document.organization_id.is_none() {
        return Err(refused(services, caller, &document, *needed, Problem::version_mismatch()).await);
    }
    let open = asked.over(services, Some(document)).await?;
    let right = right_to_manage(caller, &open.document);
    open.commit(document::retire_shared(&open.document, right, open.at)).await?;
    // Editors may have been added before. From now on none can be added, so the head is read again.
    Ok(services.table.get(&document::read_for_update(id)?).await?)
}

async fn sweep(services: &Services, document: &Stored<Document>) -> Result<(), Problem> {
    for _ in 0..MAX_ROUNDS {
        let versions = services.table.query(&document::history(&document.id)?.limit(ROUND)).await?.items;
        // The texts are removed first, because only the versions name them.
        remove(services, &document::sweep_texts(document, &versions)?).await?;
        if versions.is_empty() {
            return Ok(());
        }
        remove(services, &document::sweep_versions(&versions)?).await?;
    }
    Err(Problem::unavailable("the history is longer than one request removes"))
}

async fn remove(services: &Services, items: &BatchWrite) -> Result<(), Problem> {
    let left = services.table.batch_write(items).await?.len();
    if left > 0 { Err(TableError::Unprocessed(left).into()) } else { Ok(()) }
}
