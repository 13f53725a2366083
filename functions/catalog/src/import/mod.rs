//! POST products/import: up to 1,000 products, one JSON document a line, each created, brought up to date, or refused by itself.
//!
//! Lines are independent: one that cannot be read, or that the table does not take, changes nothing for its neighbours, and every line is
//! answered for. Running an import again changes nothing, so a client may repeat it until no line is refused with `throttled`.

mod lines;
mod plan;
mod report;
mod write;

use http_api::{Problem, Request, Response, Store};
use key_schema::instant::Instant;

use report::Report;

/// Reads the lines, compares them with the catalogue, writes what differs, reports on each.
pub async fn import(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let at = Instant::now();
    let mut report = Report::default();
    let lines = lines::read(request, &mut report)?;
    let wanted = lines.wanted(|| store.born(at), at)?;
    write::all(store, wanted, at, &mut report).await?;
    lines.answer_repeats(&mut report);
    Ok(Response::ok(&report))
}
