//! `GET /v1/search/products`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http_api::contract::rules::{Any, ListOf, Named, PRICE, any, component, integer, list_of, map_of, named};
use http_api::contract::{PageWith, Schema, route};
use http_api::{PageRequest, Problem, Request, Response, url};
use key_schema::id::ProductId;
use key_schema::product::CategoryPath;
use search_index::{Facet, Hit, MAX_WINDOW, PageStart, ProductDocument, ProductQuery, SearchPage};
use serde::Serialize;

use crate::App;
use crate::list::{self, Ends};
use crate::parameters::{Parameter, Sort, brands, categories, in_stock, prices, shown_category, text};

/// The maximum number of values of a facet, or of a level of the categories.
const MAX_VALUES: usize = 20;

/// Search products
///
/// Returns products that contain all words of `q` in name, brand, categories, summary or
/// options, and match every filter. A word of three to five letters may have one wrong letter,
/// and a longer word may have two. Without `q` every product matches. A deployment without a
/// search engine always responds with 503 `search_disabled`.
///
/// A result has at most one variant of each parent: the best one in the sort order. A search
/// does not return a parent of variants. The facets count products, including each variant. All
/// pages of a result with variants together have at most 10,000 hits. If products change
/// between two such pages, the second page may repeat or omit a hit. If the first page was read
/// before the shop had variants, later pages can have several variants of a parent.
#[route(GET "/v1/search/products", id = "searchProducts", who = any, task = "search",
    parameters(
        SearchText,
        category = Parameter::Categories "A category in the form of a path, `GROCERY~FRZN_20ICE`, or of a facet, \
            `GROCERY / FRZN ICE`. Products in its subcategories match too. If a name contains ` / ` or looks like a \
            path, the form with ` / ` would be ambiguous. Then the facet has the form of a path. With several \
            categories, a product must be in one of them.",
        brand = Parameter::Brands "The exact brand. With several brands, a product must have one of them.",
        in_stock = Parameter::InStock "True: only products in stock. False: only products out of stock.",
        min_price = Parameter::Price "Lowest price in minor units, inclusive. It must not be above `max_price`.",
        max_price = Parameter::Price "Highest price in minor units, inclusive.",
        sort = Parameter::Sort "`price` and `price_asc` sort the cheapest first, `-price` and `price_desc` the most \
            expensive first.",
        Limit,
        Cursor,
    ),
    answers(200 = PageWith<ProductHit<'_>, Found<'_>> "A page of products, with facets"
        [ETag, Link, LeftOut]))]
pub async fn search(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let (text, categories, brands) = (text(request)?, categories(request)?, brands(request)?);
    let in_stock = in_stock(request)?;
    let (min_price, max_price) = prices(request)?;
    let sort = request.query_as::<Sort>("sort")?.unwrap_or_default();
    let (low, high) = (shown(min_price), shown(max_price));
    // No value of a filter contains a line break.
    let (category, brand) = (categories.join("\n"), brands.join("\n"));
    let parameters = [
        ("q", request.query("q")?.unwrap_or_default()),
        ("category", &category),
        ("brand", &brand),
        ("in_stock", in_stock.map_or("", |in_stock| if in_stock { "true" } else { "false" })),
        ("min_price", &low),
        ("max_price", &high),
        ("sort", sort.name),
    ];
    let page = request.page(&app.services.cursors, "search.products", &parameters).await?;
    let mut query = ProductQuery {
        text,
        categories,
        brands,
        in_stock,
        min_price,
        max_price,
        sort: sort.by,
        size: list::size(&page),
        start: list::start(&page)?,
    };
    let (mut found, mut ends) = read(app, &page, &mut query).await?;
    // Searches that find no variant are read without groups, so that their results have no limit.
    let is_first = query.start == PageStart::After(None);
    if is_first && found.has_variants() {
        query.start = PageStart::Group(0);
        (found, ends) = read(app, &page, &mut query).await?;
    }
    let items: Vec<_> = found.hits.iter().map(ProductHit::from).collect();
    let facets = |name: &str| found.facets.get(name).into_iter().flatten();
    let category = |facet: &Facet| Count::new(shown_category(&facet.value), facet.count);
    let mut levels: BTreeMap<usize, Vec<Count<'_>>> = BTreeMap::new();
    for facet in facets("category") {
        let Ok(path) = CategoryPath::from_segment(&facet.value) else { continue };
        let values = levels.entry(path.names().len()).or_default();
        if values.len() < MAX_VALUES {
            values.push(category(facet));
        }
    }
    let brand = facets("brand").map(|facet| Count::new(facet.value.as_str(), facet.count));
    let facets = Facets {
        category: facets("category").take(MAX_VALUES).map(category).collect(),
        category_levels: levels.into_iter().map(|(level, values)| Level { level, values }).collect(),
        brand: brand.collect(),
    };
    let more = Found { facets, total: found.total };
    page.answer_with(&items, |kept| ends.behind(kept), &more).await
}

/// Reads a page, and returns its hits with the cursor positions after them.
async fn read(
    app: &App,
    page: &PageRequest<'_>,
    query: &mut ProductQuery,
) -> Result<(SearchPage<ProductDocument>, Ends), Problem> {
    if let PageStart::Group(from) = query.start {
        // The engine refuses a larger window, so a result with groups ends at `MAX_WINDOW`.
        query.size = list::size(page).min(MAX_WINDOW.saturating_sub(from));
    }
    let mut found = list::found(app.client.search_products(query).await)?;
    let ends = match query.start {
        PageStart::Group(from) => list::cut_at(&mut found, page, from),
        PageStart::After(_) => list::cut(&mut found, page)?,
    };
    Ok((found, ends))
}

fn shown(amount: Option<i64>) -> String {
    amount.map(|amount| amount.to_string()).unwrap_or_default()
}

#[derive(Serialize, Schema)]
#[schema(name = "ProductSearch")]
struct Found<'a> {
    facets: Facets<'a>,
    /// The number of all hits. A result with variants shows at most 10,000 of them, and its total
    /// is exact up to about 40,000.
    total: u64,
}

const FACET: Named<ListOf<Any<Count<'_>>>> = named(
    "Facet",
    "The most frequent values among the products that match all other filters.",
    list_of(any(), 0..=MAX_VALUES),
);

#[derive(Serialize, Schema)]
struct Facets<'a> {
    #[field(rule = FACET)]
    category: Vec<Count<'a>>,
    /// The same counts for each level of the categories, the outermost level first. The list has
    /// only the 200 most frequent categories of all levels together.
    #[field(rule = list_of(any::<Level<'_>>(), 0..=20))]
    category_levels: Vec<Level<'a>>,
    #[field(rule = FACET, example = [{"value": "Private", "count": 1}])]
    brand: Vec<Count<'a>>,
}

/// The categories of one level. The outermost level is 1.
#[derive(Serialize, Schema)]
#[schema(name = "FacetLevel")]
struct Level<'a> {
    #[field(rule = integer(1..=20_usize), example = 1)]
    level: usize,
    #[field(rule = FACET)]
    values: Vec<Count<'a>>,
}

#[derive(Serialize, Schema)]
#[schema(name = "FacetValue")]
pub struct Count<'a> {
    #[field(example = "GROCERY")]
    value: Cow<'a, str>,
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    count: u64,
}

impl<'a> Count<'a> {
    pub fn new(value: impl Into<Cow<'a, str>>, count: u64) -> Self {
        Self { value: value.into(), count }
    }
}

#[derive(Serialize, Schema)]
struct ProductHit<'a> {
    #[field(rule = any::<ProductId>())]
    id: &'a str,
    #[field(rule = component("ProductName", r#""Ice 22 LB""#))]
    name: &'a str,
    #[field(rule = component("Brand", r#""Private""#))]
    brand: &'a str,
    #[field(rule = component("PackageSize", r#""22 LB""#))]
    package_size: Option<&'a str>,
    #[field(rule = component("CategoryNames", r#"["GROCERY", "FRZN ICE"]"#))]
    category_path: &'a [String],
    #[field(rule = PRICE)]
    price: Price<'a>,
    #[field(rule = component("CompareAt", "null"))]
    compare_at: Option<Price<'a>>,
    #[field(rule = component("Summary", "null"))]
    summary: Option<&'a str>,
    #[field(rule = component("Thumbnail", "null"), not_null)]
    thumbnail: Option<String>,
    /// Whether the product is in stock, with a short delay.
    in_stock: bool,
    /// The parent of a variant. Other products lack the field.
    #[field(rule = any::<ProductId>(), example = "ice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    /// The values of the options of a variant, sorted by option name. Other products lack the
    /// field.
    #[field(rule = list_of(any::<String>(), 1..=5), example = ["22 LB"])]
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    options: &'a [String],
    rating: Rating,
    /// The relevance of the hit. Null unless the hits are sorted by relevance.
    #[field(example = 7)]
    score: Option<f64>,
    /// The text of each field as HTML, with the matching words in `<em>`.
    #[field(
        rule = map_of::<String, _>(list_of(any::<String>(), 1..=1), usize::MAX),
        example = {"name": ["<em>Ice</em> 22 LB"]},
    )]
    highlights: BTreeMap<&'a str, [&'a str; 1]>,
}

/// The review statistics, with a short delay.
// The form is the same as in `products/{id}/reviews`.
#[derive(Serialize, Schema)]
#[schema(name = "HitRating")]
struct Rating {
    #[field(rule = component("Average", "4"), not_null)]
    average: Option<f64>,
    #[field(example = 3)]
    count: u64,
}

impl Rating {
    fn new(count: u64, sum: u64) -> Self {
        Self { average: average(count, sum), count }
    }
}

/// Returns the average with two decimals, halves rounded up, or `None` without ratings. The
/// calculation uses integers of hundredths, and only the result becomes a float.
fn average(count: u64, sum: u64) -> Option<f64> {
    let hundredths = sum.checked_mul(200)?.checked_add(count)?.checked_div(count.checked_mul(2)?)?;
    Some(f64::from(u32::try_from(hundredths).ok()?) / 100.0)
}

#[derive(Serialize)]
pub struct Price<'a> {
    /// The amount in minor units.
    pub amount: i64,
    /// The ISO 4217 code.
    pub currency: &'a str,
}

impl<'a> From<&'a Hit<ProductDocument>> for ProductHit<'a> {
    fn from(hit: &'a Hit<ProductDocument>) -> Self {
        let product = &hit.document;
        Self {
            id: &product.id,
            name: &product.name,
            brand: &product.brand,
            package_size: product.package_size.as_deref(),
            category_path: &product.category_path,
            price: Price { amount: product.price_amount, currency: &product.price_currency },
            compare_at: product.compare_at_amount.map(|amount| Price { amount, currency: &product.price_currency }),
            summary: Some(product.summary.as_str()).filter(|summary| !summary.is_empty()),
            thumbnail: product.thumbnail.as_deref().map(|picture| url::picture(&product.id, picture)),
            in_stock: product.in_stock,
            parent: product.parent.as_deref(),
            options: &product.options,
            rating: Rating::new(product.rating_count, product.rating_sum),
            score: hit.score,
            highlights: hit.highlights.iter().map(|(field, html)| (field.as_str(), [html.as_str()])).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::average;

    #[test]
    fn an_average_has_two_decimals_and_is_absent_without_ratings() {
        for (count, sum, shown) in
            [(0, 0, None), (1, 5, Some(5.0)), (3, 13, Some(4.33)), (3, 14, Some(4.67)), (8, 33, Some(4.13))]
        {
            assert_eq!(average(count, sum), shown, "{sum} of {count}");
        }
        assert_eq!(average(u64::MAX, u64::MAX), None, "an average that overflows is not shown");
    }
}
