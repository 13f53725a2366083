//! Follows. Each follow is an edge from one customer to another. Only the follower and staff may
//! change the edge. Every signed-in caller may read it.

use http_api::contract::{Page, route};
use http_api::url::location;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::follow::{self, Follow, FollowAction};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::Refusals;

use crate::no_customer;
use crate::view::FollowView;

/// Follow a customer
///
/// Adds the follow. A repeated request changes nothing and returns the existing follow, with 200.
#[route(PUT "/v1/customers/{id}/following/{other}", id = "followCustomer", who = owner, task = "community",
    path(id: CustomerId, other: CustomerId = "The followed customer's id, or `me` for the caller's own id"),
    answers(200 = FollowView<'_> "The existing follow", 201 = FollowView<'_> "The new follow" [Location]),
    refuses(follows_self))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (customer, other) = own_edge(request)?;
    if customer == other {
        return Err(Problem::new(Code::FollowsSelf, "Customers cannot follow themselves."));
    }
    let followed = services.table.get(&follow::prepare(&other)?).await?;
    followed.filter(|customer| customer.erasing_since.is_none()).ok_or_else(no_customer)?;
    let at = Instant::now();
    let edge = Stored::new(Follow { customer_id: customer, followed_id: other }, services.born(at)?, at);
    match services.table.transact(&follow::put(&edge)?).await? {
        Ok(()) => {
            let place = ["customers", edge.customer_id.as_str(), "following", edge.followed_id.as_str()];
            Ok(Response::created(location(&place), &FollowView::from(&edge)))
        }
        Err(refusals) => Ok(Response::ok(&FollowView::from(&already(&refusals)?))),
    }
}

/// Returns the existing edge that made the table refuse a write.
///
/// # Errors
/// 404 when the follower does not exist: staff named an unknown customer, or the caller was erased.
fn already(refusals: &Refusals<FollowAction>) -> Result<Stored<Follow>, Problem> {
    match refusals.of(FollowAction::Edge) {
        _ if refusals.names(FollowAction::Customer) => Err(no_customer()),
        Some(edge) => edge.stored()?.ok_or_else(|| Problem::internal("the table returned no item of a refused edge")),
        None => Err(Problem::unexpected(refusals)),
    }
}

/// Check whether a customer follows another customer
///
/// Returns the follow, or 404 if there is none.
#[route(GET "/v1/customers/{id}/following/{other}", id = "readFollow", who = signed_in, task = "community",
    path(id: CustomerId, other: CustomerId = "The followed customer's id, or `me` for the caller's own id"),
    answers(200 = FollowView<'_> "The follow"), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let (customer, other) = edge(request)?;
    let edge = services.table.get(&follow::get(&customer, &other)?).await?;
    Ok(Response::ok(&FollowView::from(&edge.ok_or_else(|| Problem::not_found("follower"))?)))
}

/// Unfollow a customer
///
/// Removes the follow. If the follow is missing, the request also succeeds.
#[route(DELETE "/v1/customers/{id}/following/{other}", id = "unfollowCustomer", who = owner, task = "community",
    path(id: CustomerId, other: CustomerId = "The followed customer's id, or `me` for the caller's own id"),
    answers(204 = () "Done"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (customer, other) = own_edge(request)?;
    let refused = |_| Problem::internal("an unconditional write was refused");
    services.table.write(&follow::remove(&customer, &other)?).await?.map_err(refused)?;
    Ok(Response::no_content())
}

/// List the customers that a customer follows
///
/// Returns the follows by the id of the followed customer.
#[route(GET "/v1/customers/{id}/following", id = "listFollowing", who = signed_in, task = "community",
    path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<FollowView<'_>> "A page of follows" [Link, LeftOut]))]
pub async fn following(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let customer: CustomerId = request.path("id")?;
    let parameters = [("customer", customer.as_str())];
    request.list(services, follow::following(&customer)?, &parameters).await?.answer(FollowView::from).await
}

/// List a customer's followers
///
/// Returns the follows, newest first.
#[route(GET "/v1/customers/{id}/followers", id = "listFollowers", who = signed_in, task = "community",
    path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<FollowView<'_>> "A page of follows" [Link, LeftOut]))]
pub async fn followers(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let customer: CustomerId = request.path("id")?;
    let parameters = [("customer", customer.as_str())];
    let list = request.list(services, follow::followers(&customer)?, &parameters).await?;
    list.answer(|follower| FollowView::of_follower(follower, &customer)).await
}

/// Returns the edge that the URL path names. The caller may add and remove this edge.
fn own_edge(request: &Request<'_>) -> Result<(CustomerId, CustomerId), Problem> {
    request.signed_in()?;
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    Ok((customer, request.path("other")?))
}

fn edge(request: &Request<'_>) -> Result<(CustomerId, CustomerId), Problem> {
    Ok((request.path("id")?, request.path("other")?))
}
