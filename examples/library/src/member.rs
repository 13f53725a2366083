//! Members, and the claims that keep their email addresses unique.
//!
//! Only keys are unique in `DynamoDB`. So each email address has a claim: an item whose key is the
//! folded address. One transaction writes the member and the claim. `DynamoDB` refuses the
//! transaction if the address has a claim already.

use item_model::change::Change;
use item_model::expression::{Condition, value};
use item_model::instant::Instant;
use item_model::item::{EncodeError, Entity, Stored};
use item_model::key::{Key, KeyError, PartitionKey, SortKey};
use item_model::pattern::Consistency;
use item_model::prelude::*;
use item_model::request::{Get, Guarded, Single, Transaction};

ids! { check_id:
    /// The id of a member.
    MemberId
}

ids! { check:
    /// An email address, as the member writes it.
    Email
}

impl Email {
    /// Returns the address in a form that is equal for all its spellings.
    #[must_use]
    pub fn folded(&self) -> String {
        self.as_str().trim().to_lowercase()
    }
}

entity! {
    /// A member of the library.
    Member = "Member" {
        fixed {
            /// The member's id.
            id: MemberId,
            /// The email address. It changes only together with its claim ([`change_email`]).
            email: Email,
        }
        mutable by MemberChanges {
            /// The name by which to address the member.
            name: String,
        }
    }
}

impl Entity for Member {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }
}

/// Returns the partition of a member's profile and loans.
pub(crate) fn partition(id: &MemberId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("MEMBER", &[id])
}

fn key(id: &MemberId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new("PROFILE")? })
}

entity! {
    /// A sentinel item that reserves an email address for one member.
    EmailClaim = "EmailClaim" {
        fixed {
            /// The folded address.
            email: String,
            /// The member who has the address.
            member_id: MemberId,
        }
        mutable {}
    }
}

impl Entity for EmailClaim {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: PartitionKey::of("EMAIL", &[&self.email])?, sk: SortKey::new("EMAIL")? })
    }
}

fn claim(member: &Stored<Member>, email: &Email, at: Instant) -> Stored<EmailClaim> {
    let claim = EmailClaim { email: email.folded(), member_id: member.id.clone() };
    Stored::new(claim, member.meta.born.clone(), at)
}

/// An action of a member's transaction. It labels the refusal of that action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberAction {
    /// The write of the member. It fails if the new id exists, or if the member has changed since
    /// it was read.
    Member,
    /// The write of the claim. It fails if another member has the email address.
    Email,
    /// The deletion of the former claim. It fails if the claim is missing or belongs to another
    /// member.
    OldEmail,
}

patterns! {
    REGISTER {
        id: "members.register",
        purpose: "Register a member and claim the email address",
        request: TransactWriteItems,
        key: "PK = MEMBER#<id>, SK = PROFILE; PK = EMAIL#<folded>, SK = EMAIL",
        requires: "neither item exists",
        callers: "any",
    }
    GET {
        id: "members.get",
        purpose: "Read a member",
        request: GetItem,
        key: "PK = MEMBER#<id>, SK = PROFILE",
        returns: "the member",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    RENAME {
        id: "members.rename",
        purpose: "Change a member's name",
        request: UpdateItem,
        key: "PK = MEMBER#<id>, SK = PROFILE",
        requires: "the member is unchanged",
        callers: "owner",
    }
    CHANGE_EMAIL {
        id: "members.change-email",
        purpose: "Change the email address and move its claim",
        request: TransactWriteItems,
        key: "PK = MEMBER#<id>, SK = PROFILE; PK = EMAIL#<folded>, SK = EMAIL, old and new",
        requires: "the member is unchanged; the new address is free; the old claim is the member's",
        callers: "owner",
    }
}

/// Registers a member and claims the email address.
pub(crate) fn register(member: &Stored<Member>) -> Result<Transaction<MemberAction>, EncodeError> {
    let claim = claim(member, &member.email, member.meta.created_at);
    Ok(Transaction::new(&REGISTER)
        .action(MemberAction::Member, Guarded::put(member, Condition::NotExists)?)
        .action(MemberAction::Email, Guarded::put(&claim, Condition::NotExists)?))
}

pub(crate) fn get(id: &MemberId) -> Result<Get<Stored<Member>>, KeyError> {
    Ok(Get::new(&GET, key(id)?))
}

/// Changes the name of a member that was read, and returns the member.
pub(crate) fn rename(read: &Stored<Member>, name: &String, at: Instant) -> Result<Single<Stored<Member>>, EncodeError> {
    let change = Change::<Member>::visible(at).name(name)?;
    Ok(Single::new(&RENAME, Guarded::update(key(&read.id)?, change, Condition::unchanged(&read.meta)?)))
}

/// Changes the email address of a member that was read, and moves the claim.
pub(crate) fn change_email(
    read: &Stored<Member>,
    email: &Email,
    at: Instant,
) -> Result<Transaction<MemberAction>, EncodeError> {
    let change = Change::<Member>::visible(at).set("email", email)?;
    let update = Guarded::update(key(&read.id)?, change, Condition::unchanged(&read.meta)?);
    let transaction = Transaction::new(&CHANGE_EMAIL).action(MemberAction::Member, update);
    let (old, new) = (claim(read, &read.email, at), claim(read, email, at));
    // Another spelling of the same address keeps the claim.
    if old.email == new.email {
        return Ok(transaction);
    }
    let mine = Condition::Is("member_id", value(&read.id)?);
    Ok(transaction
        .action(MemberAction::Email, Guarded::put(&new, Condition::NotExists)?)
        .action(MemberAction::OldEmail, Guarded::delete(old.key()?, mine)))
}

/// Returns a check that a member exists, as an action of a transaction.
pub(crate) fn check(id: &MemberId) -> Result<Guarded, KeyError> {
    Ok(Guarded::check(key(id)?, Condition::Exists))
}
