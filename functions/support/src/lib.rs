//! Support: questions of customers, and what staff answer.
//!
//! A question is its customer's and staff's; to anybody else it does not exist.

mod answers;
mod questions;
mod view;

use http_api::{Error, Once, Problem, Response, Routes, Store};
use key_schema::question::Part;
use table::{Refusal, TransactError};

/// The routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .on("POST /v1/customers/{id}/questions", |store, request| Box::pin(questions::ask(store, request)))
        .on("GET /v1/customers/{id}/questions", |store, request| Box::pin(questions::of_customer(store, request)))
        .on("GET /v1/customers/{id}/support", |store, request| Box::pin(questions::support(store, request)))
        .on("GET /v1/questions", |store, request| Box::pin(questions::open(store, request)))
        .on("GET /v1/questions/{id}", |store, request| Box::pin(questions::read(store, request)))
        .on("POST /v1/questions/{id}/answers", |store, request| Box::pin(answers::answer(store, request)))
}

/// Answers requests until the environment is shut down.
///
/// # Errors
/// When the environment lacks what the function needs, or the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("support");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}

/// The longest text, in bytes of UTF-8. A page of a hundred questions, and a question with all its answers, stay within the 1 MB that one Query reads.
const MAX_TEXT: usize = 8000;

/// What a request is answered whose transaction went like this. What was refused may be the repetition of a request that was done: then it gets the
/// first answer again.
async fn settle(
    store: &Store,
    once: Option<Once>,
    done: Result<(), TransactError<Part>>,
    answer: Response,
    refused: impl FnOnce(&[Refusal<Part>]) -> Problem,
) -> Result<Response, Problem> {
    let refusals = match done {
        Ok(()) => return Ok(answer),
        Err(TransactError::Refused(refusals)) => refusals,
        Err(TransactError::Table(error)) => return Err(error.into()),
    };
    match once {
        Some(once) => once.replay_or(store, refused(&refusals)).await,
        None => Err(refused(&refusals)),
    }
}

/// What a refusal means that is none of the question's or its customer's.
fn otherwise(refusals: &[Refusal<Part>]) -> Problem {
    match refusals.first().map(|refusal| refusal.label) {
        // The key alone, and whoever looks for its record finds none that counts.
        Some(Part::Idempotency) => Once::in_progress(),
        part => Problem::internal(format!("unexpected refusal of {part:?}")),
    }
}
