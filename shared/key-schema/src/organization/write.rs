//! How organizations change: each change is one transaction, with what must hold for it.

use super::{
    CHANGE_TEAM, CREATE, CREATE_TEAM, DELETE_TEAM, ERASE_MEMBER, MAX_TEAMS, Member, Organization, PUT_MEMBER, Part,
    REMOVE_GHOST, REMOVE_MEMBER, RENAME, Role, Team, key, member_key, team_key,
};
use crate::change::Change;
use crate::customer;
use crate::expression::{Condition, number, value};
use crate::id::{CustomerId, OrganizationId, TeamId};
use crate::instant::Instant;
use crate::item::{EncodeError, Stored};
use crate::key::KeyError;
use crate::request::{Guarded, Transaction};

/// On whose authority an organization is changed.
#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    /// Staff may change all.
    Staff,
    /// A customer, who must be an admin when it happens.
    Customer(&'a CustomerId),
}

/// Founds an organization. `admin` is its first member: a customer with a profile, or staff, who need none.
///
/// # Errors
/// [`EncodeError`].
pub fn create(
    head: &Stored<Organization>,
    admin: &Stored<Member>,
    authority: Authority<'_>,
) -> Result<Transaction<Part>, EncodeError> {
    let transaction = Transaction::new(&CREATE)
        .action(Part::Organization, Guarded::put(head, Condition::NotExists)?)
        .action(Part::Member, Guarded::put(admin, Condition::NotExists)?);
    Ok(match authority {
        Authority::Staff => transaction,
        Authority::Customer(founder) => transaction.action(Part::Profile, customer::check(founder)?),
    })
}

/// Renames an organization that is at `version`.
///
/// # Errors
/// [`EncodeError`].
pub fn rename(
    id: &OrganizationId,
    name: &String,
    version: u64,
    authority: Authority<'_>,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let change = Change::<Organization>::visible(at).name(name)?;
    let update = Guarded::update(key(id)?, change, Condition::version(version));
    authority.checked(Transaction::new(&RENAME).action(Part::Organization, update), id, None)
}

fn count_teams(id: &OrganizationId, by: i64, condition: Condition) -> Result<Guarded, EncodeError> {
    Ok(Guarded::update(key(id)?, Change::<Organization>::copied().add("teams", by), condition))
}

/// Adds a team, as long as there are fewer than [`MAX_TEAMS`].
///
/// # Errors
/// [`EncodeError`].
pub fn create_team(team: &Stored<Team>, authority: Authority<'_>) -> Result<Transaction<Part>, EncodeError> {
    let id = &team.organization_id;
    let room = Condition::Below("teams", number(MAX_TEAMS));
    let transaction = Transaction::new(&CREATE_TEAM)
        .action(Part::Team, Guarded::put(team, Condition::NotExists)?)
        .action(Part::Organization, count_teams(id, 1, room)?);
    authority.checked(transaction, id, None)
}

/// Renames a team that is at `version`.
///
/// # Errors
/// [`EncodeError`].
pub fn change_team(
    id: &OrganizationId,
    team: &TeamId,
    name: &String,
    version: u64,
    authority: Authority<'_>,
    at: Instant,
) -> Result<Transaction<Part>, EncodeError> {
    let change = Change::<Team>::visible(at).name(name)?;
    let update = Guarded::update(team_key(id, team)?, change, Condition::version(version));
    authority.checked(Transaction::new(&CHANGE_TEAM).action(Part::Team, update), id, None)
}

/// Removes a team that is at `version` and that nobody is in.
///
/// # Errors
/// [`EncodeError`].
pub fn delete_team(
    id: &OrganizationId,
    team: &TeamId,
    version: u64,
    authority: Authority<'_>,
) -> Result<Transaction<Part>, EncodeError> {
    let empty = Condition::version(version).and(Condition::Is("members", number(0)));
    let transaction = Transaction::new(&DELETE_TEAM)
        .action(Part::Team, Guarded::delete(team_key(id, team)?, empty))
        .action(Part::Organization, count_teams(id, -1, Condition::Exists)?);
    authority.checked(transaction, id, None)
}

/// Makes `new` of the membership that was read, or of none.
///
/// # Errors
/// [`EncodeError`].
pub fn put_member(
    old: Option<&Stored<Member>>,
    new: &Stored<Member>,
    authority: Authority<'_>,
) -> Result<Transaction<Part>, EncodeError> {
    let Member { id, customer_id, role, team } = &new.data;
    let write = match old {
        Some(old) => {
            let change = Change::<Member>::visible(new.meta.updated_at).role(role)?.team(team)?;
            let mut unchanged = is(old)?;
            if authority.is(customer_id) {
                unchanged = unchanged.and(is_admin()?);
            }
            Guarded::update(member_key(id, customer_id)?, change, unchanged)
        }
        // Nobody makes themselves a member: only who is an admin may, and who is one is a member already.
        None if authority.is(customer_id) => Guarded::put(new, is_admin()?)?,
        None => Guarded::put(new, Condition::NotExists)?,
    };
    let mut transaction = authority.checked(
        Transaction::new(&PUT_MEMBER).action(Part::Member, write).action(Part::Customer, customer::check(customer_id)?),
        id,
        Some(customer_id),
    )?;
    let (before, after) = (old.map(|old| old.role), Some(*role));
    transaction = match count_admins(id, before, after)? {
        Some(count) => transaction.action(Part::Organization, count),
        // An admin's own membership, or that which is changed, shows that there is the organization.
        None if old.is_none() && matches!(authority, Authority::Staff) => {
            transaction.action(Part::Organization, Guarded::check(key(id)?, Condition::Exists))
        }
        None => transaction,
    };
    count_members(transaction, id, old.and_then(|old| old.team.as_ref()), team.as_ref())
}

/// Ends the membership that was read. Who is not an admin may end no other than their own.
///
/// # Errors
/// [`EncodeError`].
pub fn remove_member(old: &Stored<Member>, authority: Authority<'_>) -> Result<Transaction<Part>, EncodeError> {
    let Member { id, customer_id, role, team } = &old.data;
    let delete = Guarded::delete(member_key(id, customer_id)?, is(old)?);
    let mut transaction =
        authority.checked(Transaction::new(&REMOVE_MEMBER).action(Part::Member, delete), id, Some(customer_id))?;
    if let Some(count) = count_admins(id, Some(*role), None)? {
        transaction = transaction.action(Part::Organization, count);
    }
    count_members(transaction, id, team.as_ref(), None)
}

/// Ends the membership that was read, of a customer who is being erased: also that of the last admin. Staff then say who is admin.
///
/// # Errors
/// [`EncodeError`].
pub fn erase_member(old: &Stored<Member>) -> Result<Transaction<Part>, EncodeError> {
    end_anyway(Transaction::new(&ERASE_MEMBER), old)
}

/// Ends the membership that was read if its customer has no profile: also that of the last admin, who can make nobody else one. For staff.
///
/// # Errors
/// [`EncodeError`].
pub fn remove_ghost(old: &Stored<Member>) -> Result<Transaction<Part>, EncodeError> {
    let gone = Guarded::check(customer::key(&old.customer_id)?, Condition::NotExists);
    end_anyway(Transaction::new(&REMOVE_GHOST).action(Part::Customer, gone), old)
}

/// The end of a membership, whether or not an admin is left.
fn end_anyway(transaction: Transaction<Part>, old: &Stored<Member>) -> Result<Transaction<Part>, EncodeError> {
    let Member { id, customer_id, role, team } = &old.data;
    let mut transaction = transaction.action(Part::Member, Guarded::delete(member_key(id, customer_id)?, is(old)?));
    if *role == Role::Admin {
        transaction = transaction.action(Part::Organization, add_admins(id, -1, Condition::Exists)?);
    }
    count_members(transaction, id, team.as_ref(), None)
}

/// The head with one admin more, or one less as long as another is left.
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

fn add_admins(id: &OrganizationId, by: i64, condition: Condition) -> Result<Guarded, KeyError> {
    Ok(Guarded::update(key(id)?, Change::<Organization>::copied().add("admins", by), condition))
}

/// The teams that somebody leaves and joins.
fn count_members(
    mut transaction: Transaction<Part>,
    id: &OrganizationId,
    from: Option<&TeamId>,
    to: Option<&TeamId>,
) -> Result<Transaction<Part>, EncodeError> {
    if from != to {
        for (team, by) in [(from, -1), (to, 1)] {
            if let Some(team) = team {
                let count = Change::<Team>::copied().add("members", by);
                transaction =
                    transaction.action(Part::Team, Guarded::update(team_key(id, team)?, count, Condition::Exists));
            }
        }
    }
    Ok(transaction)
}

/// The membership is the one that was read: not one that was ended and made again, which counts from the beginning.
fn is(member: &Stored<Member>) -> Result<Condition, EncodeError> {
    Ok(Condition::Is("rev", number(member.meta.rev)).and(Condition::Is("born", value(&member.meta.born)?)))
}

fn is_admin() -> Result<Condition, EncodeError> {
    Ok(Condition::Is("role", value(Role::Admin)?))
}

/// The check that a customer is an admin of an organization: an action of the transaction that it allows.
pub(crate) fn admin_check(id: &OrganizationId, customer: &CustomerId) -> Result<Guarded, EncodeError> {
    Ok(Guarded::check(member_key(id, customer)?, is_admin()?))
}

/// The check that a customer is a member of an organization in any role.
pub(crate) fn member_check(id: &OrganizationId, customer: &CustomerId) -> Result<Guarded, KeyError> {
    Ok(Guarded::check(member_key(id, customer)?, Condition::Exists))
}

impl Authority<'_> {
    /// Adds the checks of who asks, who has a profile and is an admin. `target` is whose membership the transaction writes: if it is the caller's own, it
    /// cannot be checked beside that.
    fn checked(
        self,
        transaction: Transaction<Part>,
        id: &OrganizationId,
        target: Option<&CustomerId>,
    ) -> Result<Transaction<Part>, EncodeError> {
        match self {
            Self::Customer(caller) if target != Some(caller) => {
                let transaction = transaction.action(Part::Caller, admin_check(id, caller)?);
                Ok(transaction.action(Part::Profile, customer::check(caller)?))
            }
            Self::Customer(_) | Self::Staff => Ok(transaction),
        }
    }

    fn is(self, customer: &CustomerId) -> bool {
        matches!(self, Self::Customer(caller) if caller == customer)
    }
}
