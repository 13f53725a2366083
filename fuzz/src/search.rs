//! A search: the typed text is only a value in the query, never syntax. The size of the query is
//! limited.

use serde_json::Value;

// The target includes only the modules of the queries. The other modules of `search-index` need
// crates that take minutes to build.
#[allow(dead_code)]
#[path = "../../shared/search-index/src/products.rs"]
mod products;
#[allow(dead_code)]
#[path = "../../shared/search-index/src/query.rs"]
mod query;

use products::{PageStart, ProductQuery, ProductSort, SuggestionQuery};
use query::{OrderQuery, SearchAfter, SearchText, SearchTextError};

/// The maximum number of clauses in a query that the engine accepts.
const MAX_CLAUSES: u64 = 1024;
/// The maximum size of a query. The query contains a text of 512 bytes several times: in the
/// clauses of the text's words and in the prefixes. JSON may escape each byte of the text. The chosen
/// categories and brands, which a request limits to 10 KB, are in it up to four times.
const MAX_QUESTION_BYTES: usize = 96 * 1024;

/// The member names that a query can have.
const NAMES: &str = "\
    _score aggs and bool brand brand.words cardinality category category_path collapse counted created_at \
    customer_id.folded customer_id.words deleted encoder field fields filter from fuzziness gte groups \
    has_variants highlight id id.folded id.words in_stock lte match_all max_expansions \
    minimum_should_match multi_match must must_not name name.folded number.folded number.words \
    number_of_fragments operator parent placed_at post_filter precision_threshold prefix price_amount query range \
    rating_count \
    reference.folded reference.words \
    search_after should size sort status.folded status.words summary term terms track_total_hits type value \
    zero_terms_query";
/// The texts that a query can have outside of the caller's values.
const WORDS: &str = "\
    AUTO all and asc bool_prefix brand brand.words^2 category category_path customer_id.words desc group html \
    id.words name^3 none number.words options parent reference.words status.words summary";

const SORTS: [ProductSort; 5] = [
    ProductSort::Relevance,
    ProductSort::PriceAscending,
    ProductSort::PriceDescending,
    ProductSort::Newest,
    ProductSort::Name,
];

pub fn check(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    // The lines are the text, a category, a brand, two prices, and the end of the previous page.
    let mut lines = input.split('\n');
    let mut next = || lines.next().filter(|line| !line.is_empty());
    let typed = next().unwrap_or_default();
    let text = match SearchText::parse(typed) {
        Ok(text) => text,
        Err(error) => return refused(error, typed),
    };
    let mut values = || next().map(str::to_owned).into_iter().collect::<Vec<_>>();
    let (categories, brands) = (values(), values());
    let mut price = || next().and_then(|line| line.parse().ok());
    let (min_price, max_price) = (price(), price());
    let after: Option<SearchAfter> = next().and_then(|line| serde_json::from_str(line).ok());
    let size = u32::try_from(2 + input.len() % 100).unwrap_or(2);
    for (sort, in_stock) in SORTS.into_iter().zip([None, Some(true), Some(false)].into_iter().cycle()) {
        let (text, categories, brands) = (text.clone(), categories.clone(), brands.clone());
        let start = in_stock.map_or(PageStart::After(after.clone()), |_| PageStart::Group(size));
        let query = ProductQuery { text, categories, brands, in_stock, min_price, max_price, sort, size, start };
        let body = query.body();
        let parents = serde_json::json!({"term": {"has_variants": {"value": true}}});
        assert_eq!(body["query"]["bool"]["must_not"][1], parents, "{body}");
        sound(&body);
    }
    sound(&SuggestionQuery { text: text.clone(), size }.body());
    sound(&OrderQuery { text, size, after }.body());
}

/// Checks that only long texts and texts with many words are refused.
fn refused(error: SearchTextError, typed: &str) {
    let words = typed.chars().filter(|c| c.is_alphanumeric() || *c >= '\u{2190}').count();
    let is_much = match error {
        SearchTextError::TooLong => typed.len() > SearchText::MAX_BYTES,
        SearchTextError::TooManyWords => words > SearchText::MAX_WORDS,
    };
    assert!(is_much, "{typed:?}: {error}");
}

fn sound(question: &Value) {
    assert!(question.to_string().len() <= MAX_QUESTION_BYTES, "a query of {} bytes", question.to_string().len());
    assert!(question["size"].as_u64().is_some_and(|size| (2..=101).contains(&size)), "{question}");
    let query = &question["query"]["bool"];
    assert_eq!(query["must_not"][0], serde_json::json!({"term": {"deleted": {"value": true}}}), "{question}");
    assert!(query["must"].as_array().is_some_and(|must| !must.is_empty()), "{question}");
    let clauses = ours(question, false);
    assert!(clauses <= MAX_CLAUSES, "{clauses} clauses: {question}");
}

/// Fails if the query has an unknown name, or an unknown text that is not a value from the caller.
/// Returns the highest possible number of clauses.
fn ours(value: &Value, clients: bool) -> u64 {
    match value {
        Value::String(text) => {
            assert!(clients || has(WORDS, text), "the caller's text {text:?} is outside of a value");
            0
        }
        Value::Array(values) => values.iter().map(|value| ours(value, clients)).sum(),
        Value::Object(members) => {
            let fields = members.get("fields").and_then(Value::as_array).map_or(1, |fields| fields.len() as u64);
            let expansions = members.get("max_expansions").and_then(Value::as_u64).unwrap_or_default();
            let own = expansions * fields * members.get("query").and_then(Value::as_str).map_or(0, terms);
            let below = members.iter().map(|(name, value)| {
                assert!(has(NAMES, name), "{name:?} is an unknown name");
                // Some values come from the caller: the value of a term or prefix, the words of a
                // multi_match, and the values of a filter. `search_after`, the end of the previous
                // page, also comes from the caller.
                let is_one = value.is_string() && (name == "value" || name == "query");
                let are_several = value.is_array() && (name == "category" || name == "brand");
                ours(value, is_one || are_several || name == "search_after")
            });
            own + below.sum::<u64>()
        }
        _ => 0,
    }
}

fn has(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Returns the highest possible number of terms in a text. The engine treats a run of letters and
/// digits as one term. It may treat each arrow, symbol, kana, ideograph or emoji as one term, which
/// also ends a run.
fn terms(text: &str) -> u64 {
    let is_alone = |c: char| c >= '\u{2190}' && !('\u{ac00}'..='\u{d7a3}').contains(&c);
    let runs = text.split(|c: char| is_alone(c) || !c.is_alphanumeric()).filter(|run| !run.is_empty()).count();
    (runs + text.chars().filter(|c| is_alone(*c)).count()) as u64
}
