//! The search for products, which groups variants by their parent.
//!
//! # Why grouped pages have offsets
//!
//! A result has at most one hit for each parent: its best variant in the sort order. The engine
//! finds it by collapsing the hits on the field `group`. OpenSearch refuses to collapse a search
//! with `search_after`, because each page would choose the best hit of a group anew. So a page of
//! groups begins at an offset, and the result ends after [`MAX_WINDOW`] hits, the engine's limit
//! (`index.max_result_window`).
//!
//! Most searches find no variant. They need no groups, so their pages begin after the last hit of
//! the previous page, and their results have no limit ([`SearchPage::has_variants`]).
//!
//! [`SearchPage::has_variants`]: crate::SearchPage::has_variants

use serde_json::{Value, json};

use super::query::{SearchAfter, SearchText, is_deleted, match_all_if_empty, set_after};

/// The maximum number of hits from the start of a result to the end of a page of groups.
pub const MAX_WINDOW: u32 = 10_000;

/// The name of the aggregation that counts the groups.
pub(crate) const GROUPS: &str = "groups";

/// The name of the aggregation that finds the parent of a variant among the hits.
pub(crate) const PARENT: &str = "parent";

/// The number of groups up to which the engine's count is nearly exact. The engine allows no larger
/// threshold.
const EXACT_GROUPS: u32 = 40_000;

/// The name of a filtered aggregation's result.
pub(crate) const COUNTED: &str = "counted";

const FACET_SIZE: u32 = 20;

/// The number of categories, and of brands, that a suggestion has.
const SUGGESTED_VALUES: u32 = 5;

/// The number of categories in the facet: the most frequent categories of all levels.
const CATEGORY_FACET_SIZE: u32 = 200;

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
const PRODUCT_FIELDS: [&str; 5] = ["name^3", "brand.words^2", "category_path", "summary", "options"];

/// A search for products. All given filters must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProductQuery {
    /// Words that must all occur in name, brand, categories, summary or options. A word of three to
    /// five letters may have one typing mistake, and a longer word two. Words beyond a total of 64
    /// bytes must match exactly.
    pub text: SearchText,
    /// Categories, in the form of their URLs. Products in one of them or in its subcategories
    /// match. Without a category all products match.
    pub categories: Vec<String>,
    /// The exact brands. Products of one of them match. Without a brand all products match.
    pub brands: Vec<String>,
    /// `Some(true)` selects products in stock, and `Some(false)` selects products out of stock.
    pub in_stock: Option<bool>,
    /// The lowest price, in minor units.
    pub min_price: Option<i64>,
    /// The highest price, in minor units.
    pub max_price: Option<i64>,
    pub sort: ProductSort,
    pub size: u32,
    pub start: PageStart,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// After the previous page, if there is one. Each product is a hit.
    After(Option<SearchAfter>),
    /// After this number of hits. Each group of variants has at most one hit. The engine accepts at
    /// most [`MAX_WINDOW`] hits in this page and before it.
    Group(u32),
}

impl Default for PageStart {
    fn default() -> Self {
        Self::After(None)
    }
}

/// The sort order of products. The id is the last sort value of each sort order, so each product
/// has its own position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProductSort {
    /// Best match first.
    #[default]
    Relevance,
    PriceAscending,
    PriceDescending,
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

impl ProductQuery {
    pub(crate) fn body(&self) -> Value {
        let mut filters = Vec::new();
        if let Some(in_stock) = self.in_stock {
            filters.push(json!({"term": {"in_stock": {"value": in_stock}}}));
        }
        if self.min_price.is_some() || self.max_price.is_some() {
            let mut range = serde_json::Map::new();
            range.extend(self.min_price.map(|amount| ("gte".to_owned(), amount.into())));
            range.extend(self.max_price.map(|amount| ("lte".to_owned(), amount.into())));
            filters.push(json!({"range": {"price_amount": range}}));
        }
        let chosen =
            |field: &'static str, values: &[String]| (!values.is_empty()).then(|| json!({"terms": {field: values}}));
        let (category, brand) = (chosen("category", &self.categories), chosen("brand", &self.brands));
        let both: Vec<_> = category.iter().chain(&brand).cloned().collect();
        let mut body = json!({
            "query": {"bool": {
                "must": match_all_if_empty(words(&self.text)),
                "filter": filters,
                "must_not": [is_deleted(), has_variants()],
            }},
            "sort": self.sort.clause(),
            "size": self.size,
            "track_total_hits": true,
            // A facet ignores its own filter, so that it still shows the other values when one is
            // chosen. So the hits get these filters only after the counting.
            "aggs": {
                "category": counted(brand, terms("category", CATEGORY_FACET_SIZE)),
                "brand": counted(category, terms("brand", FACET_SIZE)),
                PARENT: counted(both.clone(), terms("parent", 1)),
            },
            // The engine encodes the text for HTML, so clients can safely show it together with the
            // highlighting tags.
            "highlight": {
                "encoder": "html",
                "number_of_fragments": 0,
                "fields": {"name": {}, "summary": {}},
            },
        });
        let Some(fields) = body.as_object_mut() else { return body };
        if !both.is_empty() {
            fields.insert("post_filter".to_owned(), json!({"bool": {"filter": both}}));
        }
        if let PageStart::Group(from) = &self.start {
            fields.insert("from".to_owned(), (*from).into());
            fields.insert("collapse".to_owned(), json!({"field": "group"}));
            if let Some(counts) = fields.get_mut("aggs").and_then(Value::as_object_mut) {
                let groups = json!({"cardinality": {"field": "group", "precision_threshold": EXACT_GROUPS}});
                counts.insert(GROUPS.to_owned(), counted(both, groups));
            }
        }
        if let PageStart::After(after) = &self.start {
            set_after(&mut body, after.as_ref());
        }
        body
    }
}

/// Returns an aggregation of the hits that match the filters. The result has the name [`COUNTED`].
fn counted(filters: impl IntoIterator<Item = Value>, aggregation: Value) -> Value {
    let filters: Vec<_> = filters.into_iter().collect();
    json!({"filter": {"bool": {"filter": filters}}, "aggs": {COUNTED: aggregation}})
}

fn terms(field: &str, size: u32) -> Value {
    json!({"terms": {"field": field, "size": size}})
}

/// Returns a clause for each word of a text.
fn words(text: &SearchText) -> Vec<Value> {
    let expansions = MAX_EXPANDED_TERMS / PRODUCT_FIELDS.len() / text.terms().max(1);
    let expansions = expansions.min(MAX_EXPANSIONS);
    let without_terms = text.without_terms();
    let mut fuzzy_bytes = MAX_FUZZY_BYTES;
    let word = |word: &str| {
        let rest = fuzzy_bytes.checked_sub(word.len());
        fuzzy_bytes = rest.unwrap_or(fuzzy_bytes);
        product_word(word, rest.map(|_| "AUTO"), expansions, without_terms)
    };
    text.words().map(word).collect()
}

/// A search for the products that a customer may mean who is still typing. The last word of the text
/// may be the beginning of a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuggestionQuery {
    pub text: SearchText,
    /// The maximum number of products.
    pub size: u32,
}

impl SuggestionQuery {
    pub(crate) fn body(&self) -> Value {
        let mut clauses = words(&self.text);
        if let (Some(last), Some(beginning)) = (clauses.pop(), self.text.words().last()) {
            let beginning = json!({"multi_match": {
                "query": beginning,
                "type": "bool_prefix",
                "fields": PRODUCT_FIELDS,
                "operator": "and",
                "zero_terms_query": self.text.without_terms(),
            }});
            clauses.push(json!({"bool": {"should": [beginning, last], "minimum_should_match": 1}}));
        }
        json!({
            "query": {"bool": {
                "must": match_all_if_empty(clauses),
                "must_not": [is_deleted(), has_variants()],
            }},
            "sort": [{"_score": "desc"}, {"rating_count": "desc"}, {"id": "asc"}],
            "size": self.size,
            "collapse": {"field": "group"},
            "aggs": {
                "category": counted(None, terms("category", SUGGESTED_VALUES)),
                "brand": counted(None, terms("brand", SUGGESTED_VALUES)),
            },
        })
    }
}

/// Returns the filter of parents. Their variants are the hits.
fn has_variants() -> Value {
    json!({"term": {"has_variants": {"value": true}}})
}

/// Returns the clause for one word of a product search. Each word has its own clause, because the
/// engine's `cross_fields` query over several fields supports no fuzzy matching.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

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
    fn parents_are_left_out_and_variants_are_collapsed_only_in_pages_of_groups() {
        let after = PageStart::After(Some(SearchAfter(vec![json!(129), json!("p1")])));
        for (start, from) in [(after, None), (PageStart::Group(20), Some(20))] {
            let body = ProductQuery { start, ..ProductQuery::default() }.body();
            assert_eq!(body["query"]["bool"]["must_not"][1], json!({"term": {"has_variants": {"value": true}}}));
            assert_eq!(body.get("from"), from.map(|from| json!(from)).as_ref());
            assert_eq!(body.get("search_after"), from.is_none().then(|| json!([129, "p1"])).as_ref());
            assert_eq!(body.get("collapse"), from.map(|_| json!({"field": "group"})).as_ref());
            assert_eq!(body["aggs"].get(GROUPS).is_some(), from.is_some());
        }
    }

    #[test]
    fn only_the_last_word_of_a_suggestion_may_be_a_beginning() {
        let body = SuggestionQuery { text: SearchText::parse("oak cut").unwrap(), size: 5 }.body();
        let clauses = body["query"]["bool"]["must"].as_array().unwrap();
        assert_eq!(clauses.len(), 2);
        assert_eq!(clauses[0]["multi_match"]["query"], "oak");
        let last = &clauses[1]["bool"]["should"];
        assert_eq!(
            (&last[0]["multi_match"]["type"], &last[0]["multi_match"]["query"]),
            (&json!("bool_prefix"), &json!("cut"))
        );
        assert_eq!(last[1]["multi_match"]["query"], "cut");
    }
}
