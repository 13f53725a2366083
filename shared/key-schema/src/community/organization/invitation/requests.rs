use item_model::prelude::*;

use super::super::write::{add_admins, count_members, is, is_admin};
use super::super::{Authority, Member, Organization, OrganizationAction, Role, key, member_key, partition, team_key};
use super::{
    ACCEPT, ERASE, FORGET, INVITE, INVITERS, Invitation, InvitationSummary, Invitations, OF_CUSTOMER, OF_ORGANIZATION,
    OPEN, OpenInvitation, PREPARE, ROSTER, WITHDRAW, invitation_key, invited_partition, roster_key,
};
use crate::change::Change;
use crate::customer;
use crate::expression::{Condition, first_alive, number, value};
use crate::id::{Born, CustomerId, OrganizationId};
use crate::instant::Instant;
use crate::item::{EncodeError, Entity as _, Meta, Stored};
use crate::key::KeyError;
use crate::request::{BatchGet, BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Single, Transaction};

/// The stored state from which a change of an invitation is computed.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The invitation, which may have expired.
    pub invitation: Option<Stored<Invitation>>,
    pub roster: Option<Stored<Invitations>>,
}

impl State {
    /// Returns the invitation if it has not expired.
    #[must_use]
    pub fn open(&self, now: Instant) -> Option<&Stored<Invitation>> {
        self.invitation.as_ref().filter(|invitation| !invitation.is_expired(now))
    }

    /// Sets or removes the organization's entry in the list of the customer's invitations. Entries
    /// that expired long ago are removed too. DynamoDB refuses the write if the list has changed
    /// since the read.
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

    /// Removes the invitation, or checks that there is none, in the transaction that makes the
    /// customer a member.
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
pub fn invite(
    head: &Stored<Organization>,
    state: &State,
    new: &Stored<Invitation>,
    admin: &CustomerId,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Invitation { id, customer_id, team, expires_at, .. } = &new.data;
    let unchanged = state.invitation.as_ref().map_or(Ok(Condition::NotExists), is)?;
    let counted = Condition::Is("invited", number(head.invited));
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
    let team = team.as_ref().map(|team| team_key(id, team)).transpose()?;
    Ok(transaction.optional(OrganizationAction::Team, team.map(|key| Guarded::check(key, Condition::Exists))))
}

/// Makes the invited customer a member and removes the invitation that was read.
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
    let still_admin = is_admin()?.and(Condition::Is("born", value(&invitation.inviter_born)?));
    let transaction = Transaction::new(&ACCEPT)
        .action(OrganizationAction::Member, Guarded::put(new, Condition::NotExists)?)
        .action(OrganizationAction::Invitation, Guarded::delete(invitation_key(id, customer_id)?, open))
        .action(OrganizationAction::Invitations, state.list(customer_id, id, None, &new.meta.born, at)?)
        .action(OrganizationAction::Profile, customer::check(customer_id)?)
        .action(OrganizationAction::Organization, head)
        .action(OrganizationAction::Inviter, Guarded::check(member_key(id, &invitation.inviter)?, still_admin));
    count_members(transaction, id, None, team.as_ref())
}

one_of! {
    pub enum PreparedItem { Organization Invitation Invitations Member }
}

/// Reads the organization, the invitation, the customer's invitations, and the caller's membership.
pub fn prepare(
    id: &OrganizationId,
    customer: &CustomerId,
    caller: &CustomerId,
) -> Result<BatchGet<PreparedItem>, KeyError> {
    let keys = vec![key(id)?, invitation_key(id, customer)?, roster_key(customer)?, member_key(id, caller)?];
    Ok(BatchGet::new(&PREPARE, keys))
}

/// Removes the invitation that was read. Without `admin`, the caller is staff or the customer.
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

/// Lists an organization's invitations with strong consistency, to count the open invitations.
pub fn open(id: &OrganizationId) -> Result<Query<Stored<Invitation>>, KeyError> {
    Ok(Query::new(&OPEN, partition(id)?, Range::under("INVITATION")))
}

/// Reads the memberships of the inviters of these invitations, to find the void invitations.
pub fn inviters(open: &[Stored<Invitation>]) -> Result<BatchGet<Stored<Member>>, KeyError> {
    let inviters = open.iter().map(|open| member_key(&open.id, &open.inviter));
    Ok(BatchGet::new(&INVITERS, inviters.collect::<Result<_, _>>()?))
}

/// Lists an organization's invitations by customer id, including expired invitations.
pub fn of_organization(id: &OrganizationId) -> Result<Query<Stored<Invitation>>, KeyError> {
    Ok(Query::new(&OF_ORGANIZATION, partition(id)?, Range::under("INVITATION")))
}

/// Lists a customer's invitations that expire after `now`, in the order of expiry.
pub fn of_customer(customer: &CustomerId, now: Instant) -> Result<Query<InvitationSummary>, KeyError> {
    let range = Range::Between(now.plus_millis(1).to_string(), format!("{}$", Instant::MAX));
    Ok(Query::new(&OF_CUSTOMER, invited_partition(customer)?, range))
}

/// Reads the open invitations of a customer being erased.
pub fn roster(customer: &CustomerId) -> Result<Get<Stored<Invitations>>, KeyError> {
    Ok(Get::new(&ROSTER, roster_key(customer)?))
}

/// Removes the invitations of a customer being erased.
pub fn erase(roster: &Invitations) -> Result<BatchWrite, KeyError> {
    let delete = |id| invitation_key(id, &roster.customer_id).map(BatchWriteAction::Delete);
    Ok(BatchWrite::new(&ERASE, roster.open.keys().map(delete).collect::<Result<_, _>>()?))
}

/// Removes the list of a customer's invitations, after the invitations are removed.
pub fn forget(roster: &Stored<Invitations>) -> Result<Single<()>, EncodeError> {
    Ok(Single::new(&FORGET, Guarded::delete(roster_key(&roster.customer_id)?, is(roster)?)))
}
