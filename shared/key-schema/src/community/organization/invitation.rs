//! Invitations to organizations. An organization's admin invites a customer, and the customer
//! becomes a member by accepting.
//!
//! An invitation is its own item, `INVITATION#<customer>` in the organization's partition, and no
//! state of a membership. So an invited customer has no right by construction. It has a key in an
//! index by customer, ordered by expiry, which lists the open invitations of a customer.
//!
//! # Guarantees of the conditions
//!
//! - A customer has a membership or an invitation, never both. The transaction that writes one of
//!   them removes the other, or checks that it does not exist. So a removed member cannot return
//!   by an old invitation.
//! - An invitation is accepted once, unchanged, and before it expires, while its inviter is an
//!   admin.
//! - An organization has at most [`MAX_OF_ORGANIZATION`] open invitations. The inviter counts them
//!   by a strong read. The head counts all invitations that were ever made (`invited`). Inviting is
//!   conditional on the count that was read before the invitations, so no other one came between.
//!   Ends of invitations, also by their time to live, need not change that count.
//! - A customer has at most [`MAX_OF_CUSTOMER`] open invitations, however many organizations an
//!   attacker founds. The item [`Invitations`] in the customer's partition names them. Each
//!   transaction that makes or ends one writes it, on the condition that it is unchanged.
//! - An inviter has at most [`MAX_OF_INVITER`] open invitations of the same customer. So one
//!   inviter alone cannot fill a customer's list.
//!
//! A customer whose list is full declines some. Staff add members without an invitation.
//!
//! # Erasure
//!
//! [`Invitations`] names every open invitation of a customer, so an erasure finds them with a
//! strong read. An invitation requires the customer's profile, so none is made afterwards.
//!
//! An invitation keeps its inviter's id until it ends, also after the inviter's erasure. It is
//! void then, because the erasure removed the inviter's membership.

use crate::index::GSI1;
use std::collections::BTreeMap;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use super::write::{add_admins, admin_check, count_members, is};
use super::{Authority, Member, Organization, OrganizationAction, Role, key, member_key, partition};
use crate::change::Change;
use crate::customer;
use crate::encoding::join;
use crate::entity::AnyEntity;
use crate::expression::{Condition, first_alive, number};
use crate::id::{Born, CustomerId, OrganizationId, TeamId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{IndexKey, Key, KeyError, PartitionKey, SortKey, hash};
use crate::pattern::Consistency;
use crate::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Single, Transaction};

/// The maximum number of open invitations of an organization.
pub const MAX_OF_ORGANIZATION: usize = 100;
/// The maximum number of open invitations of a customer.
pub const MAX_OF_CUSTOMER: usize = 100;
/// The maximum number of open invitations of a customer by one inviter.
pub const MAX_OF_INVITER: usize = 10;
/// The time for which an invitation can be accepted: 14 days.
pub const LIFETIME_SECONDS: i64 = 14 * 24 * 60 * 60;
/// The time after its expiry for which [`Invitations`] still names an invitation: 7 days. DynamoDB
/// removes expired items within days, and an erasure finds the others by name.
const NAMED_SECONDS: i64 = 7 * 24 * 60 * 60;

entity! {
    /// An invitation of a customer to an organization.
    Invitation = "Invitation" {
        fixed {
            /// The organization.
            id: OrganizationId,
            /// The invited customer.
            customer_id: CustomerId,
            /// The name of the organization when the invitation was made. The customer cannot read
            /// the organization.
            title: String,
            /// The role of the member to be.
            role: Role,
            /// The team of the member to be, if any.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            team: Option<TeamId>,
            /// The admin who made or renewed the invitation. Invitations of earlier versions have
            /// none.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            inviter: Option<CustomerId>,
            /// When the invitation expires, which is also its time to live.
            expires_at: Instant,
        }
        mutable {}
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
    /// The open invitations of a customer: the organizations, and when each invitation expires. The
    /// item exists only with at least one.
    Invitations = "Invitations" {
        fixed {
            /// The invited customer.
            customer_id: CustomerId,
            /// The invitation of each organization.
            open: BTreeMap<OrganizationId, OpenInvitation>,
        }
        mutable {}
    }
}

/// An open invitation, as the customer's list names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenInvitation {
    /// When the invitation expires.
    pub expires_at: Instant,
    /// The hash of the inviter's id. The id itself would outlive the inviter's erasure.
    pub inviter: String,
}

impl OpenInvitation {
    /// Returns the entry of an invitation by this customer.
    #[must_use]
    pub fn new(expires_at: Instant, inviter: &CustomerId) -> Self {
        Self { expires_at, inviter: hash("inviter", inviter.as_str()) }
    }

    fn named_until(&self) -> Instant {
        self.expires_at.plus_seconds(NAMED_SECONDS)
    }
}

impl Invitations {
    /// Returns whether another organization can invite the customer. An organization that has
    /// invited the customer already can renew its invitation.
    #[must_use]
    pub fn has_room(&self, organization: &OrganizationId, now: Instant) -> bool {
        self.others(organization, now).count() < MAX_OF_CUSTOMER
    }

    /// Returns whether this inviter can invite the customer to another organization.
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

/// The key is outside the ranges of edges, orders and documents in the customer's partition.
pub(super) fn roster_key(customer: &CustomerId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::new("CUSTOMER#INVITATIONS")? })
}

fn invited_partition(customer: &CustomerId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("INVITED", &[customer])
}

/// An invitation as a customer's list returns it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InvitationSummary {
    /// The organization.
    pub id: OrganizationId,
    /// The invited customer.
    pub customer_id: CustomerId,
    /// The name of the organization when the invitation was made.
    pub title: String,
    /// The role of the member to be.
    pub role: Role,
    /// The team of the member to be, if any.
    #[serde(default)]
    pub team: Option<TeamId>,
    /// When the customer was invited.
    pub created_at: Instant,
    /// When the invitation expires.
    pub expires_at: Instant,
}

view!(InvitationSummary of Invitation);

patterns! {
    INVITE {
        id: "invitations.put",
        purpose: "Invite a customer to an organization, or renew the invitation",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = INVITATION#<customer> and ORG; SK = MEMBER#<customer>, \
            MEMBER#<caller> and TEAM#<team>, PK = CUSTOMER#<caller> and CUSTOMER#<customer>, SK = \
            PROFILE (checks); PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        requires: "the invitation and the customer's invitations are unchanged; the customer is no \
            member; nobody else was invited meanwhile; the caller is an admin with a profile; the \
            customer and the team exist; ADD invited",
        callers: "owner",
    }
    OPEN {
        id: "invitations.open",
        purpose: "Count the open invitations of an organization",
        request: Query,
        key: "PK = ORG#<id>, SK under INVITATION#",
        returns: "the organization's invitations",
        consistency: Consistency::Strong("a missed invitation would be one too many"),
        callers: "owner",
    }
    ACCEPT {
        id: "invitations.accept",
        purpose: "Accept an invitation",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = INVITATION#<customer>, MEMBER#<customer>, ORG, TEAM#<team> and \
            MEMBER#<inviter> (check); PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS and \
            PROFILE (check)",
        requires: "the invitation is unchanged and has not expired; its inviter is an admin; the \
            customer is no member and exists; the organization and the team exist; ADD to the \
            counts",
        callers: "owner",
    }
    PREPARE {
        id: "invitations.prepare",
        purpose: "Read an invitation before its change",
        request: BatchGetItem,
        key: "PK = ORG#<id>, SK = INVITATION#<customer> and MEMBER#<caller>; PK = \
            CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS; PK = ORG#<id>, SK = ORG",
        returns: "the organization, the invitation, the customer's invitations and the caller's \
            membership",
        consistency: Consistency::Strong("an invitation ends together with its entry among the \
            customer's"),
        callers: "owner",
    }
    WITHDRAW {
        id: "invitations.delete",
        purpose: "Decline or withdraw an invitation",
        request: TransactWriteItems,
        key: "PK = ORG#<id>, SK = INVITATION#<customer>; PK = CUSTOMER#<customer>, SK = \
            CUSTOMER#INVITATIONS; PK = ORG#<id>, SK = MEMBER#<caller>, PK = CUSTOMER#<caller>, SK \
            = PROFILE (checks)",
        requires: "the invitation and the customer's invitations are unchanged; the caller is this \
            customer, or an admin with a profile",
        callers: "owner",
    }
    OF_ORGANIZATION {
        id: "invitations.list",
        purpose: "List the open invitations of an organization",
        request: Query,
        key: "PK = ORG#<id>, SK under INVITATION#",
        returns: "invitations by customer id",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "invitations.of-customer",
        purpose: "List a customer's open invitations",
        request: Query on GSI1,
        key: "GSI1PK = INVITED#<customer>, GSI1SK between the millisecond after <now> and the end",
        returns: "open invitations, the first to expire first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    ROSTER {
        id: "invitations.erasable",
        purpose: "Find the invitations of an erased customer",
        request: GetItem,
        key: "PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        returns: "the customer's invitations",
        consistency: Consistency::Strong("a missed invitation would outlive its customer"),
        callers: "owner",
    }
    ERASE {
        id: "invitations.erase",
        purpose: "Remove the invitations of an erased customer",
        request: BatchWriteItem,
        key: "PK = ORG#<id>, SK = INVITATION#<customer>, for each organization",
        requires: "no condition",
        callers: "owner",
    }
    FORGET {
        id: "invitations.forget",
        purpose: "Remove the list of an erased customer's invitations",
        request: DeleteItem,
        key: "PK = CUSTOMER#<customer>, SK = CUSTOMER#INVITATIONS",
        requires: "the item is the one that was read",
        callers: "owner",
    }
}

/// The stored state from which a change of an invitation is computed.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The invitation, which may have expired.
    pub invitation: Option<Stored<Invitation>>,
    /// The open invitations of the customer.
    pub roster: Option<Stored<Invitations>>,
}

impl State {
    /// Returns the invitation if it can still be accepted.
    #[must_use]
    pub fn open(&self, now: Instant) -> Option<&Stored<Invitation>> {
        self.invitation.as_ref().filter(|invitation| !invitation.is_expired(now))
    }

    /// Writes the customer's invitations with this one of the organization, or without one. Those
    /// that expired long ago are dropped. Refused when another request has changed them since the
    /// read.
    fn list(
        &self,
        customer: &CustomerId,
        organization: &OrganizationId,
        new: Option<OpenInvitation>,
        born: &Born,
        at: Instant,
    ) -> Result<Guarded, EncodeError> {
        let old = self.roster.as_ref();
        let mut open = old.map(|roster| roster.open.clone()).unwrap_or_default();
        open.remove(organization);
        open.retain(|_, open| open.named_until() > at);
        open.extend(new.map(|new| (organization.clone(), new)));
        let Some(old) = old else {
            if open.is_empty() {
                return Ok(Guarded::check(roster_key(customer)?, Condition::NotExists));
            }
            let roster = Invitations { customer_id: customer.clone(), open };
            return Guarded::put(&Stored::new(roster, born.clone(), at), Condition::NotExists);
        };
        if open.is_empty() {
            return Ok(Guarded::delete(roster_key(customer)?, is(old)?));
        }
        let meta = Meta { version: old.meta.version + 1, rev: old.meta.rev + 1, updated_at: at, ..old.meta.clone() };
        let roster = Invitations { customer_id: customer.clone(), open };
        Guarded::put(&Stored { meta, data: roster }, is(old)?)
    }

    /// Removes the invitation from the table, or checks that there is none, for the transaction
    /// that makes the customer a member.
    ///
    /// # Errors
    /// [`EncodeError`].
    pub fn end(
        &self,
        transaction: Transaction<OrganizationAction>,
        id: &OrganizationId,
        customer: &CustomerId,
        at: Instant,
    ) -> Result<Transaction<OrganizationAction>, EncodeError> {
        let key = invitation_key(id, customer)?;
        let Some(invitation) = &self.invitation else {
            return Ok(transaction.action(OrganizationAction::Invitation, Guarded::check(key, Condition::NotExists)));
        };
        let list = self.list(customer, id, None, &invitation.meta.born, at)?;
        Ok(transaction
            .action(OrganizationAction::Invitation, Guarded::delete(key, is(invitation)?))
            .action(OrganizationAction::Invitations, list))
    }
}

/// Invites a customer who is not a member, or renews the invitation, on behalf of an admin. `head`
/// was read before the open invitations were counted.
///
/// # Errors
/// [`EncodeError`].
pub fn invite(
    head: &Stored<Organization>,
    state: &State,
    new: &Stored<Invitation>,
    admin: &CustomerId,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Invitation { id, customer_id, team, expires_at, .. } = &new.data;
    let unchanged = state.invitation.as_ref().map_or(Ok(Condition::NotExists), is)?;
    let counted = match head.invited {
        0 => Condition::Exists.and(Condition::Lacks("invited")),
        invited => Condition::Is("invited", number(invited)),
    };
    let count = Guarded::update(key(id)?, Change::<Organization>::copied().add("invited", 1), counted);
    let listed = Some(OpenInvitation::new(*expires_at, admin));
    let list = state.list(customer_id, id, listed, &new.meta.born, new.meta.updated_at)?;
    let transaction = Transaction::new(&INVITE)
        .action(OrganizationAction::Invitation, Guarded::put(new, unchanged)?)
        .action(OrganizationAction::Member, Guarded::check(member_key(id, customer_id)?, Condition::NotExists))
        .action(OrganizationAction::Organization, count)
        .action(OrganizationAction::Invitations, list)
        .action(OrganizationAction::Customer, customer::check(customer_id)?);
    let transaction = Authority::Customer(admin).checked(transaction, id, None)?;
    Ok(match team {
        Some(team) => {
            transaction.action(OrganizationAction::Team, Guarded::check(super::team_key(id, team)?, Condition::Exists))
        }
        None => transaction,
    })
}

/// Makes the invited customer a member and removes the invitation that was read.
///
/// # Errors
/// [`EncodeError`].
pub fn accept(
    invitation: &Stored<Invitation>,
    state: &State,
    new: &Stored<Member>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Member { id, customer_id, role, team } = &new.data;
    let at = new.meta.created_at;
    let open = is(invitation)?.and(Condition::AtLeast("expires_at", first_alive(at)));
    let head = match role {
        Role::Admin => add_admins(id, 1, Condition::Exists)?,
        Role::Member => Guarded::check(key(id)?, Condition::Exists),
    };
    let transaction = Transaction::new(&ACCEPT)
        .action(OrganizationAction::Member, Guarded::put(new, Condition::NotExists)?)
        .action(OrganizationAction::Invitation, Guarded::delete(invitation_key(id, customer_id)?, open))
        .action(OrganizationAction::Invitations, state.list(customer_id, id, None, &new.meta.born, at)?)
        .action(OrganizationAction::Profile, customer::check(customer_id)?)
        .action(OrganizationAction::Organization, head);
    let transaction = match &invitation.inviter {
        Some(inviter) => transaction.action(OrganizationAction::Inviter, admin_check(id, inviter)?),
        None => transaction,
    };
    count_members(transaction, id, None, team.as_ref())
}

/// Reads the organization, the invitation, the customer's invitations, and the caller's membership.
///
/// # Errors
/// [`KeyError`].
pub fn prepare(
    id: &OrganizationId,
    customer: &CustomerId,
    caller: &CustomerId,
) -> Result<BatchGet<AnyEntity>, KeyError> {
    let keys = vec![key(id)?, invitation_key(id, customer)?, roster_key(customer)?, member_key(id, caller)?];
    Ok(BatchGet::new(&PREPARE, keys))
}

/// Removes the invitation that was read, on behalf of staff or of the customer, or of an admin if
/// one is given.
///
/// # Errors
/// [`EncodeError`].
pub fn withdraw(
    invitation: &Stored<Invitation>,
    state: &State,
    admin: Option<&CustomerId>,
    at: Instant,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Invitation { id, customer_id, .. } = &invitation.data;
    let transaction = Transaction::new(&WITHDRAW)
        .action(OrganizationAction::Invitation, Guarded::delete(invitation_key(id, customer_id)?, is(invitation)?))
        .action(OrganizationAction::Invitations, state.list(customer_id, id, None, &invitation.meta.born, at)?);
    match admin {
        Some(admin) => Authority::Customer(admin).checked(transaction, id, None),
        None => Ok(transaction),
    }
}

/// Lists an organization's invitations strongly, to count the open ones.
///
/// # Errors
/// [`KeyError`].
pub fn open(id: &OrganizationId) -> Result<Query<Stored<Invitation>>, KeyError> {
    Ok(Query::new(&OPEN, partition(id)?, Range::under("INVITATION")))
}

/// Lists an organization's invitations by customer id, expired ones as well.
///
/// # Errors
/// [`KeyError`].
pub fn of_organization(id: &OrganizationId) -> Result<Query<Stored<Invitation>>, KeyError> {
    Ok(Query::new(&OF_ORGANIZATION, partition(id)?, Range::under("INVITATION")))
}

/// Lists a customer's invitations that expire after `now`, the first to expire first.
///
/// # Errors
/// [`KeyError`].
pub fn of_customer(customer: &CustomerId, now: Instant) -> Result<Query<InvitationSummary>, KeyError> {
    let range = Range::Between(now.plus_millis(1).to_string(), format!("{}$", Instant::MAX));
    Ok(Query::new(&OF_CUSTOMER, invited_partition(customer)?, range))
}

/// Reads the open invitations of a customer being erased.
///
/// # Errors
/// [`KeyError`].
pub fn roster(customer: &CustomerId) -> Result<Get<Stored<Invitations>>, KeyError> {
    Ok(Get::new(&ROSTER, roster_key(customer)?))
}

/// Removes the invitations of a customer being erased.
///
/// # Errors
/// [`KeyError`].
pub fn erase(roster: &Invitations) -> Result<BatchWrite, KeyError> {
    let delete = |id| invitation_key(id, &roster.customer_id).map(BatchWriteAction::Delete);
    Ok(BatchWrite::new(&ERASE, roster.open.keys().map(delete).collect::<Result<_, _>>()?))
}

/// Removes the list of a customer's invitations, after the invitations.
///
/// # Errors
/// [`EncodeError`].
pub fn forget(roster: &Stored<Invitations>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&FORGET, Guarded::delete(roster_key(&roster.customer_id)?, is(roster)?)))
}
