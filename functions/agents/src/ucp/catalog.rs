//! The catalogue (<https://ucp.dev/2026-08-25/specification/shopping/catalog/rest>).
//!
//! A product with variants is one product of the protocol. Any other product has itself as its only
//! variant. The search reads the index, and the other routes read the table.

use std::collections::{BTreeMap, BTreeSet};

use http_api::contract::route;
use http_api::{Code, Problem, Request, Response};
use key_schema::agent::AgentScope;
use key_schema::cursor::Scope;
use key_schema::id::{MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::product::{CategoryPath, PageItem, Product, above, many, page};
use key_schema::variant::Variant;
use search_index::{
    Hit, MAX_WINDOW, PageStart, ProductDocument, ProductQuery, ProductSort, SearchError, SearchPage, SearchText,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Root, envelope, error, nothing, shown};
use crate::App;
use crate::access::agent;
use crate::pages::Pages;
use crate::session::Message;
use crate::wire::body;

/// The number of identifiers in a lookup.
pub const MAX_BATCH: usize = 20;
const DEFAULT_LIMIT: u32 = 10;
const MAX_LIMIT: u32 = 50;
const MAX_CATEGORIES: usize = 10;
/// The engine's error type for an index that does not exist.
const NO_INDEX: &str = "index_not_found_exception";

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidBody, detail.into())
}

#[derive(Debug, Deserialize)]
struct Search {
    query: Option<String>,
    filters: Option<Filters>,
    pagination: Option<Pagination>,
    /// Some platforms send the cursor here.
    cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Filters {
    categories: Option<Vec<String>>,
    price: Option<PriceFilter>,
}

#[derive(Debug, Deserialize)]
struct PriceFilter {
    min: Option<i64>,
    max: Option<i64>,
}

impl Filters {
    fn has_any(&self) -> bool {
        let has_price = self.price.as_ref().is_some_and(|price| price.min.is_some() || price.max.is_some());
        has_price || self.categories.as_ref().is_some_and(|categories| !categories.is_empty())
    }

    fn admits(&self, sold: &Sold) -> bool {
        let amount = sold.price.amount;
        self.price.as_ref().is_none_or(|PriceFilter { min, max }| {
            min.is_none_or(|min| amount >= min) && max.is_none_or(|max| amount <= max)
        })
    }

    /// Returns whether a product is in one of the categories, or below it.
    fn has_category_of(&self, product: &Product) -> bool {
        self.categories.as_ref().is_none_or(|categories| {
            let lineage: Vec<String> = product.category_path.lineage().map(|path| path.names().join(" / ")).collect();
            categories.iter().any(|category| lineage.contains(category))
        })
    }
}

#[derive(Debug, Default, Deserialize)]
struct Pagination {
    cursor: Option<String>,
    limit: Option<u32>,
}

/// Search products
#[route(POST "/ucp/catalog/search", id = "ucpSearchCatalog", who = any, task = "agents",
    spec = "https://ucp.dev/2026-08-25/specification/shopping/catalog/search", errors = error)]
pub async fn search(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Catalog).await?;
    let Search { query, filters, pagination, cursor } = body(request)?;
    let Some(client) = &app.search else {
        return Err(Problem::new(Code::SearchDisabled, "This shop has no search."));
    };
    if query.is_none() && !filters.as_ref().is_some_and(Filters::has_any) {
        return Err(invalid("A search needs a query or filters."));
    }
    let Filters { categories, price } = filters.unwrap_or_default();
    let categories = categories.unwrap_or_default();
    if categories.len() > MAX_CATEGORIES {
        return Err(invalid(format!("There can be at most {MAX_CATEGORIES} categories.")));
    }
    let segments = categories.iter().map(|category| segment(category)).collect::<Result<Vec<_>, _>>()?;
    let (min_price, max_price) = price.map_or((None, None), |PriceFilter { min, max }| (min, max));
    // An asterisk stands for every product.
    let text = query.as_deref().filter(|query| query.trim() != "*").unwrap_or_default();
    let Pagination { cursor: given, limit } = pagination.unwrap_or_default();
    let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let shown_price = format!("{min_price:?} {max_price:?}");
    let shown_categories = segments.join("\n");
    let parameters = [("query", text), ("categories", shown_categories.as_str()), ("price", shown_price.as_str())];
    let scope = Scope { list: "ucp.search", parameters: &parameters, caller: agent.id.as_str() };
    let (cursors, now) = (app.shop.services.cursors().await?, Instant::now());
    let from = match given.or(cursor) {
        None => 0,
        Some(cursor) => {
            let opened = cursors.open_text(&scope, &cursor, now).ok().and_then(|text| text.parse::<u32>().ok());
            opened.ok_or_else(|| Problem::new(Code::CursorInvalid, "The cursor is not valid for this search."))?
        }
    };
    let query = ProductQuery {
        text: SearchText::parse(text).map_err(|error| invalid(format!("The query is invalid: {error}.")))?,
        categories: segments,
        brands: Vec::new(),
        in_stock: None,
        min_price,
        max_price,
        sort: ProductSort::default(),
        size: limit.saturating_add(1).min(MAX_WINDOW.saturating_sub(from)),
        start: PageStart::Group(from),
    };
    let mut found = match client.search_products(&query).await {
        Ok(page) => page,
        Err(SearchError::Rejected { kind, .. }) if kind == NO_INDEX => {
            SearchPage { hits: Vec::new(), total: 0, facets: BTreeMap::new() }
        }
        Err(error) if error.is_too_broad() => return Err(invalid("The query matches too many different words.")),
        Err(error) if error.is_retryable() => return Err(Problem::unavailable(error)),
        Err(error) => return Err(Problem::internal(error)),
    };
    let kept = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.hits.len() > kept;
    found.hits.truncate(kept);
    let pages = Pages::read(app, request).await?;
    let mut pagination = json!({ "has_next_page": has_more, "total_count": found.total });
    if let (true, Some(fields)) = (has_more, pagination.as_object_mut()) {
        let next =
            cursors.seal_text(&scope, &from.saturating_add(limit).to_string(), now).map_err(Problem::internal)?;
        fields.insert("cursor".to_owned(), next.into());
    }
    Ok(Response::ok(&json!({
        "ucp": envelope(app, request, Root::Search, false).await,
        "products": found.hits.iter().map(|hit| hit_view(hit, &pages)).collect::<Vec<_>>(),
        "pagination": pagination,
    })))
}

/// Reads a category as the search shows it, `GROCERY / FRZN ICE`.
fn segment(category: &str) -> Result<String, Problem> {
    let names = category.split(" / ").map(str::to_owned).collect();
    let path = CategoryPath::new(names).map_err(|error| invalid(format!("A category is invalid: it {error}.")))?;
    Ok(path.to_segment())
}

fn hit_view(hit: &Hit<ProductDocument>, pages: &Pages) -> Value {
    let product = &hit.document;
    let price = json!({ "amount": product.price_amount, "currency": product.price_currency });
    let description = if product.summary.is_empty() { &product.name } else { &product.summary };
    let mut variant = json!({
        "id": product.id,
        "title": product.name,
        "description": { "plain": description },
        "price": price,
        "availability": availability(product.in_stock),
    });
    let mut shown = json!({
        "id": product.group,
        "title": product.name,
        "description": { "plain": description },
        "categories": [{ "value": product.category_path.join(" / "), "taxonomy": "merchant" }],
        "price_range": { "min": price, "max": price },
    });
    if let (Some(picture), Some(shown)) = (&product.thumbnail, shown.as_object_mut()) {
        let url = pages.picture(&product.id, picture);
        shown.insert("media".to_owned(), json!([{ "type": "image", "url": url, "alt_text": product.name }]));
    }
    if let (Some(former), Some(variant)) = (product.compare_at_amount, variant.as_object_mut()) {
        let former = json!({ "amount": former, "currency": product.price_currency });
        variant.insert("list_price".to_owned(), former);
    }
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("variants".to_owned(), json!([variant]));
    }
    shown
}

fn availability(in_stock: bool) -> Value {
    json!({ "available": in_stock, "status": if in_stock { "in_stock" } else { "out_of_stock" } })
}

/// A product with what is sold of it.
struct Known {
    product: Stored<Product>,
    /// The variants, or only the product itself.
    variants: Vec<Sold>,
}

/// Something that can be ordered.
#[derive(Clone)]
struct Sold {
    id: ProductId,
    title: String,
    price: Money,
    compare_at: Option<Money>,
    thumbnail: Option<MediaId>,
    in_stock: bool,
    options: BTreeMap<String, String>,
}

impl From<&Product> for Sold {
    fn from(product: &Product) -> Self {
        Self {
            id: product.id.clone(),
            title: product.name.clone(),
            price: product.price,
            compare_at: product.compare_at(),
            thumbnail: product.thumbnail.clone(),
            in_stock: product.copied.in_stock,
            options: BTreeMap::new(),
        }
    }
}

impl From<&Variant> for Sold {
    fn from(variant: &Variant) -> Self {
        let options = variant.options.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self {
            id: variant.product_id.clone(),
            title: variant.name.clone(),
            price: variant.price,
            compare_at: above(variant.compare_at, variant.price),
            thumbnail: variant.thumbnail.clone(),
            in_stock: variant.in_stock,
            options,
        }
    }
}

impl Known {
    /// Reads a product with its variants. Returns [`None`] if nothing of it is sold.
    async fn read(app: &App, id: &ProductId) -> Result<Option<Self>, Problem> {
        let items = app.shop.services.table.query(&page(id)?).await?.items;
        let (mut found, mut variants) = (None, Vec::new());
        for item in items {
            match item {
                PageItem::Product(product) => found = Some(product),
                PageItem::Variant(variant) => variants.push(Sold::from(&variant.data)),
                _ => {}
            }
        }
        let Some(product) = found.filter(|product: &Stored<Product>| !product.retired) else { return Ok(None) };
        if product.variants.is_none() {
            variants = vec![Sold::from(&product.data)];
        }
        // What can be bought comes first.
        variants.sort_by_key(|variant| !variant.in_stock);
        Ok((!variants.is_empty()).then_some(Self { product, variants }))
    }

    fn view(&self, variants: &[Value], pages: &Pages) -> Value {
        let product = &self.product;
        let prices = self.variants.iter().map(|variant| variant.price.amount);
        let money = |amount: Option<i64>| json!({ "amount": amount.unwrap_or(product.price.amount), "currency": product.price.currency });
        let mut shown = json!({
            "id": product.id,
            "title": product.name,
            "description": { "plain": product.summary.as_deref().unwrap_or(&product.name) },
            "categories": [{ "value": product.category_path.names().join(" / "), "taxonomy": "merchant" }],
            "price_range": { "min": money(prices.clone().min()), "max": money(prices.max()) },
            "variants": variants,
        });
        if let (Some(picture), Some(shown)) = (&product.thumbnail, shown.as_object_mut()) {
            let url = pages.picture(product.id.as_str(), picture.as_str());
            shown.insert("media".to_owned(), json!([{ "type": "image", "url": url, "alt_text": product.name }]));
        }
        shown
    }
}

impl Sold {
    fn view(&self, product: &Product, pages: &Pages) -> Value {
        let money = |money: Money| json!({ "amount": money.amount, "currency": money.currency });
        let options = self.options.iter().map(|(name, label)| json!({ "name": name, "label": label }));
        let mut shown = json!({
            "id": self.id,
            "title": self.title,
            "description": { "plain": product.summary.as_deref().unwrap_or(&self.title) },
            "price": money(self.price),
            "availability": availability(self.in_stock),
            "options": options.collect::<Vec<_>>(),
        });
        let Some(fields) = shown.as_object_mut() else { return shown };
        if let Some(former) = self.compare_at {
            fields.insert("list_price".to_owned(), money(former));
        }
        if let Some(picture) = &self.thumbnail {
            let url = pages.picture(self.id.as_str(), picture.as_str());
            fields.insert("media".to_owned(), json!([{ "type": "image", "url": url, "alt_text": self.title }]));
        }
        shown
    }

    fn has(&self, selected: &BTreeMap<String, String>) -> bool {
        selected.iter().all(|(name, label)| self.options.get(name) == Some(label))
    }
}

#[derive(Debug, Deserialize)]
struct Lookup {
    ids: Vec<String>,
    filters: Option<Filters>,
}

/// Look products up
#[route(POST "/ucp/catalog/lookup", id = "ucpLookupCatalog", who = any, task = "agents",
    spec = "https://ucp.dev/2026-08-25/specification/shopping/catalog/lookup", errors = error)]
pub async fn lookup(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    agent(app, request, AgentScope::Catalog).await?;
    let Lookup { ids, filters } = body(request)?;
    if ids.is_empty() {
        return Err(invalid("ids is empty."));
    }
    if ids.len() > MAX_BATCH {
        return Err(invalid(format!("A lookup can have at most {MAX_BATCH} ids.")).spoken("request_too_large"));
    }
    let ids: BTreeSet<String> = ids.into_iter().collect();
    let parsed: Vec<(&String, ProductId)> = ids.iter().filter_map(|id| Some((id, id.parse().ok()?))).collect();
    let read = many(parsed.iter().map(|(_, id)| id))?;
    let found = app.shop.services.table.batch_get_readable(&read).await?.items;
    // The ids that lead to each product: its own, and those of its variants.
    let mut wanted = BTreeMap::<ProductId, Vec<(&String, Option<ProductId>)>>::new();
    for ((text, id), product) in parsed.into_iter().zip(found) {
        let Some(product) = product.filter(|product| !product.retired) else { continue };
        match &product.parent {
            Some(parent) => wanted.entry(parent.clone()).or_default().push((text, Some(id))),
            None => wanted.entry(id).or_default().push((text, None)),
        }
    }
    let pages = Pages::read(app, request).await?;
    let filters = filters.unwrap_or_default();
    let (mut products, mut resolved) = (Vec::new(), BTreeSet::new());
    for (id, inputs) in wanted {
        let Some(known) = Known::read(app, &id).await? else { continue };
        let featured = known.variants.iter().position(|sold| filters.admits(sold));
        let mut shown = BTreeMap::<usize, Vec<Value>>::new();
        for (text, variant) in inputs {
            let at = match &variant {
                Some(variant) => known.variants.iter().position(|sold| sold.id == *variant),
                None => featured.or(Some(0)),
            };
            let Some(at) = at else { continue };
            resolved.insert(text.clone());
            // A product that has no variants is its own.
            let is_exact = variant.is_some() || known.product.variants.is_none();
            let how = if is_exact { "exact" } else { "featured" };
            shown.entry(at).or_default().push(json!({ "id": text, "match": how }));
        }
        let is_wanted = |sold: &Sold| filters.admits(sold) && filters.has_category_of(&known.product);
        let variants: Vec<Value> = (shown.into_iter())
            .filter_map(|(at, inputs)| Some((known.variants.get(at).filter(|sold| is_wanted(sold))?, inputs)))
            .map(|(sold, inputs)| {
                let mut shown = sold.view(&known.product, &pages);
                if let Some(fields) = shown.as_object_mut() {
                    fields.insert("inputs".to_owned(), inputs.into());
                }
                shown
            })
            .collect();
        if !variants.is_empty() {
            products.push(known.view(&variants, &pages));
        }
    }
    let missing = ids
        .iter()
        .filter(|id| !resolved.contains(*id))
        .map(|id| json!({ "type": "info", "code": "not_found", "content": id.chars().take(100).collect::<String>() }));
    Ok(Response::ok(&json!({
        "ucp": envelope(app, request, Root::Lookup, false).await,
        "products": products,
        "messages": missing.collect::<Vec<_>>(),
    })))
}

#[derive(Debug, Deserialize)]
struct Detail {
    id: String,
    selected: Option<Vec<Selected>>,
    preferences: Option<Vec<String>>,
    filters: Option<Filters>,
}

#[derive(Debug, Deserialize)]
struct Selected {
    name: String,
    label: String,
}

/// Read a product
#[route(POST "/ucp/catalog/product", id = "ucpReadProduct", who = any, task = "agents",
    spec = "https://ucp.dev/2026-08-25/specification/shopping/catalog/lookup", errors = error)]
pub async fn detail(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    agent(app, request, AgentScope::Catalog).await?;
    let Detail { id, selected, preferences, filters } = body(request)?;
    let Some((known, variant)) = resolve(app, &id).await? else {
        let message = Message::unrecoverable("not_found", "There is no such product.");
        return Ok(Response::ok(&nothing(app, request, Root::Lookup, &[message]).await?));
    };
    let has_selected = selected.as_ref().is_some_and(|selected| !selected.is_empty());
    let filters = filters.unwrap_or_default();
    let mut selected: BTreeMap<String, String> = match variant {
        // The id of a variant determines its options.
        Some(at) => known.variants.get(at).map(|sold| sold.options.clone()).unwrap_or_default(),
        None => selected.into_iter().flatten().map(|Selected { name, label }| (name, label)).collect(),
    };
    relax(&known, &mut selected, preferences.unwrap_or_default());
    if selected.is_empty() && !has_selected {
        selected = known.variants.first().map(|sold| sold.options.clone()).unwrap_or_default();
    }
    let first = variant.and_then(|at| known.variants.get(at));
    let is_other =
        |sold: &&Sold| sold.has(&selected) && filters.admits(sold) && Some(&sold.id) != first.map(|sold| &sold.id);
    let others = known.variants.iter().filter(is_other);
    let pages = Pages::read(app, request).await?;
    let variants: Vec<Value> = first.into_iter().chain(others).map(|sold| sold.view(&known.product, &pages)).collect();
    let mut shown_product = known.view(&variants, &pages);
    if let Some(fields) = shown_product.as_object_mut() {
        let chosen: Vec<_> = selected.iter().map(|(name, label)| json!({ "name": name, "label": label })).collect();
        fields.insert("options".to_owned(), options(&known, &selected).into());
        fields.insert("selected".to_owned(), chosen.into());
    }
    let messages: &[Message] = &[];
    Ok(Response::ok(&json!({
        "ucp": envelope(app, request, Root::Lookup, false).await,
        "product": shown_product,
        "messages": messages.iter().map(shown).collect::<Vec<_>>(),
    })))
}

/// Finds a product by its id, or by the id of a variant, which has a position then.
async fn resolve(app: &App, id: &str) -> Result<Option<(Known, Option<usize>)>, Problem> {
    let Ok(id) = id.parse::<ProductId>() else { return Ok(None) };
    let Some(known) = Known::read(app, &id).await? else { return Ok(None) };
    let Some(parent) = known.product.parent.clone() else { return Ok(Some((known, None))) };
    let Some(known) = Known::read(app, &parent).await? else { return Ok(None) };
    let at = known.variants.iter().position(|sold| sold.id == id);
    Ok(at.map(|at| (known, Some(at))))
}

/// Drops selections until a variant has all of them: first the last of the preferences, then those that
/// are no preference.
fn relax(known: &Known, selected: &mut BTreeMap<String, String>, preferences: Vec<String>) {
    let mut order: Vec<String> = selected.keys().filter(|name| !preferences.contains(name)).cloned().collect();
    order.extend(preferences.into_iter().rev());
    for name in order {
        if known.variants.iter().any(|sold| sold.has(selected)) {
            return;
        }
        selected.remove(&name);
    }
}

/// Returns the options with their values, and whether a variant has each value beside the other
/// selections.
fn options(known: &Known, selected: &BTreeMap<String, String>) -> Vec<Value> {
    let mut values = BTreeMap::<&String, BTreeSet<&String>>::new();
    for (name, label) in known.variants.iter().flat_map(|sold| &sold.options) {
        values.entry(name).or_default().insert(label);
    }
    let option = |(name, labels): (&String, BTreeSet<&String>)| {
        let value = |label: &String| {
            let mut with = selected.clone();
            with.insert(name.clone(), label.clone());
            let mut matching = known.variants.iter().filter(|sold| sold.has(&with)).peekable();
            let exists = matching.peek().is_some();
            json!({ "label": label, "exists": exists, "available": matching.any(|sold| sold.in_stock) })
        };
        json!({ "name": name, "values": labels.into_iter().map(value).collect::<Vec<_>>() })
    };
    values.into_iter().map(option).collect()
}
