use std::str::FromStr;

use futures::future::try_join;
use http_api::contract::route;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::category::CategoryNode;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::leaderboard;
use key_schema::product::{self, MAX_IDS, PageItem, Product, ProductAction};

use crate::body::{Edit, NewProduct};
use crate::include::{self, Include};
use crate::view::{
    NumbersView, ProductByIdView, ProductDetails, ProductView, ProductsById, Sold, Statistics, product_location,
};
use crate::{App, stock, tree, uploads, variants};

/// Create a product with its stock
///
/// Creates the product, its stock, and the missing categories of its path. A product that was
/// removed from the catalogue can be created again under its id. Its version continues, and its
/// reviews, likes, sales, description, pictures and further categories are visible again. Only the
/// stock is new: earlier orders no longer return their pieces to it. A checkout with an earlier
/// quote gets `quote_changed`.
///
/// A product with a `parent` and `options` is a variant of the parent. It has its own stock, price
/// and weight. The first variant turns the parent into a product that is sold only as variants. Set
/// the stock of the parent to 0 before that. A parent has at most 100 variants, and they must differ
/// in their options. The comparison of options ignores letter case. A variant cannot be a parent.
#[route(POST "/v1/products", id = "createProduct", who = staff, task = "catalogue", body = NewProduct,
    answers(201 = ProductView<'_> "The product" [Location, ETag]),
    refuses(
        already_exists = "with Location",
        parent_has_stock = "the parent has pieces in stock",
        options_taken = "with the Location of the variant that has the options",
        unknown_product = "the parent is not in the catalogue",
        too_many_variants,
    ))]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    request.staff()?;
    let mut new: NewProduct = request.body()?;
    let at = Instant::now();
    let id = match new.id.take() {
        Some(id) => id,
        None => ProductId::generate(at, services.random()?),
    };
    let (new, stock) = new.into_product(id);
    let new = Stored::new(new, services.born(at)?, at);
    let nodes = tree::missing(services, &new.category_path, at).await?;
    if new.parent.is_some() {
        return variants::create(app, &new, stock, &nodes).await;
    }
    match services.table.transact(&product::create(&new, stock, &nodes)?).await? {
        Ok(()) => Ok(created(app, &new, &ProductDetails::new(stock))),
        Err(_) => match services.table.get(&product::read_for_update(&new.id)?).await? {
            Some(retired) if retired.retired => revive(app, &retired, new, stock, &nodes).await,
            _ => Err(already_exists(&new.id)),
        },
    }
}

async fn revive(
    app: &App,
    retired: &Stored<Product>,
    new: Stored<Product>,
    stock: u64,
    nodes: &[Stored<CategoryNode>],
) -> Result<Response, Problem> {
    let details = details_of_revived(&app.services, &new.id, stock).await?;
    let revival = product::revive(retired, &new, stock, nodes)?;
    // A refusal means that another request has revived the product meanwhile.
    app.services.table.transact(&revival).await?.map_err(|_| already_exists(&new.id))?;
    Ok(revived(app, retired, new, &details))
}

/// Returns the details of a product that is revived with this stock. The product keeps the data of
/// its other items. A stock of the earlier form is moved, so that the revival finds it.
pub async fn details_of_revived(services: &Services, id: &ProductId, stock: u64) -> Result<ProductDetails, Problem> {
    stock::found(services, id).await?;
    Ok(ProductDetails { stock, ..load(services, id, Numbers::Estimated).await?.1 })
}

pub fn revived(app: &App, retired: &Stored<Product>, mut new: Stored<Product>, details: &ProductDetails) -> Response {
    new.meta.version = retired.meta.version + 1;
    new.meta.rev = retired.meta.rev + 1;
    created(app, &new, details)
}

/// Read a product with its availability and rating
///
/// The response for a parent lists its variants, sorted by id. Their names, prices and `in_stock`
/// follow a change of the variant with a short delay. A parent has no `availability`. Its `in_stock`
/// says whether a variant is in stock. The ETag has a digest after the version, because the
/// availability and the rating change without the version.
///
/// With `include` the response also has what a page of the product shows: the content, the pictures
/// and the newest five reviews, as their own routes return them. `GET /v1/products/{id}/reviews`
/// continues the reviews. With content or pictures, a shared cache may keep the response for five
/// seconds.
#[route(GET "/v1/products/{id}", id = "readProduct", who = any, task = "browse", path(id: ProductId),
    parameters(Include), answers(200 = ProductView<'_> "The product" [ETag, LeftOut]), refuses(not_found))]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let include = Include::of(request)?;
    let id: ProductId = request.path("id")?;
    let ((product, details), included) =
        try_join(on_sale(app, request, Numbers::Estimated), include::read(app, &id, include)).await?;
    let view = included.add_to(ProductView::new(&product, &details, app.stock_low));
    let response = Response::ok(&view).etag_of_parts(product.meta.version).leaving_out(details.left_out);
    Ok(if include.has_urls() { response.fresh_for(uploads::READING) } else { response })
}

/// Read a product's exact stock and sales
#[route(GET "/v1/products/{id}/numbers", id = "readProductNumbers", who = staff, task = "stock", path(id: ProductId),
    answers(200 = NumbersView<'_> "The numbers" [ETag, LeftOut]), refuses(not_found))]
pub async fn numbers(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (product, details) = on_sale(app, request, Numbers::Exact).await?;
    let view = NumbersView::new(&product, &details);
    Ok(Response::ok(&view).etag_of_parts(product.meta.version).leaving_out(details.left_out))
}

/// Count a view of a product
///
/// A shop sends this request when it shows a product's page to a customer. The views in the
/// leaderboard are estimated from a sample of one in 64 requests. A view of an unknown product is
/// not counted.
#[route(POST "/v1/products/{id}/views", id = "countView", who = any, task = "browse", path(id: ProductId),
    answers(204 = () "Done"),
    refuses(
        invalid_body = "the request has a body",
        malformed_json = "the body is not UTF-8",
        body_too_large,
        unsupported_content_encoding,
    ))]
pub async fn count_view(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let id: ProductId = request.path("id")?;
    request.refuse_body()?;
    if let Some(view) = leaderboard::view(&id, request.id(), Instant::now())? {
        let count = async {
            let found = app.services.table.batch_get(&product::by_ids([&id])?).await?;
            if found.iter().flatten().any(|product| !product.retired) {
                let _ = app.services.table.transact(&view).await?;
            }
            Ok::<_, Problem>(())
        };
        match tokio::time::timeout(app.view_time, count).await {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => tracing::info!(code = problem.code().name(), "a view was not counted"),
            Err(late) => tracing::info!(cause = %late, "a view was not counted"),
        }
    }
    Ok(Response::no_content())
}

async fn on_sale(
    app: &App,
    request: &Request<'_>,
    numbers: Numbers,
) -> Result<(Stored<Product>, ProductDetails), Problem> {
    let id: ProductId = request.path("id")?;
    let (product, details) = load(&app.services, &id, numbers).await?;
    Ok((product.filter(|product| !product.retired).ok_or_else(no_such_product)?, details))
}

/// Read up to 50 products by their ids
///
/// Returns the products in the order of the ids, each once. A product that is unknown or was removed
/// from the catalogue is left out. The entries have the data of lists, so a product's page needs
/// `GET /v1/products/{id}`. `GET /v1/products?ids=819063,shirt-m` returns two products.
#[route(GET "/v1/products", id = "readProducts", who = any, task = "browse", parameters(ProductIds),
    answers(200 = ProductsById<'_> "The products" [ETag, LeftOut]))]
pub async fn by_ids(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let Ids(ids) = request
        .query_as("ids")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `ids` is missing."))?;
    let found = services.table.batch_get_readable(&product::by_ids(&ids)?).await?;
    let on_sale = found.items.iter().flatten().filter(|product| !product.retired);
    let view = ProductsById { items: on_sale.map(ProductByIdView::from).collect(), next_cursor: () };
    Ok(Response::ok(&view).leaving_out(found.unreadable.len()))
}

/// Different ids of products, in the order of the request.
struct Ids(Vec<ProductId>);

impl FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.split(',').count() > MAX_IDS {
            return Err(format!("must have at most {MAX_IDS} ids, separated by commas"));
        }
        let mut ids = Vec::new();
        for (text, number) in text.split(',').zip(1..) {
            let id: ProductId = text.parse().map_err(|error| format!("id {number} {error}"))?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(Self(ids))
    }
}

/// Change a product
///
/// Changes the product with a JSON Merge Patch (RFC 7396) of at least one field. A new category
/// moves the product to the list of that category, and missing categories are created. The stock has
/// separate routes. A change of the stock does not increase the product's version.
#[route(PATCH "/v1/products/{id}", id = "changeProduct", who = staff, task = "catalogue", path(id: ProductId),
    parameters(IfMatch), body = Edit, answers(200 = ProductView<'_> "The product" [ETag]))]
pub async fn change(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let version = request.if_match()?;
    let edit: Edit = request.body()?;
    let at = Instant::now();
    // The read comes before the write, so that a failed read cannot hide a successful change. The
    // change does not affect `details`, so the response can contain the details that were read.
    let (product, details) = load(services, &id, Numbers::Exact).await?;
    if let Some(path) = &edit.category_path {
        // A change that will be refused must create no category. This read is eventually
        // consistent, so a refusal is still possible below, and `explain` covers it.
        if product.is_none_or(|product| product.retired || product.meta.version > version) {
            return Err(explain(services, &id).await?);
        }
        tree::grow(services, path, at).await?;
    }
    let change = edit.into_change(&id, at)?;
    match services.table.update(&product::update(&id, change, version)?).await? {
        Ok(product) => Ok(changed(app, &product, &details)),
        Err(_) => Err(explain(services, &id).await?),
    }
}

/// Remove a product from the catalogue
///
/// Removes the product from all lists and the search. Orders keep their data about it. Its reviews
/// and descriptions stay stored, and are visible again if the product is created again. A variant
/// leaves the list of its parent. A parent cannot be removed while it has variants in the catalogue.
// The product's item stays, so that its `rev` never restarts.
#[route(DELETE "/v1/products/{id}", id = "deleteProduct", who = staff, task = "catalogue", path(id: ProductId),
    parameters(IfMatch), answers(204 = () "Done"),
    refuses(has_variants, conflict = "the product changed during the request"))]
pub async fn retire(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let version = request.if_match()?;
    stock::in_one_shard(services, &id, async || {
        match services.table.transact(&product::retire(&id, version, Instant::now())?).await? {
            Ok(()) => Ok(Ok(Response::no_content())),
            Err(refusals) if refusals.only(ProductAction::Stock) => Ok(Err(refusals)),
            Err(_) => variants::retire(services, &id, version).await,
        }
    })
    .await
}

/// Returns the problem of a product whose stock does not exist.
pub fn stock_missing(id: &ProductId) -> Problem {
    Problem::stock_unavailable(format!("the stock of {id} is missing"))
}

pub fn no_such_product() -> Problem {
    Problem::not_found("product")
}

/// How to count a stock with several shards.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    /// Adds up all shards, for staff.
    Exact,
    /// Estimates from the first shard, so that a page costs the same during a sale.
    Estimated,
}

/// Reads a product, retired or not, and the data of the product's other items.
async fn load(
    services: &Services,
    id: &ProductId,
    numbers: Numbers,
) -> Result<(Option<Stored<Product>>, ProductDetails), Problem> {
    let (mut found, mut details, mut old) = (None, ProductDetails::default(), None);
    let (page, stock) = (product::page(id)?, product::shown_stock(id)?);
    let (page, stock) = futures::join!(services.table.query_readable(&page), services.table.get(&stock));
    let page = page?;
    details.left_out = page.left_out();
    for item in page.items {
        match item {
            PageItem::Product(product) => found = Some(product),
            PageItem::ProductSales(sales) => details.sold = Sold::from(&sales.data),
            PageItem::ReviewStats(stats) => details.statistics = Statistics::from(&stats.data),
            PageItem::ProductCategories(further) => details.categories = further.data.paths,
            PageItem::Variant(variant) => details.variants.push(variant.data),
            // A stock that is not moved yet.
            PageItem::Stock(stock) => old = Some(stock),
        }
    }
    if found.is_none() && details.left_out > 0 {
        return Err(Problem::stock_unavailable(format!("an item of the product {id} cannot be decoded")));
    }
    details.variants.sort_by(|one, other| one.product_id.cmp(&other.product_id));
    if let Some(product) = found.as_ref().filter(|product: &&Stored<Product>| !product.retired) {
        let first = match stock?.or(old) {
            // The stock was moved between the two reads.
            None => stock::seen(services, id).await?.ok_or_else(|| stock_missing(id))?,
            Some(first) => first,
        };
        details.stock = match (first.shards, numbers) {
            (None, _) => first.available,
            (Some(_), Numbers::Exact) => stock::whole(services, first).await?.available,
            (Some(_), Numbers::Estimated) if !product.copied.in_stock => 0,
            (Some(shards), Numbers::Estimated) => first.available.saturating_mul(u64::from(shards)).max(1),
        };
    }
    Ok((found, details))
}

pub async fn explain(services: &Services, id: &ProductId) -> Result<Problem, Problem> {
    Ok(match services.table.get(&product::read_for_update(id)?).await? {
        Some(product) if !product.retired => Problem::version_mismatch(),
        _ => no_such_product(),
    })
}

/// Builds the response to a change, which only staff make.
fn changed(app: &App, product: &Stored<Product>, details: &ProductDetails) -> Response {
    let view = ProductView::new(product, details, app.stock_low).with_numbers(details);
    Response::ok(&view).etag(product.meta.version)
}

pub fn created(app: &App, product: &Stored<Product>, details: &ProductDetails) -> Response {
    let view = ProductView::new(product, details, app.stock_low).with_numbers(details);
    Response::created(product_location(&product.id), &view).etag(product.meta.version)
}

pub fn already_exists(id: &ProductId) -> Problem {
    Problem::new(Code::AlreadyExists, "A product with this id already exists.").location(product_location(id))
}
