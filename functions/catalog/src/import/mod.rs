//! POST products/import: creates, updates or refuses up to 1,000 products. Each line of the body is
//! a JSON document.
//!
//! Lines are independent: an unreadable or refused line does not affect the others. The response
//! reports on every line. A repeated import does not write an accepted line again, so a client may
//! repeat an import until no line is refused with `throttled`.

mod lines;
mod plan;
mod report;
mod write;

use http_api::{Problem, Request, Response, Services};
use key_schema::instant::Instant;

use report::Report;

pub async fn import(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let at = Instant::now();
    let mut report = Report::default();
    let lines = lines::read(request, &mut report)?;
    let wanted = lines.wanted(|| services.born(at), at)?;
    write::all(services, wanted, at, request.deadline(), &mut report).await?;
    lines.answer_repeats(&mut report);
    Ok(Response::ok(&report))
}
