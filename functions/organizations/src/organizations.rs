use http_api::fields::{parsed, visible_text};
use http_api::url::location;
use http_api::{Code, Problem, Request, Response, Services, read_fields};
use key_schema::id::OrganizationId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::HeadItem;
use key_schema::organization::{self, Member, Organization, OrganizationAction, Role};
use key_schema::quota::Quota;
use key_schema::request::Query;

use crate::access::{authority, denied, may_see, no_customer, no_such_organization};
use crate::view::{MAX_NAME, OrganizationView};

/// POST organizations: creates an organization. The caller becomes its first admin. A caller
/// who is not staff must have a profile. Staff may choose the id, so that they can repeat the
/// request.
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    read_fields!(request.object()? => {
        id: optional(parsed::<OrganizationId>),
        name: required(visible_text(1..=MAX_NAME)),
    });
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

/// GET organizations/{id}: returns an organization with its teams.
///
/// One Query reads organization and teams. The caller's membership cannot be in the Query's range,
/// because the range would then contain all other members. So a second, concurrent request reads
/// the membership.
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrganizationId = request.path("id")?;
    let ((), answer) =
        tokio::try_join!(may_see(services, &caller, &id), with_teams(services, organization::get(&id)?))?;
    Ok(answer)
}

pub async fn rename(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let id: OrganizationId = request.path("id")?;
    let version = request.if_match()?;
    read_fields!(request.object()? => {
        name: required(visible_text(1..=MAX_NAME)),
    });
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
