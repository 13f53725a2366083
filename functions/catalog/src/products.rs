use std::str::FromStr;

use http_api::{Code, Problem, Request, Response, Services};
use key_schema::category::CategoryNode;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::leaderboard;
use key_schema::product::{self, MAX_IDS, PageItem, Product, ProductAction};

use crate::view::{NumbersView, ProductByIdView, ProductDetails, ProductView, Sold, Statistics, product_location};
use crate::{App, body, tree, variants};

/// POST products: creates the product, its stock and the missing categories in one transaction. A
/// product with a `parent` is a variant. The request also revives a retired product. The reviews of
/// a revived product stay, and its `version` and `rev` continue.
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    request.staff()?;
    let (id, draft) = body::new_product(request.object()?)?;
    let at = Instant::now();
    let id = match id {
        Some(id) => id,
        None => ProductId::generate(at, services.random()?),
    };
    let stock = draft.stock;
    let new = Stored::new(draft.into_product(id), services.born(at)?, at);
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
/// its other items.
pub async fn details_of_revived(services: &Services, id: &ProductId, stock: u64) -> Result<ProductDetails, Problem> {
    Ok(ProductDetails { stock, ..load(services, id).await?.1 })
}

pub fn revived(app: &App, retired: &Stored<Product>, mut new: Stored<Product>, details: &ProductDetails) -> Response {
    new.meta.version = retired.meta.version + 1;
    new.meta.rev = retired.meta.rev + 1;
    created(app, &new, details)
}

/// GET products/{id}: returns the product with its availability, categories, variants and review
/// statistics, read in one Query. Everybody gets the same response.
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let (product, details) = on_sale(app, request).await?;
    let view = ProductView::new(&product, &details, app.stock_low);
    Ok(Response::ok(&view).etag_of_parts(product.meta.version).leaving_out(details.left_out))
}

/// GET products/{id}/numbers: returns the exact stock and sales, which only staff see.
pub async fn numbers(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (product, details) = on_sale(app, request).await?;
    let view = NumbersView::new(&product, &details);
    Ok(Response::ok(&view).etag_of_parts(product.meta.version).leaving_out(details.left_out))
}

/// POST products/{id}/views: counts a view, if the sample of counted views includes this request.
/// The response is the same for a view that is not counted and for an unknown product.
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

async fn on_sale(app: &App, request: &Request<'_>) -> Result<(Stored<Product>, ProductDetails), Problem> {
    let id: ProductId = request.path("id")?;
    let (product, details) = load(&app.services, &id).await?;
    Ok((product.filter(|product| !product.retired).ok_or_else(no_such_product)?, details))
}

/// GET products?ids=: reads products by their ids, in the order of the request, from their own items
/// alone. Unknown, retired and unreadable products are left out. Everybody gets the same response,
/// without the numbers of staff.
pub async fn by_ids(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let Ids(ids) = request
        .query_as("ids")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `ids` is missing."))?;
    let found = services.table.batch_get_readable(&product::by_ids(&ids)?).await?;
    let on_sale = found.items.iter().flatten().filter(|product| !product.retired);
    let views: Vec<_> = on_sale.map(ProductByIdView::from).collect();
    Ok(Response::all(&views).leaving_out(found.unreadable.len()))
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

/// PATCH products/{id}: changes a product. A new category moves the product to the list of that
/// category. The request creates missing categories.
pub async fn change(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let version = request.if_match()?;
    let edit = body::edit(request.object()?)?;
    let at = Instant::now();
    // The read comes before the write, so that a failed read cannot hide a successful change. The
    // change does not affect `details`, so the response can contain the details that were read.
    let (product, details) = load(services, &id).await?;
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

/// DELETE products/{id}: removes the product from lists and search, and ends its sale. Its item
/// stays, so that its `rev` never restarts.
pub async fn retire(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let version = request.if_match()?;
    match services.table.transact(&product::retire(&id, version, Instant::now())?).await? {
        Ok(()) => Ok(Response::no_content()),
        Err(refusals) if refusals.only(ProductAction::Stock) => Err(stock_missing(&id)),
        Err(_) => variants::retire(services, &id, version).await,
    }
}

/// Returns the problem of a product whose stock does not exist.
pub fn stock_missing(id: &ProductId) -> Problem {
    Problem::stock_unavailable(format!("the stock of {id} is missing"))
}

pub fn no_such_product() -> Problem {
    Problem::not_found("product")
}

/// Reads a product, retired or not, and the data of the product's other items.
async fn load(services: &Services, id: &ProductId) -> Result<(Option<Stored<Product>>, ProductDetails), Problem> {
    let (mut found, mut details, mut stocked) = (None, ProductDetails::default(), None);
    let page = services.table.query_readable(&product::page(id)?).await?;
    details.left_out = page.left_out();
    for item in page.items {
        match item {
            PageItem::Product(product) => found = Some(product),
            PageItem::Stock(stock) => stocked = Some(stock.available),
            PageItem::ProductSales(sales) => details.sold = Sold::from(&sales.data),
            PageItem::ReviewStats(stats) => details.statistics = Statistics::from(&stats.data),
            PageItem::ProductCategories(further) => details.categories = further.data.paths,
            PageItem::Variant(variant) => details.variants.push(variant.data),
        }
    }
    if found.is_none() && details.left_out > 0 {
        return Err(Problem::stock_unavailable(format!("an item of the product {id} cannot be decoded")));
    }
    details.variants.sort_by(|one, other| one.product_id.cmp(&other.product_id));
    if found.as_ref().is_some_and(|product: &Stored<Product>| !product.retired) {
        details.stock = stocked.ok_or_else(|| stock_missing(id))?;
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
