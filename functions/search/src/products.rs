//! GET /v1/search/products

use std::collections::BTreeMap;

use http_api::{Problem, Request, Response};
use search_index::{Facet, Hit, ProductDocument, ProductQuery};
use serde::Serialize;

use crate::App;
use crate::list;
use crate::parameters::{Sort, brand, category, prices, text};

/// Finds products. Every filter that is given must hold.
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
    let next_cursor = list::cut(&mut found, &page)?;
    let items: Vec<_> = found.hits.iter().map(ProductHit::from).collect();
    let facets = |name: &str| found.facets.get(name).into_iter().flatten().map(Count::from).collect();
    let more = Found { facets: Facets { category: facets("category"), brand: facets("brand") }, total: found.total };
    Ok(Response::page_with(&items, next_cursor, &more))
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
    value: &'a str,
    count: u64,
}

impl<'a> From<&'a Facet> for Count<'a> {
    fn from(facet: &'a Facet) -> Self {
        Self { value: &facet.value, count: facet.count }
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
    /// How well it matches; null unless sorted by it.
    score: Option<f64>,
    /// By field, HTML with the words that matched in `<em>`.
    highlights: BTreeMap<&'a str, [&'a str; 1]>,
}

/// Money as the index has it.
#[derive(Serialize)]
pub struct Price<'a> {
    /// Minor units.
    pub amount: i64,
    /// ISO 4217 code.
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
            score: hit.score,
            highlights: hit.highlights.iter().map(|(field, html)| (field.as_str(), [html.as_str()])).collect(),
        }
    }
}
