use std::collections::BTreeMap;

use http_api::contract::Schema;
use http_api::contract::rules::{Component, any, component, integer, list_of, one_of};
use http_api::{Code, FieldError, Problem};
use key_schema::id::{MAX_ID_BYTES, ProductId};
use serde::Serialize;

use super::lines::MAX_LINES;

/// The maximum number of errors reported per line. A report on 1,000 lines must fit into a
/// response.
const MAX_ERRORS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The product was created, or a retired product was revived.
    Created,
    /// The product already equals the line.
    Unchanged,
    /// The product was updated and now equals the line.
    Updated,
    /// The line was refused. It changed no product, unless a write for it had no readable response.
    /// The missing categories of the line may have been created.
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: &'static str,
    errors: Vec<FieldError>,
}

/// The code of a line that contradicts an earlier line about the same product.
const CONFLICT: &str = "conflict";

impl Outcome {
    pub const fn conflict() -> Self {
        Self::Refused(Refusal { code: CONFLICT, errors: Vec::new() })
    }

    /// Returns the refusal of a line that the table does not accept at the moment. The client may
    /// send the line again.
    pub const fn throttled() -> Self {
        Self::Refused(Refusal { code: Code::Throttled.name(), errors: Vec::new() })
    }

    /// Returns the refusal of a line after an internal error. The log has the error.
    pub const fn internal() -> Self {
        Self::Refused(Refusal { code: Code::Internal.name(), errors: Vec::new() })
    }
}

impl From<&Problem> for Outcome {
    fn from(problem: &Problem) -> Self {
        // The pointer to an unknown field contains the field's name, which may be as long as the
        // line. So errors with a long pointer are left out.
        let brief = problem.field_errors().iter().filter(|error| error.pointer.len() <= MAX_ID_BYTES);
        Self::Refused(Refusal { code: problem.code().name(), errors: brief.take(MAX_ERRORS).cloned().collect() })
    }
}

/// The outcomes by line number.
#[derive(Debug, Default)]
pub struct Report(BTreeMap<usize, Line>);

#[derive(Debug)]
struct Line {
    id: Option<ProductId>,
    outcome: Outcome,
}

impl Report {
    /// Adds the outcome of a line. `id` is its product, if the line was readable.
    pub fn add(&mut self, line: usize, id: Option<ProductId>, outcome: Outcome) {
        self.0.insert(line, Line { id, outcome });
    }

    pub fn outcome(&self, line: usize) -> Option<&Outcome> {
        self.0.get(&line).map(|line| &line.outcome)
    }

    pub fn view(&self) -> ReportView<'_> {
        ReportView { results: self.0.iter().map(|(number, line)| LineView::new(*number, line)).collect() }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "ImportReport")]
pub struct ReportView<'a> {
    #[field(rule = list_of(any::<LineView<'_>>(), 0..=MAX_LINES), example = [
        {"line": 1, "id": "819063", "status": "created"},
        {"line": 2, "status": "refused", "code": "invalid_body", "errors": [{"pointer": "/price", "detail": "is missing"}]}
    ])]
    results: Vec<LineView<'a>>,
}

const FIELD_ERROR: Component = component("FieldError", "null");

#[derive(Serialize, Schema)]
#[schema(name = "ImportedLine")]
struct LineView<'a> {
    /// The line's number, from 1.
    #[field(rule = integer(1..=u64::MAX), example = 2)]
    line: usize,
    #[field(left_out)]
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a ProductId>,
    #[field(rule = one_of(&["created", "unchanged", "updated", "refused"]), example = "refused")]
    status: &'static str,
    /// The reason for the refusal. `conflict`: another line about the same product has different
    /// values. `throttled`: the line may be sent again.
    #[field(
        rule = one_of(&[
            "malformed_json", "invalid_body", "invalid_id", "body_too_large", CONFLICT, "throttled", "internal",
        ]),
        example = "invalid_body",
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[field(rule = list_of(FIELD_ERROR, 0..=MAX_ERRORS), example = [{"pointer": "/price", "detail": "is missing"}])]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl<'a> LineView<'a> {
    fn new(number: usize, line: &'a Line) -> Self {
        let (status, code, errors): (_, _, &[FieldError]) = match &line.outcome {
            Outcome::Created => ("created", None, &[]),
            Outcome::Unchanged => ("unchanged", None, &[]),
            Outcome::Updated => ("updated", None, &[]),
            Outcome::Refused(refusal) => ("refused", Some(refusal.code), &refusal.errors),
        };
        Self { line: number, id: line.id.as_ref(), status, code, errors }
    }
}
