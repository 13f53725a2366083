//! Who may read and write a document: its owner, its editors and staff both; of a document of an organization, members may read it and admins write it.
//!
//! Reads are decided here. Writes are decided by the conditions that they are made under; what is decided here is by what right somebody tries, and
//! what they are told when it was not enough.

use http_api::identity::SignedIn;
use http_api::{Code, Problem, Store};
use key_schema::document::{Document, Right};
use key_schema::id::{CustomerId, OrganizationId};
use key_schema::item::Stored;
use key_schema::organization::{self, Member, Role};

/// What somebody is to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// May read and write it.
    Writer,
    /// May read it.
    Reader,
    /// Must not know of it.
    Stranger,
}

/// What the head alone says of somebody; otherwise, whose membership of what decides.
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

/// What a membership makes of somebody.
pub fn by_membership(member: Option<&Stored<Member>>) -> Standing {
    match member.map(|member| member.role) {
        Some(Role::Admin) => Standing::Writer,
        Some(Role::Member) => Standing::Reader,
        None => Standing::Stranger,
    }
}

/// What somebody is to a document, with a request where a membership decides.
///
/// # Errors
/// When the table fails.
pub async fn standing(store: &Store, caller: &SignedIn, document: &Document) -> Result<Standing, Problem> {
    match known(caller, document) {
        Ok(standing) => Ok(standing),
        Err((organization, customer)) => {
            Ok(by_membership(store.table.get(&organization::member(organization, customer)?).await?.as_ref()))
        }
    }
}

/// By what right somebody tries to write a document that was read. Who is neither owner nor editor tries as an admin where there is an organization, and as
/// an editor where there is none: then the head's own condition refuses it.
pub fn right<'a>(caller: &'a SignedIn, document: &'a Document) -> Right<'a> {
    match &document.organization_id {
        _ if caller.is_staff() => Right::Staff,
        Some(organization) if !document.is_editor(caller.id()) => Right::Admin(organization, caller.id()),
        _ => Right::Own(caller.id()),
    }
}

/// What somebody is told whose change was not made: `problem` who may write, 403 who may read, and 404 others, whatever else stands against it.
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
    Problem::new(Code::Forbidden, "You may read this document, but not do this with it.")
}

/// 403 for who may read the document, 404 for others.
pub async fn only_its_owner(store: &Store, caller: &SignedIn, document: &Document) -> Problem {
    refused(store, caller, document, not_an_editor()).await
}
