//! Organizations with their teams and members, and the list of a customer's memberships.
//!
//! The partition `ORG#<organization>` holds, in this byte order, `INVITATION#<customer>`
//! ([`invitation`]), `MEMBER#<customer>`, `ORG` and `TEAM#<team>`. `ORG` is the head, the main item
//! of the organization. It sorts directly before its teams, and there are at most [`MAX_TEAMS`] of
//! them. So one Query from `ORG` to `TEAM$` reads an organization with all its teams. An
//! organization may have any number of members, and their items sort outside that range. Each
//! membership also has a key in an index by customer, which lists a customer's memberships.
//!
//! # Guarantees of the conditions
//!
//! - The caller of a change is staff, or is an admin at the moment of the change. Members in any
//!   role may end their own membership. Each change's transaction checks the caller's own
//!   membership. DynamoDB accepts only one action per item in a transaction. So if the caller's own
//!   membership changes, the check is part of that change's condition.
//! - The head has the numbers of teams and admins. A transaction that adds or removes a team or an
//!   admin also changes the number. There are never more than [`MAX_TEAMS`] teams. No request by a
//!   member or by staff removes the last admin, as long as that admin has a profile.
//! - The item of a team has the number of its members, and only an empty team can be deleted. So no
//!   member is in a team that does not exist.
//! - A customer who becomes a member, or whose membership changes, has a profile at that moment.
//!   The same holds for a customer who creates or changes an organization. Staff who create an
//!   organization become its first admin and need no profile.
//!
//! # Erasure
//!
//! Erasing a customer also deletes the customer's memberships, including the membership of a last
//! admin. An organization without an admin needs staff to appoint one. The erasure finds
//! memberships through an index, which is eventually consistent. So a membership that is created
//! during the erasure may remain. Therefore a membership alone permits no change: every change
//! checks the caller's profile too. A remaining membership only shows an id in the list of members.
//! Staff can remove it, even if it is the membership of the last admin.
//!
//! Clients cannot see the counts of teams, admins and members. So a change of a count increases
//! `rev`, but not `version`, which If-Match compares. It does not make a request with If-Match
//! fail.

pub mod invitation;
mod patterns;
mod write;

use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::id::{CustomerId, OrganizationId, TeamId};
use crate::index::GSI1;
use crate::instant::Instant;
use crate::item::{Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::request::{BatchGet, Get, Query, Range};

pub use patterns::*;
pub use write::{
    Authority, change_team, changed, create, create_team, delete_team, erase_member, put_member, remove_ghost,
    remove_member, rename,
};
pub(crate) use write::{admin_check, member_check};

/// The maximum number of teams of an organization. One Query reads them with the head, and the
/// result is far below the limit of 1 MB for a Query.
pub const MAX_TEAMS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May read and change the organization, its teams and its members.
    Admin,
    /// May read the organization, its teams and its members.
    Member,
}

impl Role {
    pub const ALL: [Self; 2] = [Self::Admin, Self::Member];

    /// Returns the name in JSON and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

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
    Organization = "Organization" {
        fixed {
            id: OrganizationId,
            /// The number of teams, at most [`MAX_TEAMS`].
            teams: u64,
            /// The number of admins, at least one until the last admin is erased.
            admins: u64,
            /// The number of invitations that were ever made. It only grows.
            invited: u64,
        }
        mutable by OrganizationChanges {
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
    Team = "Team" {
        fixed {
            organization_id: OrganizationId,
            id: TeamId,
            members: u64,
        }
        mutable by TeamChanges {
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
        fixed {
            id: OrganizationId,
            customer_id: CustomerId,
            role: Role,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            team: Option<TeamId>,
        }
        mutable {}
    }
}

impl Entity for Member {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        member_key(&self.id, &self.customer_id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: GSI1,
            partition: memberships_partition(&self.customer_id)?,
            sort: SortKey::new(crate::encoding::join(&meta.created_at.to_string(), &[&self.id]))?,
        }])
    }
}

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

/// A membership as a customer's list returns it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MembershipSummary {
    pub id: OrganizationId,
    pub role: Role,
    #[serde(default)]
    pub team: Option<TeamId>,
    pub created_at: Instant,
    pub updated_at: Instant,
}

view!(MembershipSummary of Member);

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrganizationAction {
    /// The caller is not an admin, or not a member at all.
    Caller,
    /// The caller has no profile any more.
    Profile,
    /// The caller has used up the day's quota of organizations.
    Quota,
    /// The head is missing, is at another version, has no room for a team, or has only one admin.
    Organization,
    /// The team already exists, is missing, is at another version, or has members.
    Team,
    /// The membership has changed since it was read.
    Member,
    /// The invitation has changed since it was read, or has expired.
    Invitation,
    /// The list of the customer's invitations has changed since it was read.
    Invitations,
    /// The inviter is not an admin any more.
    Inviter,
    /// The customer does not exist or is being erased. For [`remove_ghost`], the customer exists
    /// and is not being erased.
    Customer,
}

fn with_teams() -> Range {
    Range::Between(HEAD.into(), "TEAM$".into())
}

one_of! {
    pub enum HeadItem { Organization Team }
}

/// Reads an organization, then all its teams.
pub fn get(id: &OrganizationId) -> Result<Query<HeadItem>, KeyError> {
    Ok(Query::new(&GET, partition(id)?, with_teams()).limit(MAX_TEAMS + 1))
}

/// Reads an organization, then all its teams, with strong consistency.
pub fn renamed(id: &OrganizationId) -> Result<Query<HeadItem>, KeyError> {
    Ok(Query::new(&RENAMED, partition(id)?, with_teams()).limit(MAX_TEAMS + 1))
}

/// Reads one customer's membership, to find the caller's role.
pub fn member(id: &OrganizationId, customer: &CustomerId) -> Result<Get<Stored<Member>>, KeyError> {
    Ok(Get::new(&MEMBER, member_key(id, customer)?))
}

one_of! {
    pub enum PreparedItem { Organization Member }
}

/// Reads the organization, the membership to change, and the caller's membership, in this order.
pub fn prepare(
    id: &OrganizationId,
    customer: &CustomerId,
    caller: &CustomerId,
) -> Result<BatchGet<PreparedItem>, KeyError> {
    Ok(BatchGet::new(&PREPARE, vec![key(id)?, member_key(id, customer)?, member_key(id, caller)?]))
}

/// Reads a membership of a customer being erased, with strong consistency.
pub fn erasable(id: &OrganizationId, customer: &CustomerId) -> Result<Get<Stored<Member>>, KeyError> {
    Ok(Get::new(&ERASABLE, member_key(id, customer)?))
}

/// Reads an organization's head without its teams.
pub fn head(id: &OrganizationId) -> Result<Get<Stored<Organization>>, KeyError> {
    Ok(Get::new(&HEAD_ONLY, key(id)?))
}

/// Lists the members of an organization, by customer id.
pub fn members(id: &OrganizationId) -> Result<Query<Stored<Member>>, KeyError> {
    Ok(Query::new(&MEMBERS, partition(id)?, Range::under("MEMBER")))
}

/// Lists a customer's memberships, oldest first.
pub fn of_customer(customer: &CustomerId) -> Result<Query<MembershipSummary>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, memberships_partition(customer)?, Range::All))
}
