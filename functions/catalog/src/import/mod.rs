//! The import of products. Lines are independent: an unreadable or refused line does not affect the
//! others. A repeated import does not write an accepted line again, so a client may repeat an import
//! until no line is refused with `throttled`.

mod lines;
mod plan;
mod report;
mod write;

use http_api::contract::route;
use http_api::{Problem, Request, Response, Services};
use key_schema::instant::Instant;

use report::{Report, ReportView};

use crate::body::ImportedProduct;

/// Create or update many products
///
/// Creates or updates up to 1,000 products in at most 2 MB, one product per line. Blank lines are
/// skipped. Each line is accepted or refused independently. The response has one result per line, in
/// the order of the lines. A line changes all fields of an existing product except its stock. If the
/// product already equals its line, the result is `unchanged`, so an import can be repeated. A line
/// may have `price_if_new` instead of `price`. Then a new product gets that price, and an existing
/// product keeps its own price. Lines about the same product must agree in all fields except
/// `stock`, including `price` and `price_if_new`. An import changes variants like other products. It
/// cannot create variants, because it refuses `parent` and `options`.
#[route(POST "/v1/products/import", id = "importProducts", who = staff, task = "catalogue", lines = ImportedProduct,
    answers(200 = ReportView<'_> "The result of each line"),
    refuses(malformed_json = "the body is not UTF-8", too_many_lines = "more than 1,000"))]
pub async fn import(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let at = Instant::now();
    let mut report = Report::default();
    let lines = lines::read(request, &mut report)?;
    let wanted = lines.wanted(|| services.born(at), at)?;
    write::all(services, wanted, at, request.deadline(), &mut report).await?;
    lines.answer_repeats(&mut report);
    Ok(Response::ok(&report.view()))
}
