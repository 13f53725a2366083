use std::cmp::Ordering;

use serde_json::Value;

use super::mapping::{Kind, Mapping, Values};
use super::problem::Problem;
use super::strict::{Strict, one_or_many, only_entry};

/// The engine's maximum of `from` + `size`, `index.max_result_window`.
const MAX_SIZE: u64 = 10_000;

pub(super) struct SearchRequest<'a> {
    pub query: Option<&'a Value>,
    /// A filter of the hits that the aggregations ignore.
    pub post_filter: Option<&'a Value>,
    pub sort: Vec<SortKey>,
    pub after: Option<Vec<SortValue<'a>>>,
    pub size: usize,
    /// The number of hits before the page.
    pub from: usize,
    /// The keyword field by which hits are grouped. Pages have only the first hit of each group.
    pub collapse: Option<usize>,
    pub aggregations: Vec<Aggregation<'a>>,
    /// The fields that the response returns with highlights.
    pub highlight: Vec<usize>,
    pub source: SourceFilter,
    pub with_version: bool,
    /// Whether hits include the sequence number and primary term.
    pub with_state: bool,
    /// Whether `hits.total` is exact beyond 10,000.
    pub exact_total: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SortKey {
    pub by: SortBy,
    pub descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SortBy {
    Score,
    Field(usize),
}

/// A sort value of a hit. Missing values come last in either direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SortValue<'a> {
    Score(f32),
    Long(i64),
    Keyword(&'a str),
    Missing,
}

/// An aggregation of the values of a keyword field among the documents that match the query.
pub(super) struct Aggregation<'a> {
    pub name: &'a str,
    /// A further condition of the counted documents, and the name of their aggregation below it.
    pub filter: Option<(&'a Value, &'a str)>,
    pub field: usize,
    pub kind: AggregationKind,
}

pub(super) enum AggregationKind {
    /// The most frequent values, at most this many.
    Terms(usize),
    Cardinality,
}

pub(super) enum SourceFilter {
    All,
    None,
    Only(Vec<String>),
}

impl<'a> SearchRequest<'a> {
    pub(super) fn parse(body: &'a Value, mapping: &Mapping) -> Result<Self, Problem> {
        let mut object = Strict::new("search", body)?;
        let size = object.number("size")?.unwrap_or(10);
        let from = object.number("from")?.unwrap_or(0);
        if from.saturating_add(size) > MAX_SIZE {
            let most = format!("Result window is too large, from + size must be less than or equal to: [{MAX_SIZE}]");
            return Err(Problem::illegal(most));
        }
        let sort = parse_sort(object.value("sort"), mapping)?;
        let after = object.list("search_after")?.map(|values| parse_after(values, &sort, mapping)).transpose()?;
        let collapse = object.value("collapse").map(|value| parse_collapse(value, mapping)).transpose()?;
        if after.is_some() && (collapse.is_some() || from > 0) {
            let what = if from > 0 { "`from` must be 0" } else { "cannot use `collapse`" };
            return Err(Problem::illegal(format!("{what} in conjunction with `search_after`")));
        }
        let request = Self {
            collapse,
            from: from.try_into().map_err(Problem::internal)?,
            query: object.value("query"),
            post_filter: object.value("post_filter"),
            sort,
            after,
            size: size.try_into().map_err(Problem::internal)?,
            aggregations: parse_aggregations(object.value("aggs"), mapping)?,
            highlight: object
                .value("highlight")
                .map(|value| parse_highlight(value, mapping))
                .transpose()?
                .unwrap_or_default(),
            source: parse_source(object.value("_source"))?,
            with_version: object.flag("version")?.unwrap_or(false),
            with_state: object.flag("seq_no_primary_term")?.unwrap_or(false),
            exact_total: object.flag("track_total_hits")?.unwrap_or(false),
        };
        object.finish()?;
        Ok(request)
    }

    pub(super) fn needs_scores(&self) -> bool {
        self.sort.iter().any(|key| key.by == SortBy::Score)
    }
}

impl SortKey {
    /// If a field has several values, the first value in sort direction counts.
    pub(super) fn value<'a>(&self, score: f32, row: &'a [Values]) -> SortValue<'a> {
        let SortBy::Field(field) = self.by else {
            return SortValue::Score(score);
        };
        let pick = |length: usize| {
            if self.descending { length.saturating_sub(1) } else { 0 }
        };
        match row.get(field) {
            Some(Values::Longs(longs)) => {
                longs.get(pick(longs.len())).map_or(SortValue::Missing, |v| SortValue::Long(*v))
            }
            Some(Values::Keywords(words)) => {
                words.get(pick(words.len())).map_or(SortValue::Missing, |v| SortValue::Keyword(v))
            }
            Some(Values::None) | None => SortValue::Missing,
        }
    }

    pub(super) fn compare(&self, a: &SortValue<'_>, b: &SortValue<'_>) -> Ordering {
        let ascending = match (a, b) {
            (SortValue::Missing, SortValue::Missing) => return Ordering::Equal,
            (SortValue::Missing, _) => return Ordering::Greater,
            (_, SortValue::Missing) => return Ordering::Less,
            (SortValue::Score(a), SortValue::Score(b)) => a.total_cmp(b),
            (SortValue::Long(a), SortValue::Long(b)) => a.cmp(b),
            (SortValue::Keyword(a), SortValue::Keyword(b)) => a.cmp(b),
            // A field has values of one type, and `parse_after` ensures that `search_after` has the
            // same type.
            _ => Ordering::Equal,
        };
        if self.descending { ascending.reverse() } else { ascending }
    }
}

/// Compares two lists of sort values. The first difference decides.
pub(super) fn compare(sort: &[SortKey], a: &[SortValue<'_>], b: &[SortValue<'_>]) -> Ordering {
    let mut orders = sort.iter().zip(a.iter().zip(b)).map(|(key, (a, b))| key.compare(a, b));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Compares a hit with sort values, and reads only as many values of the hit as necessary.
pub(super) fn compare_hit(sort: &[SortKey], score: f32, row: &[Values], other: &[SortValue<'_>]) -> Ordering {
    let mut orders = sort.iter().zip(other).map(|(key, other)| key.compare(&key.value(score, row), other));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl SortValue<'_> {
    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Score(score) => score.into(),
            Self::Long(long) => long.into(),
            Self::Keyword(keyword) => keyword.into(),
            Self::Missing => Value::Null,
        }
    }
}

fn parse_sort(sort: Option<&Value>, mapping: &Mapping) -> Result<Vec<SortKey>, Problem> {
    let Some(sort) = sort else {
        return Ok(vec![SortKey { by: SortBy::Score, descending: true }]);
    };
    one_or_many(sort)
        .iter()
        .map(|key| {
            let (name, order) = only_entry("sort", key)?;
            let descending = match order.as_str() {
                Some("asc") => false,
                Some("desc") => true,
                _ => return Err(Problem::parsing("[sort] must be [asc] or [desc]")),
            };
            if name == "_score" {
                return Ok(SortKey { by: SortBy::Score, descending });
            }
            match mapping.field(name) {
                Some((field, definition)) if !matches!(definition.kind, Kind::Text { .. } | Kind::Boolean) => {
                    Ok(SortKey { by: SortBy::Field(field), descending })
                }
                Some(_) => Err(Problem::illegal(format!("[{name}] is not of a type to sort by"))),
                None => Err(Problem::illegal(format!("No mapping found for [{name}] in order to sort on"))),
            }
        })
        .collect()
}

fn parse_after<'a>(values: &'a [Value], sort: &[SortKey], mapping: &Mapping) -> Result<Vec<SortValue<'a>>, Problem> {
    if values.len() != sort.len() {
        let (got, needed) = (values.len(), sort.len());
        return Err(Problem::illegal(format!("search_after has {got} value(s) but sort has {needed}.")));
    }
    values
        .iter()
        .zip(sort)
        .map(|(value, key)| {
            let parsed = match key.by {
                _ if value.is_null() => Some(SortValue::Missing),
                // The score was written as the text of an `f32`, which converts back to the same
                // value.
                #[allow(clippy::cast_possible_truncation)]
                SortBy::Score => value.as_f64().map(|score| SortValue::Score(score as f32)),
                SortBy::Field(field) => match mapping.field_at(field).map(|field| &field.kind) {
                    Some(Kind::Keyword { .. }) => value.as_str().map(SortValue::Keyword),
                    _ => value.as_i64().map(SortValue::Long),
                },
            };
            parsed.ok_or_else(|| Problem::illegal(format!("Failed to parse search_after value for {value}")))
        })
        .collect()
}

fn parse_aggregations<'a>(aggregations: Option<&'a Value>, mapping: &Mapping) -> Result<Vec<Aggregation<'a>>, Problem> {
    let aggregations = aggregations.and_then(Value::as_object).into_iter().flatten();
    aggregations
        .map(|(name, definition)| {
            let mut object = Strict::new("aggregation", definition)?;
            let (Some(filter), below) = (object.value("filter"), object.value("aggs")) else {
                return parse_aggregation(name, definition, mapping);
            };
            object.finish()?;
            // OpenSearch permits any number of aggregations below a filter.
            let below = below.ok_or_else(|| Problem::parsing("[filter] needs one aggregation below it"))?;
            let (below, definition) = only_entry("aggregations", below)?;
            Ok(Aggregation { name, filter: Some((filter, below)), ..parse_aggregation(below, definition, mapping)? })
        })
        .collect()
}

fn parse_aggregation<'a>(name: &'a str, definition: &Value, mapping: &Mapping) -> Result<Aggregation<'a>, Problem> {
    let (kind, terms) = only_entry("aggregation", definition)?;
    let mut object = Strict::new("aggregation", terms)?;
    let field = object.required_text("field")?;
    let kind = match kind {
        "terms" => {
            let size = object.number("size")?.unwrap_or(10);
            AggregationKind::Terms(size.try_into().map_err(Problem::internal)?)
        }
        "cardinality" => {
            // This count is exact for any threshold.
            object.number("precision_threshold")?;
            AggregationKind::Cardinality
        }
        _ => return Err(Problem::parsing(format!("Unknown aggregation type [{kind}]"))),
    };
    object.finish()?;
    Ok(Aggregation { name, filter: None, field: keyword(field, mapping)?, kind })
}

fn parse_collapse(collapse: &Value, mapping: &Mapping) -> Result<usize, Problem> {
    let mut object = Strict::new("collapse", collapse)?;
    let field = object.required_text("field")?;
    object.finish()?;
    keyword(field, mapping)
}

fn keyword(name: &str, mapping: &Mapping) -> Result<usize, Problem> {
    match mapping.field(name) {
        Some((field, definition)) if matches!(definition.kind, Kind::Keyword { .. }) => Ok(field),
        _ => Err(Problem::illegal(format!(
            "[{name}] is not a keyword field, so its values cannot be counted or grouped"
        ))),
    }
}

/// The emulator supports only whole fields, in HTML, with the default tags.
fn parse_highlight(highlight: &Value, mapping: &Mapping) -> Result<Vec<usize>, Problem> {
    let mut object = Strict::new("highlight", highlight)?;
    if object.text("encoder")? != Some("html") || object.number("number_of_fragments")? != Some(0) {
        return Err(Problem::parsing("[highlight] must have [encoder] [html] and [number_of_fragments] [0]"));
    }
    let fields = object.value("fields").and_then(Value::as_object);
    object.finish()?;
    fields
        .into_iter()
        .flatten()
        .map(|(name, options)| {
            Strict::new("highlight_field", options)?.finish()?;
            let field = mapping.field(name).filter(|(_, field)| matches!(field.kind, Kind::Text { .. }));
            field.map(|(field, _)| field).ok_or_else(|| Problem::illegal(format!("[{name}] is no text field")))
        })
        .collect()
}

fn parse_source(source: Option<&Value>) -> Result<SourceFilter, Problem> {
    match source {
        None | Some(Value::Bool(true)) => Ok(SourceFilter::All),
        Some(Value::Bool(false)) => Ok(SourceFilter::None),
        Some(names) => one_or_many(names)
            .iter()
            .map(|name| name.as_str().filter(|name| !name.contains('*')).map(str::to_owned))
            .collect::<Option<_>>()
            .map(SourceFilter::Only)
            .ok_or_else(|| Problem::parsing("[_source] must be a boolean or names of fields")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_come_last_in_either_direction() {
        for descending in [false, true] {
            let key = SortKey { by: SortBy::Field(0), descending };
            assert_eq!(key.compare(&SortValue::Missing, &SortValue::Long(1)), Ordering::Greater);
        }
    }

    #[test]
    fn a_document_sorts_by_the_first_of_its_values_in_sort_direction() {
        let row = [Values::Longs([1, 5].into())];
        let key = |descending| SortKey { by: SortBy::Field(0), descending };
        assert_eq!(key(false).value(0.0, &row), SortValue::Long(1));
        assert_eq!(key(true).value(0.0, &row), SortValue::Long(5));
    }

    #[test]
    fn the_first_sort_key_in_which_hits_differ_decides_their_order() {
        let sort =
            [SortKey { by: SortBy::Score, descending: true }, SortKey { by: SortBy::Field(0), descending: false }];
        let hit = |score, id: &'static str| [SortValue::Score(score), SortValue::Keyword(id)];
        assert_eq!(compare(&sort, &hit(2.0, "b"), &hit(1.0, "a")), Ordering::Less);
        assert_eq!(compare(&sort, &hit(1.0, "b"), &hit(1.0, "a")), Ordering::Greater);
    }
}
