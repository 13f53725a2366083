//! `multi_match`: searches for words in several fields and tolerates typing errors. The best field
//! determines the score.
//!
//! OpenSearch scores a misspelt word by the statistics of the similar terms. In this emulator an
//! exact term always scores higher than a similar term, and similar terms score by their edit
//! distance.

use std::collections::BTreeSet;

use serde_json::Value;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery, FuzzyTermQuery, Occur, Query,
    TermQuery, TermSetQuery,
};
use tantivy::schema::{Field as Handle, IndexRecordOption};
use tantivy::{Searcher, Term};

use super::analysis::{normalize, tokens};
use super::mapping::{Kind, Mapping};
use super::problem::Problem;
use super::strict::Strict;

const DEFAULT_EXPANSIONS: u64 = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The field's position in the mapping.
    pub field: usize,
    pub token: String,
    /// Maximum edit distance.
    pub edits: usize,
}

impl Mark {
    pub(super) fn fits(&self, token: &str) -> bool {
        edit_distance(&self.token, token) <= self.edits
    }
}

/// Translates the query, and returns the searched words.
pub(super) fn compile(
    body: &Value,
    mapping: &Mapping,
    searcher: &Searcher,
) -> Result<(Box<dyn Query>, Vec<Mark>), Problem> {
    let options = Options::parse(body)?;
    let mut marks = Vec::new();
    let mut best: Vec<Box<dyn Query>> = Vec::new();
    for name in &options.fields {
        let (name, boost) = parse_boost(name)?;
        let (position, field) =
            mapping.field(name).ok_or_else(|| Problem::illegal(format!("there is no field [{name}]")))?;
        let words: Vec<String> = match &field.kind {
            Kind::Text { analyzer } => tokens(analyzer, options.text).into_iter().map(|token| token.text).collect(),
            Kind::Keyword { normalizer } => vec![normalize(normalizer.as_ref(), options.text)],
            _ => {
                return Err(Problem::illegal(format!("[multi_match] needs text or keywords, [{name}] is neither")));
            }
        };
        let handle = field.handle.ok_or_else(|| Problem::illegal(format!("[{name}] is not indexed")))?;
        let mut clauses = Vec::with_capacity(words.len());
        for (number, word) in words.iter().enumerate() {
            if options.prefix && number + 1 == words.len() {
                clauses.push((options.occur, beginning(handle, word)));
                continue;
            }
            let edits = if options.fuzzy { allowed_edits(word) } else { 0 };
            clauses.push((options.occur, word_query(handle, word, edits, options.expansions, searcher)?));
            marks.push(Mark { field: position, token: word.clone(), edits });
        }
        best.push(match words.len() {
            0 if options.all_without_words => Box::new(AllQuery),
            0 => Box::new(EmptyQuery),
            _ => Box::new(BoostQuery::new(Box::new(BooleanQuery::new(clauses)), boost)),
        });
    }
    Ok((Box::new(DisjunctionMaxQuery::new(best)), marks))
}

struct Options<'a> {
    text: &'a str,
    fields: Vec<&'a str>,
    occur: Occur,
    fuzzy: bool,
    /// Whether the last word may be the beginning of a word (`bool_prefix`).
    prefix: bool,
    expansions: usize,
    /// Whether a text matches every document if the analyzer removes all words of the text.
    /// Otherwise such a text matches no document.
    all_without_words: bool,
}

impl<'a> Options<'a> {
    fn parse(body: &'a Value) -> Result<Self, Problem> {
        let mut object = Strict::new("multi_match", body)?;
        let unsupported =
            |key: &str, value: &str| Problem::parsing(format!("[multi_match] [{key}] cannot be [{value}]"));
        let options = Self {
            text: object.required_text("query")?,
            fields: object.list("fields")?.into_iter().flatten().filter_map(Value::as_str).collect(),
            occur: match object.text("operator")? {
                None | Some("or") => Occur::Should,
                Some("and") => Occur::Must,
                Some(other) => return Err(unsupported("operator", other)),
            },
            fuzzy: match object.text("fuzziness")? {
                None => false,
                Some("AUTO") => true,
                Some(other) => return Err(unsupported("fuzziness", other)),
            },
            prefix: match object.text("type")? {
                None | Some("best_fields") => false,
                Some("bool_prefix") => true,
                Some(other) => return Err(unsupported("type", other)),
            },
            expansions: object
                .number("max_expansions")?
                .unwrap_or(DEFAULT_EXPANSIONS)
                .try_into()
                .map_err(Problem::internal)?,
            all_without_words: match object.text("zero_terms_query")? {
                None | Some("none") => false,
                Some("all") => true,
                Some(other) => return Err(unsupported("zero_terms_query", other)),
            },
        };
        object.finish()?;
        if options.fields.is_empty() {
            return Err(Problem::parsing("[multi_match] requires [fields]"));
        }
        Ok(options)
    }
}

fn parse_boost(field: &str) -> Result<(&str, f32), Problem> {
    match field.split_once('^') {
        None => Ok((field, 1.0)),
        Some((name, boost)) => {
            let boost = boost.parse().map_err(|_| Problem::parsing(format!("[{field}] has no valid boost")))?;
            Ok((name, boost))
        }
    }
}

/// Returns the number of edits that fuzziness `AUTO` allows: longer words may have more edits.
fn allowed_edits(word: &str) -> usize {
    match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    }
}

/// Every word with this beginning has the same score.
fn beginning(field: Handle, word: &str) -> Box<dyn Query> {
    let words = FuzzyTermQuery::new_prefix(Term::from_field_text(field, word), 0, true);
    Box::new(ConstScoreQuery::new(Box::new(words), 1.0))
}

fn word_query(
    field: Handle,
    word: &str,
    edits: usize,
    expansions: usize,
    searcher: &Searcher,
) -> Result<Box<dyn Query>, Problem> {
    let exact = TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs);
    if edits == 0 {
        return Ok(Box::new(exact));
    }
    // An exact word scores 1 in addition to its BM25 score. A similar word scores 0.5 at distance
    // 1, and 0.25 at distance 2.
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = vec![
        (Occur::Should, Box::new(ConstScoreQuery::new(Box::new(exact.clone()), 1.0))),
        (Occur::Should, Box::new(exact)),
    ];
    let near = near_terms(field, word, edits, expansions, searcher)?;
    for group in near.chunk_by(|a, b| a.0 == b.0) {
        let Some((distance, _)) = group.first() else {
            continue;
        };
        let score = if *distance == 1 { 0.5 } else { 0.25 };
        let terms = TermSetQuery::new(group.iter().map(|(_, term)| Term::from_field_text(field, term)));
        clauses.push((Occur::Should, Box::new(ConstScoreQuery::new(Box::new(terms), score))));
    }
    Ok(Box::new(BooleanQuery::new(clauses)))
}

/// Returns the similar terms of the index, nearest first, without the exact term.
fn near_terms(
    field: Handle,
    word: &str,
    edits: usize,
    expansions: usize,
    searcher: &Searcher,
) -> Result<Vec<(usize, String)>, Problem> {
    let distance = u8::try_from(edits).map_err(Problem::internal)?;
    let fuzzy = FuzzyTermQuery::new(Term::from_field_text(field, word), distance, true);
    let mut near = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field).map_err(Problem::internal)?;
        let automaton = fuzzy.automaton().map_err(Problem::internal)?;
        let mut terms = index.terms().search(automaton).into_stream().map_err(Problem::internal)?;
        while terms.advance() {
            if let Ok(term) = std::str::from_utf8(terms.key())
                && term != word
            {
                near.insert((edit_distance(word, term), term.to_owned()));
            }
        }
    }
    Ok(near.into_iter().take(expansions).collect())
}

/// Returns the edit distance of two words: insertions, deletions, replacements and swaps of
/// adjacent letters. No letter is edited twice.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (row, letter) in a.chars().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        for (column, other) in b.iter().enumerate() {
            let at = |values: &[usize], index: usize| values.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(letter != *other);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = column > 0 && previous == Some(*other) && b.get(column - 1) == Some(&letter);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_counted_as_insertions_deletions_replacements_and_swaps() {
        for (a, b, distance) in [
            ("milk", "milk", 0),
            ("milk", "mlik", 1),
            ("milk", "mil", 1),
            ("milk", "silk", 1),
            ("milk", "milks", 1),
            ("chocolate", "choclate", 1),
            ("ca", "abc", 3),
            ("", "ab", 2),
            ("ab", "", 2),
            ("crème", "creme", 1),
        ] {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
        }
    }

    #[test]
    fn more_mistakes_are_forgiven_in_longer_words() {
        let edits = ["ab", "abc", "abcde", "abcdef", "äöü"].map(allowed_edits);
        assert_eq!(edits, [0, 1, 1, 2, 1]);
    }
}
