//! Memberships: a product in further categories. A relation, so it needs no If-Match, and each request can be repeated.
//!
//! What a client wants is decided from the product and the list of its categories, both read strongly, and written on the condition that both still
//! are what was read. Who loses a race reads again.

use std::collections::HashMap;

use http_api::{Code, Problem, Request, Response, Store};
use key_schema::entity::AnyEntity;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::membership::{self, MAX_MEMBERSHIPS, ProductCategories};
use key_schema::product::{CategoryPath, Listed, Product};
use table::{Backoff, Page, TableError, TransactError};

use crate::products::no_such_product;
use crate::tree;
use crate::view::{MembershipView, membership_location};

/// PUT products/{id}/categories/{path}. Adds the categories that are missing.
pub async fn put(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (id, path) = names(request)?;
    let at = Instant::now();
    let view = MembershipView { product_id: &id, category_path: &path };
    let mut backoff = Backoff::new();
    let mut grown = false;
    loop {
        let Read { product, further } = read(store, &id).await?;
        let product = product.filter(|product| !product.retired).ok_or_else(no_such_product)?;
        if has(further.as_ref(), &path) {
            return Ok(Response::ok(&view));
        }
        if further.as_ref().is_some_and(|further| further.paths.len() >= MAX_MEMBERSHIPS) {
            let most = format!("A product is in at most {MAX_MEMBERSHIPS} further categories.");
            return Err(Problem::new(Code::TooManyCategories, most));
        }
        // Not before it is known that the product may come in.
        if !grown {
            tree::grow(store, &path, at).await?;
            grown = true;
        }
        let add = membership::add(&product, &path, further.as_ref(), &store.born(at)?, at)?;
        match store.table.transact(&add).await {
            Ok(()) => return Ok(Response::created(membership_location(&id, &path), &view)),
            Err(TransactError::Refused(_)) => {}
            Err(TransactError::Table(error)) => return Err(error.into()),
        }
        if !backoff.wait().await {
            return Err(TableError::Contended.into());
        }
    }
}

/// DELETE products/{id}/categories/{path}: what is not there is removed already. The product stays where it stands.
pub async fn remove(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (id, path) = names(request)?;
    let mut backoff = Backoff::new();
    loop {
        let Read { product, further } = read(store, &id).await?;
        product.filter(|product| !product.retired).ok_or_else(no_such_product)?;
        let Some(further) = further.filter(|further| further.paths.contains(&path)) else {
            return Ok(Response::no_content());
        };
        match store.table.transact(&membership::remove(&further, &path, Instant::now())?).await {
            Ok(()) => return Ok(Response::no_content()),
            Err(TransactError::Refused(_)) => {}
            Err(TransactError::Table(error)) => return Err(error.into()),
        }
        if !backoff.wait().await {
            return Err(TableError::Contended.into());
        }
    }
}

/// The page of a category's list with each product once. Below one category a product may stand, and be in several further ones: it is
/// listed where it stands, or else in the first of the others.
///
/// Whether it stands below the category, an entry says itself. Which is the first, it does not: so the categories of products that are listed
/// for a further one alone are read, in one request, and only for pages that have such.
///
/// # Errors
/// When the table fails.
pub async fn once(store: &Store, category: &CategoryPath, page: Page<Listed>) -> Result<Page<Listed>, Problem> {
    let stands_below = |listed: &Listed| listed.category_path.names().starts_with(category.names());
    let page = page.filter_map(|listed| (listed.further.is_none() || !stands_below(&listed)).then_some(listed));
    let guests: Vec<&ProductId> =
        page.items.iter().filter(|listed| listed.further.is_some()).map(|listed| &listed.id).collect();
    if guests.is_empty() {
        return Ok(page);
    }
    let mut distinct = guests;
    distinct.sort_unstable();
    distinct.dedup();
    let lists = store.table.batch_get(&membership::lists(distinct.iter().copied())?).await?;
    let first = |list: &Stored<ProductCategories>| list.first_under(category).map(CategoryPath::key_text);
    let firsts: HashMap<ProductId, Option<String>> =
        lists.iter().flatten().map(|list| (list.product_id.clone(), first(list))).collect();
    Ok(page.filter_map(|listed| {
        let first = firsts.get(&listed.id).cloned().flatten();
        // What the lists do not know yet, or any more, is shown as the index has it.
        (listed.further.is_none() || first.is_none() || first == listed.further).then_some(listed)
    }))
}

/// A product and its further categories, as they were read.
struct Read {
    product: Option<Stored<Product>>,
    further: Option<Stored<ProductCategories>>,
}

async fn read(store: &Store, id: &ProductId) -> Result<Read, Problem> {
    let mut read = Read { product: None, further: None };
    for item in store.table.batch_get(&membership::prepare(id)?).await?.into_iter().flatten() {
        match item {
            AnyEntity::Product(product) => read.product = Some(product),
            AnyEntity::ProductCategories(further) => read.further = Some(further),
            _ => {}
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
