use http_api::fields::long_text;
use http_api::url::location;
use http_api::{Code, Once, Problem, Request, Response, Services, read_fields};
use key_schema::id::{AnswerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Answer, MAX_ANSWERS, QuestionAction};
use table::Refusals;

use crate::questions::no_question;
use crate::view::AnswerView;
use crate::{MAX_TEXT, otherwise, settle};

/// POST questions/{id}/answers: adds an answer, once per Idempotency-Key if the request has one.
pub async fn answer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let question_id: QuestionId = request.path("id")?;
    let once = Once::optional(request)?;
    read_fields!(request.object()? => {
        text: required(long_text(1..=MAX_TEXT)),
    });
    let Some(question) = services.table.get(&question::read_for_update(&question_id)?).await? else {
        // An earlier attempt of this request may have succeeded before the question was removed.
        return match once {
            Some(once) => once.replay_or(services, no_question()).await,
            None => Err(no_question()),
        };
    };
    let at = Instant::now();
    let id = AnswerId::generate(at, services.random()?);
    let given = Stored::new(Answer { id, question_id, by: staff.id().clone(), text }, services.born(at)?, at);
    // A client reads an answer with its question, so an answer has no separate URL.
    let location = location(&["questions", question.id.as_str()]);
    let answer = Response::created(location, &AnswerView::from(&given)).etag(given.meta.version);
    let claim = once.as_ref().map(|once| once.claim_with(&answer, given.meta.born.clone(), at)).transpose()?;
    let done = services.table.transact(&question::answer(&question, &given, claim)?).await?;
    settle(services, once, done, answer, refused).await
}

fn refused(refusals: &Refusals<QuestionAction>) -> Problem {
    match refusals.of(QuestionAction::Question).or_else(|| refusals.of(QuestionAction::Copy)) {
        Some(refusal) if refusal.item.is_none() => no_question(),
        Some(_) => Problem::new(Code::TooManyAnswers, format!("A question can have at most {MAX_ANSWERS} answers.")),
        None => otherwise(refusals),
    }
}
