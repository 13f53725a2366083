//! Who may see and change an organization. To anybody but its members and staff it does not exist.

use http_api::identity::SignedIn;
use http_api::{Code, Problem, Store};
use key_schema::id::OrganizationId;
use key_schema::item::{FromItem as _, Stored};
use key_schema::organization::{self, Authority, Member, Part, Role};
use table::Refusal;

/// On whose authority the caller changes an organization: the table decides whether it is enough.
pub const fn authority(caller: &SignedIn) -> Authority<'_> {
    if caller.is_staff() { Authority::Staff } else { Authority::Customer(caller.id()) }
}

/// Lets members and staff see an organization.
///
/// # Errors
/// 404 `not_found` for others.
pub async fn may_see(store: &Store, caller: &SignedIn, id: &OrganizationId) -> Result<(), Problem> {
    if caller.is_staff() || store.table.get(&organization::member(id, caller.id())?).await?.is_some() {
        Ok(())
    } else {
        Err(no_such_organization())
    }
}

/// What it means that the caller's profile or membership stood against a change: nothing, 403 for a member who is no admin, 404 for who is no member, and for who
/// was erased, even where a membership has stayed behind.
pub fn denied(refusals: &[Refusal<Part>]) -> Option<Problem> {
    if refusals.iter().any(|refusal| refusal.label == Part::Profile) {
        return Some(no_such_organization());
    }
    refusals.iter().find(|refusal| refusal.label == Part::Caller).map(|refusal| match &refusal.item {
        Some(_) => not_an_admin(),
        None => no_such_organization(),
    })
}

/// What a caller with this membership is told who is no admin: none for one who is.
pub fn denied_by(member: Option<&Stored<Member>>) -> Option<Problem> {
    match member.map(|member| member.role) {
        Some(Role::Admin) => None,
        Some(Role::Member) => Some(not_an_admin()),
        None => Some(no_such_organization()),
    }
}

/// The membership as it was when it stood against a change.
pub fn member_in(refusal: &Refusal<Part>) -> Option<Stored<Member>> {
    Stored::from_item(refusal.item.as_deref()?.clone()).ok()
}

pub fn no_such_organization() -> Problem {
    Problem::not_found("organization")
}

pub fn no_customer() -> Problem {
    Problem::not_found("customer")
}

fn not_an_admin() -> Problem {
    Problem::new(Code::Forbidden, "This is for admins of the organization.")
}
