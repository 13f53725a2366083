//! Invitations. Only staff add members directly. An admin invites a customer, who must accept.
//!
//! Each change has the condition that the items it is based on are unchanged since they were read.
//! After a refusal the function reads the items again.

use http_api::contract::{Page, route};
use http_api::identity::SignedIn;
use http_api::url::location;
use http_api::{Code, List, Problem, Request, Response, Services};
use key_schema::id::{CustomerId, OrganizationId, TeamId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Meta, Stored};
use key_schema::organization::invitation::PreparedItem;
use key_schema::organization::invitation::{
    self, Invitation, LIFETIME_SECONDS, MAX_OF_CUSTOMER, MAX_OF_INVITER, MAX_OF_ORGANIZATION, State,
};
use key_schema::organization::{self, Member, Organization, OrganizationAction, Role};
use table::retry_on_conflict;

use crate::access::{denied, denied_by, no_customer, no_such_organization};
use crate::room::has_room;
use crate::view::{InvitationView, MemberView};

/// List the open invitations of an organization
///
/// Returns the open invitations by customer id. Admins and staff may call this. An invitation is
/// open for 14 days. An organization has at most 100 open invitations. Invitations by former admins
/// do not count. They stay in the list, but the invited customers cannot accept them.
#[route(GET "/v1/organizations/{id}/invitations", id = "listInvitations", who = editor, task = "organizations",
    path(id: OrganizationId), parameters(Limit, Cursor),
    answers(200 = Page<InvitationView<'_>> "A page of invitations" [Link, LeftOut]),
    refuses(forbidden = "the caller is a member but no admin"))]
pub async fn of_organization(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrganizationId = request.path("id")?;
    let parameters = [("organization", id.as_str())];
    let page = request.page(&services.cursors, invitation::OF_ORGANIZATION.id, &parameters).await?;
    if !caller.is_staff() {
        let member = services.table.get(&organization::member(&id, caller.id())?).await?;
        denied_by(member.as_ref()).map_or(Ok(()), Err)?;
    }
    let now = Instant::now();
    let List { page, found } = page.read(services, invitation::of_organization(&id)?).await?;
    let found = found.filter_map(|item| (!item.is_expired(now)).then_some(item));
    // A customer who reaches this line is an admin. So the id of a missing organization can come
    // only from staff.
    if found.items.is_empty() && caller.is_staff() && services.table.get(&organization::head(&id)?).await?.is_none() {
        return Err(no_such_organization());
    }
    List { page, found }.answer(InvitationView::from).await
}

/// List a customer's open invitations
///
/// Returns the invitations that the customer can accept or decline, sorted by their expiry. The
/// invitation that expires next comes first. A customer has at most 100 of them.
#[route(GET "/v1/customers/{id}/invitations", id = "listCustomerInvitations", who = owner,
    task = "organizations", path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<InvitationView<'_>> "A page of invitations" [Link, LeftOut]))]
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    let query = invitation::of_customer(&customer, Instant::now())?;
    request.list(services, query, &parameters).await?.answer(InvitationView::from).await
}

/// Decline or withdraw an invitation
///
/// Removes the invitation. The invited customer may decline it. Admins and staff may withdraw it. If
/// the invitation is missing, a request of an admin or of staff also succeeds.
#[route(DELETE "/v1/organizations/{id}/invitations/{customer}", id = "deleteInvitation", who = editor,
    task = "organizations", path(id: OrganizationId, customer: CustomerId), answers(204 = () "Done"),
    refuses(
        forbidden = "the caller is a member but no admin",
        not_found = "there is no such organization, or the caller is no member and has no invitation",
    ))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (id, customer): (OrganizationId, CustomerId) = (request.path("id")?, request.path("customer")?);
    let is_own = !caller.is_staff() && *caller.id() == customer;
    retry_on_conflict(async || {
        let Read { head, state, caller: asking } = read(services, &id, &customer, &caller).await?;
        let at = Instant::now();
        let open = state.open(at);
        if caller.is_staff() {
            head.ok_or_else(no_such_organization)?;
        } else if !(is_own && (open.is_some() || asking.is_some())) {
            denied_by(asking.as_ref()).map_or(Ok(()), Err)?;
        }
        let Some(open) = open else { return Ok(Some(Response::no_content())) };
        let admin = (!caller.is_staff() && !is_own).then(|| caller.id());
        match services.table.transact(&invitation::withdraw(open, &state, admin, at)?).await? {
            Ok(()) => Ok(Some(Response::no_content())),
            Err(refusals) => denied(&refusals).map_or(Ok(None), Err),
        }
    })
    .await
}

pub struct Read {
    pub head: Option<Stored<Organization>>,
    pub state: State,
    pub caller: Option<Stored<Member>>,
}

pub async fn read(
    services: &Services,
    id: &OrganizationId,
    customer: &CustomerId,
    caller: &SignedIn,
) -> Result<Read, Problem> {
    let mut read = Read { head: None, state: State::default(), caller: None };
    for item in services.table.batch_get(&invitation::prepare(id, customer, caller.id())?).await?.into_iter().flatten()
    {
        match item {
            PreparedItem::Organization(head) => read.head = Some(head),
            PreparedItem::Invitation(invitation) => read.state.invitation = Some(invitation),
            PreparedItem::Invitations(roster) => read.state.roster = Some(roster),
            PreparedItem::Member(member) => read.caller = Some(member),
        }
    }
    Ok(read)
}

/// Invites a customer who is not a member, or renews the invitation, at the request of an admin.
/// Returns [`None`] when another request has changed the items.
pub async fn invite(
    services: &Services,
    caller: &SignedIn,
    read: &Read,
    wanted: &Member,
) -> Result<Option<Response>, Problem> {
    denied_by(read.caller.as_ref()).map_or(Ok(()), Err)?;
    let (Some(inviter), Some(head)) = (&read.caller, &read.head) else { return Err(no_such_organization()) };
    let Member { id, customer_id, role, team } = wanted;
    let (admin, state, at) = (caller.id(), &read.state, Instant::now());
    if state.roster.as_ref().is_some_and(|roster| !roster.has_room(id, at)) {
        return Err(too_many(format!("The customer has {MAX_OF_CUSTOMER} open invitations and must decline some.")));
    }
    if state.roster.as_ref().is_some_and(|roster| !roster.has_room_for(admin, id, at)) {
        return Err(too_many(format!(
            "The customer has {MAX_OF_INVITER} open invitations by you and must answer some."
        )));
    }
    // The number of open invitations already includes a valid invitation that its inviter renews.
    let is_renewed = |open: &Stored<Invitation>| open.inviter == *admin && open.inviter_born == inviter.meta.born;
    if !state.open(at).is_some_and(is_renewed) && !has_room(services, caller, wanted, at).await? {
        return Err(too_many(format!("An organization can have at most {MAX_OF_ORGANIZATION} open invitations.")));
    }
    let data = Invitation {
        id: id.clone(),
        customer_id: customer_id.clone(),
        title: head.name.clone(),
        role: *role,
        team: team.clone(),
        inviter: admin.clone(),
        inviter_born: inviter.meta.born.clone(),
        expires_at: at.plus_seconds(LIFETIME_SECONDS),
    };
    let new = match state.open(at) {
        Some(Stored { meta, .. }) => {
            let (version, rev) = (meta.version + 1, meta.rev + 1);
            Stored { meta: Meta { version, rev, updated_at: at, ..meta.clone() }, data }
        }
        None => Stored::new(data, services.born(at)?, at),
    };
    let invite = invitation::invite(head, state, &new, admin)?;
    let Err(refusals) = services.table.transact(&invite).await? else {
        return Ok(Some(Response::accepted(&InvitationView::from(&new))));
    };
    if let Some(problem) = denied(&refusals) {
        return Err(problem);
    }
    if refusals.names(OrganizationAction::Customer) {
        return Err(no_customer());
    }
    if refusals.names(OrganizationAction::Team) && !refusals.names(OrganizationAction::Member) {
        return Err(no_such_team());
    }
    Ok(None)
}

/// Makes the calling customer a member with the role and team of an invitation. A role or team in
/// the request must equal the invitation's, because the customer may have read an older invitation.
/// If the team no longer exists, the member gets no team. An invitation by a former admin is void.
/// Returns [`None`] when another request has changed the items.
pub async fn accept(
    services: &Services,
    state: &State,
    role: Option<Role>,
    team: Option<&TeamId>,
) -> Result<Option<Response>, Problem> {
    let at = Instant::now();
    let open = state.open(at).ok_or_else(no_such_organization)?;
    for (differs, pointer) in
        [(role.is_some_and(|role| role != open.role), "/role"), (team.is_some() && team != open.team.as_ref(), "/team")]
    {
        if differs {
            let problem = Problem::new(Code::InvalidBody, "The request does not match the invitation. Read it again.");
            return Err(problem.error(pointer, "differs from the invitation"));
        }
    }
    let mut new = Member { id: open.id.clone(), customer_id: open.customer_id.clone(), role: open.role, team: None };
    for team in [open.team.clone(), None] {
        new.team = team;
        let member = Stored::new(new.clone(), services.born(at)?, at);
        let Err(refusals) = services.table.transact(&invitation::accept(open, state, &member)?).await? else {
            let location = location(&["organizations", member.id.as_str()]);
            return Ok(Some(Response::created(location, &MemberView::from(&member))));
        };
        let is_void = refusals.names(OrganizationAction::Inviter) && !refusals.names(OrganizationAction::Invitation);
        if is_void || refusals.names(OrganizationAction::Profile) || refusals.names(OrganizationAction::Organization) {
            return Err(no_such_organization());
        }
        if !refusals.only(OrganizationAction::Team) {
            break;
        }
    }
    Ok(None)
}

pub fn no_such_team() -> Problem {
    let problem = Problem::new(Code::InvalidBody, "The organization has no such team.");
    problem.error("/team", "is not a team of this organization")
}

fn too_many(detail: String) -> Problem {
    Problem::new(Code::TooManyInvitations, detail)
}
