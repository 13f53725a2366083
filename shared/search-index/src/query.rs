//! The queries, and their translation to the engine's query language.
//!
//! User input is always a value in these queries, never query syntax.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

/// A search text of at most [`SearchText::MAX_WORDS`] words in [`SearchText::MAX_BYTES`] bytes. A
/// text without words is allowed, and matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchText(String);

impl SearchText {
    /// The maximum length in bytes of UTF-8.
    pub const MAX_BYTES: usize = 512;

    /// The maximum number of words. A word is a run of letters and digits. An ideograph or a symbol
    /// counts as one word.
    pub const MAX_WORDS: usize = 32;

    /// Parses a user's input. White space around it is ignored.
    pub fn parse(text: &str) -> Result<Self, SearchTextError> {
        let text = text.trim();
        if text.len() > Self::MAX_BYTES {
            return Err(SearchTextError::TooLong);
        }
        let text = Self(text.to_owned());
        if text.terms() > Self::MAX_WORDS {
            return Err(SearchTextError::TooManyWords);
        }
        Ok(text)
    }

    /// Returns the number of words in the text. The engine finds at most this many terms in it.
    pub(crate) fn terms(&self) -> usize {
        let mut terms = 0;
        let mut run = None;
        for c in self.0.chars() {
            let part = Part::of(c);
            terms += usize::from(part == Some(Part::Alone) || (part.is_some() && part != run));
            run = part;
        }
        terms
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split_whitespace()
    }

    /// Returns the `zero_terms_query` for a word that the analyzer drops, such as `&` or `the`. If
    /// the text has other words, the dropped word matches everything, so that only the other words
    /// decide. Otherwise it matches nothing
    /// (<https://docs.opensearch.org/latest/query-dsl/full-text/multi-match/>).
    pub(crate) fn without_terms(&self) -> &'static str {
        let is_word = |word: &str| word.contains(char::is_alphanumeric);
        if self.words().nth(1).is_some() && self.words().any(is_word) { "all" } else { "none" }
    }
}

/// How the engine's tokenizer assigns a character to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The character is a word of its own.
    Alone,
    /// The character is a part of a run of letters and digits, which is one word.
    Run,
    /// The character is a part of a run in a script that has no spaces between words. The run is
    /// one word, which ends at a letter of another script.
    SouthEastAsian,
}

impl Part {
    /// Returns how a character belongs to a word, or [`None`] for a character between words.
    fn of(c: char) -> Option<Self> {
        match c {
            // Thai, Lao, Myanmar, Khmer and the scripts of Tai languages.
            '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{1950}'..='\u{19df}'
            | '\u{1a20}'..='\u{1aaf}'
            | '\u{a9e0}'..='\u{a9ff}'
            | '\u{aa60}'..='\u{aadf}' => Some(Self::SouthEastAsian),
            '\u{ac00}'..='\u{d7a3}' => Some(Self::Run),
            // Arrows, symbols, kana, ideographs and emoji.
            '\u{2190}'.. => Some(Self::Alone),
            // Superscripts and fractions are no digits, so they end a run.
            _ if c.is_numeric() && !c.is_ascii() => Some(Self::Alone),
            _ => c.is_alphanumeric().then_some(Self::Run),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SearchTextError {
    /// The text has more than [`SearchText::MAX_BYTES`] bytes.
    #[error("at most {} bytes can be searched for", SearchText::MAX_BYTES)]
    TooLong,
    /// The text has more than [`SearchText::MAX_WORDS`] words.
    #[error("at most {} words can be searched for", SearchText::MAX_WORDS)]
    TooManyWords,
}

/// A search for orders, newest first. An order matches if its id, reference, customer or status
/// begins with the text. It also matches if each word of the text is a word of one of these fields.
/// Case and accents are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderQuery {
    pub text: SearchText,
    pub size: u32,
    /// The end of the previous page.
    pub after: Option<SearchAfter>,
}

/// The end of a page: the sort values of its last hit. It is valid only for the same query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SearchAfter(pub(crate) Vec<Value>);

impl Eq for SearchAfter {}

impl OrderQuery {
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "query": {"bool": {"must": order_text(&self.text), "must_not": [is_deleted()]}},
            "sort": [{"placed_at": "desc"}, {"id": "desc"}],
            "size": self.size,
            "track_total_hits": true,
        });
        set_after(&mut body, self.after.as_ref());
        body
    }
}

fn order_text(text: &SearchText) -> Value {
    const FIELDS: [&str; 5] = ["id", "number", "reference", "customer_id", "status"];
    if text.0.is_empty() {
        return match_all_if_empty(Vec::new());
    }
    let words = FIELDS.map(|field| format!("{field}.words"));
    let every_word: Vec<_> =
        text.words().map(|word| json!({"multi_match": {"query": word, "fields": words, "operator": "and"}})).collect();
    let mut alternatives: Vec<_> =
        FIELDS.map(|field| json!({"prefix": {format!("{field}.folded"): {"value": text.0}}})).into();
    alternatives.push(json!({"bool": {"must": every_word}}));
    json!([{"bool": {"should": alternatives, "minimum_should_match": 1}}])
}

pub(crate) fn match_all_if_empty(clauses: Vec<Value>) -> Value {
    if clauses.is_empty() { json!([{"match_all": {}}]) } else { clauses.into() }
}

pub(crate) fn is_deleted() -> Value {
    json!({"term": {"deleted": {"value": true}}})
}

pub(crate) fn set_after(body: &mut Value, after: Option<&SearchAfter>) {
    if let (Some(body), Some(after)) = (body.as_object_mut(), after) {
        body.insert("search_after".to_owned(), after.0.clone().into());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::super::products::ProductQuery;
    use super::*;

    #[test]
    fn a_text_is_limited_in_bytes_and_words() {
        assert_eq!(SearchText::parse(&"é".repeat(257)), Err(SearchTextError::TooLong));
        for (word, most) in [
            ("a/", 32),
            ("word ", 32),
            ("한국어 ", 32),
            ("กขค ", 32),
            ("氷", 32),
            ("🧊", 32),
            ("氷a", 16),
            ("b²", 16),
            ("aก", 16),
        ] {
            assert!(SearchText::parse(&word.repeat(most)).is_ok(), "{word}");
            assert_eq!(SearchText::parse(&word.repeat(most + 1)), Err(SearchTextError::TooManyWords), "{word}");
        }
        assert_eq!(SearchText::parse("  ").unwrap(), SearchText::default());
    }

    #[test]
    fn at_most_64_bytes_of_a_text_match_with_typing_errors() {
        let fuzzy = |text: &str| -> Vec<bool> {
            let body = ProductQuery { text: SearchText::parse(text).unwrap(), ..ProductQuery::default() }.body();
            let clauses = body["query"]["bool"]["must"].as_array().unwrap().clone();
            clauses.iter().map(|clause| clause["multi_match"]["fuzziness"] == "AUTO").collect()
        };
        let word = "w".repeat(32);
        assert_eq!(fuzzy(&format!("{word} {word} tea")), [true, true, false]);
        assert_eq!(fuzzy(&format!("{word}{word}x tea")), [false, true]);
    }

    #[test]
    fn typed_text_is_a_value_of_the_query_and_never_syntax() {
        let query = ProductQuery { text: SearchText::parse(r#"name:* "}}"#).unwrap(), ..ProductQuery::default() };
        let body = query.body();
        let words: Vec<_> = body["query"]["bool"]["must"]
            .as_array()
            .unwrap()
            .iter()
            .map(|clause| clause["multi_match"]["query"].as_str().unwrap())
            .collect();
        assert_eq!(words, ["name:*", "\"}}"]);
    }

    #[test]
    fn a_word_dropped_by_the_analyzer_matches_nothing_alone_but_everything_beside_other_words() {
        for (text, expected) in
            [("&", "none"), ("the", "none"), ("! \u{2014} \u{1f9ca}", "none"), ("milk", "none"), ("milk & the", "all")]
        {
            let query = ProductQuery { text: SearchText::parse(text).unwrap(), ..ProductQuery::default() };
            for clause in query.body()["query"]["bool"]["must"].as_array().unwrap() {
                assert_eq!(clause["multi_match"]["zero_terms_query"], expected, "{text}");
            }
        }
    }

    #[test]
    fn a_query_without_words_matches_every_live_document() {
        let must = |body: Value| body["query"]["bool"]["must"].clone();
        assert_eq!(must(ProductQuery::default().body()), json!([{"match_all": {}}]));
        assert_eq!(must(OrderQuery::default().body()), json!([{"match_all": {}}]));
    }

    #[test]
    fn every_query_leaves_out_tombstones() {
        let left_out = json!({"term": {"deleted": {"value": true}}});
        for body in [ProductQuery::default().body(), OrderQuery::default().body()] {
            assert_eq!(body["query"]["bool"]["must_not"][0], left_out);
        }
    }

    #[test]
    fn the_next_page_goes_on_after_the_last_hit() {
        let after = SearchAfter(vec![json!("2017-01-01T11:53:26.000Z"), json!("o1")]);
        let query = OrderQuery { after: Some(after), ..OrderQuery::default() };
        assert_eq!(query.body()["search_after"], json!(["2017-01-01T11:53:26.000Z", "o1"]));
    }
}
