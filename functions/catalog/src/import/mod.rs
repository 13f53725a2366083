//! POST products/import: creates, updates or refuses up to 1,000 products, one JSON document a
//! line.
//!
//! Lines are independent: an unreadable or refused line does not affect the others. The response
//! reports on every line. An import that runs again changes nothing, so a client may repeat it
//! until no line is refused with `throttled`.

mod lines;
mod plan;
mod report;
mod write;

use http_api::{Problem, Request, Response, Services};
use key_schema::instant::Instant;

use report::Report;

/// Reads the lines, compares them with the catalogue, writes the differences, and returns a report.
pub async fn import(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let at = Instant::now();
    let mut report = Report::default();
    let lines = lines::read(request, &mut report)?;
    let wanted = lines.wanted(|| services.born(at), at)?;
    write::all(services, wanted, at, &mut report).await?;
    lines.answer_repeats(&mut report);
    Ok(Response::ok(&report))
}
