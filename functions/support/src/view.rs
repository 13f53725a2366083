//! The JSON bodies of questions and answers.

use http_api::view::CustomerView;
use key_schema::id::{AnswerId, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{Answer, CustomerQuestion, Question, QuestionStatus, QuestionSummary};
use serde::Serialize;

/// A question.
#[derive(Serialize)]
pub struct QuestionView<'a> {
    id: &'a QuestionId,
    customer_id: &'a CustomerId,
    subject: &'a str,
    text: &'a str,
    status: QuestionStatus,
    answer_count: u64,
    version: u64,
    created_at: Instant,
    updated_at: Instant,
}

impl<'a> From<&'a Stored<Question>> for QuestionView<'a> {
    fn from(Stored { meta, data }: &'a Stored<Question>) -> Self {
        let Question { id, customer_id, status, answer_count, title, text } = data;
        Self {
            id,
            customer_id,
            subject: title,
            text,
            status: *status,
            answer_count: *answer_count,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}

impl<'a> From<&'a Stored<CustomerQuestion>> for QuestionView<'a> {
    fn from(Stored { meta, data }: &'a Stored<CustomerQuestion>) -> Self {
        let CustomerQuestion { id, customer_id, status, answer_count, title, text, .. } = data;
        Self {
            id,
            customer_id,
            subject: title,
            text,
            status: *status,
            answer_count: *answer_count,
            version: meta.version,
            created_at: meta.created_at,
            updated_at: meta.updated_at,
        }
    }
}

impl<'a> From<&'a QuestionSummary> for QuestionView<'a> {
    fn from(listed: &'a QuestionSummary) -> Self {
        let QuestionSummary { id, customer_id, status, title, text, version, created_at, updated_at } = listed;
        Self {
            id,
            customer_id,
            subject: title,
            text,
            status: *status,
            // The list contains only questions without answers.
            answer_count: 0,
            version: *version,
            created_at: *created_at,
            updated_at: *updated_at,
        }
    }
}

/// A question with its answers, oldest first.
#[derive(Serialize)]
pub struct QuestionWithAnswersView<'a> {
    #[serde(flatten)]
    pub question: QuestionView<'a>,
    pub answers: Vec<AnswerView<'a>>,
}

/// A customer with the newest questions, newest first.
#[derive(Serialize)]
pub struct SupportView<'a> {
    pub customer: CustomerView<'a>,
    pub questions: Vec<QuestionView<'a>>,
}

/// An answer.
#[derive(Serialize)]
pub struct AnswerView<'a> {
    id: &'a AnswerId,
    question_id: &'a QuestionId,
    text: &'a str,
    by: &'a CustomerId,
    created_at: Instant,
}

impl<'a> From<&'a Stored<Answer>> for AnswerView<'a> {
    fn from(Stored { meta, data }: &'a Stored<Answer>) -> Self {
        let Answer { id, question_id, by, text } = data;
        Self { id, question_id, text, by, created_at: meta.created_at }
    }
}
