//! The queries, and their translation to the engine's query language.
//!
//! User input is always a value in these queries, never query syntax.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

const FACET_SIZE: u32 = 20;

/// The maximum number of index terms to which fuzzy matching may expand all words of a query, in
/// all fields together. The engine refuses a query of more than 1,024 clauses.
const MAX_EXPANDED_TERMS: usize = 768;

/// The maximum number of index terms to which one word may expand in one field: the engine's
/// default.
const MAX_EXPANSIONS: usize = 50;

/// The maximum total length in bytes of the words that may match with typing errors. The engine's
/// work for such a word grows with its letters: 480 letters took 260 ms of processor time.
const MAX_FUZZY_BYTES: usize = 64;

/// The fields that a product search matches, with their weights.
const PRODUCT_FIELDS: [&str; 4] = ["name^3", "brand.words^2", "category_path", "summary"];

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

    /// Returns the maximum number of terms that the engine may find in the text.
    fn terms(&self) -> usize {
        let mut terms = 0;
        let mut run = None;
        for c in self.0.chars() {
            let part = Part::of(c);
            terms += usize::from(part == Some(Part::Alone) || (part.is_some() && part != run));
            run = part;
        }
        terms
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split_whitespace()
    }

    /// Returns the `zero_terms_query` for a word that the analyzer drops, such as `&` or `the`. If
    /// the text has other words, such a word matches everything, so that the others decide.
    /// Otherwise it matches nothing
    /// (<https://docs.opensearch.org/latest/query-dsl/full-text/multi-match/>).
    fn without_terms(&self) -> &'static str {
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
    /// The character is a part of a run in a script without spaces. The run is one word, which no
    /// other letters continue.
    SouthEastAsian,
}

impl Part {
    /// Returns the role of a character, or [`None`] for a character between words.
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

/// A search text beyond the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SearchTextError {
    /// The text has more than [`SearchText::MAX_BYTES`] bytes.
    #[error("at most {} bytes can be searched for", SearchText::MAX_BYTES)]
    TooLong,
    /// The text has more than [`SearchText::MAX_WORDS`] words.
    #[error("at most {} words can be searched for", SearchText::MAX_WORDS)]
    TooManyWords,
}

/// A search for products. All given filters must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProductQuery {
    /// Words that must all occur in name, brand, categories or summary. A word of three to five
    /// letters may have one typing mistake, and a longer word two.
    pub text: SearchText,
    /// A category, in the form of its URL. Products in its subcategories match, too.
    pub category: Option<String>,
    /// The exact brand.
    pub brand: Option<String>,
    /// The lowest price, in minor units.
    pub min_price: Option<i64>,
    /// The highest price, in minor units.
    pub max_price: Option<i64>,
    /// The order of the hits.
    pub sort: ProductSort,
    /// The number of hits on a page.
    pub size: u32,
    /// The end of the previous page.
    pub after: Option<SearchAfter>,
}

/// The order of products. The id is the last sort value of each order, so each product has its own
/// position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProductSort {
    /// Best match first.
    #[default]
    Relevance,
    /// Cheapest first.
    PriceAscending,
    /// Most expensive first.
    PriceDescending,
    /// Newest first.
    Newest,
    /// By name, ignoring case and accents.
    Name,
}

impl ProductSort {
    fn clause(self) -> Value {
        match self {
            Self::Relevance => json!([{"_score": "desc"}, {"id": "asc"}]),
            Self::PriceAscending => json!([{"price_amount": "asc"}, {"id": "asc"}]),
            Self::PriceDescending => json!([{"price_amount": "desc"}, {"id": "asc"}]),
            Self::Newest => json!([{"created_at": "desc"}, {"id": "asc"}]),
            Self::Name => json!([{"name.folded": "asc"}, {"id": "asc"}]),
        }
    }
}

/// A search for orders, newest first. An order matches if its id, reference, customer or status
/// begins with the text. It also matches if each word of the text is a word of one of them. Case
/// and accents are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderQuery {
    /// The text.
    pub text: SearchText,
    /// The number of hits on a page.
    pub size: u32,
    /// The end of the previous page.
    pub after: Option<SearchAfter>,
}

/// The end of a page: the sort values of its last hit. It is only valid for the same query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SearchAfter(pub(crate) Vec<Value>);

impl Eq for SearchAfter {}

impl ProductQuery {
    pub(crate) fn body(&self) -> Value {
        let expansions = MAX_EXPANDED_TERMS / PRODUCT_FIELDS.len() / self.text.terms().max(1);
        let expansions = expansions.min(MAX_EXPANSIONS);
        let without_terms = self.text.without_terms();
        let mut fuzzy_bytes = MAX_FUZZY_BYTES;
        let word = |word: &str| {
            let rest = fuzzy_bytes.checked_sub(word.len());
            fuzzy_bytes = rest.unwrap_or(fuzzy_bytes);
            product_word(word, rest.map(|_| "AUTO"), expansions, without_terms)
        };
        let words: Vec<_> = self.text.words().map(word).collect();
        let mut filters = Vec::new();
        if let Some(category) = &self.category {
            filters.push(json!({"term": {"category": {"value": category}}}));
        }
        if let Some(brand) = &self.brand {
            filters.push(json!({"term": {"brand": {"value": brand}}}));
        }
        if self.min_price.is_some() || self.max_price.is_some() {
            let mut range = serde_json::Map::new();
            range.extend(self.min_price.map(|amount| ("gte".to_owned(), amount.into())));
            range.extend(self.max_price.map(|amount| ("lte".to_owned(), amount.into())));
            filters.push(json!({"range": {"price_amount": range}}));
        }
        let mut body = json!({
            "query": {"bool": {"must": match_all_if_empty(words), "filter": filters, "must_not": [is_deleted()]}},
            "sort": self.sort.clause(),
            "size": self.size,
            "track_total_hits": true,
            "aggs": {
                "category": {"terms": {"field": "category", "size": FACET_SIZE}},
                "brand": {"terms": {"field": "brand", "size": FACET_SIZE}},
            },
            // The engine encodes the text for HTML, so clients can safely show it together with the
            // highlighting tags.
            "highlight": {
                "encoder": "html",
                "number_of_fragments": 0,
                "fields": {"name": {}, "summary": {}},
            },
        });
        set_after(&mut body, self.after.as_ref());
        body
    }
}

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

/// Returns the clause for one word of a product search. Each word has its own clause, because the
/// engine's query across fields supports no fuzzy matching.
fn product_word(word: &str, fuzziness: Option<&str>, expansions: usize, without_terms: &str) -> Value {
    let mut clause = json!({
        "query": word,
        "fields": PRODUCT_FIELDS,
        "operator": "and",
        "max_expansions": expansions,
        "zero_terms_query": without_terms,
    });
    if let (Some(fuzziness), Some(clause)) = (fuzziness, clause.as_object_mut()) {
        clause.insert("fuzziness".to_owned(), fuzziness.into());
    }
    json!({ "multi_match": clause })
}

fn order_text(text: &SearchText) -> Value {
    const FIELDS: [&str; 4] = ["id", "reference", "customer_id", "status"];
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

fn match_all_if_empty(clauses: Vec<Value>) -> Value {
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
    fn typed_text_is_a_value_of_the_query_and_no_syntax() {
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
    fn a_word_that_the_analyzer_drops_finds_nothing_alone_and_everything_beside_others() {
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
        let left_out = json!([{"term": {"deleted": {"value": true}}}]);
        for body in [ProductQuery::default().body(), OrderQuery::default().body()] {
            assert_eq!(body["query"]["bool"]["must_not"], left_out);
        }
    }

    #[test]
    fn every_sort_order_of_products_ends_with_their_id() {
        for sort in [
            ProductSort::Relevance,
            ProductSort::PriceAscending,
            ProductSort::PriceDescending,
            ProductSort::Newest,
            ProductSort::Name,
        ] {
            assert_eq!(sort.clause()[1], json!({"id": "asc"}));
        }
    }

    #[test]
    fn the_next_page_goes_on_after_the_last_hit() {
        let after = SearchAfter(vec![json!(129), json!("p1")]);
        let query = ProductQuery { after: Some(after), ..ProductQuery::default() };
        assert_eq!(query.body()["search_after"], json!([129, "p1"]));
    }
}
