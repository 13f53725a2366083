use key_schema::id::{CustomerId, OrganizationId, TeamId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::invitation::{self, Invitation};
use key_schema::organization::{Member, MembershipSummary, Organization, Role, Team};
use serde::Serialize;

/// The longest name of an organization or a team, in bytes of UTF-8.
pub const MAX_NAME: usize = 200;

#[derive(Serialize)]
pub struct OrganizationView<'a> {
    id: &'a OrganizationId,
    name: &'a str,
    teams: Vec<TeamView<'a>>,
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> OrganizationView<'a> {
    pub fn new(head: &'a Stored<Organization>, teams: &'a [Stored<Team>]) -> Self {
        let Organization { id, name, .. } = &head.data;
        let (version, created_at, updated_at) = (head.meta.version, head.meta.created_at, head.meta.updated_at);
        Self { id, name, teams: teams.iter().map(TeamView::from).collect(), version, created_at, updated_at }
    }
}

/// A team. The view has no number of members, because this number changes without a new version.
#[derive(Serialize)]
pub struct TeamView<'a> {
    pub id: &'a TeamId,
    pub name: &'a str,
    pub version: u64,
    pub updated_at: Instant,
}

impl<'a> From<&'a Stored<Team>> for TeamView<'a> {
    fn from(team: &'a Stored<Team>) -> Self {
        Self { id: &team.id, name: &team.name, version: team.meta.version, updated_at: team.meta.updated_at }
    }
}

#[derive(Serialize)]
pub struct MemberView<'a> {
    customer_id: &'a CustomerId,
    role: Role,
    team: Option<&'a TeamId>,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<Member>> for MemberView<'a> {
    fn from(member: &'a Stored<Member>) -> Self {
        let Member { customer_id, role, team, .. } = &member.data;
        let (created_at, updated_at) = (member.meta.created_at, member.meta.updated_at);
        Self { customer_id, role: *role, team: team.as_ref(), created_at, updated_at }
    }
}

#[derive(Serialize)]
pub struct MembershipView<'a> {
    organization_id: &'a OrganizationId,
    role: Role,
    team: Option<&'a TeamId>,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a MembershipSummary> for MembershipView<'a> {
    fn from(listed: &'a MembershipSummary) -> Self {
        let MembershipSummary { id, role, team, created_at, updated_at } = listed;
        Self { organization_id: id, role: *role, team: team.as_ref(), created_at: *created_at, updated_at: *updated_at }
    }
}

/// An invitation. It has the organization's name, because the invited customer cannot read the
/// organization.
#[derive(Serialize)]
pub struct InvitationView<'a> {
    organization_id: &'a OrganizationId,
    organization_name: &'a str,
    customer_id: &'a CustomerId,
    role: Role,
    team: Option<&'a TeamId>,
    created_at: Instant,
    expires_at: Instant,
}

impl<'a> From<&'a Stored<Invitation>> for InvitationView<'a> {
    fn from(stored: &'a Stored<Invitation>) -> Self {
        let Invitation { id, customer_id, title, role, team, inviter: _, inviter_born: _, expires_at } = &stored.data;
        Self {
            organization_id: id,
            organization_name: title,
            customer_id,
            role: *role,
            team: team.as_ref(),
            created_at: stored.meta.created_at,
            expires_at: *expires_at,
        }
    }
}

impl<'a> From<&'a invitation::InvitationSummary> for InvitationView<'a> {
    fn from(listed: &'a invitation::InvitationSummary) -> Self {
        let invitation::InvitationSummary { id, customer_id, title, role, team, created_at, expires_at } = listed;
        Self {
            organization_id: id,
            organization_name: title,
            customer_id,
            role: *role,
            team: team.as_ref(),
            created_at: *created_at,
            expires_at: *expires_at,
        }
    }
}
