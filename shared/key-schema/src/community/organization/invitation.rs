//! Invitations to organizations. An organization's admin invites a customer, and the customer
//! becomes a member by accepting.
//!
//! An invitation is the item `INVITATION#<customer>` in the organization's partition, and not a
//! state of a membership. So an invitation gives no rights. An index by customer, ordered by
//! expiry, lists the open invitations of a customer.
//!
//! # Guarantees of the conditions
//!
//! - A customer never has both a membership and an invitation of one organization. The transaction
//!   that writes one of them removes the other, or checks that it does not exist. So a removed
//!   member cannot return by an old invitation.
//! - A customer can accept an invitation only once, unchanged and before it expires, and only while
//!   its inviter is an admin. If the inviter stops being an admin, the invitation is void for ever,
//!   because the inviter's membership then gets another `born`.
//! - An organization has at most [`MAX_OF_ORGANIZATION`] open invitations. The Lambda function
//!   counts them with a strong read. Before that read, it reads the head's `invited`, the number of
//!   invitations ever made. DynamoDB refuses a new invitation if `invited` has changed since. So
//!   the count is not too low when the new invitation is written. An invitation that ends or
//!   becomes void only makes room, so it does not change `invited`.
//! - A customer has at most [`MAX_OF_CUSTOMER`] open invitations, even if an attacker creates many
//!   organizations. The item [`Invitations`] in the customer's partition lists these invitations.
//!   Each transaction that makes or ends an invitation also writes this item, on the condition that
//!   the item is unchanged.
//! - An inviter has at most [`MAX_OF_INVITER`] open invitations to the same customer. So one
//!   inviter alone cannot fill a customer's list.
//!
//! A customer whose list is full can decline invitations. Staff can add the customer without an
//! invitation.
//!
//! # Erasure
//!
//! [`Invitations`] lists every open invitation of a customer, so an erasure finds them with a
//! strong read. The condition of a new invitation is that the customer has a profile, so the
//! customer gets no invitation after the erasure.
//!
//! An invitation keeps its inviter's id until it ends, even after the inviter's erasure. After that
//! erasure, the invitation cannot be accepted, because the inviter's membership no longer exists.

mod patterns;
mod requests;

use std::collections::BTreeMap;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Member, Role, partition};
use crate::customer;
use crate::encoding::join;
use crate::id::{Born, CustomerId, OrganizationId, TeamId};
use crate::index::GSI1;
use crate::instant::Instant;
use crate::item::{Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey, hash};

pub use patterns::*;
pub use requests::*;

pub const MAX_OF_ORGANIZATION: usize = 100;
pub const MAX_OF_CUSTOMER: usize = 100;
/// The maximum number of open invitations from one inviter to one customer.
pub const MAX_OF_INVITER: usize = 10;
/// The time for which an invitation can be accepted: 14 days.
pub const LIFETIME_SECONDS: i64 = 14 * 24 * 60 * 60;
/// How long [`Invitations`] still lists an expired invitation: 7 days. DynamoDB removes the expired
/// invitation within days. Until then, an erasure must find it.
const NAMED_SECONDS: i64 = 7 * 24 * 60 * 60;

entity! {
    /// An invitation of a customer to an organization.
    Invitation = "Invitation" {
        fixed {
            id: OrganizationId,
            customer_id: CustomerId,
            /// The name of the organization when the invitation was made. The invitation has the
            /// name, because the customer cannot read the organization.
            title: String,
            role: Role,
            #[serde(skip_serializing_if = "Option::is_none", default)]
            team: Option<TeamId>,
            /// The admin who made or renewed the invitation.
            inviter: CustomerId,
            /// The `born` of the inviter's membership.
            inviter_born: Born,
            /// When the invitation expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable {}
    }
}

impl Invitation {
    /// Returns whether the inviter may no longer invite, so that nobody can accept the invitation.
    /// `inviter` is the inviter's current membership.
    #[must_use]
    pub fn is_void(&self, inviter: Option<&Stored<Member>>) -> bool {
        !inviter.is_some_and(|member| member.role == Role::Admin && member.meta.born == self.inviter_born)
    }
}

impl Entity for Invitation {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        invitation_key(&self.id, &self.customer_id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        Ok(vec![IndexKey {
            index: GSI1,
            partition: invited_partition(&self.customer_id)?,
            sort: SortKey::new(join(&self.expires_at.to_string(), &[&self.id]))?,
        }])
    }

    fn expires(&self) -> Option<Instant> {
        Some(self.expires_at)
    }
}

entity! {
    /// The open invitations of a customer, and those that expired recently: the organizations, and
    /// when each invitation expires. An item without invitations does not exist.
    Invitations = "Invitations" {
        fixed {
            customer_id: CustomerId,
            open: BTreeMap<OrganizationId, OpenInvitation>,
        }
        mutable {}
    }
}

/// An entry of [`Invitations`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenInvitation {
    pub expires_at: Instant,
    /// The hash of the inviter's id. The id itself would outlive the inviter's erasure.
    pub inviter: String,
}

impl OpenInvitation {
    #[must_use]
    pub fn new(expires_at: Instant, inviter: &CustomerId) -> Self {
        Self { expires_at, inviter: hash("inviter", inviter.as_str()) }
    }

    fn named_until(&self) -> Instant {
        self.expires_at.plus_seconds(NAMED_SECONDS)
    }
}

impl Invitations {
    /// Returns whether the list has room for an invitation by this organization. An earlier
    /// invitation by the same organization does not count, because the new one replaces it.
    #[must_use]
    pub fn has_room(&self, organization: &OrganizationId, now: Instant) -> bool {
        self.others(organization, now).count() < MAX_OF_CUSTOMER
    }

    #[must_use]
    pub fn has_room_for(&self, inviter: &CustomerId, organization: &OrganizationId, now: Instant) -> bool {
        let inviter = hash("inviter", inviter.as_str());
        self.others(organization, now).filter(|open| open.inviter == inviter).count() < MAX_OF_INVITER
    }

    fn others(&self, organization: &OrganizationId, now: Instant) -> impl Iterator<Item = &OpenInvitation> {
        let others = self.open.iter().filter(move |(id, open)| *id != organization && open.expires_at > now);
        others.map(|(_, open)| open)
    }
}

impl Entity for Invitations {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        roster_key(&self.customer_id)
    }

    fn expires(&self) -> Option<Instant> {
        self.open.values().map(OpenInvitation::named_until).max()
    }
}

pub(super) fn invitation_key(id: &OrganizationId, customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::of("INVITATION", &[customer])? })
}

/// Returns the key of [`Invitations`]. It is outside the ranges of follows, likes, orders and
/// documents in the customer's partition.
pub(super) fn roster_key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::new("CUSTOMER#INVITATIONS")? })
}

fn invited_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("INVITED", &[customer])
}

/// An invitation as a customer's list returns it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InvitationSummary {
    pub id: OrganizationId,
    pub customer_id: CustomerId,
    pub title: String,
    pub role: Role,
    #[serde(default)]
    pub team: Option<TeamId>,
    pub created_at: Instant,
    pub expires_at: Instant,
}

view!(InvitationSummary of Invitation);
