//! `_search` and `_count`: selects the matching documents, sorts them and builds the response.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tantivy::collector::{Collector, Count, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{DocId, Score, Searcher, SegmentOrdinal, SegmentReader};

use super::highlight::highlight;
use super::index::{Document, Index};
use super::mapping::{Kind, Values};
use super::multi_match::Mark;
use super::problem::Problem;
use super::query::compile;
use super::request::{Aggregation, AggregationKind, SearchRequest, SortValue, SourceFilter, compare, compare_hit};
use super::strict::Strict;

/// `hits.total` counts up to this number, unless the request requires an exact total.
const COUNTED_HITS: usize = 10_000;

/// Executes `_search`. The index must have been refreshed.
pub(super) fn search(name: &str, index: &Index, body: &Value) -> Result<Vec<u8>, Problem> {
    let request = SearchRequest::parse(body, &index.mapping)?;
    let searcher = index.searcher();
    let compiled = compile(request.query, &index.mapping, &searcher)?;
    let collector = Slots { scored: request.needs_scores() };
    let mut found = searcher.search(&compiled.query, &collector).map_err(Problem::internal)?;

    let matching = |filter| slots(filter, index, &searcher);
    let mut aggregations = BTreeMap::new();
    for aggregation in &request.aggregations {
        let counted = match aggregation.filter {
            None => aggregate(index, &found, aggregation, None),
            Some((filter, below)) => {
                let matching = matching(filter)?;
                let count = found.iter().filter(|found| matching.contains(&found.slot)).count();
                json!({"doc_count": count, below: aggregate(index, &found, aggregation, Some(&matching))})
            }
        };
        aggregations.insert(aggregation.name, counted);
    }
    if let Some(filter) = request.post_filter {
        let matching = matching(filter)?;
        found.retain(|found| matching.contains(&found.slot));
    }
    let max_score = request.needs_scores().then(|| found.iter().map(|found| found.score).reduce(f32::max)).flatten();
    let (total, relation) = match found.len() {
        total if request.exact_total || total <= COUNTED_HITS => (total, "eq"),
        _ => (COUNTED_HITS, "gte"),
    };
    let page = page(index, &found, &request);
    let hits = page.iter().map(|ranked| hit(name, index, ranked, &request, &compiled.marks));
    let answer = Answer {
        took: 0,
        timed_out: false,
        hits: Hits {
            total: json!({"value": total, "relation": relation}),
            max_score,
            hits: hits.collect::<Result<_, _>>()?,
        },
        aggregations: (!aggregations.is_empty()).then_some(aggregations),
    };
    serde_json::to_vec(&answer).map_err(Problem::internal)
}

/// Returns the documents that match a query.
fn slots(query: &Value, index: &Index, searcher: &Searcher) -> Result<HashSet<usize>, Problem> {
    let compiled = compile(Some(query), &index.mapping, searcher)?;
    let found = searcher.search(&compiled.query, &Slots { scored: false }).map_err(Problem::internal)?;
    Ok(found.into_iter().map(|found| found.slot).collect())
}

/// Executes `_count`. The index must have been refreshed.
pub(super) fn count(index: &Index, body: &Value) -> Result<Value, Problem> {
    let mut object = Strict::new("count", body)?;
    let query = object.value("query");
    object.finish()?;
    let searcher = index.searcher();
    let compiled = compile(query, &index.mapping, &searcher)?;
    let count = searcher.search(&compiled.query, &Count).map_err(Problem::internal)?;
    Ok(json!({"count": count}))
}

#[derive(Serialize)]
struct Answer<'a> {
    took: u32,
    timed_out: bool,
    hits: Hits<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregations: Option<BTreeMap<&'a str, Value>>,
}

#[derive(Serialize)]
struct Hits<'a> {
    total: Value,
    max_score: Option<f32>,
    hits: Vec<Hit<'a>>,
}

#[derive(Serialize)]
struct Hit<'a> {
    #[serde(rename = "_index")]
    index: &'a str,
    #[serde(rename = "_id")]
    id: &'a str,
    #[serde(rename = "_version", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(rename = "_seq_no", skip_serializing_if = "Option::is_none")]
    seq_no: Option<u64>,
    #[serde(rename = "_primary_term", skip_serializing_if = "Option::is_none")]
    primary_term: Option<u64>,
    #[serde(rename = "_score")]
    score: Option<f32>,
    #[serde(rename = "_source", skip_serializing_if = "Option::is_none")]
    source: Option<Source<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    highlight: BTreeMap<&'a str, [String; 1]>,
    sort: Vec<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Source<'a> {
    Whole(&'a RawValue),
    Part(Map<String, Value>),
}

struct Found {
    slot: usize,
    score: Score,
}

struct Ranked<'a> {
    document: &'a Document,
    score: Score,
    sort: Vec<SortValue<'a>>,
}

fn page<'a>(index: &'a Index, found: &[Found], request: &SearchRequest<'_>) -> Vec<Ranked<'a>> {
    let mut ranked = match request.collapse {
        Some(field) => collapsed(index, found, request, field),
        None => ranked(index, found, request),
    };
    ranked.truncate(request.from.saturating_add(request.size));
    ranked.drain(..request.from.min(ranked.len()));
    ranked
}

/// Documents without a value are one group, as in OpenSearch.
fn collapsed<'a>(index: &'a Index, found: &[Found], request: &SearchRequest<'_>, field: usize) -> Vec<Ranked<'a>> {
    let mut groups: HashMap<Option<&str>, Ranked<'a>> = HashMap::new();
    for Found { slot, score } in found {
        let Some(document) = index.document(*slot) else { continue };
        let group = match document.row.get(field) {
            Some(Values::Keywords(keywords)) => keywords.first().map(|keyword| &**keyword),
            _ => None,
        };
        let is_first = groups
            .get(&group)
            .is_none_or(|known| compare_hit(&request.sort, *score, &document.row, &known.sort).is_lt());
        if is_first {
            let sort = request.sort.iter().map(|key| key.value(*score, &document.row)).collect();
            groups.insert(group, Ranked { document, score: *score, sort });
        }
    }
    let mut first: Vec<_> = groups.into_values().collect();
    first.sort_by(|a, b| compare(&request.sort, &a.sort, &b.sort));
    first
}

/// Returns the documents up to the end of the page, in order. It first compares each hit with the
/// worst document that it has kept. This comparison rules out most hits.
fn ranked<'a>(index: &'a Index, found: &[Found], request: &SearchRequest<'_>) -> Vec<Ranked<'a>> {
    let kept = request.from.saturating_add(request.size);
    let mut best: Vec<Ranked<'a>> = Vec::new();
    let mut worst: Option<Vec<SortValue<'a>>> = None;
    let keep_best = |best: &mut Vec<Ranked<'a>>| {
        best.sort_by(|a, b| compare(&request.sort, &a.sort, &b.sort));
        best.truncate(kept);
    };
    for Found { slot, score } in found {
        let Some(document) = index.document(*slot) else { continue };
        let order = |other: &[SortValue<'_>]| compare_hit(&request.sort, *score, &document.row, other);
        if request.after.as_ref().is_some_and(|after| order(after).is_le())
            || worst.as_ref().is_some_and(|worst| order(worst).is_ge())
        {
            continue;
        }
        let sort = request.sort.iter().map(|key| key.value(*score, &document.row)).collect();
        best.push(Ranked { document, score: *score, sort });
        if best.len() >= kept.saturating_mul(2) {
            keep_best(&mut best);
            worst = best.last().map(|last| last.sort.clone());
        }
    }
    keep_best(&mut best);
    best
}

fn hit<'a>(
    name: &'a str,
    index: &'a Index,
    ranked: &Ranked<'a>,
    request: &SearchRequest<'_>,
    marks: &[Mark],
) -> Result<Hit<'a>, Problem> {
    let Ranked { document, score, sort } = ranked;
    Ok(Hit {
        index: name,
        id: &document.id,
        version: request.with_version.then_some(document.version),
        seq_no: request.with_state.then_some(document.seq_no),
        primary_term: request.with_state.then(|| index.primary_term()),
        score: request.needs_scores().then_some(*score),
        source: match &request.source {
            SourceFilter::All => Some(Source::Whole(&document.source)),
            SourceFilter::None => None,
            SourceFilter::Only(names) => {
                let mut part = parse_source(document)?;
                part.retain(|name, _| names.contains(name));
                Some(Source::Part(part))
            }
        },
        highlight: highlights(index, document, &request.highlight, marks)?,
        sort: sort.iter().map(|value| value.to_json()).collect(),
    })
}

fn highlights<'a>(
    index: &'a Index,
    document: &Document,
    fields: &[usize],
    marks: &[Mark],
) -> Result<BTreeMap<&'a str, [String; 1]>, Problem> {
    let mut highlights = BTreeMap::new();
    if fields.is_empty() || marks.is_empty() {
        return Ok(highlights);
    }
    let source = parse_source(document)?;
    for position in fields {
        let Some(field) = index.mapping.field_at(*position) else {
            continue;
        };
        let marks: Vec<_> = marks.iter().filter(|mark| mark.field == *position).collect();
        if let (Kind::Text { analyzer }, Some(Value::String(text))) = (&field.kind, source.get(&field.property))
            && let Some(marked) = highlight(analyzer, text, &marks)
        {
            highlights.insert(field.name.as_str(), [marked]);
        }
    }
    Ok(highlights)
}

fn parse_source(document: &Document) -> Result<Map<String, Value>, Problem> {
    serde_json::from_str(document.source.get()).map_err(Problem::internal)
}

/// Values of equal frequency are in ascending order. With `only`, other documents do not count.
fn aggregate(index: &Index, found: &[Found], aggregation: &Aggregation<'_>, only: Option<&HashSet<usize>>) -> Value {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let counted = found.iter().filter(|found| only.is_none_or(|only| only.contains(&found.slot)));
    for document in counted.filter_map(|found| index.document(found.slot)) {
        if let Some(Values::Keywords(keywords)) = document.row.get(aggregation.field) {
            for keyword in keywords {
                *counts.entry(keyword).or_default() += 1;
            }
        }
    }
    let AggregationKind::Terms(size) = aggregation.kind else { return json!({"value": counts.len()}) };
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let others: u64 = counts.iter().skip(size).map(|(_, count)| count).sum();
    let buckets: Vec<_> =
        counts.iter().take(size).map(|(key, count)| json!({"key": key, "doc_count": count})).collect();
    json!({"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": buckets})
}

struct Slots {
    scored: bool,
}

struct SegmentSlots {
    slots: Column<u64>,
    found: Vec<Found>,
}

impl Collector for Slots {
    type Fruit = Vec<Found>;
    type Child = SegmentSlots;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentSlots> {
        Ok(SegmentSlots { slots: segment.fast_fields().u64("_slot")?, found: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        self.scored
    }

    fn merge_fruits(&self, fruits: Vec<Vec<Found>>) -> tantivy::Result<Vec<Found>> {
        Ok(fruits.into_iter().flatten().collect())
    }
}

impl SegmentCollector for SegmentSlots {
    type Fruit = Vec<Found>;

    fn collect(&mut self, doc: DocId, score: Score) {
        if let Some(slot) = self.slots.first(doc).and_then(|slot| usize::try_from(slot).ok()) {
            self.found.push(Found { slot, score });
        }
    }

    fn harvest(self) -> Vec<Found> {
        self.found
    }
}
