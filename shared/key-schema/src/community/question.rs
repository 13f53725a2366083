//! Questions of customers, and the answers of staff.
//!
//! Each question has its own partition with its answers. A copy of the question is in the
//! customer's partition. The copies sort directly after the profile, newest first. So one Query
//! reads the profile and the newest questions (see [`crate::customer`]). One transaction writes a
//! question and its copy, so the two never differ. A question that waits for its first answer is in
//! a sharded, sparse list, and the first answer removes the question from the list.
//!
//! # Erasure
//!
//! Questions and answers are personal data, so erasing a customer deletes them. The erasure finds
//! them through the customer's copies. It deletes the question first, so that no answer can be
//! added, and then the answers. It deletes the copy last, so that a repetition after a failure
//! finds the remaining items.

mod patterns;

use std::fmt;
use std::str::FromStr;

use item_model::prelude::*;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::customer::{self, Customer, PROFILE};
use crate::encoding::{NewestFirst, join};
use crate::expression::{Condition, number};
use crate::id::{AnswerId, CustomerId, QuestionId};
use crate::index::GSI2;
use crate::instant::Instant;
use crate::item::{EncodeError, Entity, Meta, Stored};
use crate::key::{Index, IndexKey, Key, KeyError, PartitionKey, SortKey};
use crate::quota::{self, Quota};
use crate::request::{BatchWrite, BatchWriteAction, Get, Guarded, Query, Range, Transaction};
use crate::shard::Shards;

pub use patterns::*;

/// The maximum number of answers to a question. One request reads a question with all its answers.
pub const MAX_ANSWERS: usize = 100;
/// The maximum number of questions that one response shows with a customer's profile.
pub const SUPPORT_QUESTIONS: usize = 10;
pub const OPEN_SHARDS: Shards = Shards(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStatus {
    /// The question has no answer yet.
    Open,
    Answered,
}

impl QuestionStatus {
    pub const ALL: [Self; 2] = [Self::Open, Self::Answered];

    /// Returns the name in keys, JSON and attributes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
        }
    }
}

impl fmt::Display for QuestionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be open")]
pub struct NotOpen;

/// The list of open questions, parsed from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open;

impl FromStr for Open {
    type Err = NotOpen;

    fn from_str(text: &str) -> Result<Self, NotOpen> {
        if text == QuestionStatus::Open.as_str() { Ok(Self) } else { Err(NotOpen) }
    }
}

entity! {
    Question = "Question" {
        fixed {
            /// The id of the question, which is time-ordered.
            id: QuestionId,
            customer_id: CustomerId,
            /// The status, which decides whether the question is in the list of open questions.
            status: QuestionStatus,
            /// The number of answers. A question without answers is open.
            answer_count: u64,
            /// The subject, in a few words.
            title: String,
            text: String,
        }
        mutable {}
    }
}

impl Entity for Question {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        key(&self.id)
    }

    fn index_keys(&self, meta: &Meta) -> Result<Vec<IndexKey>, KeyError> {
        if self.status != QuestionStatus::Open {
            return Ok(Vec::new());
        }
        Ok(vec![IndexKey {
            index: LIST,
            partition: open_partition(OPEN_SHARDS.of(self.id.as_str()))?,
            sort: SortKey::new(join(&meta.created_at.to_string(), &[&self.id]))?,
        }])
    }
}

entity! {
    /// The copy of a question in its customer's partition.
    CustomerQuestion = "CustomerQuestion" {
        fixed {
            id: QuestionId,
            customer_id: CustomerId,
            /// The instant of the question, which is part of the key.
            asked_at: Instant,
            status: QuestionStatus,
            answer_count: u64,
            title: String,
            text: String,
        }
        mutable {}
    }
}

impl Entity for CustomerQuestion {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        copy_key(&self.customer_id, self.asked_at, &self.id)
    }
}

impl CustomerQuestion {
    #[must_use]
    pub fn of(question: &Stored<Question>) -> Stored<Self> {
        let Question { id, customer_id, status, answer_count, title, text } = &question.data;
        let data = Self {
            id: id.clone(),
            customer_id: customer_id.clone(),
            asked_at: question.meta.created_at,
            status: *status,
            answer_count: *answer_count,
            title: title.clone(),
            text: text.clone(),
        };
        Stored { meta: question.meta.clone(), data }
    }
}

entity! {
    /// An answer. It never changes.
    Answer = "Answer" {
        fixed {
            /// The id of the answer. It is time-ordered, so answers sort by the time of writing.
            id: AnswerId,
            question_id: QuestionId,
            /// The member of staff who wrote the answer.
            by: CustomerId,
            text: String,
        }
        mutable {}
    }
}

impl Entity for Answer {
    const NAME: &'static str = Self::ENTITY;

    fn key(&self) -> Result<Key, KeyError> {
        Ok(Key { pk: partition(&self.question_id)?, sk: SortKey::of(ANSWER, &[&self.id])? })
    }
}

const LIST: Index = GSI2;
/// The prefix of the answers' sort keys. It sorts before the question's sort key.
const ANSWER: &str = "ANSWER";
/// The sort key of a question in its own partition, and the prefix of its copy's sort key.
const QUESTION: &str = "QUESTION";

fn partition(id: &QuestionId) -> Result<PartitionKey, KeyError> {
    PartitionKey::of(QUESTION, &[id])
}

fn key(id: &QuestionId) -> Result<Key, KeyError> {
    Ok(Key { pk: partition(id)?, sk: SortKey::new(QUESTION)? })
}

fn copy_key(customer: &CustomerId, asked_at: Instant, id: &QuestionId) -> Result<Key, KeyError> {
    Ok(Key { pk: customer::partition(customer)?, sk: SortKey::of(QUESTION, &[&NewestFirst(asked_at), id])? })
}

fn open_partition(shard: u32) -> Result<PartitionKey, KeyError> {
    PartitionKey::of("QUESTIONS", &[&QuestionStatus::Open.as_str(), &shard])
}

/// A question in the list of open questions. It has no answers yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionSummary {
    pub id: QuestionId,
    pub customer_id: CustomerId,
    pub status: QuestionStatus,
    pub title: String,
    pub text: String,
    pub version: u64,
    pub created_at: Instant,
    pub updated_at: Instant,
}

view!(QuestionSummary of Question);

/// A refusal names the action whose condition failed. The variant says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionAction {
    /// The customer does not exist.
    Customer,
    /// The customer has used up the day's quota of questions.
    Quota,
    /// The question already exists, is missing, or has no room for another answer.
    Question,
    /// The customer's copy already exists, is missing, or has no room for another answer.
    Copy,
    /// An answer with the same id already exists.
    Answer,
    /// The idempotency key is in use.
    Idempotency,
}

/// Asks a question. `claim` writes the idempotency record ([`crate::idempotency::claim`]), if the
/// request has a key.
pub fn ask(question: &Stored<Question>, claim: Option<Guarded>) -> Result<Transaction<QuestionAction>, EncodeError> {
    let copy = CustomerQuestion::of(question);
    Ok(Transaction::new(&ASK)
        .action(QuestionAction::Question, Guarded::put(question, Condition::NotExists)?)
        .action(QuestionAction::Copy, Guarded::put(&copy, Condition::NotExists)?)
        .action(QuestionAction::Customer, customer::check(&question.customer_id)?)
        .action(QuestionAction::Quota, quota::count(&question.customer_id, Quota::Questions, question.meta.created_at)?)
        .optional(QuestionAction::Idempotency, claim))
}

/// Reads a question with strong consistency, before it is answered.
pub fn read_for_update(id: &QuestionId) -> Result<Get<Stored<Question>>, KeyError> {
    Ok(Get::new(&EDIT, key(id)?))
}

/// Answers a question. The function uses only fields of `question` that never change, so concurrent
/// answers are all counted. `claim` writes the idempotency record ([`crate::idempotency::claim`]),
/// if the request has a key.
pub fn answer(
    question: &Stored<Question>,
    answer: &Stored<Answer>,
    claim: Option<Guarded>,
) -> Result<Transaction<QuestionAction>, EncodeError> {
    let at = answer.meta.created_at;
    let room = || Condition::Exists.and(Condition::Below("answer_count", number(MAX_ANSWERS)));
    let head =
        Change::<Question>::visible(at).set("status", QuestionStatus::Answered)?.add("answer_count", 1).leave(LIST);
    let copy = Change::<CustomerQuestion>::visible(at).set("status", QuestionStatus::Answered)?.add("answer_count", 1);
    let copy_key = copy_key(&question.customer_id, question.meta.created_at, &question.id)?;
    Ok(Transaction::new(&ANSWER_IT)
        .action(QuestionAction::Question, Guarded::update(key(&question.id)?, head, room()))
        .action(QuestionAction::Copy, Guarded::update(copy_key, copy, room()))
        .action(QuestionAction::Answer, Guarded::put(answer, Condition::NotExists)?)
        .optional(QuestionAction::Idempotency, claim))
}

one_of! {
    pub enum ThreadItem { Answer Question }
}

/// Reads a question's answers, oldest first, then the question.
pub fn get(id: &QuestionId) -> Result<Query<ThreadItem>, KeyError> {
    let range = Range::Between(format!("{ANSWER}#"), QUESTION.into());
    Ok(Query::new(&GET, partition(id)?, range).limit(MAX_ANSWERS + 1))
}

/// Lists a customer's questions, newest first.
pub fn of_customer(customer: &CustomerId) -> Result<Query<Stored<CustomerQuestion>>, KeyError> {
    Ok(Query::new(&OF_CUSTOMER, customer::partition(customer)?, Range::under(QUESTION)))
}

one_of! {
    pub enum SupportItem { Customer CustomerQuestion }
}

/// Reads a customer's profile, then the newest questions, newest first.
pub fn support(customer: &CustomerId) -> Result<Query<SupportItem>, KeyError> {
    let range = Range::Between(PROFILE.into(), format!("{QUESTION}$"));
    Ok(Query::new(&SUPPORT, customer::partition(customer)?, range).limit(SUPPORT_QUESTIONS + 1))
}

/// Lists the open questions, oldest first.
pub fn open() -> Result<Query<QuestionSummary>, KeyError> {
    let shards = OPEN_SHARDS.all().map(open_partition).collect::<Result<_, _>>()?;
    Ok(Query::sharded(&OPEN, shards, Range::All))
}

/// Lists the questions of a customer being erased, with strong consistency.
pub fn erasable(customer: &CustomerId) -> Result<Query<Stored<CustomerQuestion>>, KeyError> {
    Ok(Query::new(&ERASABLE, customer::partition(customer)?, Range::under(QUESTION)))
}

/// Lists the answers to a question, with strong consistency.
pub fn answers(id: &QuestionId) -> Result<Query<Stored<Answer>>, KeyError> {
    Ok(Query::new(&ANSWERS, partition(id)?, Range::under(ANSWER)).limit(MAX_ANSWERS))
}

/// Deletes questions. Their answers and copies stay.
pub fn erase<'a>(questions: impl IntoIterator<Item = &'a QuestionId>) -> Result<BatchWrite, KeyError> {
    Ok(erasing(questions.into_iter().map(key).collect::<Result<_, _>>()?))
}

/// Deletes answers, after their questions were deleted.
pub fn erase_answers<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Result<BatchWrite, KeyError> {
    Ok(erasing(answers.into_iter().map(Entity::key).collect::<Result<_, _>>()?))
}

/// Deletes copies, after their questions and answers were deleted.
pub fn erase_copies<'a>(copies: impl IntoIterator<Item = &'a CustomerQuestion>) -> Result<BatchWrite, KeyError> {
    Ok(erasing(copies.into_iter().map(Entity::key).collect::<Result<_, _>>()?))
}

fn erasing(keys: Vec<Key>) -> BatchWrite {
    BatchWrite::new(&ERASE, keys.into_iter().map(BatchWriteAction::Delete).collect())
}
