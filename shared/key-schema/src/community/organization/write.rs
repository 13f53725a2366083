//! Changes of organizations. Each change is one transaction with its conditions.

use item_model::prelude::*;

use super::{
    CHANGE_TEAM, CREATE, CREATE_TEAM, DELETE_TEAM, ERASE_MEMBER, MAX_TEAMS, Member, Organization, OrganizationAction,
    OrganizationChanges as _, PUT_MEMBER, REMOVE_GHOST, REMOVE_MEMBER, RENAME, Role, Team, TeamChanges as _, key,
    member_key, team_key,
};
use crate::change::Change;
use crate::customer;
use crate::expression::{Condition, number, value};
use crate::id::{Born, CustomerId, OrganizationId, TeamId};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::KeyError;
use crate::quota::{self, Quota};
use crate::request::{Guarded, Transaction};

#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    Staff,
    /// A customer, who must be an admin at the moment of the change.
    Customer(&'a CustomerId),
}

/// Creates an organization. `admin` is its first member. A customer who creates it needs a profile,
/// and staff do not.
pub fn create(
    head: &Stored<Organization>,
    admin: &Stored<Member>,
    authority: Authority<'_>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let transaction = Transaction::new(&CREATE)
        .action(OrganizationAction::Organization, Guarded::put(head, Condition::NotExists)?)
        .action(OrganizationAction::Member, Guarded::put(admin, Condition::NotExists)?);
    Ok(match authority {
        Authority::Staff => transaction,
        Authority::Customer(founder) => transaction
            .action(OrganizationAction::Profile, customer::check(founder)?)
            .action(OrganizationAction::Quota, quota::count(founder, Quota::Organizations, head.meta.created_at)?),
    })
}

/// Renames an organization if it is at `version`.
pub fn rename(
    id: &OrganizationId,
    name: &String,
    version: u64,
    authority: Authority<'_>,
    at: Instant,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let change = Change::<Organization>::visible(at).name(name)?;
    let update = Guarded::update(key(id)?, change, Condition::version(version));
    authority.checked(Transaction::new(&RENAME).action(OrganizationAction::Organization, update), id, None)
}

fn count_teams(id: &OrganizationId, by: i64, condition: Condition) -> Result<Guarded, EncodeError> {
    Ok(Guarded::update(key(id)?, Change::<Organization>::copied().add("teams", by), condition))
}

/// Creates a team, if there are fewer than [`MAX_TEAMS`].
pub fn create_team(
    team: &Stored<Team>,
    authority: Authority<'_>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let id = &team.organization_id;
    let room = Condition::Below("teams", number(MAX_TEAMS));
    let transaction = Transaction::new(&CREATE_TEAM)
        .action(OrganizationAction::Team, Guarded::put(team, Condition::NotExists)?)
        .action(OrganizationAction::Organization, count_teams(id, 1, room)?);
    authority.checked(transaction, id, None)
}

/// Renames a team if it is at `version`.
pub fn change_team(
    id: &OrganizationId,
    team: &TeamId,
    name: &String,
    version: u64,
    authority: Authority<'_>,
    at: Instant,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let change = Change::<Team>::visible(at).name(name)?;
    let update = Guarded::update(team_key(id, team)?, change, Condition::version(version));
    authority.checked(Transaction::new(&CHANGE_TEAM).action(OrganizationAction::Team, update), id, None)
}

/// Deletes a team if it is at `version` and has no members.
pub fn delete_team(
    id: &OrganizationId,
    team: &TeamId,
    version: u64,
    authority: Authority<'_>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let empty = Condition::version(version).and(Condition::Is("members", number(0)));
    let transaction = Transaction::new(&DELETE_TEAM)
        .action(OrganizationAction::Team, Guarded::delete(team_key(id, team)?, empty))
        .action(OrganizationAction::Organization, count_teams(id, -1, Condition::Exists)?);
    authority.checked(transaction, id, None)
}

/// Returns the membership that was read (`old`), changed to `new`. A former admin's membership gets
/// the new `born`, which makes the invitations by that admin void for ever.
#[must_use]
pub fn changed(old: &Stored<Member>, new: Member, born: Born, at: Instant) -> Stored<Member> {
    let mut meta = old.meta.clone();
    (meta.version, meta.rev, meta.updated_at) = (meta.version + 1, meta.rev + 1, at);
    if old.role == Role::Admin && new.role != Role::Admin {
        meta.born = born;
    }
    Stored { meta, data: new }
}

/// Creates a membership, or changes the membership that was read (`old`) to `new`.
pub fn put_member(
    old: Option<&Stored<Member>>,
    new: &Stored<Member>,
    authority: Authority<'_>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Member { id, customer_id, role, team } = &new.data;
    let write = match old {
        Some(old) => {
            let mut unchanged = is(old)?;
            if authority.is(customer_id) {
                unchanged = unchanged.and(is_admin()?);
            }
            Guarded::put(new, unchanged)?
        }
        // Callers cannot make themselves members. This condition requires that the membership does
        // not exist and that its role is admin, so DynamoDB always refuses the write. If the caller
        // became an admin after the read, a retry reads the new membership.
        None if authority.is(customer_id) => Guarded::put(new, Condition::NotExists.and(is_admin()?))?,
        None => Guarded::put(new, Condition::NotExists)?,
    };
    let mut transaction = authority.checked(
        Transaction::new(&PUT_MEMBER)
            .action(OrganizationAction::Member, write)
            .action(OrganizationAction::Customer, customer::check(customer_id)?),
        id,
        Some(customer_id),
    )?;
    let (before, after) = (old.map(|old| old.role), Some(*role));
    transaction = match count_admins(id, before, after)? {
        Some(count) => transaction.action(OrganizationAction::Organization, count),
        // Checks that the organization exists. In the other cases, another condition of the
        // transaction already requires a membership of the organization.
        None if old.is_none() && matches!(authority, Authority::Staff) => {
            transaction.action(OrganizationAction::Organization, Guarded::check(key(id)?, Condition::Exists))
        }
        None => transaction,
    };
    count_members(transaction, id, old.and_then(|old| old.team.as_ref()), team.as_ref())
}

/// Ends the membership that was read. A caller who is not an admin can end only their own
/// membership.
pub fn remove_member(
    old: &Stored<Member>,
    authority: Authority<'_>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Member { id, customer_id, role, team } = &old.data;
    let delete = Guarded::delete(member_key(id, customer_id)?, is(old)?);
    let mut transaction = authority.checked(
        Transaction::new(&REMOVE_MEMBER).action(OrganizationAction::Member, delete),
        id,
        Some(customer_id),
    )?;
    if let Some(count) = count_admins(id, Some(*role), None)? {
        transaction = transaction.action(OrganizationAction::Organization, count);
    }
    count_members(transaction, id, team.as_ref(), None)
}

/// Ends a membership of a customer who is being erased, even the membership of the last admin. Then
/// staff must appoint an admin.
pub fn erase_member(old: &Stored<Member>) -> Result<Transaction<OrganizationAction>, EncodeError> {
    end_anyway(Transaction::new(&ERASE_MEMBER), old)
}

/// Ends the membership of a customer who is erased or is being erased, even the membership of the
/// last admin. An erased admin cannot appoint a successor. Only staff use this function.
pub fn remove_ghost(old: &Stored<Member>) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let gone = Condition::NotExists.or(Condition::Has("erasing_since"));
    let gone = Guarded::check(customer::key(&old.customer_id)?, gone);
    end_anyway(Transaction::new(&REMOVE_GHOST).action(OrganizationAction::Customer, gone), old)
}

fn end_anyway(
    transaction: Transaction<OrganizationAction>,
    old: &Stored<Member>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    let Member { id, customer_id, role, team } = &old.data;
    let mut transaction =
        transaction.action(OrganizationAction::Member, Guarded::delete(member_key(id, customer_id)?, is(old)?));
    if *role == Role::Admin {
        transaction = transaction.action(OrganizationAction::Organization, add_admins(id, -1, Condition::Exists)?);
    }
    count_members(transaction, id, team.as_ref(), None)
}

/// Adds 1 to the organization's number of admins, or subtracts 1 if another admin remains. Returns
/// [`None`] if the change of role does not change the count.
fn count_admins(
    id: &OrganizationId,
    before: Option<Role>,
    after: Option<Role>,
) -> Result<Option<Guarded>, EncodeError> {
    let (was, is) = (before == Some(Role::Admin), after == Some(Role::Admin));
    let (by, condition) = match (was, is) {
        (false, true) => (1, Condition::Exists),
        (true, false) => (-1, Condition::AtLeast("admins", number(2))),
        _ => return Ok(None),
    };
    Ok(Some(add_admins(id, by, condition)?))
}

pub(super) fn add_admins(id: &OrganizationId, by: i64, condition: Condition) -> Result<Guarded, KeyError> {
    Ok(Guarded::update(key(id)?, Change::<Organization>::copied().add("admins", by), condition))
}

/// Changes the member counts of the team that the member leaves and of the team that the member
/// joins.
pub(super) fn count_members(
    mut transaction: Transaction<OrganizationAction>,
    id: &OrganizationId,
    from: Option<&TeamId>,
    to: Option<&TeamId>,
) -> Result<Transaction<OrganizationAction>, EncodeError> {
    if from != to {
        for (team, by) in [(from, -1), (to, 1)] {
            if let Some(team) = team {
                let count = Change::<Team>::copied().add("members", by);
                transaction = transaction
                    .action(OrganizationAction::Team, Guarded::update(team_key(id, team)?, count, Condition::Exists));
            }
        }
    }
    Ok(transaction)
}

/// Returns the condition that an item is unchanged since it was read. The `rev` of an item that is
/// deleted and created again starts anew, so the condition includes `born`.
pub(super) fn is<T>(item: &Stored<T>) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("rev", number(item.meta.rev)).and(Condition::Is("born", value(&item.meta.born)?)))
}

pub(super) fn is_admin() -> Result<Condition, EncodeError> {
    Ok(Condition::Is("role", value(Role::Admin)?))
}

/// Returns the check that a customer is an admin, for a transaction that only an admin may make.
pub(crate) fn admin_check(id: &OrganizationId, customer: &CustomerId) -> Result<Guarded, EncodeError> {
    Ok(Guarded::check(member_key(id, customer)?, is_admin()?))
}

/// Returns the check that a customer is a member of an organization in any role.
pub(crate) fn member_check(id: &OrganizationId, customer: &CustomerId) -> Result<Guarded, KeyError> {
    Ok(Guarded::check(member_key(id, customer)?, Condition::Exists))
}

impl Authority<'_> {
    /// Adds the checks that a customer is an admin and has a profile. Staff need no check. `target`
    /// is the customer whose membership the transaction writes. If that customer is the caller, no
    /// check is added, because DynamoDB takes only one action per item.
    pub(super) fn checked(
        self,
        transaction: Transaction<OrganizationAction>,
        id: &OrganizationId,
        target: Option<&CustomerId>,
    ) -> Result<Transaction<OrganizationAction>, EncodeError> {
        match self {
            Self::Customer(caller) if target != Some(caller) => {
                let transaction = transaction.action(OrganizationAction::Caller, admin_check(id, caller)?);
                Ok(transaction.action(OrganizationAction::Profile, customer::check(caller)?))
            }
            Self::Customer(_) | Self::Staff => Ok(transaction),
        }
    }

    fn is(self, customer: &CustomerId) -> bool {
        matches!(self, Self::Customer(caller) if caller == customer)
    }
}
