//! Editors: a set of customers on the document's item. A client can repeat each request.

use http_api::identity::SignedIn;
use http_api::{Code, Problem, Request, Response, Store};
use key_schema::document::{self, Document, MAX_EDITORS, Part};
use key_schema::id::{CustomerId, DocumentId};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use table::{Refusal, TableError, TransactError};

use crate::access::{Standing, no_such_document, refused, right, right_to_manage};
use crate::view::EditorView;

/// PUT documents/{id}/editors/{customer}: adds an editor, at the request of the owner, of an admin
/// of the organization or of staff. An editor of an organization's document must be a member.
pub async fn add(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let head = read(store, &id).await?;
    let at = Instant::now();
    let add = document::add_editor(&head, &customer, right_to_manage(&caller, &head), &store.born(at)?, at)?;
    let refusals = match store.table.transact(&add).await {
        Ok(()) => return Ok(Response::ok(&EditorView { document_id: &id, customer_id: &customer })),
        Err(TransactError::Refused(refusals)) => refusals,
        Err(TransactError::Table(error)) => return Err(error.into()),
    };
    let of = |part| refusals.iter().any(|refusal| refusal.label == part);
    let head = current(&head, &refusals)?;
    let problem = if of(Part::Author) {
        return Err(no_such_document());
    } else if of(Part::Customer) {
        Problem::not_found("customer")
    } else if of(Part::Editor) {
        Problem::not_found("member")
    } else if head.editors.len() >= MAX_EDITORS && !head.editors.contains(&customer) {
        let full = format!("A document can have at most {MAX_EDITORS} editors besides its owner.");
        Problem::new(Code::InvalidBody, full)
    } else {
        // Another request changed the document or the membership at the same moment.
        TableError::Contended.into()
    };
    Err(refused(store, &caller, &head, Standing::Manager, problem).await)
}

/// DELETE documents/{id}/editors/{customer}: removes an editor, at the request of the owner, of an
/// admin of the organization, of staff or of that editor.
pub async fn remove(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let head = read(store, &id).await?;
    let by = if is_own(&caller, &customer) { right(&caller, &head) } else { right_to_manage(&caller, &head) };
    match store.table.transact(&document::remove_editor(&head, &customer, by)?).await {
        Ok(()) => Ok(Response::no_content()),
        Err(TransactError::Refused(refusals)) if refusals.iter().any(|refusal| refusal.label == Part::Author) => {
            Err(no_such_document())
        }
        Err(TransactError::Refused(refusals)) => {
            let head = current(&head, &refusals)?;
            Err(refused(store, &caller, &head, Standing::Manager, TableError::Contended.into()).await)
        }
        Err(TransactError::Table(error)) => Err(error.into()),
    }
}

fn is_own(caller: &SignedIn, editor: &CustomerId) -> bool {
    !caller.is_staff() && caller.id() == editor
}

/// Reads the document, which says whose right the change needs.
async fn read(store: &Store, id: &DocumentId) -> Result<Stored<Document>, Problem> {
    let head = store.table.get(&document::edit(id)?).await?;
    head.filter(|head| !head.deleting).ok_or_else(no_such_document)
}

/// Returns the document that a refusal carries, or the one that was read if only another item
/// refused the change.
fn current(read: &Stored<Document>, refusals: &[Refusal<Part>]) -> Result<Stored<Document>, Problem> {
    let Some(refusal) = refusals.iter().find(|refusal| refusal.label == Part::Document) else {
        return Ok(read.clone());
    };
    let item = refusal.item.as_deref().ok_or_else(no_such_document)?;
    let head: Stored<Document> = Stored::from_item(item.clone()).map_err(Problem::internal)?;
    if head.deleting { Err(no_such_document()) } else { Ok(head) }
}

fn names(request: &Request<'_>) -> Result<(DocumentId, CustomerId), Problem> {
    Ok((request.path("id")?, request.path("customer")?))
}
