use http_api::view::{CustomerView, QuestionView};
use key_schema::id::{AnswerId, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::Answer;
use serde::Serialize;

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
