//! Creates questions and reads one question. Lists a customer's questions, with or without the
//! profile, and the questions without an answer.

use http_api::contract::rules::one_of;
use http_api::contract::{Page, route};
use http_api::url::location;
use http_api::view::{CustomerView, QuestionView};
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::id::{AnswerId, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Answer, MAX_ANSWERS, Open, Question, QuestionAction, QuestionStatus};
use key_schema::question::{SupportItem, ThreadItem};
use key_schema::quota::Quota;
use table::Refusals;

use crate::view::{AnswerView, NewAnswer, NewQuestion, QuestionWithAnswersView, SupportView};
use crate::{otherwise, settle};

/// Ask a question
///
/// Stores the question. With an Idempotency-Key, repeated requests store it only once.
#[route(POST "/v1/customers/{id}/questions", id = "askQuestion", who = owner, task = "questions", path(id: CustomerId),
    parameters(OptionalIdempotencyKey), body = NewQuestion,
    answers(201 = QuestionView<'_> "The question" [Location, ETag, IdempotencyReplayed]),
    refuses(quota_exceeded = "retry after the time in Retry-After"))]
pub async fn ask(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer_id: CustomerId = request.path("id")?;
    request.owner(&customer_id)?;
    let once = Once::optional(request)?;
    let NewQuestion { subject, text } = request.body()?;
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

/// List a customer's questions, newest first
#[route(GET "/v1/customers/{id}/questions", id = "listCustomerQuestions", who = owner, task = "questions",
    path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<QuestionView<'_>> "A page of questions, without their answers" [Link, LeftOut]))]
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    request.list(services, question::of_customer(&customer)?, &parameters).await?.answer(QuestionView::from).await
}

/// Read a customer with the newest 10 questions
#[route(GET "/v1/customers/{id}/support", id = "readSupport", who = owner, task = "questions", path(id: CustomerId),
    answers(200 = SupportView<'_> "The customer and the newest questions, newest first" [LeftOut]))]
pub async fn support(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    // The profile and the questions are adjacent in the partition, so one Query reads both.
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

/// List the open questions, oldest first
#[route(GET "/v1/questions", id = "listQuestions", who = staff, task = "questions",
    parameters(required status = one_of(&["open"]) "Only open questions can be listed.", Limit, Cursor),
    answers(200 = Page<QuestionView<'_>> "A page of questions" [Link, LeftOut]))]
pub async fn open(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let Some(Open) = request.query_as("status")? else {
        return Err(Problem::new(Code::InvalidParameter, "The query parameter `status` is missing."));
    };
    let parameters = [("status", QuestionStatus::Open.as_str())];
    request.list(services, question::open()?, &parameters).await?.answer(QuestionView::from).await
}

/// Read a question with its answers, oldest first
#[route(GET "/v1/questions/{id}", id = "readQuestion", who = owner, task = "questions", path(id: QuestionId),
    answers(200 = QuestionWithAnswersView<'_> "The question and all its answers" [ETag, LeftOut]))]
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
    Ok(Response::ok(&view).etag_of_parts(question.meta.version).leaving_out(found.left_out()))
}

/// Returns 404 for a question that does not exist or belongs to another customer.
pub fn no_question() -> Problem {
    Problem::not_found("question")
}

fn no_customer() -> Problem {
    Problem::not_found("customer")
}

/// Answer a question
///
/// Adds the answer. The first answer removes the question from the list of open questions. A
/// question has at most 100 answers. With an Idempotency-Key, repeated requests add the answer only
/// once. Location is the question.
#[route(POST "/v1/questions/{id}/answers", id = "answerQuestion", who = staff, task = "questions", path(id: QuestionId),
    parameters(OptionalIdempotencyKey), body = NewAnswer,
    answers(201 = AnswerView<'_> "The answer" [Location, ETag, IdempotencyReplayed]),
    refuses(not_found, too_many_answers = "the question has 100 already"))]
pub async fn answer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let question_id: QuestionId = request.path("id")?;
    let once = Once::optional(request)?;
    let NewAnswer { text } = request.body()?;
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
