//! `GET /v1/search/products`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http_api::{Problem, Request, Response};
use search_index::{Hit, ProductDocument, ProductQuery};
use serde::Serialize;

use crate::App;
use crate::list;
use crate::parameters::{Sort, brand, category, prices, shown_category, text};

/// Finds the products that match every given filter.
pub async fn search(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let (text, category, brand) = (text(request)?, category(request)?, brand(request)?);
    let (min_price, max_price) = prices(request)?;
    let sort = request.query_as::<Sort>("sort")?.unwrap_or_default();
    let (low, high) = (shown(min_price), shown(max_price));
    let parameters = [
        ("q", request.query("q")?.unwrap_or_default()),
        ("category", category.as_deref().unwrap_or_default()),
        ("brand", brand.as_deref().unwrap_or_default()),
        ("min_price", &low),
        ("max_price", &high),
        ("sort", sort.name),
    ];
    let page = request.page(&app.cursors, "search.products", &parameters)?;
    let query = ProductQuery {
        text,
        category: category.clone(),
        brand: brand.clone(),
        min_price,
        max_price,
        sort: sort.by,
        size: list::size(&page),
        after: list::after(&page)?,
    };
    let mut found = list::found(app.client.search_products(&query).await)?;
    let ends = list::cut(&mut found, &page)?;
    let items: Vec<_> = found.hits.iter().map(ProductHit::from).collect();
    let facets = |name: &str| found.facets.get(name).into_iter().flatten();
    let category = facets("category").map(|facet| Count::new(shown_category(&facet.value), facet.count));
    let brand = facets("brand").map(|facet| Count::new(facet.value.as_str(), facet.count));
    let facets = Facets { category: category.collect(), brand: brand.collect() };
    let more = Found { facets, total: found.total };
    page.answer_with(&items, |kept| ends.behind(kept), &more)
}

fn shown(amount: Option<i64>) -> String {
    amount.map(|amount| amount.to_string()).unwrap_or_default()
}

#[derive(Serialize)]
struct Found<'a> {
    facets: Facets<'a>,
    total: u64,
}

#[derive(Serialize)]
struct Facets<'a> {
    category: Vec<Count<'a>>,
    brand: Vec<Count<'a>>,
}

#[derive(Serialize)]
struct Count<'a> {
    value: Cow<'a, str>,
    count: u64,
}

impl<'a> Count<'a> {
    fn new(value: impl Into<Cow<'a, str>>, count: u64) -> Self {
        Self { value: value.into(), count }
    }
}

#[derive(Serialize)]
struct ProductHit<'a> {
    id: &'a str,
    name: &'a str,
    brand: &'a str,
    package_size: Option<&'a str>,
    category_path: &'a [String],
    price: Price<'a>,
    summary: Option<&'a str>,
    in_stock: bool,
    rating: Rating,
    /// The relevance of the hit, or null in other sort orders.
    score: Option<f64>,
    /// HTML for each field, with the matching words in `<em>`.
    highlights: BTreeMap<&'a str, [&'a str; 1]>,
}

/// The rating of a product, in the same form as in `products/{id}/reviews`.
#[derive(Serialize)]
struct Rating {
    average: Option<f64>,
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

/// A price from the index.
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
            summary: Some(product.summary.as_str()).filter(|summary| !summary.is_empty()),
            in_stock: product.in_stock,
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
