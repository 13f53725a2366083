//! Permissions: only members and staff see an organization. Other callers get 404.

use http_api::identity::SignedIn;
use http_api::{Code, Problem, Services};
use key_schema::id::OrganizationId;
use key_schema::item::Stored;
use key_schema::organization::{self, Authority, Member, OrganizationAction, Role};
use table::{Refusal, Refusals};

/// Returns the authority that the caller claims for a change of an organization. The write's
/// condition decides whether the caller has it.
pub const fn authority(caller: &SignedIn) -> Authority<'_> {
    if caller.is_staff() { Authority::Staff } else { Authority::Customer(caller.id()) }
}

/// Checks that the caller may see an organization, as a member or as staff.
///
/// # Errors
/// 404 `not_found` for any other caller.
pub async fn may_see(services: &Services, caller: &SignedIn, id: &OrganizationId) -> Result<(), Problem> {
    if caller.is_staff() || services.table.get(&organization::member(id, caller.id())?).await?.is_some() {
        Ok(())
    } else {
        Err(no_such_organization())
    }
}

/// Explains a refusal that the caller's profile or membership caused. Returns `None` for a refusal
/// with another cause. A member who is not an admin gets 403. A caller who is not a member gets
/// 404. An erased caller gets 404 even if a membership still exists.
pub fn denied(refusals: &Refusals<OrganizationAction>) -> Option<Problem> {
    if refusals.names(OrganizationAction::Profile) {
        return Some(no_such_organization());
    }
    refusals.of(OrganizationAction::Caller).map(|refusal| match &refusal.item {
        Some(_) => not_an_admin(),
        None => no_such_organization(),
    })
}

/// Returns the problem of a caller with this membership, or `None` for an admin.
pub fn denied_by(member: Option<&Stored<Member>>) -> Option<Problem> {
    match member.map(|member| member.role) {
        Some(Role::Admin) => None,
        Some(Role::Member) => Some(not_an_admin()),
        None => Some(no_such_organization()),
    }
}

pub fn member_in(refusal: &Refusal<OrganizationAction>) -> Option<Stored<Member>> {
    refusal.stored().ok().flatten()
}

pub fn no_such_organization() -> Problem {
    Problem::not_found("organization")
}

pub fn no_customer() -> Problem {
    Problem::not_found("customer")
}

fn not_an_admin() -> Problem {
    Problem::new(Code::Forbidden, "Only admins of the organization can do this.")
}
