//! Organizations with their teams and members, and what a customer is a member of.
//!
//! The partition `ORG#<organization>` holds, in this byte order, `MEMBER#<customer>`, `ORG` and `TEAM#<team>`. The head stands before its teams,
//! of which there are at most [`MAX_TEAMS`]: so an organization with all its teams is one Query from `ORG` to `TEAM$`. Members, of whom there may be any
//! number, lie outside of that range. A member also has a place in an index by customer, which lists what a customer is a member of.
//!
//! # What the conditions hold
//!
//! - Whoever changes something is staff, or an admin at that moment: the transaction of each change checks the caller's own membership. Where the
//!   caller is who is changed, DynamoDB takes no second action on the item, and the condition is part of the change.
//! - The head counts teams and admins, in the transactions that make and end them: there are never more than [`MAX_TEAMS`] teams, and no request of a member
//!   or of staff leaves no admin, as long as the last one has a profile.
//! - A team counts its members, and can only be removed without any: nobody is ever in a team that is not there.
//! - A member has a profile when the membership is made or changed, and so has a customer who founds or changes something.
//!
//! # Erasure
//!
//! Memberships go with the customer, also that of the last admin: an organization without one waits for staff to say who is. They are found through an
//! index, which follows by a moment: one that was made in the moment of the erasure may stay. So a membership alone allows no change, but only together
//! with the profile, which each of them checks. What has stayed is an id in a list, and staff can remove it, whatever it counts for.
//!
//! A count is not what people see of an item: it moves `rev` alone, and breaks nobody's If-Match.

mod write;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::change::entity;
use crate::entity::AnyEntity;
use crate::id::{CustomerId, OrganizationId, TeamId};
use crate::instant::Instant;
use crate::item::{Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::pattern::{Consistency, patterns};
use crate::request::{BatchGet, Get, Query, Range};

pub use write::{
    Authority, change_team, create, create_team, delete_team, erase_member, put_member, remove_ghost, remove_member,
    rename,
};
pub(crate) use write::{admin_check, member_check};

/// How many teams an organization may have: with the head they are one Query of far less than 1 MB.
pub const MAX_TEAMS: usize = 100;

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Changes the organization, its teams and members.
    Admin,
    /// Sees them.
    Member,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Admin, Self::Member];

    /// The name in JSON and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

/// The text names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be admin or member")]
pub struct UnknownRole;

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

entity! {
    /// An organization's head.
    Organization = "Organization" {
        keyed {
            /// Which.
            id: OrganizationId,
            /// How many teams it has, at most [`MAX_TEAMS`].
            teams: u64,
                    /// How many of its members are admins: one at least, until the last one is erased.
            admins: u64,
        }
        free {
            /// What it is called.
            name: String,
        }
    }
}

impl Entity for Organization {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

entity! {
    /// A team of an organization.
    Team = "Team" {
        keyed {
            /// Of which organization.
            organization_id: OrganizationId,
            /// Which team of it.
            id: TeamId,
            /// How many are in it.
            members: u64,
        }
        free {
            /// What it is called.
            name: String,
        }
    }
}

impl Entity for Team {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        team_key(&self.organization_id, &self.id)
    }
}

entity! {
    /// A customer's membership of an organization.
    Member = "Member" {
        keyed {
            /// Of which organization.
            id: OrganizationId,
            /// Who.
            customer_id: CustomerId,
        }
        free {
            /// What the member may do.
            role: Role,
            /// In which of its teams, if in one.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            team: Option<TeamId>,
        }
    }
}

impl Entity for Member {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        member_key(&self.id, &self.customer_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: Index::Gsi1,
            partition: memberships_partition(&self.customer_id)?,
            sort: SortKey::new(crate::encoding::join(&meta.created_at.to_string(), &[&self.id]))?,
        }])
    }
}

/// Sort key of the head.
const HEAD: &str = "ORG";

fn partition(id: &OrganizationId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("ORG", &[id])
}

pub(crate) fn key(id: &OrganizationId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new(HEAD)? })
}

fn team_key(id: &OrganizationId, team: &TeamId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::of("TEAM", &[team])? })
}

pub(crate) fn member_key(id: &OrganizationId, customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::of("MEMBER", &[customer])? })
}

fn memberships_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("MEMBEROF", &[customer])
}

/// A membership as the list of a customer's shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listed {
    /// Of which organization.
    pub id: OrganizationId,
    /// What the member may do.
    pub role: Role,
    /// In which of its teams.
    #[serde(default)]
    pub team: Option<TeamId>,
    /// Since when.
    pub created_at: Instant,
    /// When it was last changed.
    pub updated_at: Instant,
}

crate::item::view!(Listed of Member);

/// Which part of a transaction was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who asks is no admin, or no member at all.
    Caller,
    /// Who asks has no profile any more.
    Profile,
    /// The head: not there, at another version, full of teams, or with one admin only.
    Organization,
    /// The team: there already, not there, at another version, or with members.
    Team,
    /// The membership is not what was read.
    Member,
    /// There is no such customer; or there is, of whose absence something depends.
    Customer,
}

patterns! {
    CREATE = "organizations.create": TransactWriteItems, "PK = ORG#<id>, SK = ORG and MEMBER#<customer>; PK = CUSTOMER#<customer>, SK = PROFILE (check)" => "there is no such organization; the customer is there", Consistency::Write, "owner", "Found an organization with its first admin", ["POST /v1/organizations"];
    GET = "organizations.get": Query, "PK = ORG#<id>, SK between ORG and TEAM$" => "the organization, then all its teams", Consistency::Eventual, "owner", "Read an organization with its teams", ["GET /v1/organizations/{id}"];
    RENAMED = "organizations.renamed": Query, "PK = ORG#<id>, SK between ORG and TEAM$" => "the organization, then all its teams", Consistency::Strong("the answer shows the change that was just made"), "owner", "Read an organization after its change", ["PATCH /v1/organizations/{id}"];
    RENAME = "organizations.rename": TransactWriteItems, "PK = ORG#<id>, SK = ORG; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is there and an admin", Consistency::Write, "owner", "Rename an organization", ["PATCH /v1/organizations/{id}"];
    CREATE_TEAM = "teams.create": TransactWriteItems, "PK = ORG#<id>, SK = TEAM#<team> and ORG; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "there is no such team, and room for one more; the caller is there and an admin; ADD teams", Consistency::Write, "owner", "Add a team", ["PUT /v1/organizations/{id}/teams/{team}"];
    CHANGE_TEAM = "teams.change": TransactWriteItems, "PK = ORG#<id>, SK = TEAM#<team>; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; the caller is there and an admin", Consistency::Write, "owner", "Rename a team", ["PUT /v1/organizations/{id}/teams/{team}"];
    DELETE_TEAM = "teams.delete": TransactWriteItems, "PK = ORG#<id>, SK = TEAM#<team> and ORG; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "version = the If-Match; nobody is in it; the caller is there and an admin; ADD teams", Consistency::Write, "owner", "Remove a team", ["DELETE /v1/organizations/{id}/teams/{team}"];
    MEMBER = "members.get": GetItem, "PK = ORG#<id>, SK = MEMBER#<caller>" => "the caller's own membership", Consistency::Eventual, "owner", "Find out who asks", ["GET /v1/organizations/{id}", "GET /v1/organizations/{id}/members", "GET /v1/documents/{id}/versions", "PUT /v1/documents/{id}/sections/{name}", "POST /v1/documents/{id}/drafts", "DELETE /v1/documents/{id}/drafts", "POST /v1/documents/{id}/publish", "POST /v1/documents/{id}/restore", "PUT /v1/documents/{id}/editors/{customer}", "DELETE /v1/documents/{id}/editors/{customer}", "DELETE /v1/documents/{id}"];
    PREPARE = "members.prepare": BatchGetItem, "PK = ORG#<id>, SK = ORG, MEMBER#<customer> and MEMBER#<caller>" => "the organization, both memberships", Consistency::Strong("the counts move by the difference to the stored membership"), "owner", "Read a membership before its change", ["PUT /v1/organizations/{id}/members/{customer}", "DELETE /v1/organizations/{id}/members/{customer}"];
    PUT_MEMBER = "members.put": TransactWriteItems, "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>; SK = MEMBER#<caller>, PK = CUSTOMER#<caller> and CUSTOMER#<customer>, SK = PROFILE (checks)" => "the membership is what was read; the caller is there and an admin, the customer and the team are there; an admin is left; ADD to the counts", Consistency::Write, "owner", "Make somebody a member, or another kind of member", ["PUT /v1/organizations/{id}/members/{customer}"];
    REMOVE_MEMBER = "members.remove": TransactWriteItems, "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>; SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK = PROFILE (checks)" => "the membership is what was read; the caller is there and an admin, or who leaves; an admin is left; ADD to the counts", Consistency::Write, "owner", "End a membership", ["DELETE /v1/organizations/{id}/members/{customer}"];
    REMOVE_GHOST = "members.remove-ghost": TransactWriteItems, "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>; PK = CUSTOMER#<customer>, SK = PROFILE (check)" => "the membership is what was read; the customer is not there; ADD to the counts", Consistency::Write, "staff", "End the membership of the last admin, who was erased", ["DELETE /v1/organizations/{id}/members/{customer}"];
    ERASABLE = "members.erasable": GetItem, "PK = ORG#<id>, SK = MEMBER#<customer>" => "the membership", Consistency::Strong("the counts move by the stored membership"), "owner", "Read a membership that goes with its customer", ["DELETE /v1/customers/{id}"];
    ERASE_MEMBER = "members.erase": TransactWriteItems, "PK = ORG#<id>, SK = MEMBER#<customer>, ORG and TEAM#<team>" => "the membership is what was read; ADD to the counts, whether or not an admin is left", Consistency::Write, "owner", "End a membership of an erased customer", ["DELETE /v1/customers/{id}"];
    HEAD_ONLY = "organizations.head": GetItem, "PK = ORG#<id>, SK = ORG" => "the organization", Consistency::Eventual, "owner", "See that there is an organization that has no members", ["GET /v1/organizations/{id}/members"];
    MEMBERS = "members.list": Query, "PK = ORG#<id>, SK under MEMBER#" => "members by customer id", Consistency::Eventual, "owner", "List the members of an organization", ["GET /v1/organizations/{id}/members"];
    OF_CUSTOMER = "members.of-customer": Query on Gsi1, "GSI1PK = MEMBEROF#<customer>, GSI1SK = <created_at>#<id>" => "memberships, the oldest first", Consistency::Eventual, "owner", "List what a customer is a member of", ["GET /v1/customers/{id}/organizations", "DELETE /v1/customers/{id}"];
}

fn with_teams() -> Range {
    Range::Between(HEAD.into(), "TEAM$".into())
}

/// An organization, then all its teams.
///
/// # Errors
/// [`KeyError`].
pub fn get(id: &OrganizationId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&GET, partition(id)?, with_teams()).limit(MAX_TEAMS + 1))
}

/// The same, strongly.
///
/// # Errors
/// [`KeyError`].
pub fn renamed(id: &OrganizationId) -> Result<Query<AnyEntity>, KeyError> {
    Ok(Query::new(&RENAMED, partition(id)?, with_teams()).limit(MAX_TEAMS + 1))
}

/// One customer's membership, to find out who asks.
///
/// # Errors
/// [`KeyError`].
pub fn member(id: &OrganizationId, customer: &CustomerId) -> Result<Get<Stored<Member>>, KeyError> {
    Ok(Get::new(&MEMBER, member_key(id, customer)?))
}

/// The organization, the membership that is about to be changed, and that of who asks.
///
/// # Errors
/// [`KeyError`].
pub fn prepare(
    id: &OrganizationId,
    customer: &CustomerId,
    caller: &CustomerId,
) -> Result<BatchGet<AnyEntity>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![key(id)?, member_key(id, customer)?, member_key(id, caller)?]))
}

/// A membership that goes with its customer, strongly.
///
/// # Errors
/// [`KeyError`].
pub fn erasable(id: &OrganizationId, customer: &CustomerId) -> Result<Get<Stored<Member>>, KeyError> {
    Ok(Get::new(&ERASABLE, member_key(id, customer)?))
}

/// The organization alone.
///
/// # Errors
/// [`KeyError`].
pub fn head(id: &OrganizationId) -> Result<Get<Stored<Organization>>, KeyError> {
    Ok(Get::new(&HEAD_ONLY, key(id)?))
}

/// The members of an organization, by customer id.
///
/// # Errors
/// [`KeyError`].
pub fn members(id: &OrganizationId) -> Result<Query<Stored<Member>>, KeyError> {
    Ok(Query::new(&MEMBERS, partition(id)?, Range::under("MEMBER")))
}

/// What a customer is a member of, the oldest membership first.
///
/// # Errors
/// [`KeyError`].
pub fn of_customer(customer: &CustomerId) -> Result<Query<Listed>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, memberships_partition(customer)?, Range::All))
}
