//! Teams: separate resources, each with a version. An organization shows all its teams.

use http_api::contract::route;
use http_api::url::location;
use http_api::{Code, Precondition, Problem, Request, Response, Services};
use key_schema::id::{OrganizationId, TeamId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::{self, MAX_TEAMS, OrganizationAction, Team};
use table::{Refusal, Refusals};

use crate::access::{authority, denied, no_such_organization};
use crate::view::{OrganizationChange, TeamView};

/// Add or rename a team
///
/// `If-None-Match: *` adds the team. `If-Match` renames it. A read of the organization returns the
/// team's `version`. Admins and staff may call this. An organization can have at most 100 teams.
/// Location is the organization.
#[route(PUT "/v1/organizations/{id}/teams/{team}", id = "putTeam", who = editor, task = "organizations",
    path(id: OrganizationId, team: TeamId), parameters(IfMatchOrNone, IfNoneMatch), body = OrganizationChange,
    answers(200 = TeamView<'_> "The team" [ETag], 201 = TeamView<'_> "The new team" [Location, ETag]),
    refuses(
        forbidden = "the caller is a member but no admin",
        already_exists = "with Location",
        invalid_body = "also when the organization has 100 teams already",
    ))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (organization_id, id) = names(request)?;
    let precondition = request.precondition()?;
    let OrganizationChange { name } = request.body()?;
    let (authority, at) = (authority(&caller), Instant::now());
    match precondition {
        Precondition::Absent => {
            let location = location(&["organizations", organization_id.as_str()]);
            let team = Stored::new(Team { organization_id, id, members: 0, name }, services.born(at)?, at);
            match services.table.transact(&organization::create_team(&team, authority)?).await? {
                Ok(()) => Ok(Response::created(location, &TeamView::from(&team)).etag(team.meta.version)),
                Err(refusals) => Err(not_added(&refusals, location)),
            }
        }
        Precondition::Version(version) => {
            let change = organization::change_team(&organization_id, &id, &name, version, authority, at)?;
            match services.table.transact(&change).await? {
                // The response shows only known data of the team, so the team need not be read.
                Ok(()) => {
                    let team = TeamView { id: &id, name: &name, version: version + 1, updated_at: at };
                    Ok(Response::ok(&team).etag(team.version))
                }
                Err(refusals) => Err(not_changed(&refusals, version)),
            }
        }
    }
}

/// Remove a team
///
/// Removes a team that has no members. Admins and staff may call this.
#[route(DELETE "/v1/organizations/{id}/teams/{team}", id = "deleteTeam", who = editor, task = "organizations",
    path(id: OrganizationId, team: TeamId), parameters(IfMatch), answers(204 = () "Done"),
    refuses(forbidden = "the caller is a member but no admin", team_in_use = "the team has members"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let (organization, team) = names(request)?;
    let version = request.if_match()?;
    let delete = organization::delete_team(&organization, &team, version, authority(&caller))?;
    services.table.transact(&delete).await?.map_err(|refusals| not_changed(&refusals, version))?;
    Ok(Response::no_content())
}

/// Explains why a team was not added. Of several reasons it names the first in this order: the
/// caller's rights, an existing team, the limit.
fn not_added(refusals: &Refusals<OrganizationAction>, location: String) -> Problem {
    if let Some(denied) = denied(refusals) {
        return denied;
    }
    if refusals.names(OrganizationAction::Team) {
        return Problem::new(Code::AlreadyExists, "The team exists already. Rename it with If-Match.")
            .location(location);
    }
    match refusals.of(OrganizationAction::Organization) {
        Some(Refusal { item: Some(_), .. }) => {
            Problem::new(Code::InvalidBody, format!("An organization can have at most {MAX_TEAMS} teams."))
        }
        _ => no_such_organization(),
    }
}

fn not_changed(refusals: &Refusals<OrganizationAction>, version: u64) -> Problem {
    let team = || refusals.of(OrganizationAction::Team)?.item.as_ref();
    denied(refusals).unwrap_or_else(|| match team().map(|item| item.get("version")) {
        None => Problem::not_found("team"),
        Some(Some(found)) if *found == key_schema::expression::number(version) => {
            Problem::new(Code::TeamInUse, "The team has members. Remove them first.")
        }
        Some(_) => Problem::version_mismatch(),
    })
}

fn names(request: &Request<'_>) -> Result<(OrganizationId, TeamId), Problem> {
    Ok((request.path("id")?, request.path("team")?))
}
