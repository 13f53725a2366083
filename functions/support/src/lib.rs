//! Support: questions of customers, and answers of staff.
//!
//! Only the customer and staff see a question. For any other caller it does not exist.

mod answers;
mod questions;
mod view;

use http_api::{Error, Once, Problem, Response, Routes, Store};
use key_schema::question::Part;
use table::{Refusal, TransactError};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .checking(Store::sign_ins)
        .on("POST /v1/customers/{id}/questions", |store, request| Box::pin(questions::ask(store, request)))
        .on("GET /v1/customers/{id}/questions", |store, request| Box::pin(questions::of_customer(store, request)))
        .on("GET /v1/customers/{id}/support", |store, request| Box::pin(questions::support(store, request)))
        .on("GET /v1/questions", |store, request| Box::pin(questions::open(store, request)))
        .on("GET /v1/questions/{id}", |store, request| Box::pin(questions::read(store, request)))
        .on("POST /v1/questions/{id}/answers", |store, request| Box::pin(answers::answer(store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("support");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}

/// The longest text, in bytes of UTF-8. A page of a hundred questions, or a question with all its
/// answers, stays within the 1 MB that one Query reads.
const MAX_TEXT: usize = 8000;

/// Returns the response to a request after its transaction. A refused request may repeat a
/// completed one. Then it gets the first response again.
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

/// Explains a refusal for another reason than the question or its customer.
fn otherwise(refusals: &[Refusal<Part>]) -> Problem {
    match refusals.first().map(|refusal| refusal.label) {
        // Only the key was refused. If `replay_or` finds no valid record, the first request is in
        // progress.
        Some(Part::Idempotency) => Once::in_progress(),
        part => Problem::internal(format!("unexpected refusal of {part:?}")),
    }
}
