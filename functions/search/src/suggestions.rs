//! `GET /v1/search/suggestions`.

use http_api::contract::rules::{PRICE, any, component, list_of};
use http_api::contract::{Schema, route};
use http_api::{Problem, Request, Response, url};
use key_schema::id::ProductId;
use search_index::{ProductDocument, SuggestionQuery};
use serde::Serialize;

use crate::App;
use crate::list;
use crate::parameters::{shown_category, text};
use crate::products::{Count, Price};

const MAX_PRODUCTS: usize = 8;
const MAX_VALUES: usize = 5;

/// Suggest products while a customer types
///
/// Returns the products that fit `q` best, and the categories and brands that have most of the
/// matching products. The last word of `q` may be the beginning of a word. The other words match as
/// in the search. Without `q`, the products with the most ratings come first. A variant stands for
/// all variants of its parent.
#[route(GET "/v1/search/suggestions", id = "suggestProducts", who = any, task = "search", parameters(SearchText),
    answers(200 = Suggestions<'_> "The suggestions" [ETag]))]
pub async fn suggest(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let query = SuggestionQuery { text: text(request)?, size: u32::try_from(MAX_PRODUCTS).unwrap_or(u32::MAX) };
    let found = list::found(app.client.suggest_products(&query).await)?;
    let facet = |name: &str| found.facets.get(name).into_iter().flatten();
    let categories = facet("category").map(|facet| Count::new(shown_category(&facet.value), facet.count));
    let brands = facet("brand").map(|facet| Count::new(facet.value.as_str(), facet.count));
    Ok(Response::ok(&Suggestions {
        products: found.hits.iter().map(|hit| SuggestedProduct::from(&hit.document)).collect(),
        categories: categories.collect(),
        brands: brands.collect(),
    }))
}

#[derive(Serialize, Schema)]
struct Suggestions<'a> {
    #[field(rule = list_of(any::<SuggestedProduct<'_>>(), 0..=MAX_PRODUCTS))]
    products: Vec<SuggestedProduct<'a>>,
    /// Values for the filter `category` of the search.
    #[field(rule = list_of(any::<Count<'_>>(), 0..=MAX_VALUES))]
    categories: Vec<Count<'a>>,
    /// Values for the filter `brand` of the search.
    #[field(rule = list_of(any::<Count<'_>>(), 0..=MAX_VALUES), example = [{"value": "Private", "count": 1}])]
    brands: Vec<Count<'a>>,
}

#[derive(Serialize, Schema)]
struct SuggestedProduct<'a> {
    #[field(rule = any::<ProductId>())]
    id: &'a str,
    /// The parent of a variant. Other products lack the field.
    #[field(rule = any::<ProductId>(), example = "ice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[field(rule = component("ProductName", r#""Ice 22 LB""#))]
    name: &'a str,
    #[field(rule = component("Brand", r#""Private""#))]
    brand: &'a str,
    #[field(rule = PRICE)]
    price: Price<'a>,
    #[field(rule = component("Thumbnail", "null"), not_null)]
    thumbnail: Option<String>,
}

impl<'a> From<&'a ProductDocument> for SuggestedProduct<'a> {
    fn from(product: &'a ProductDocument) -> Self {
        Self {
            id: &product.id,
            parent: product.parent.as_deref(),
            name: &product.name,
            brand: &product.brand,
            price: Price { amount: product.price_amount, currency: &product.price_currency },
            thumbnail: product.thumbnail.as_deref().map(|picture| url::picture(&product.id, picture)),
        }
    }
}
