//! Likes. Each customer has a list of likes. Each product has a count of likes, and a list that
//! only staff can read.

use std::collections::HashMap;

use futures::future::try_join;
use http_api::contract::{Page, route};
use http_api::url::location;
use http_api::{Problem, Request, Response, Services};
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::like::{self, Like, LikeAction};
use key_schema::product::Product;
use table::Refusals;

use crate::no_customer;
use crate::view::{LikeView, LikedProductView, LikesView};

/// Like a product
///
/// Adds the like. The product must be in the catalogue. A repeated request changes nothing and
/// returns the existing like, with 200.
#[route(PUT "/v1/customers/{id}/likes/{product}", id = "likeProduct", who = owner, task = "community",
    path(id: CustomerId, product: ProductId),
    answers(200 = LikeView<'_> "The existing like", 201 = LikeView<'_> "The new like" [Location]))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (customer, product) = own_like(request)?;
    let found = services.table.get(&like::prepare(&product)?).await?;
    found.filter(|product| !product.retired).ok_or_else(no_product)?;
    let at = Instant::now();
    let like = Stored::new(Like { customer_id: customer, product_id: product }, services.born(at)?, at);
    match services.table.transact(&like::put(&like)?).await? {
        Ok(()) => {
            let place = ["customers", like.customer_id.as_str(), "likes", like.product_id.as_str()];
            Ok(Response::created(location(&place), &LikeView::from(&like)))
        }
        Err(refusals) => Ok(Response::ok(&LikeView::from(&already(&refusals)?))),
    }
}

/// Returns the existing like that made the table refuse a write.
///
/// # Errors
/// 404 when the customer does not exist: staff named an unknown customer, or the caller was erased.
fn already(refusals: &Refusals<LikeAction>) -> Result<Stored<Like>, Problem> {
    match refusals.of(LikeAction::Like) {
        _ if refusals.names(LikeAction::Customer) => Err(no_customer()),
        Some(like) => like.stored()?.ok_or_else(|| Problem::internal("the table returned no item of a refused like")),
        None => Err(Problem::unexpected(refusals)),
    }
}

/// Check whether a customer likes a product
///
/// Returns the like, or 404 if there is none.
#[route(GET "/v1/customers/{id}/likes/{product}", id = "readLike", who = owner, task = "community",
    path(id: CustomerId, product: ProductId), answers(200 = LikeView<'_> "The like"))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (customer, product) = own_like(request)?;
    let like = services.table.get(&like::get(&customer, &product)?).await?;
    Ok(Response::ok(&LikeView::from(&like.ok_or_else(|| Problem::not_found("like"))?)))
}

/// Unlike a product
///
/// Removes the like, even if the product was removed from the catalogue. If the like is missing, the
/// request also succeeds.
#[route(DELETE "/v1/customers/{id}/likes/{product}", id = "unlikeProduct", who = owner, task = "community",
    path(id: CustomerId, product: ProductId), answers(204 = () "Done"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (customer, product) = own_like(request)?;
    let _ = services.table.transact(&like::remove(&customer, &product, Instant::now())?).await?;
    Ok(Response::no_content())
}

/// List the products that a customer likes
///
/// Returns the likes by product id, with the current name, price and first picture of each product.
/// A product that was removed from the catalogue stays in the list without them.
#[route(GET "/v1/customers/{id}/likes", id = "listCustomerLikes", who = owner, task = "community",
    path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<LikedProductView<'_>> "A page of likes" [Link, LeftOut]))]
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = owner(request)?;
    let parameters = [("customer", customer.as_str())];
    let mut list = request.list(services, like::of_customer(&customer)?, &parameters).await?;
    let ids = list.found.items.iter().map(|like| &like.product_id);
    let read = services.table.batch_get_readable(&like::products(ids)?).await?;
    list.page.leave_out(read.unreadable.len());
    let on_sale = read.items.iter().flatten().filter(|product| !product.retired);
    let products: HashMap<&ProductId, &Product> = on_sale.map(|product| (&product.id, &product.data)).collect();
    list.answer(|like| LikedProductView::new(like, products.get(&like.product_id).copied())).await
}

/// Count the likes of a product
///
/// Returns the exact number of likes. `GET /v1/customers/{id}/likes/{product}` says whether a
/// customer likes the product.
#[route(GET "/v1/products/{id}/likes", id = "countLikes", who = any, task = "community", path(id: ProductId),
    answers(200 = LikesView "The number of likes" [ETag]), refuses(not_found))]
pub async fn of_product(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let product: ProductId = request.path("id")?;
    let (query, get) = (like::of_product(&product)?, like::liked(&product)?);
    let (parts, product) = try_join(services.table.query(&query), services.table.get(&get)).await?;
    product.filter(|product| !product.retired).ok_or_else(no_product)?;
    Ok(Response::ok(&LikesView { count: like::total(&parts.items) }))
}

/// List the customers who like a product
///
/// Returns the likes, newest first.
#[route(GET "/v1/products/{id}/likers", id = "listLikers", who = staff, task = "customers", path(id: ProductId),
    parameters(Limit, Cursor), answers(200 = Page<LikeView<'_>> "A page of likes" [Link, LeftOut]))]
pub async fn likers(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let product: ProductId = request.path("id")?;
    let parameters = [("product", product.as_str())];
    let list = request.list(services, like::likers(&product)?, &parameters).await?;
    list.answer(|liker| LikeView::of_liker(liker, &product)).await
}

/// Returns the customer of the path, for whom the caller may act.
fn owner(request: &Request<'_>) -> Result<CustomerId, Problem> {
    request.signed_in()?;
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    Ok(customer)
}

fn own_like(request: &Request<'_>) -> Result<(CustomerId, ProductId), Problem> {
    Ok((owner(request)?, request.path("product")?))
}

fn no_product() -> Problem {
    Problem::not_found("product")
}
