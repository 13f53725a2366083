//! Answers of staff to questions.

use http_api::read::long_text;
use http_api::url::location;
use http_api::{Code, Once, Problem, Request, Response, Store};
use key_schema::id::{AnswerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Answer, MAX_ANSWERS, Part};
use table::Refusal;

use crate::questions::no_question;
use crate::view::AnswerView;
use crate::{MAX_TEXT, otherwise, settle};

/// POST questions/{id}/answers: adds an answer, once per Idempotency-Key if the request has one.
pub async fn answer(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let question_id: QuestionId = request.path("id")?;
    let once = Once::optional(request)?;
    let mut body = request.object()?;
    let text = body.required("text", long_text(1..=MAX_TEXT));
    let (text,) = body.finish((text,))?;
    let Some(question) = store.table.get(&question::edit(&question_id)?).await? else {
        // The question may have existed at the first attempt of this request.
        return match once {
            Some(once) => once.replay_or(store, no_question()).await,
            None => Err(no_question()),
        };
    };
    let at = Instant::now();
    let id = AnswerId::generate(at, store.random()?);
    let given = Stored::new(Answer { id, question_id, by: staff.id().clone(), text }, store.born(at)?, at);
    // An answer has no separate URL: a client reads it with its question. It never changes.
    let location = location(&["questions", question.id.as_str()]);
    let answer = Response::created(location, &AnswerView::from(&given)).etag(given.meta.version);
    let claim = once.as_ref().map(|once| once.claim_with(&answer, given.meta.born.clone(), at)).transpose()?;
    let done = store.table.transact(&question::answer(&question, &given, claim)?).await;
    settle(store, once, done, answer, refused).await
}

fn refused(refusals: &[Refusal<Part>]) -> Problem {
    let of = |part| refusals.iter().find(|refusal| refusal.label == part);
    match of(Part::Question).or_else(|| of(Part::Copy)) {
        Some(refusal) if refusal.item.is_none() => no_question(),
        Some(_) => Problem::new(Code::TooManyAnswers, format!("A question can have at most {MAX_ANSWERS} answers.")),
        None => otherwise(refusals),
    }
}
