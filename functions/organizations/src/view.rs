use http_api::contract::rules::{List, Named, OneOf, Text, VERSION, list, named, one_of, visible_text};
use http_api::contract::{Body, Schema};
use key_schema::id::{CustomerId, OrganizationId, TeamId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::invitation::{self, Invitation};
use key_schema::organization::{MAX_TEAMS, Member, MembershipSummary, Organization, Role, Team};
use serde::Serialize;

const NAME: Text = visible_text(1..=200);
const ROLE: Named<OneOf> = named(
    "Role",
    "An admin may change the organization, its teams and members. A member may read them.",
    one_of(&["admin", "member"]),
);

const fn teams<'a>() -> List<TeamView<'a>> {
    list(0..=MAX_TEAMS)
}

#[derive(Body)]
pub struct NewOrganization {
    /// Chosen by staff only. The default is a generated id.
    #[field(example = null)]
    pub id: Option<OrganizationId>,
    /// 1 to 200 bytes. The function removes invisible characters.
    #[field(rule = NAME, example = "Chess club")]
    pub name: String,
}

// A team has the same change.
#[derive(Body)]
pub struct OrganizationChange {
    /// 1 to 200 bytes. The function removes invisible characters.
    #[field(rule = NAME, example = "Chess club")]
    pub name: String,
}

#[derive(Body)]
pub struct MemberChange {
    #[field(rule = ROLE, example = "member")]
    pub role: Role,
    /// A team of the organization.
    #[field(example = "bishops")]
    pub team: Option<TeamId>,
}

// The caller's own membership. An invitation names the role, so a customer who accepts it need not.
#[derive(Body)]
pub struct OwnMemberChange {
    #[field(rule = ROLE)]
    pub role: Option<Role>,
    pub team: Option<TeamId>,
}

#[derive(Serialize, Schema)]
pub struct OrganizationView<'a> {
    #[field(example = "0190163d-8694-739b-aea5-966c26f8ad91")]
    id: &'a OrganizationId,
    /// 1 to 200 bytes.
    #[field(rule = NAME, example = "Chess club")]
    name: &'a str,
    /// The teams by id.
    #[field(rule = teams())]
    teams: Vec<TeamView<'a>>,
    #[field(rule = VERSION)]
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

// The view has no number of members, because this number changes without a new version.
#[derive(Serialize, Schema)]
pub struct TeamView<'a> {
    #[field(example = "bishops")]
    pub id: &'a TeamId,
    /// 1 to 200 bytes.
    #[field(rule = NAME, example = "Bishops")]
    pub name: &'a str,
    #[field(rule = VERSION)]
    pub version: u64,
    pub updated_at: Instant,
}

impl<'a> From<&'a Stored<Team>> for TeamView<'a> {
    fn from(team: &'a Stored<Team>) -> Self {
        Self { id: &team.id, name: &team.name, version: team.meta.version, updated_at: team.meta.updated_at }
    }
}

#[derive(Serialize, Schema)]
pub struct MemberView<'a> {
    customer_id: &'a CustomerId,
    #[field(rule = ROLE, example = "member")]
    role: Role,
    #[field(example = "bishops")]
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

#[derive(Serialize, Schema)]
pub struct MembershipView<'a> {
    #[field(example = "0190163d-8694-739b-aea5-966c26f8ad91")]
    organization_id: &'a OrganizationId,
    #[field(rule = ROLE)]
    role: Role,
    #[field(example = null)]
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

// It has the organization's name, because the invited customer cannot read the organization.
#[derive(Serialize, Schema)]
pub struct InvitationView<'a> {
    #[field(example = "chess")]
    organization_id: &'a OrganizationId,
    /// The organization's name at the time of the invitation.
    #[field(rule = NAME, example = "Chess club")]
    organization_name: &'a str,
    customer_id: &'a CustomerId,
    #[field(rule = ROLE, example = "member")]
    role: Role,
    #[field(example = "bishops")]
    team: Option<&'a TeamId>,
    created_at: Instant,
    #[field(example = "2026-12-04T12:00:00.000Z")]
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
