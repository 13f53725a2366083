//! Creates questions and reads one question. Lists a customer's questions, with or without the
//! profile, and the questions without an answer.

use http_api::fields::{long_text, text};
use http_api::url::location;
use http_api::view::{CustomerView, QuestionView};
use http_api::{Code, Once, Problem, Request, Response, Services, read_fields};
use key_schema::id::{AnswerId, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Answer, MAX_ANSWERS, Open, Question, QuestionAction, QuestionStatus};
use key_schema::question::{SupportItem, ThreadItem};
use key_schema::quota::Quota;
use table::Refusals;

use crate::view::{AnswerView, QuestionWithAnswersView, SupportView};
use crate::{MAX_TEXT, otherwise, settle};

/// The longest subject, in bytes of UTF-8.
const MAX_SUBJECT: usize = 200;

/// POST customers/{id}/questions: adds a question, once per Idempotency-Key if the request has one.
pub async fn ask(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer_id: CustomerId = request.path("id")?;
    request.owner(&customer_id)?;
    let once = Once::optional(request)?;
    read_fields!(request.object()? => {
        subject: required(text(1..=MAX_SUBJECT)),
        text: required(long_text(1..=MAX_TEXT)),
    });
    let (at, status) = (Instant::now(), QuestionStatus::Open);
    let id = QuestionId::generate(at, services.random()?);
    let question = Question { id, customer_id, status, answer_count: 0, title: subject, text };
    let question = Stored::new(question, services.born(at)?, at);
    let location = location(&["questions", question.id.as_str()]);
    let answer = Response::created(location, &QuestionView::from(&question)).etag(question.meta.version);
    let claim = once.as_ref().map(|once| once.claim_with(&answer, question.meta.born.clone(), at)).transpose()?;
    let done = services.table.transact(&question::ask(&question, claim)?).await?;
    settle(services, once, done, answer, |refusals| refused(refusals, at)).await
}

fn refused(refusals: &Refusals<QuestionAction>, now: Instant) -> Problem {
    if refusals.names(QuestionAction::Customer) {
        no_customer()
    } else if refusals.names(QuestionAction::Quota) {
        Problem::quota_exceeded(Quota::Questions, now)
    } else {
        otherwise(refusals)
    }
}

/// GET customers/{id}/questions: lists a customer's questions, newest first.
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    request.list(services, question::of_customer(&customer)?, &parameters).await?.answer(QuestionView::from).await
}

/// GET customers/{id}/support: returns the profile and the newest questions. They are adjacent in
/// the partition, so one Query reads both.
pub async fn support(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let found = services.table.query_readable(&question::support(&customer)?).await?;
    let (mut profile, mut questions) = (None, Vec::new());
    for item in &found.items {
        match item {
            SupportItem::Customer(customer) => profile = Some(customer),
            SupportItem::CustomerQuestion(question) => questions.push(QuestionView::from(question)),
            // This route ignores entities that a later release adds to the range.
        }
    }
    let customer = profile.ok_or_else(|| no_customer().unless_left_out(found.left_out()))?;
    let view = SupportView { customer: CustomerView::from(customer), questions };
    Ok(Response::ok(&view).leaving_out(found.left_out()))
}

/// GET questions?status=open: lists the questions without an answer, oldest first.
pub async fn open(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let Some(Open) = request.query_as("status")? else {
        return Err(Problem::new(Code::InvalidParameter, "The query parameter `status` is missing."));
    };
    let parameters = [("status", QuestionStatus::Open.as_str())];
    request.list(services, question::open()?, &parameters).await?.answer(QuestionView::from).await
}

pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let id: QuestionId = request.path("id")?;
    let found = services.table.query_readable(&question::get(&id)?).await?;
    let (mut question, mut answers) = (None, Vec::new());
    for item in &found.items {
        match item {
            ThreadItem::Question(found) => question = Some(found),
            ThreadItem::Answer(answer) => answers.push(answer.into()),
            // This route ignores entities that a later release adds to the range.
        }
    }
    let question = question.ok_or_else(|| no_question().unless_left_out(found.left_out()))?;
    request.owner(&question.customer_id).map_err(|_| no_question())?;
    let view = QuestionWithAnswersView { question: QuestionView::from(question), answers };
    Ok(Response::ok(&view).etag(question.meta.version).leaving_out(found.left_out()))
}

/// Returns 404 for a question that does not exist or belongs to another customer.
pub fn no_question() -> Problem {
    Problem::not_found("question")
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}

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
    settle(services, once, done, answer, refused_answer).await
}

fn refused_answer(refusals: &Refusals<QuestionAction>) -> Problem {
    match refusals.of(QuestionAction::Question).or_else(|| refusals.of(QuestionAction::Copy)) {
        Some(refusal) if refusal.item.is_none() => no_question(),
        Some(_) => Problem::new(Code::TooManyAnswers, format!("A question can have at most {MAX_ANSWERS} answers.")),
        None => otherwise(refusals),
    }
}
