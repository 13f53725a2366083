use std::ops::Bound;

use serde_json::Value;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, FuzzyTermQuery, Occur, Query, RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field as Handle, IndexRecordOption};
use tantivy::{Searcher, Term};

use super::analysis::normalize;
use super::mapping::{Field, Kind, Mapping};
use super::multi_match::{self, Mark};
use super::problem::Problem;
use super::strict::{Strict, one_or_many, only_entry};

const MAX_DEPTH: usize = 20;

pub(super) struct Compiled {
    pub query: Box<dyn Query>,
    /// The searched words, for highlighting.
    pub marks: Vec<Mark>,
}

/// Translates a query. Without a query, every document matches.
pub(super) fn compile(query: Option<&Value>, mapping: &Mapping, searcher: &Searcher) -> Result<Compiled, Problem> {
    let mut compiler = Compiler { mapping, searcher, marks: Vec::new(), depth: 0 };
    let query = match query {
        Some(query) => compiler.query(query)?,
        None => Box::new(AllQuery),
    };
    Ok(Compiled { query, marks: compiler.marks })
}

struct Compiler<'a> {
    mapping: &'a Mapping,
    searcher: &'a Searcher,
    marks: Vec<Mark>,
    depth: usize,
}

impl Compiler<'_> {
    fn query(&mut self, query: &Value) -> Result<Box<dyn Query>, Problem> {
        if self.depth >= MAX_DEPTH {
            return Err(Problem::parsing(format!("a query may be at most {MAX_DEPTH} clauses deep")));
        }
        self.depth += 1;
        let (kind, body) = only_entry("query", query)?;
        let compiled = match kind {
            "match_all" => match_all(body),
            "bool" => self.boolean(body),
            "multi_match" => {
                let (query, marks) = multi_match::compile(body, self.mapping, self.searcher)?;
                self.marks.extend(marks);
                Ok(query)
            }
            "term" => self.term(body),
            "terms" => self.terms(body),
            "prefix" => self.prefix(body),
            "range" => self.range(body),
            other => Err(Problem::parsing(format!("unknown query [{other}]"))),
        };
        self.depth -= 1;
        compiled
    }

    fn boolean(&mut self, body: &Value) -> Result<Box<dyn Query>, Problem> {
        let mut object = Strict::new("bool", body)?;
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for must in object.value("must").map(one_or_many).unwrap_or_default() {
            clauses.push((Occur::Must, self.query(must)?));
        }
        for filter in object.value("filter").map(one_or_many).unwrap_or_default() {
            clauses.push((Occur::Must, unscored(self.query(filter)?)));
        }
        let required = !clauses.is_empty();
        let should = object.value("should").map(one_or_many).unwrap_or_default();
        for should in should {
            clauses.push((Occur::Should, self.query(should)?));
        }
        let marks = self.marks.len();
        for must_not in object.value("must_not").map(one_or_many).unwrap_or_default() {
            clauses.push((Occur::MustNot, self.query(must_not)?));
        }
        self.marks.truncate(marks);
        let default_minimum = u64::from(!required && !should.is_empty());
        let minimum = object.number("minimum_should_match")?.unwrap_or(default_minimum);
        object.finish()?;
        if !required && minimum == 0 {
            clauses.push((Occur::Must, unscored(Box::new(AllQuery))));
        }
        let minimum = minimum.try_into().map_err(Problem::internal)?;
        Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, minimum)))
    }

    fn term(&self, body: &Value) -> Result<Box<dyn Query>, Problem> {
        let (name, value) = field_value("term", body)?;
        let (field, handle) = self.indexed(name)?;
        Ok(Box::new(TermQuery::new(exact(field, handle, value)?, IndexRecordOption::Basic)))
    }

    fn terms(&self, body: &Value) -> Result<Box<dyn Query>, Problem> {
        let (name, values) = only_entry("terms", body)?;
        let values = values.as_array().ok_or_else(|| Problem::parsing("[terms] query requires an array of values"))?;
        let (field, handle) = self.indexed(name)?;
        let terms = values.iter().map(|value| exact(field, handle, value)).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(ConstScoreQuery::new(Box::new(TermSetQuery::new(terms)), 1.0)))
    }

    fn prefix(&self, body: &Value) -> Result<Box<dyn Query>, Problem> {
        let (name, value) = field_value("prefix", body)?;
        let (field, handle) = self.indexed(name)?;
        if !matches!(field.kind, Kind::Keyword { .. } | Kind::Text { .. }) {
            return Err(Problem::illegal(format!("[prefix] queries need text or keywords, [{name}] is neither")));
        }
        // A fuzzy prefix query with distance 0 is an exact prefix query.
        Ok(Box::new(FuzzyTermQuery::new_prefix(exact(field, handle, value)?, 0, true)))
    }

    fn range(&self, body: &Value) -> Result<Box<dyn Query>, Problem> {
        let (name, limits) = only_entry("range", body)?;
        let (field, handle) = self.indexed(name)?;
        if !matches!(field.kind, Kind::Long | Kind::Date) {
            return Err(Problem::illegal(format!("[range] queries need numbers or dates, [{name}] is neither")));
        }
        let mut object = Strict::new("range", limits)?;
        let mut bound = |inclusive: &'static str, exclusive: &'static str| {
            let term = |value: &Value| {
                let unreadable = || Problem::parsing(format!("[range] cannot read a limit of [{name}]"));
                field.long(value).map(|long| Term::from_field_i64(handle, long)).ok_or_else(unreadable)
            };
            match (object.value(inclusive), object.value(exclusive)) {
                (None, None) => Ok(Bound::Unbounded),
                (Some(value), None) => term(value).map(Bound::Included),
                (None, Some(value)) => term(value).map(Bound::Excluded),
                (Some(_), Some(_)) => Err(Problem::parsing("[range] has two limits on one side")),
            }
        };
        let (lower, upper) = (bound("gte", "gt")?, bound("lte", "lt")?);
        object.finish()?;
        if matches!((&lower, &upper), (Bound::Unbounded, Bound::Unbounded)) {
            return Err(Problem::parsing(format!("[range] has no limit for [{name}]")));
        }
        Ok(Box::new(RangeQuery::new(lower, upper)))
    }

    /// If the field is unknown, OpenSearch finds nothing. This emulator returns an error, because
    /// an unknown field is always a mistake.
    fn indexed(&self, name: &str) -> Result<(&Field, Handle), Problem> {
        let field = self.mapping.field(name).and_then(|(_, field)| Some((field, field.handle?)));
        field.ok_or_else(|| Problem::illegal(format!("Cannot search on field [{name}] since it is not indexed.")))
    }
}

fn match_all(body: &Value) -> Result<Box<dyn Query>, Problem> {
    Strict::new("match_all", body)?.finish()?;
    Ok(Box::new(AllQuery))
}

/// Reads `{"<field>": {"value": …}}` or `{"<field>": …}`.
fn field_value<'a>(kind: &'static str, body: &'a Value) -> Result<(&'a str, &'a Value), Problem> {
    let (name, value) = only_entry(kind, body)?;
    if !value.is_object() {
        return Ok((name, value));
    }
    let mut object = Strict::new(kind, value)?;
    let value = object.value("value").ok_or_else(|| Problem::parsing(format!("[{kind}] requires [value]")))?;
    object.finish()?;
    Ok((name, value))
}

fn exact(field: &Field, handle: Handle, value: &Value) -> Result<Term, Problem> {
    let unreadable = || Problem::parsing(format!("the value for [{}] does not have the type of the field", field.name));
    match &field.kind {
        Kind::Keyword { normalizer } => {
            let keyword = normalize(normalizer.as_ref(), value.as_str().ok_or_else(unreadable)?);
            Ok(Term::from_field_text(handle, &keyword))
        }
        Kind::Text { .. } => Ok(Term::from_field_text(handle, value.as_str().ok_or_else(unreadable)?)),
        Kind::Long | Kind::Date | Kind::Boolean => {
            Ok(Term::from_field_i64(handle, field.long(value).ok_or_else(unreadable)?))
        }
    }
}

fn unscored(query: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}
