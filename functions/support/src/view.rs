use http_api::contract::rules::list;
use http_api::contract::{Body, Schema};
use http_api::view::{CustomerView, QuestionView, SUBJECT, SUPPORT_TEXT};
use key_schema::id::{AnswerId, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{Answer, MAX_ANSWERS};
use serde::Serialize;

#[derive(Body)]
pub struct NewQuestion {
    #[field(rule = SUBJECT, example = "Ice")]
    pub subject: String,
    #[field(rule = SUPPORT_TEXT, example = "Does it melt?")]
    pub text: String,
}

#[derive(Body)]
pub struct NewAnswer {
    #[field(rule = SUPPORT_TEXT, example = "Above 0 °C.")]
    pub text: String,
}

// The answers come oldest first.
#[derive(Serialize, Schema)]
#[schema(name = "AnsweredQuestion")]
pub struct QuestionWithAnswersView<'a> {
    #[serde(flatten)]
    pub question: QuestionView<'a>,
    #[field(rule = list::<AnswerView<'_>>(0..=MAX_ANSWERS), example = [])]
    pub answers: Vec<AnswerView<'a>>,
}

// The questions come newest first.
#[derive(Serialize, Schema)]
#[schema(name = "SupportOverview")]
pub struct SupportView<'a> {
    pub customer: CustomerView<'a>,
    #[field(rule = list::<QuestionView<'_>>(0..=10))]
    pub questions: Vec<QuestionView<'a>>,
}

#[derive(Serialize, Schema)]
pub struct AnswerView<'a> {
    #[field(example = "0190163d-8694-739b-aea5-966c26f8ad92")]
    id: &'a AnswerId,
    question_id: &'a QuestionId,
    #[field(rule = SUPPORT_TEXT, example = "Above 0 °C.")]
    text: &'a str,
    #[field(example = "sam")]
    by: &'a CustomerId,
    created_at: Instant,
}

impl<'a> From<&'a Stored<Answer>> for AnswerView<'a> {
    fn from(Stored { meta, data }: &'a Stored<Answer>) -> Self {
        let Answer { id, question_id, by, text } = data;
        Self { id, question_id, text, by, created_at: meta.created_at }
    }
}
