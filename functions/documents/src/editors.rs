//! Editors: a set of customers in the document's item. A client can repeat each request.

use http_api::contract::route;
use http_api::identity::SignedIn;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::document::{self, Document, DocumentAction, MAX_EDITORS};
use key_schema::id::{CustomerId, DocumentId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::TableError;

use crate::access::{Access, no_such_document, refused, right, right_to_manage};
use crate::edit::current;
use crate::view::EditorView;

/// Add an editor to a document
///
/// Lets the customer edit the document. The owner, staff and admins of the document's organization
/// may call this. An editor of an organization's document must be a member, and loses the editor's
/// rights with the membership. A repeated request changes nothing. A document has at most 100
/// editors in addition to its owner.
#[route(PUT "/v1/documents/{id}/editors/{customer}", id = "addEditor", who = editor, task = "documents",
    path(id: DocumentId, customer: CustomerId), answers(200 = EditorView<'_> "The editor"),
    refuses(
        forbidden = "the caller may read the document but may not perform this operation",
        not_found = "the document or the customer does not exist, or the caller may not read the document. The code \
            is the same if the document belongs to an organization and the customer is not a member of it",
        invalid_body = "for more than 100 editors",
    ))]
pub async fn add(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let head = read(services, &id).await?;
    let at = Instant::now();
    let add = document::add_editor(&head, &customer, right_to_manage(&caller, &head), &services.born(at)?, at)?;
    let Err(refusals) = services.table.transact(&add).await? else {
        return Ok(Response::ok(&EditorView { document_id: &id, customer_id: &customer }));
    };
    let head = current(&head, &refusals)?;
    let problem = if refusals.names(DocumentAction::Author) {
        return Err(no_such_document());
    } else if refusals.names(DocumentAction::Customer) {
        Problem::not_found("customer")
    } else if refusals.names(DocumentAction::Editor) {
        Problem::not_found("member")
    } else if head.editors.len() >= MAX_EDITORS && !head.editors.contains(&customer) {
        let full = format!("A document can have at most {MAX_EDITORS} editors besides its owner.");
        Problem::new(Code::InvalidBody, full)
    } else {
        // Another request changed the document or the membership at the same moment. A retry may
        // succeed.
        TableError::Contended.into()
    };
    Err(refused(services, &caller, &head, Access::Manager, problem).await)
}

/// Remove an editor from a document
///
/// Removes the editor. The owner, staff, that editor and admins of the document's organization may
/// call this. If the customer is no editor, the request also succeeds. Editors may remove themselves
/// even if they are no longer members of the organization.
#[route(DELETE "/v1/documents/{id}/editors/{customer}", id = "removeEditor", who = editor, task = "documents",
    path(id: DocumentId, customer: CustomerId), answers(204 = () "Done"),
    refuses(forbidden = "the caller may read the document but may not perform this operation"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let head = read(services, &id).await?;
    let by = if is_own(&caller, &customer) { right(&caller, &head) } else { right_to_manage(&caller, &head) };
    let remove = document::remove_editor(&head, &customer, by)?;
    let Err(refusals) = services.table.transact(&remove).await? else { return Ok(Response::no_content()) };
    if refusals.names(DocumentAction::Author) {
        return Err(no_such_document());
    }
    let head = current(&head, &refusals)?;
    Err(refused(services, &caller, &head, Access::Manager, TableError::Contended.into()).await)
}

fn is_own(caller: &SignedIn, editor: &CustomerId) -> bool {
    !caller.is_staff() && caller.id() == editor
}

/// Reads the document. Its organization and owner determine the right that the change needs.
async fn read(services: &Services, id: &DocumentId) -> Result<Stored<Document>, Problem> {
    let head = services.table.get(&document::read_for_update(id)?).await?;
    head.filter(|head| !head.deleting).ok_or_else(no_such_document)
}

fn names(request: &Request<'_>) -> Result<(DocumentId, CustomerId), Problem> {
    Ok((request.path("id")?, request.path("customer")?))
}
