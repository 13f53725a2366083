//! Deletes a document with its history.
//!
//! A history is unbounded, so one transaction cannot delete it. The function first marks the head,
//! on the client's version. From then on no caller can see or write the document. Then it deletes
//! the texts of the versions, the versions, and last the head, which frees the id.
//!
//! The items that an interrupted deletion leaves are invisible. The head stays and keeps the id,
//! and the same request continues the deletion.

use http_api::identity::SignedIn;
use http_api::{Problem, Request, Response, Store};
use key_schema::document::{self, Document};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item, Stored};
use key_schema::request::BatchWrite;
use table::{TableError, TransactError, WriteError};

use crate::access::{no_such_document, only_its_owner};
use crate::edit::{Asked, asked};

/// The maximum number of rounds per request, because the function's time is bounded.
const MAX_ROUNDS: usize = 20;
/// The versions per round.
const ROUND: usize = 100;

/// DELETE documents/{id}: deletes a document at the request of its owner or staff.
pub async fn delete(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = asked(request)?;
    let Asked { caller, id, version } = &asked;
    let owner = (!caller.is_staff()).then(|| caller.id());
    let document = match store.table.update(&document::retire(id, *version, owner, Instant::now())?).await {
        Ok(document) => document,
        Err(WriteError::Refused(None)) => return Err(no_such_document()),
        Err(WriteError::Refused(Some(item))) => interrupted(store, caller, *item).await?,
        Err(WriteError::Table(error)) => return Err(error.into()),
    };
    sweep(store, &document).await?;
    for delete in document::delete(&document)? {
        match store.table.transact(&delete).await {
            // A refusal means that a concurrent deletion was first.
            Ok(()) | Err(TransactError::Refused(_)) => {}
            Err(TransactError::Table(error)) => return Err(error.into()),
        }
    }
    Ok(Response::no_content())
}

/// Returns the document of an interrupted deletion, or the problem that prevents a new one.
async fn interrupted(store: &Store, caller: &SignedIn, item: Item) -> Result<Stored<Document>, Problem> {
    let document: Stored<Document> = Stored::from_item(item).map_err(Problem::internal)?;
    let is_owner = caller.is_staff() || document.is_owner(caller.id());
    match (document.deleting, is_owner) {
        (true, true) => Ok(document),
        (true, false) => Err(no_such_document()),
        (false, true) => Err(Problem::version_mismatch()),
        (false, false) => Err(only_its_owner(store, caller, &document).await),
    }
}

async fn sweep(store: &Store, document: &Stored<Document>) -> Result<(), Problem> {
    for _ in 0..MAX_ROUNDS {
        let versions = store.table.query(&document::history(&document.id)?.limit(ROUND)).await?.items;
        // The texts are removed first, because only the versions name them.
        remove(store, &document::sweep_texts(document, &versions)?).await?;
        if versions.is_empty() {
            return Ok(());
        }
        remove(store, &document::sweep_versions(&versions)?).await?;
    }
    Err(Problem::unavailable("the history is longer than one request removes"))
}

async fn remove(store: &Store, items: &BatchWrite) -> Result<(), Problem> {
    let left = store.table.batch_write(items).await?.len();
    if left > 0 { Err(TableError::Unprocessed(left).into()) } else { Ok(()) }
}
