//! Support: questions of customers, and answers of staff.
//!
//! Only staff and the customer who asked a question see it. Other callers get 404.

mod questions;
mod view;

use http_api::{Error, Once, Problem, Response, Services};
use key_schema::question::QuestionAction;
use table::Refusals;

http_api::routes! {
    Services;
    questions::ask, questions::of_customer, questions::support, questions::open, questions::read, questions::answer
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("support");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}

/// Returns the response to a request after its transaction. A refused request may repeat a
/// completed request. Then the client gets the first response again.
async fn settle(
    services: &Services,
    once: Option<Once>,
    done: Result<(), Refusals<QuestionAction>>,
    answer: Response,
    refused: impl FnOnce(&Refusals<QuestionAction>) -> Problem,
) -> Result<Response, Problem> {
    let Err(refusals) = done else { return Ok(answer) };
    match once {
        Some(once) => once.replay_or(services, refused(&refusals)).await,
        None => Err(refused(&refusals)),
    }
}

/// Explains a refusal that neither the question nor its customer caused.
fn otherwise(refusals: &Refusals<QuestionAction>) -> Problem {
    // If only the record of the idempotency key caused the refusal, and `replay_or` finds no valid
    // record, the first request is in progress.
    if refusals.names(QuestionAction::Idempotency) { Once::in_progress() } else { Problem::unexpected(refusals) }
}
