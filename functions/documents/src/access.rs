//! Permissions on documents. The owner, the editors and staff may read and write a document.
//! Members may read a document of their organization, and admins may write it.
//!
//! This module decides about reads. The conditions of the transactions decide about writes. For a
//! write it chooses the right under which the caller tries, and the response to a refusal.

use http_api::identity::SignedIn;
use http_api::{Code, Problem, Store};
use key_schema::document::{Document, Right};
use key_schema::id::{CustomerId, OrganizationId};
use key_schema::item::Stored;
use key_schema::organization::{self, Member, Role};

/// A caller's access to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// May read and write it.
    Writer,
    /// May read it.
    Reader,
    /// Must not learn that it exists.
    Stranger,
}

/// Returns the access that the head alone decides. Otherwise returns, as an error, the organization
/// and the customer whose membership decides.
pub fn known<'a>(
    caller: &'a SignedIn,
    document: &'a Document,
) -> Result<Standing, (&'a OrganizationId, &'a CustomerId)> {
    match &document.organization_id {
        _ if caller.is_staff() || document.is_editor(caller.id()) => Ok(Standing::Writer),
        Some(organization) => Err((organization, caller.id())),
        None => Ok(Standing::Stranger),
    }
}

/// Returns the access that a membership gives.
pub fn by_membership(member: Option<&Stored<Member>>) -> Standing {
    match member.map(|member| member.role) {
        Some(Role::Admin) => Standing::Writer,
        Some(Role::Member) => Standing::Reader,
        None => Standing::Stranger,
    }
}

/// Returns a caller's access to a document. Sends a request if a membership decides.
///
/// # Errors
/// Fails when the table fails.
pub async fn standing(store: &Store, caller: &SignedIn, document: &Document) -> Result<Standing, Problem> {
    match known(caller, document) {
        Ok(standing) => Ok(standing),
        Err((organization, customer)) => {
            Ok(by_membership(store.table.get(&organization::member(organization, customer)?).await?.as_ref()))
        }
    }
}

/// Returns the right under which a caller tries to write a document. A caller who is neither owner
/// nor editor tries as an admin of the organization. Without an organization the caller tries as an
/// editor, and the head's condition refuses the write.
pub fn right<'a>(caller: &'a SignedIn, document: &'a Document) -> Right<'a> {
    match &document.organization_id {
        _ if caller.is_staff() => Right::Staff,
        Some(organization) if !document.is_editor(caller.id()) => Right::Admin(organization, caller.id()),
        _ => Right::Own(caller.id()),
    }
}

/// Returns the problem of a refused change: `problem` for writers, 403 for readers, 404 for
/// strangers, whatever other reasons there are.
pub async fn refused(store: &Store, caller: &SignedIn, document: &Document, problem: Problem) -> Problem {
    match standing(store, caller, document).await {
        Ok(Standing::Writer) => problem,
        Ok(Standing::Reader) => not_an_editor(),
        Ok(Standing::Stranger) => no_such_document(),
        Err(failure) => failure,
    }
}

pub fn no_such_document() -> Problem {
    Problem::not_found("document")
}

fn not_an_editor() -> Problem {
    Problem::new(Code::Forbidden, "You can read this document, but you cannot change it in this way.")
}

/// Returns 403 for callers who may read the document, 404 for others.
pub async fn only_its_owner(store: &Store, caller: &SignedIn, document: &Document) -> Problem {
    refused(store, caller, document, not_an_editor()).await
}
