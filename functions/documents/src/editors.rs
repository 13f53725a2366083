//! Editors: a set of customers on the document's item. A client can repeat each request.

use http_api::{Code, Problem, Request, Response, Store};
use key_schema::document::{self, Document, MAX_EDITORS, Part};
use key_schema::id::{CustomerId, DocumentId};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item, Stored};
use table::TransactError;

use crate::access::{no_such_document, only_its_owner};
use crate::view::EditorView;

/// PUT documents/{id}/editors/{customer}: adds an editor, at the request of the owner or staff.
pub async fn add(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let owner = (!caller.is_staff()).then(|| caller.id());
    let at = Instant::now();
    let add = document::add_editor(&id, &customer, owner, &store.born(at)?, at)?;
    let refusals = match store.table.transact(&add).await {
        Ok(()) => return Ok(Response::ok(&EditorView { document_id: &id, customer_id: &customer })),
        Err(TransactError::Refused(refusals)) => refusals,
        Err(TransactError::Table(error)) => return Err(error.into()),
    };
    let Some(refusal) = refusals.iter().find(|refusal| refusal.label == Part::Document) else {
        return Err(Problem::not_found("customer"));
    };
    let document = document_in(refusal.item.as_deref())?;
    if caller.is_staff() || document.is_owner(caller.id()) {
        let full = format!("A document can have at most {MAX_EDITORS} editors besides its owner.");
        return Err(Problem::new(Code::InvalidBody, full));
    }
    Err(only_its_owner(store, &caller, &document).await)
}

/// DELETE documents/{id}/editors/{customer}: removes an editor, at the request of the owner, of
/// staff or of that editor.
pub async fn remove(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let by = (!caller.is_staff()).then(|| caller.id());
    match store.table.transact(&document::remove_editor(&id, &customer, by)?).await {
        Ok(()) => Ok(Response::no_content()),
        Err(TransactError::Refused(refusals)) => {
            let document = document_in(refusals.iter().find_map(|refusal| refusal.item.as_deref()))?;
            Err(only_its_owner(store, &caller, &document).await)
        }
        Err(TransactError::Table(error)) => Err(error.into()),
    }
}

/// Returns the document that a refusal carries.
fn document_in(item: Option<&Item>) -> Result<Stored<Document>, Problem> {
    let document: Stored<Document> =
        Stored::from_item(item.ok_or_else(no_such_document)?.clone()).map_err(Problem::internal)?;
    if document.deleting { Err(no_such_document()) } else { Ok(document) }
}

fn names(request: &Request<'_>) -> Result<(DocumentId, CustomerId), Problem> {
    Ok((request.path("id")?, request.path("customer")?))
}
