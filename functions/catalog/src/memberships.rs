//! Memberships. Each membership lists a product in a further category. A membership either exists
//! or does not. So a write needs no If-Match, and a client can repeat each request.
//!
//! A change reads the product and the list of its categories with strong consistency. The write is
//! conditional on both being unchanged. If it is refused, the function reads again.

use std::collections::HashMap;

use http_api::contract::route;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::membership::CategorizedItem;
use key_schema::membership::{self, MAX_MEMBERSHIPS, ProductCategories};
use key_schema::product::{CategoryPath, Product, ProductSummary};
use table::{Backoff, Page, retry_on_conflict};

use crate::products::no_such_product;
use crate::tree;
use crate::view::{MembershipView, membership_location};

/// Add a product to a further category
///
/// Lists the product in a further category, in addition to its own category (`category_path`). A
/// product has at most 20 further categories. Missing categories are created. The request can be
/// repeated and needs no If-Match. When the product changes, the further category shows the change
/// with a short delay.
#[route(PUT "/v1/products/{id}/categories/{path}", id = "putProductCategory", who = staff, task = "categories",
    path(id: ProductId, CategoryPath),
    answers(
        200 = MembershipView<'_> "The product was in the category already",
        201 = MembershipView<'_> "The product is in the category now" [Location],
    ),
    refuses(not_found, too_many_categories = "the product has 20 further categories already"))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (id, path) = names(request)?;
    let at = Instant::now();
    let view = MembershipView { product_id: &id, category_path: &path };
    let mut backoff = Backoff::new();
    let mut grown = false;
    loop {
        let Read { product, further } = read(services, &id).await?;
        let product = product.filter(|product| !product.retired).ok_or_else(no_such_product)?;
        if has(further.as_ref(), &path) {
            return Ok(Response::ok(&view));
        }
        if further.as_ref().is_some_and(|further| further.paths.len() >= MAX_MEMBERSHIPS) {
            let most = format!("A product can be in at most {MAX_MEMBERSHIPS} further categories.");
            return Err(Problem::new(Code::TooManyCategories, most));
        }
        // The checks come first, so that a refused request creates no category.
        if !grown {
            tree::grow(services, &path, at).await?;
            grown = true;
        }
        let add = membership::add(&product, &path, further.as_ref(), &services.born(at)?, at)?;
        if services.table.transact(&add).await?.is_ok() {
            return Ok(Response::created(membership_location(&id, &path), &view));
        }
        backoff.after_conflict().await?;
    }
}

/// Remove a product from a further category
///
/// Removes the product from the further category. The product stays in its own category. The request
/// can be repeated and needs no If-Match.
#[route(DELETE "/v1/products/{id}/categories/{path}", id = "deleteProductCategory", who = staff, task = "categories",
    path(id: ProductId, CategoryPath),
    answers(204 = () "The product is no longer in the category"), refuses(not_found))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (id, path) = names(request)?;
    retry_on_conflict(async || {
        let Read { product, further } = read(services, &id).await?;
        product.filter(|product| !product.retired).ok_or_else(no_such_product)?;
        let Some(further) = further.filter(|further| further.paths.contains(&path)) else {
            return Ok(Some(Response::no_content()));
        };
        let removed = services.table.transact(&membership::remove(&further, &path, Instant::now())?).await?;
        Ok(removed.ok().map(|()| Response::no_content()))
    })
    .await
}

/// Reduces a page of a category's list to one entry per product, because a subtree may contain
/// several categories of a product. The page keeps the entry of the product's own category if it is
/// in the subtree. Otherwise it keeps the entry of the first further category in the subtree.
///
/// An entry of a further category does not show the product's other further categories. If a page
/// has such entries, one more request reads the lists of their products' categories.
pub async fn one_entry_per_product(
    services: &Services,
    category: &CategoryPath,
    page: Page<ProductSummary>,
) -> Result<Page<ProductSummary>, Problem> {
    let stands_below = |listed: &ProductSummary| listed.category_path.names().starts_with(category.names());
    let page = page.filter_map(|listed| (listed.further.is_none() || !stands_below(&listed)).then_some(listed));
    let guests: Vec<&ProductId> =
        page.items.iter().filter(|listed| listed.further.is_some()).map(|listed| &listed.id).collect();
    if guests.is_empty() {
        return Ok(page);
    }
    let mut distinct = guests;
    distinct.sort_unstable();
    distinct.dedup();
    // Without a readable list, the entries stay on the page.
    let lists = services.table.batch_get_readable(&membership::lists(distinct.iter().copied())?).await?.items;
    let first = |list: &Stored<ProductCategories>| list.first_under(category).map(CategoryPath::key_text);
    let firsts: HashMap<ProductId, Option<String>> =
        lists.iter().flatten().map(|list| (list.product_id.clone(), first(list))).collect();
    Ok(page.filter_map(|listed| {
        let first = firsts.get(&listed.id).cloned().flatten();
        // The index and the lists may differ for a moment. If a product's list has no category of
        // the subtree, the entry stays on the page.
        (listed.further.is_none() || first.is_none() || first == listed.further).then_some(listed)
    }))
}

/// A product and its further categories at the time of the read.
struct Read {
    product: Option<Stored<Product>>,
    further: Option<Stored<ProductCategories>>,
}

async fn read(services: &Services, id: &ProductId) -> Result<Read, Problem> {
    let mut read = Read { product: None, further: None };
    for item in services.table.batch_get(&membership::prepare(id)?).await?.into_iter().flatten() {
        match item {
            CategorizedItem::Product(product) => read.product = Some(product),
            CategorizedItem::ProductCategories(further) => read.further = Some(further),
        }
    }
    Ok(read)
}

fn has(further: Option<&Stored<ProductCategories>>, path: &CategoryPath) -> bool {
    further.is_some_and(|further| further.paths.contains(path))
}

fn names(request: &Request<'_>) -> Result<(ProductId, CategoryPath), Problem> {
    Ok((request.path("id")?, request.path_by("path", CategoryPath::from_segment)?))
}
