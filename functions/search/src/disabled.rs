//! The routes of a deployment without a search engine (`SearchService=none`).

use http_api::{Code, Measured, Problem, Request, Response, Routes};

#[derive(Debug)]
pub struct Disabled;

impl Measured for Disabled {}

/// Returns the routes, each of which answers 503 `search_disabled`.
pub fn routes() -> Routes<Disabled> {
    Routes::new().on("GET /v1/search/products", &[], |_, _| Box::pin(async { Err(problem()) })).on(
        "GET /v1/search/orders",
        &[],
        |_, request| Box::pin(async move { orders(request) }),
    )
}

/// Callers who are not staff get the same response as with an engine.
fn orders(request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    Err(problem())
}

fn problem() -> Problem {
    Problem::new(Code::SearchDisabled, "This deployment has no search. Read products by category instead.")
}
