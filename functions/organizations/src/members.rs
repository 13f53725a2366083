//! Members of an organization. A request sets or ends a membership without If-Match, and can be
//! repeated.
//!
//! A change adds the difference between the new and the old membership to the counters of
//! organization and teams. So its condition is that the membership is unchanged since it was read.
//! If another request has changed the membership, the function reads the membership again.

use http_api::contract::{Page, route};
use http_api::identity::SignedIn;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::{CustomerId, OrganizationId, TeamId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::PreparedItem;
use key_schema::organization::invitation::State;
use key_schema::organization::{self, Authority, Member, Organization, OrganizationAction, Role};
use table::{Refusal, Refusals, retry_on_conflict};

use crate::access::{authority, denied, denied_by, may_see, member_in, no_customer, no_such_organization};
use crate::invitations::{self, no_such_team};
use crate::view::{InvitationView, MemberChange, MemberView, MembershipView, OwnMemberChange};

/// List the members of an organization
///
/// Returns the members by customer id. Members and staff may call this.
#[route(GET "/v1/organizations/{id}/members", id = "listMembers", who = reader, task = "organizations",
    path(id: OrganizationId), parameters(Limit, Cursor),
    answers(200 = Page<MemberView<'_>> "A page of members" [Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrganizationId = request.path("id")?;
    let parameters = [("organization", id.as_str())];
    let page = request.page(&services.cursors, organization::MEMBERS.id, &parameters).await?;
    let members = page.read(services, organization::members(&id)?);
    let ((), list) = tokio::try_join!(may_see(services, &caller, &id), members)?;
    // A caller without a membership reaches this line only as staff. An empty first page means that
    // the organization is missing, or that all its members were erased. The head shows which.
    if list.found.items.is_empty()
        && list.page.after().is_none()
        && services.table.get(&organization::head(&id)?).await?.is_none()
    {
        return Err(no_such_organization());
    }
    list.answer(MemberView::from).await
}

/// List a customer's organizations
///
/// Returns the memberships, the oldest first. The list shows changes with a short delay. It has the
/// organizations' ids but not their names.
#[route(GET "/v1/customers/{id}/organizations", id = "listCustomerOrganizations", who = owner,
    task = "organizations", path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<MembershipView<'_>> "A page of memberships" [Link, LeftOut]))]
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    // With names, each membership would need a copy of the name, and a new name would rewrite all
    // copies.
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    request.list(services, organization::of_customer(&customer)?, &parameters).await?.answer(MembershipView::from).await
}

/// Make a customer a member
///
/// Replaces the role and the team of a member. Admins and staff may call this. If the customer is
/// not a member, a request of staff adds the customer. A request of an admin invites the customer,
/// or renews the invitation, and gets 202. The invited customer can accept within 14 days, with the
/// same request for their own id. Then the response is 201, and the customer gets the invitation's
/// role and team. The body of this request may be `{}`. If the body has a role or a team, it must
/// equal the role or team of the invitation. A repeated acceptance changes nothing. Without a role,
/// an admin's request for their own membership keeps the role.
#[route(PUT "/v1/organizations/{id}/members/{customer}", id = "putMember", who = editor, task = "organizations",
    path(id: OrganizationId, customer: CustomerId), body = MemberChange,
    answers(
        200 = MemberView<'_> "The member",
        201 = MemberView<'_> "The new member, who has accepted the invitation" [Location],
        202 = InvitationView<'_> "The invitation",
    ),
    refuses(
        forbidden = "the caller is a member but no admin",
        not_found = "the organization or the customer does not exist, or the caller is neither a member nor invited",
        last_admin = "no other member is an admin",
        too_many_invitations = "the organization or the customer has 100 open invitations, or the customer has 10 \
            open invitations from the caller",
        invalid_body = "also for an unknown team, and for an acceptance with another role or team than the \
            invitation's",
    ))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    let is_own = !caller.is_staff() && *caller.id() == customer;
    let (role, team) = if is_own {
        let OwnMemberChange { role, team } = request.body()?;
        (role, team)
    } else {
        let MemberChange { role, team } = request.body()?;
        (Some(role), team)
    };
    retry_on_conflict(async || {
        let Read { member: old, caller: asking, .. } = read(services, &id, &customer, &caller).await?;
        // [`None`] means that another request changed the membership or invitation after the read.
        Ok(match (&old, role) {
            (None, role) if is_own => {
                let read = invitations::read(services, &id, &customer, &caller).await?;
                if read.state.open(Instant::now()).is_some() {
                    invitations::accept(services, &read.state, role, team.as_ref()).await?
                } else {
                    // The customer may have accepted between the two reads. Then there is a
                    // membership now. Otherwise the response is 404.
                    let Read { member, .. } = self::read(services, &id, &customer, &caller).await?;
                    member.ok_or_else(no_such_organization)?;
                    None
                }
            }
            // A repeated acceptance finds the membership from the first acceptance.
            (Some(old), role) if is_own && confirms(old, role, team.as_ref()) => {
                Some(Response::ok(&MemberView::from(old)))
            }
            (Some(old), role) => {
                let role = role.unwrap_or(old.role);
                let wanted = Member { id: id.clone(), customer_id: customer.clone(), role, team: team.clone() };
                change(services, &caller, old, asking.as_ref(), wanted).await?
            }
            (None, Some(role)) => {
                let wanted = Member { id: id.clone(), customer_id: customer.clone(), role, team: team.clone() };
                let read = invitations::read(services, &id, &customer, &caller).await?;
                if caller.is_staff() {
                    add(services, &read.state, wanted).await?
                } else {
                    invitations::invite(services, &caller, &read, &wanted).await?
                }
            }
            (None, None) => return Err(Problem::internal("a request without a role was read")),
        })
    })
    .await
}

/// Returns whether a customer's request for their own membership repeats an acceptance. A request
/// that names the role admin is no repetition, so [`change`] checks the caller's right.
fn confirms(member: &Member, role: Option<Role>, team: Option<&TeamId>) -> bool {
    let same_team = team.is_none() || team == member.team.as_ref();
    match role {
        None => same_team,
        Some(role) => role == Role::Member && member.role == role && same_team,
    }
}

/// Adds a member, at the request of staff. Returns [`None`] when the items changed after the read.
async fn add(services: &Services, state: &State, wanted: Member) -> Result<Option<Response>, Problem> {
    let at = Instant::now();
    let new = Stored::new(wanted, services.born(at)?, at);
    let put = organization::put_member(None, &new, Authority::Staff)?;
    match services.table.transact(&state.end(put, &new.id, &new.customer_id, at)?).await? {
        Ok(()) => Ok(Some(Response::ok(&MemberView::from(&new)))),
        Err(refusals) => explain(&refusals).map_or(Ok(None), Err),
    }
}

/// Changes the membership that was read. Returns [`None`] when the items changed after the read.
async fn change(
    services: &Services,
    caller: &SignedIn,
    old: &Stored<Member>,
    asking: Option<&Stored<Member>>,
    wanted: Member,
) -> Result<Option<Response>, Problem> {
    // An unchanged membership is not written, so this code checks the caller's right.
    if old.data == wanted {
        let denied = if caller.is_staff() { None } else { denied_by(asking) };
        return denied.map_or_else(|| Ok(Some(Response::ok(&MemberView::from(old)))), Err);
    }
    let at = Instant::now();
    let new = organization::changed(old, wanted, services.born(at)?, at);
    let put = organization::put_member(Some(old), &new, authority(caller))?;
    let Err(refusals) = services.table.transact(&put).await? else {
        return Ok(Some(Response::ok(&MemberView::from(&new))));
    };
    // The write of the caller's own membership also checks the caller's right.
    let own = refusals.of(OrganizationAction::Member);
    let own = own.filter(|_| !caller.is_staff() && *caller.id() == old.customer_id);
    match denied(&refusals).or_else(|| denied_own(own)).or_else(|| explain(&refusals)) {
        Some(problem) => Err(problem),
        None => Ok(None),
    }
}

/// Explains why a membership was not written. Returns [`None`] when the items changed after the
/// read.
fn explain(refusals: &Refusals<OrganizationAction>) -> Option<Problem> {
    if refusals.names(OrganizationAction::Customer) {
        return Some(no_customer());
    }
    if [OrganizationAction::Member, OrganizationAction::Invitation, OrganizationAction::Invitations]
        .into_iter()
        .any(|action| refusals.names(action))
    {
        return None;
    }
    match (refusals.of(OrganizationAction::Organization), refusals.of(OrganizationAction::Team)) {
        (Some(head), _) => Some(head_refused(head)),
        (None, Some(_)) => Some(no_such_team()),
        (None, None) => None,
    }
}

/// End a membership
///
/// Removes the member. Admins and staff may call this, and a member may leave. If the membership is
/// missing, the request also succeeds. The last admin cannot be removed, unless that customer was
/// erased.
#[route(DELETE "/v1/organizations/{id}/members/{customer}", id = "deleteMember", who = editor,
    task = "organizations", path(id: OrganizationId, customer: CustomerId), answers(204 = () "Done"),
    refuses(
        forbidden = "the caller is a member but no admin",
        last_admin = "no other member is an admin",
    ))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer) = names(request)?;
    retry_on_conflict(async || {
        let Read { head, member: old, caller: asking } = read(services, &id, &customer, &caller).await?;
        let Some(old) = old else {
            head.ok_or_else(no_such_organization)?;
            let denied = if caller.is_staff() { None } else { denied_by(asking.as_ref()) };
            return denied.map_or_else(|| Ok(Some(Response::no_content())), Err);
        };
        let remove = organization::remove_member(&old, authority(&caller))?;
        let Err(refusals) = services.table.transact(&remove).await? else { return Ok(Some(Response::no_content())) };
        if let Some(problem) = denied(&refusals) {
            return Err(problem);
        }
        let head = refusals.of(OrganizationAction::Organization);
        let Some(head) = head.filter(|_| !refusals.names(OrganizationAction::Member)) else { return Ok(None) };
        let refused = head_refused(head);
        if !caller.is_staff() || refused.code() != Code::LastAdmin {
            return Err(refused);
        }
        // Staff can remove a last admin who was erased and whose membership remained.
        match services.table.transact(&organization::remove_ghost(&old)?).await? {
            Ok(()) => Ok(Some(Response::no_content())),
            // The last admin has a profile, so the membership stays.
            Err(refusals) if refusals.names(OrganizationAction::Customer) => Err(refused),
            Err(_) => Ok(None),
        }
    })
    .await
}

/// Explains a refused write of the head: the organization does not exist, or would have no admin.
fn head_refused(refusal: &Refusal<OrganizationAction>) -> Problem {
    if refusal.item.is_none() {
        return no_such_organization();
    }
    Problem::new(Code::LastAdmin, "An organization needs an admin. Make another member admin first.")
}

/// Explains a refusal when the caller changes their own membership.
fn denied_own(own: Option<&Refusal<OrganizationAction>>) -> Option<Problem> {
    own.and_then(|refusal| denied_by(member_in(refusal).as_ref()))
}

struct Read {
    head: Option<Stored<Organization>>,
    member: Option<Stored<Member>>,
    caller: Option<Stored<Member>>,
}

async fn read(
    services: &Services,
    id: &OrganizationId,
    customer: &CustomerId,
    caller: &SignedIn,
) -> Result<Read, Problem> {
    let mut found = services.table.batch_get(&organization::prepare(id, customer, caller.id())?).await?.into_iter();
    let head = match found.next().flatten() {
        Some(PreparedItem::Organization(head)) => Some(head),
        _ => None,
    };
    let mut member = || match found.next().flatten() {
        Some(PreparedItem::Member(member)) => Some(member),
        _ => None,
    };
    let (member, caller) = (member(), member());
    Ok(Read { head, member, caller })
}

fn names(request: &Request<'_>) -> Result<(OrganizationId, CustomerId), Problem> {
    Ok((request.path("id")?, request.path("customer")?))
}
