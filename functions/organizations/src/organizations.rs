use http_api::contract::route;
use http_api::url::location;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::OrganizationId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::HeadItem;
use key_schema::organization::{self, Member, Organization, OrganizationAction, Role};
use key_schema::quota::Quota;
use key_schema::request::Query;

use crate::access::{authority, denied, may_see, no_customer, no_such_organization};
use crate::view::{NewOrganization, OrganizationChange, OrganizationView};

/// Create an organization
///
/// Creates the organization with the caller as its first admin. The caller must have a profile or
/// be staff. Staff may choose the id. Otherwise the id is generated.
#[route(POST "/v1/organizations", id = "foundOrganization", who = customer, task = "organizations",
    body = NewOrganization, answers(201 = OrganizationView<'_> "The organization" [Location, ETag]),
    refuses(
        forbidden = "only staff may give an id",
        not_found = "the caller is not staff and has no profile, or no longer has one",
        already_exists = "with Location",
        quota_exceeded = "retry after the time in Retry-After",
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let NewOrganization { id, name } = request.body()?;
    // With an id of their own, staff can repeat the request.
    if id.is_some() && !caller.is_staff() {
        return Err(Problem::new(Code::Forbidden, "Only staff can choose the id of an organization."));
    }
    let at = Instant::now();
    let id = match id {
        Some(id) => id,
        None => OrganizationId::generate(at, services.random()?),
    };
    let born = services.born(at)?;
    let member = Member { id: id.clone(), customer_id: caller.id().clone(), role: Role::Admin, team: None };
    let head = Stored::new(Organization { id, teams: 0, admins: 1, invited: 0, name }, born.clone(), at);
    let location = location(&["organizations", head.id.as_str()]);
    let create = organization::create(&head, &Stored::new(member, born, at), authority(&caller))?;
    match services.table.transact(&create).await? {
        Ok(()) => Ok(Response::created(location, &OrganizationView::new(&head, &[])).etag(head.meta.version)),
        Err(refusals) if refusals.names(OrganizationAction::Profile) => Err(no_customer()),
        Err(refusals) if refusals.names(OrganizationAction::Quota) => {
            Err(Problem::quota_exceeded(Quota::Organizations, at))
        }
        Err(_) => {
            Err(Problem::new(Code::AlreadyExists, "An organization with this id already exists.").location(location))
        }
    }
}

/// Read an organization with all its teams
///
/// Returns the organization to members and staff. Other callers get 404.
#[route(GET "/v1/organizations/{id}", id = "readOrganization", who = reader, task = "organizations",
    path(id: OrganizationId), answers(200 = OrganizationView<'_> "The organization" [ETag, LeftOut]))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    // One Query reads organization and teams. The caller's membership cannot be in the Query's
    // range, because the range would then contain all other members. So a second, concurrent
    // request reads the membership.
    let caller = request.signed_in()?;
    let id: OrganizationId = request.path("id")?;
    let ((), answer) =
        tokio::try_join!(may_see(services, &caller, &id), with_teams(services, organization::get(&id)?))?;
    Ok(answer)
}

/// Rename an organization
///
/// Changes the name. Admins and staff may call this. Changes of a team do not change the
/// organization's version, because a team has a separate version.
#[route(PATCH "/v1/organizations/{id}", id = "renameOrganization", who = editor, task = "organizations",
    path(id: OrganizationId), parameters(IfMatch), body = OrganizationChange,
    answers(200 = OrganizationView<'_> "The organization" [ETag, LeftOut]),
    refuses(forbidden = "the caller is a member but no admin"))]
pub async fn rename(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrganizationId = request.path("id")?;
    let version = request.if_match()?;
    let OrganizationChange { name } = request.body()?;
    let rename = organization::rename(&id, &name, version, authority(&caller), Instant::now())?;
    match services.table.transact(&rename).await? {
        Ok(()) => with_teams(services, organization::renamed(&id)?).await,
        Err(refusals) => Err(denied(&refusals).unwrap_or_else(|| {
            let exists = refusals.iter().any(|refusal| refusal.item.is_some());
            if exists { Problem::version_mismatch() } else { no_such_organization() }
        })),
    }
}

async fn with_teams(services: &Services, query: Query<HeadItem>) -> Result<Response, Problem> {
    let (mut head, mut teams) = (None, Vec::new());
    let found = services.table.query_readable(&query).await?;
    let left_out = found.left_out();
    for item in found.items {
        match item {
            HeadItem::Organization(organization) => head = Some(organization),
            HeadItem::Team(team) => teams.push(team),
            // This route ignores entities that a later release adds to the range.
        }
    }
    let head = head.ok_or_else(|| no_such_organization().unless_left_out(left_out))?;
    Ok(Response::ok(&OrganizationView::new(&head, &teams)).etag_of_parts(head.meta.version).leaving_out(left_out))
}
