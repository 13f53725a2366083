//! Loans, with sparse lists of the loans that are out: their books are not returned yet.
//!
//! A loan has its index keys only until the return. So the two lists by due date, of one member and
//! of all members, contain only the loans that are out. The overdue loans come first in each list,
//! and a query for them ends at the current time.

use item_model::change::{Change, IndexEntry};
use item_model::encoding::join;
use item_model::expression::{Condition, value};
use item_model::instant::Instant;
use item_model::item::{EncodeError, Entity, Meta, Stored};
use item_model::key::{IndexKey, Key, KeyError, PartitionKey, SortKey};
use item_model::pattern::Consistency;
use item_model::prelude::*;
use item_model::request::{Get, Guarded, Query, Range, Single, Transaction};
use item_model::shard::Shards;
use serde::Deserialize;
use serde_dynamo::AttributeValue;

use crate::book::{self, BookId};
use crate::member::{self, MemberId};
use crate::schema::{GSI1, GSI2};

/// The number of seconds for which a member may keep a book.
pub const LOAN_SECONDS: i64 = 28 * 24 * 60 * 60;

/// The partitions of the list of all loans that are out.
pub const DUE_SHARDS: Shards = Shards(4);

/// The prefix of the sort keys of both lists by due date.
const DUE: &str = "DUE";

ids! { check_id:
    /// The id of a loan.
    LoanId
}

entity! {
    /// A member's loan of one copy of a book.
    Loan = "Loan" {
        fixed {
            /// The loan's id.
            id: LoanId,
            /// The member.
            member_id: MemberId,
            /// The book.
            book_id: BookId,
            /// When the book is due, part of the keys of both lists. [`renew`] changes it.
            due_at: Instant,
            /// When the member returned the book. From then on the loan is in no index.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            returned_at: Option<Instant>,
        }
        mutable {}
    }
}

impl Entity for Loan {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.member_id, &self.id)
    }

    fn index_keys(&self, _: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        if self.returned_at.is_some() {
            return Ok(Vec::new());
        }
        Ok(due_entries(&self.member_id, &self.id, self.due_at)?.map(|entry| entry.key).into())
    }
}

fn key(member: &MemberId, id: &LoanId) -> Result<Key, KeyError> {
    Ok(Key { pk: member::partition(member)?, sk: SortKey::of("LOAN", &[id])? })
}

/// A loan's key in one of the two lists by due date.
pub(crate) struct DueEntry {
    key: IndexKey,
    due_at: Instant,
}

impl IndexEntry for DueEntry {
    type Entity = Loan;

    fn index_key(&self) -> Result<IndexKey, EncodeError> {
        Ok(self.key.clone())
    }

    fn fields(&self) -> Result<Vec<(&'static str, AttributeValue)>, EncodeError> {
        Ok(vec![("due_at", value(self.due_at)?)])
    }
}

/// No other function builds these keys, so the two keys always have the same due date.
pub(crate) fn due_entries(member: &MemberId, id: &LoanId, due_at: Instant) -> Result<[DueEntry; 2], KeyError> {
    let sort = SortKey::of(DUE, &[&due_at, id])?;
    let entry = |index, partition| DueEntry { key: IndexKey { index, partition, sort: sort.clone() }, due_at };
    Ok([entry(GSI1, loans_partition(member)?), entry(GSI2, due_partition(DUE_SHARDS.of(id.as_str()))?)])
}

fn loans_partition(member: &MemberId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("LOANS", &[member])
}

fn due_partition(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of(DUE, &[&shard])
}

/// A loan as the lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoanSummary {
    pub id: LoanId,
    pub member_id: MemberId,
    pub book_id: BookId,
    /// When the book is due.
    pub due_at: Instant,
}

view!(LoanSummary of Loan);

/// An action of a loan's transaction. It labels the refusal of that action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoanAction {
    /// The write of the loan. It fails if the new id exists, or if the loan to return does not
    /// exist or was returned.
    Loan,
    /// The update of the book. It fails if the book does not exist or has no free copy.
    Copy,
    /// The check of the member. It fails if the member does not exist.
    Member,
}

patterns! {
    LEND {
        id: "loans.lend",
        purpose: "Lend a copy of a book",
        request: TransactWriteItems,
        key: "PK = MEMBER#<member>, SK = LOAN#<id>; PK = BOOK#<book>, SK = BOOK; SK = PROFILE (check)",
        requires: "the loan does not exist; free >= 1; the member exists",
        callers: "owner",
    }
    GET {
        id: "loans.get",
        purpose: "Read a loan, whether or not it was returned",
        request: GetItem,
        key: "PK = MEMBER#<member>, SK = LOAN#<id>",
        returns: "the loan",
        consistency: Consistency::Strong("a book can be returned right after it was lent"),
        callers: "owner",
    }
    RENEW {
        id: "loans.renew",
        purpose: "Move the due date of a loan",
        request: UpdateItem,
        key: "PK = MEMBER#<member>, SK = LOAN#<id>",
        requires: "exists and was not returned; SET the keys of both indexes",
        callers: "owner",
    }
    RETURN {
        id: "loans.return",
        purpose: "Return a book",
        request: TransactWriteItems,
        key: "PK = MEMBER#<member>, SK = LOAN#<id>; PK = BOOK#<book>, SK = BOOK",
        requires: "the loan exists and was not returned; the book exists; REMOVE the keys of both indexes",
        callers: "owner",
    }
    OF_MEMBER {
        id: "loans.of-member",
        purpose: "List the books that a member has, by due date",
        request: Query on GSI1,
        key: "GSI1PK = LOANS#<member>, GSI1SK = DUE#<due_at>#<id>",
        returns: "loans that are out, earliest due date first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OVERDUE {
        id: "loans.overdue",
        purpose: "List all overdue loans",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = DUE#<shard>, GSI2SK from DUE# to DUE#<now>",
        returns: "loans that are out and were due before now, earliest due date first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
}

pub(crate) fn lend(loan: &Stored<Loan>) -> Result<Transaction<LoanAction>, EncodeError> {
    Ok(Transaction::new(&LEND)
        .action(LoanAction::Loan, Guarded::put(loan, Condition::NotExists)?)
        .action(LoanAction::Copy, book::take_copy(&loan.book_id)?)
        .action(LoanAction::Member, member::check(&loan.member_id)?))
}

pub(crate) fn get(member: &MemberId, id: &LoanId) -> Result<Get<Stored<Loan>>, KeyError> {
    Ok(Get::new(&GET, key(member, id)?))
}

pub(crate) fn is_out() -> Condition {
    Condition::Exists.and(Condition::Lacks("returned_at"))
}

/// Moves the due date of a loan that is out, and returns the loan.
pub(crate) fn renew(
    member: &MemberId,
    id: &LoanId,
    due_at: Instant,
    at: Instant,
) -> Result<Single<Stored<Loan>>, EncodeError> {
    let entries = due_entries(member, id, due_at)?;
    let change = entries.iter().try_fold(Change::visible(at), Change::enter)?;
    Ok(Single::new(&RENEW, Guarded::update(key(member, id)?, change, is_out())))
}

/// Ends a loan that was read, and puts the copy back.
pub(crate) fn give_back(loan: &Loan, at: Instant) -> Result<Transaction<LoanAction>, EncodeError> {
    let change = Change::<Loan>::visible(at).set("returned_at", at)?.leave(GSI1).leave(GSI2);
    Ok(Transaction::new(&RETURN)
        .action(LoanAction::Loan, Guarded::update(loan.key()?, change, is_out()))
        .action(LoanAction::Copy, book::put_back(&loan.book_id)?))
}

/// Lists a member's loans that are out, by due date.
pub(crate) fn of_member(member: &MemberId) -> Result<Query<LoanSummary>, KeyError> {
    Ok(Query::new(&OF_MEMBER, loans_partition(member)?, Range::under(DUE)))
}

/// Lists all loans that are out and were due before `now`, by due date.
pub(crate) fn overdue(now: Instant) -> Result<Query<LoanSummary>, KeyError> {
    let shards = DUE_SHARDS.all().map(due_partition).collect::<Result<_, _>>()?;
    // In the key of a loan that is due at `now`, the id follows the time. So the key sorts after
    // the end of the range.
    let before_now = Range::Between(join(DUE, &[&""]), join(DUE, &[&now]));
    Ok(Query::sharded(&OVERDUE, shards, before_now))
}
