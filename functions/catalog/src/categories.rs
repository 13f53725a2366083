//! The category tree: descriptions of categories, their children and ancestors, and their products.

use std::collections::HashMap;

use http_api::contract::{Body, Page, route};
use http_api::{Code, List, Precondition, Problem, Request, Response, Services};
use key_schema::category::{self, CategoryAbout, CategoryAction, CategoryNode};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::{Stored, take};
use key_schema::product::{self, CategoryPath, Product};
use table::Refusal;

use crate::view::{CategoryView, DESCRIPTION, NodeView, ProductByIdView, TITLE, category_location, category_version};
use crate::{memberships, tree};

#[derive(Body)]
#[body(name = "CategoryChange")]
struct NewCategory {
    /// 1 to 200 bytes.
    #[field(rule = TITLE, example = "Ice")]
    title: Option<String>,
    /// 1 to 2000 bytes.
    #[field(rule = DESCRIPTION, example = "All that is cold.")]
    description: Option<String>,
}

/// Read a category
///
/// Returns the category. A shared cache may keep it for five seconds.
#[route(GET "/v1/categories/{path}", id = "readCategory", who = any, task = "browse", path(CategoryPath),
    answers(200 = CategoryView<'_> "The category" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let path = path(request)?;
    let found = find(services, &path).await?.ok_or_else(no_such_category)?;
    Ok(described(&path, found.about.as_ref()))
}

/// Create a category, or change its description
///
/// `If-None-Match: *` creates the category and its missing ancestors. `If-Match` replaces its title
/// and description. A field that the body leaves out is removed.
#[route(PUT "/v1/categories/{path}", id = "putCategory", who = staff, task = "categories", path(CategoryPath),
    parameters(IfMatchOrNone, IfNoneMatch), body = NewCategory,
    answers(
        200 = CategoryView<'_> "The category" [ETag],
        201 = CategoryView<'_> "The new category" [Location, ETag],
    ),
    refuses(already_exists = "with Location", category_moving))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let path = path(request)?;
    let precondition = request.precondition()?;
    let NewCategory { title, description } = request.body()?;
    let at = Instant::now();
    let about = CategoryAbout { path, title, description };
    match precondition {
        Precondition::Absent => create(services, about, at).await,
        Precondition::Version(version) => redescribe(services, about, version, at).await,
    }
}

/// List the products of a category
///
/// Returns the products of the category and of all categories below it, sorted by category and id.
/// Products that have one of these categories as a further category are included. A product is
/// listed once, and its variants are not listed. So a page may have fewer entries than `limit`.
/// `category_path` is the product's own category.
#[route(GET "/v1/categories/{path}/products", id = "listCategoryProducts", who = any, task = "browse",
    path(CategoryPath), parameters(Limit, Cursor),
    answers(200 = Page<ProductByIdView<'_>> "A page of products" [ETag, Link, LeftOut]), refuses(not_found))]
pub async fn products(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let path = path(request)?;
    let segment = path.to_segment();
    let parameters = [("path", segment.as_str())];
    let List { mut page, found } = request.list(services, product::in_category(&path)?, &parameters).await?;
    if found.items.is_empty() {
        must_exist(services, &path).await?;
    }
    let found = memberships::one_entry_per_product(services, &path, found).await?;
    // The index has neither the availability nor the rating, nor the parent.
    let mut ids: Vec<&ProductId> = found.items.iter().map(|listed| &listed.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let read = services.table.batch_get_readable(&product::by_ids(ids)?).await?;
    page.leave_out(read.unreadable.len());
    // A list shows a product with variants as one entry, as search does.
    let shown = read.items.into_iter().flatten().filter(|product| !product.retired && product.parent.is_none());
    let mut shown: HashMap<ProductId, Stored<Product>> = shown.map(|product| (product.id.clone(), product)).collect();
    let found = found.filter_map(|listed| shown.remove(&listed.id));
    List { page, found }.answer(ProductByIdView::from).await
}

/// List the top categories
///
/// Returns the categories without a parent, by name. A shared cache may keep the list for five
/// seconds.
#[route(GET "/v1/categories", id = "listCategories", who = any, task = "browse", parameters(Limit, Cursor),
    answers(200 = Page<NodeView<'_>> "A page of categories" [ETag, Link, LeftOut]))]
pub async fn top(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.list(services, category::children(None)?, &[]).await?.answer(NodeView::from).await
}

/// List all categories below a category
///
/// Returns the categories at every level below, without the category itself. Each category comes
/// before the categories below it. A shared cache may keep the list for five seconds.
#[route(GET "/v1/categories/{path}/subtree", id = "listCategorySubtree", who = any, task = "browse",
    path(CategoryPath), parameters(Limit, Cursor),
    answers(200 = Page<NodeView<'_>> "A page of categories" [ETag, Link, LeftOut]), refuses(not_found))]
pub async fn subtree(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let path = path(request)?;
    let segment = path.to_segment();
    let parameters = [("path", segment.as_str())];
    let list = request.list(services, category::subtree(&path)?, &parameters).await?;
    if list.found.items.is_empty() {
        must_exist(services, &path).await?;
    }
    list.answer(|below| NodeView::from(&below.path)).await
}

/// List the categories directly below a category
///
/// Returns the subcategories by name. A shared cache may keep the list for five seconds.
#[route(GET "/v1/categories/{path}/children", id = "listCategoryChildren", who = any, task = "browse",
    path(CategoryPath), parameters(Limit, Cursor),
    answers(200 = Page<NodeView<'_>> "A page of categories" [ETag, Link, LeftOut]), refuses(not_found))]
pub async fn children(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let path = path(request)?;
    let segment = path.to_segment();
    let parameters = [("path", segment.as_str())];
    let list = request.list(services, category::children(Some(&path))?, &parameters).await?;
    if list.found.items.is_empty() {
        must_exist(services, &path).await?;
    }
    list.answer(NodeView::from).await
}

/// List the categories above a category
///
/// Returns the ancestors from the top, all on one page. A shared cache may keep the list for five
/// seconds.
#[route(GET "/v1/categories/{path}/ancestors", id = "listCategoryAncestors", who = any, task = "browse",
    path(CategoryPath), answers(200 = Page<NodeView<'_>> "The categories above" [ETag, LeftOut]), refuses(not_found))]
pub async fn ancestors(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let path = path(request)?;
    // This list has only one page. The call still refuses a bad limit or another list's cursor.
    let segment = path.to_segment();
    let parameters = [("path", segment.as_str())];
    let mut page = request.page(&services.cursors, category::ANCESTORS.id, &parameters).await?;
    let mut lineage = services.table.batch_get_readable(&category::ancestors(&path)?).await?;
    let above = lineage.items.len().saturating_sub(1);
    lineage.require(above..above + 1)?;
    if lineage.items.pop().flatten().is_none() {
        return Err(no_such_category());
    }
    page.leave_out(lineage.unreadable.len());
    let items: Vec<NodeView<'_>> = lineage.items.iter().flatten().map(NodeView::from).collect();
    page.answer(&items, |_| None).await
}

/// Creates a category. The write's condition decides whether it already exists. An empty
/// description is not written.
async fn create(services: &Services, about: CategoryAbout, at: Instant) -> Result<Response, Problem> {
    let path = about.path.clone();
    if let Some(parent) = path.parent() {
        tree::grow(services, &parent, at).await?;
    }
    let node = tree::new_node(services, &path, at)?;
    let said = about.title.is_some() || about.description.is_some();
    let about = said.then(|| Stored::new(about, node.meta.born.clone(), at));
    match services.table.transact(&category::create(&node, about.as_ref())?).await? {
        Ok(()) => {
            let view = CategoryView::new(&path, about.as_ref());
            Ok(Response::created(category_location(&path), &view).etag(category_version(about.as_ref())))
        }
        Err(_) => {
            Err(Problem::new(Code::AlreadyExists, "The category already exists.").location(category_location(&path)))
        }
    }
}

/// Writes the first description of a category. A category without a description is at version 1, so
/// its first description has version 2.
async fn describe(services: &Services, about: CategoryAbout, at: Instant) -> Result<Response, Problem> {
    let mut about = Stored::new(about, services.born(at)?, at);
    about.meta.version = 2;
    match services.table.transact(&category::describe(&about)?).await? {
        Ok(()) => Ok(described(&about.path, Some(&about))),
        Err(refusals) => Err(match refusals.of(CategoryAction::Node) {
            Some(Refusal { item: Some(_), .. }) => moving(),
            Some(_) => no_such_category(),
            None => Problem::version_mismatch(),
        }),
    }
}

async fn redescribe(services: &Services, about: CategoryAbout, version: u64, at: Instant) -> Result<Response, Problem> {
    let update = category::redescribe(&about.path, &about.title, &about.description, version, at)?;
    match services.table.update(&update).await? {
        Ok(about) => Ok(described(&about.path, Some(&about))),
        Err(Refusal { item: None, .. }) if version == 1 => describe(services, about, at).await,
        Err(_) => {
            let found = find(services, &about.path).await?.ok_or_else(no_such_category)?;
            if found.moving {
                return Err(moving());
            }
            Err(Problem::version_mismatch())
        }
    }
}

struct Found {
    /// Whether a move has already copied the category to its new path.
    moving: bool,
    /// Its description, if there is one.
    about: Option<Stored<CategoryAbout>>,
}

async fn find(services: &Services, path: &CategoryPath) -> Result<Option<Found>, Problem> {
    let mut found = services.table.batch_get(&category::get(path)?).await?;
    let node = take::<CategoryNode, _>(&mut found);
    Ok(node.map(|node| Found { moving: node.moving, about: take(&mut found) }))
}

/// Checks that the category exists, and fails with 404 otherwise. Only an empty page needs this
/// extra read.
async fn must_exist(services: &Services, path: &CategoryPath) -> Result<(), Problem> {
    let known = services.table.batch_get(&category::known([path])?).await?;
    if known.iter().flatten().next().is_some() { Ok(()) } else { Err(no_such_category()) }
}

/// A category that is removed and created again begins at its first version. So the tag depends on
/// the text too.
fn described(path: &CategoryPath, about: Option<&Stored<CategoryAbout>>) -> Response {
    Response::ok(&CategoryView::new(path, about)).etag_of_parts(category_version(about))
}

fn path(request: &Request<'_>) -> Result<CategoryPath, Problem> {
    request.path_by("path", CategoryPath::from_segment)
}

/// Returns 409 for a category that a move has already copied to its new path.
fn moving() -> Problem {
    Problem::new(Code::CategoryMoving, "The category is being moved. Describe it at its new path.")
}

pub fn no_such_category() -> Problem {
    Problem::not_found("category")
}
