//! Permissions on documents. Staff may do everything. The owner may do everything, and the editors
//! may read and write. In an organization's document, owner and editors also need a current
//! membership. Every member of the organization may read the document, and the admins may do
//! everything.
//!
//! This module decides about reads. The conditions of transactions decide about writes. For a write
//! this module chooses the right that the condition checks, and explains a refusal.

use http_api::identity::SignedIn;
use http_api::{Code, Problem, Services};
use key_schema::document::{self, Document, Right};
use key_schema::id::{CustomerId, OrganizationId};
use key_schema::item::Stored;
use key_schema::organization::{Member, Role};

/// A caller's access to a document. Each level includes the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The caller must not learn that the document exists.
    Stranger,
    /// The caller may read the document.
    Reader,
    /// The caller may read and write the document.
    Writer,
    /// The caller may also choose the editors and delete the document.
    Manager,
}

/// Returns the access if the document's head alone decides it. Otherwise the error has the
/// organization and the customer whose membership decides.
pub fn access_by_head<'a>(
    caller: &'a SignedIn,
    document: &'a Document,
) -> Result<Access, (&'a OrganizationId, &'a CustomerId)> {
    match &document.organization_id {
        _ if caller.is_staff() => Ok(Access::Manager),
        Some(organization) => Err((organization, caller.id())),
        None => Ok(by_role(document, caller.id()).unwrap_or(Access::Stranger)),
    }
}

/// Returns the access of a customer whom the head names as owner or editor.
fn by_role(document: &Document, customer: &CustomerId) -> Option<Access> {
    if document.is_owner(customer) {
        Some(Access::Manager)
    } else {
        document.is_editor(customer).then_some(Access::Writer)
    }
}

/// Returns a customer's access to an organization's document. Without a membership, even the owner
/// and the editors have no access.
pub fn by_membership(document: &Document, customer: &CustomerId, member: Option<&Stored<Member>>) -> Access {
    match member.map(|member| member.role) {
        Some(Role::Admin) => Access::Manager,
        Some(Role::Member) => by_role(document, customer).unwrap_or(Access::Reader),
        None => Access::Stranger,
    }
}

/// Returns a caller's access to a document. Reads the membership, if the membership decides.
pub async fn standing(services: &Services, caller: &SignedIn, document: &Document) -> Result<Access, Problem> {
    match access_by_head(caller, document) {
        Ok(standing) => Ok(standing),
        Err((organization, customer)) => {
            let member = services.table.get(&document::standing(organization, customer)?).await?;
            Ok(by_membership(document, customer, member.as_ref()))
        }
    }
}

/// Returns the right that the condition of a write checks. In an organization's document a caller
/// who is neither owner nor editor must be an admin.
pub fn right<'a>(caller: &'a SignedIn, document: &'a Document) -> Right<'a> {
    right_by(caller, document, document.is_editor(caller.id()))
}

/// Returns the right that the condition checks when a caller chooses the editors of a document or
/// deletes it. In an organization's document a caller who is not the owner must be an admin.
pub fn right_to_manage<'a>(caller: &'a SignedIn, document: &'a Document) -> Right<'a> {
    right_by(caller, document, document.is_owner(caller.id()))
}

/// Returns the right that the condition checks. Without an organization, the condition on the head
/// checks the caller's role.
fn right_by<'a>(caller: &'a SignedIn, document: &'a Document, has_role: bool) -> Right<'a> {
    match &document.organization_id {
        _ if caller.is_staff() => Right::Staff,
        Some(organization) if has_role => Right::Member(organization, caller.id()),
        Some(organization) => Right::Admin(organization, caller.id()),
        None => Right::Own(caller.id()),
    }
}

/// Returns the problem of a refused change: `problem` for callers with the `needed` access, 403 for
/// other readers, 404 for strangers. Missing access takes precedence over every other reason.
pub async fn refused(
    services: &Services,
    caller: &SignedIn,
    document: &Document,
    needed: Access,
    problem: Problem,
) -> Problem {
    match standing(services, caller, document).await {
        Ok(Access::Stranger) => no_such_document(),
        Ok(standing) if standing >= needed => problem,
        Ok(_) => Problem::new(Code::Forbidden, "You can read this document, but you cannot change it in this way."),
        Err(failure) => failure,
    }
}

pub fn no_such_document() -> Problem {
    Problem::not_found("document")
}
