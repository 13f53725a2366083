//! What became of each line.

use std::collections::BTreeMap;

use http_api::{Code, FieldError, Problem};
use key_schema::id::{MAX_ID_BYTES, ProductId};
use serde::Serialize;

/// As many errors as are told of one line; a thousand lines must fit one answer.
const MAX_ERRORS: usize = 3;

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The product is new, or back after it was retired.
    Created,
    /// The product was as the line says.
    Unchanged,
    /// The product is now as the line says.
    Updated,
    /// Nothing was written for this line.
    Refused(Refusal),
}

/// Why nothing was written for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: &'static str,
    errors: Vec<FieldError>,
}

/// The code of a line that says something else about a product than a line before it.
const CONFLICT: &str = "conflict";

impl Outcome {
    /// Another line of the same import says something else about the same product.
    pub const fn conflict() -> Self {
        Self::Refused(Refusal { code: CONFLICT, errors: Vec::new() })
    }

    /// The table does not take it for the moment; the same line may be sent again.
    pub const fn throttled() -> Self {
        Self::Refused(Refusal { code: Code::Throttled.name(), errors: Vec::new() })
    }

    /// Something went wrong on our side; the log has it.
    pub const fn internal() -> Self {
        Self::Refused(Refusal { code: Code::Internal.name(), errors: Vec::new() })
    }
}

impl From<&Problem> for Outcome {
    fn from(problem: &Problem) -> Self {
        // The name of an unknown field is in its pointer, and may be as long as a line.
        let brief = problem.field_errors().iter().filter(|error| error.pointer.len() <= MAX_ID_BYTES);
        Self::Refused(Refusal { code: problem.code().name(), errors: brief.take(MAX_ERRORS).cloned().collect() })
    }
}

/// The outcomes by number of line. Serializes as the answer.
#[derive(Debug, Default)]
pub struct Report(BTreeMap<usize, Line>);

#[derive(Debug)]
struct Line {
    id: Option<ProductId>,
    outcome: Outcome,
}

impl Report {
    /// Reports on a line; `id` is its product's, if it could be read.
    pub fn add(&mut self, line: usize, id: Option<ProductId>, outcome: Outcome) {
        self.0.insert(line, Line { id, outcome });
    }

    /// What became of a line that was reported on.
    pub fn outcome(&self, line: usize) -> Option<&Outcome> {
        self.0.get(&line).map(|line| &line.outcome)
    }
}

impl Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Answer<'a> {
            results: Vec<LineView<'a>>,
        }
        let results = self.0.iter().map(|(number, line)| LineView::new(*number, line)).collect();
        Answer { results }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct LineView<'a> {
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a ProductId>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
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
