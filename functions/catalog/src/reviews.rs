//! Reviews: one per customer and product, counted in the transaction that writes them.
//!
//! A review belongs to its author, who can read, change and remove it even after the product was
//! retired. Only the product's list of reviews disappears with the product.

use std::str::FromStr;

use http_api::contract::rules::{Described, described};
use http_api::contract::{Body, Page, PageWith, route};
use http_api::{Code, Precondition, Problem, Request, Response, Services, change_version};
use key_schema::id::{CustomerId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Stored, take};
use key_schema::product::{Product, ReviewStats};
use key_schema::quota::Quota;
use key_schema::request::Query;
use key_schema::review::{self, Review, ReviewAction, ReviewSummary};
use table::Refusals;

use crate::products::no_such_product;
use crate::recent;
use crate::view::{
    DISPLAY_NAME, RATING, REVIEW_TEXT, REVIEW_TITLE, ReviewView, Statistics, StatisticsView, review_location,
};

#[derive(Body)]
struct NewReview {
    #[field(rule = RATING, example = 4)]
    rating: u64,
    #[field(rule = DISPLAY_NAME, example = "Ann from Ulm")]
    display_name: Option<String>,
    #[field(rule = REVIEW_TITLE, example = "Cold")]
    title: String,
    #[field(rule = REVIEW_TEXT, example = "As ice should be.")]
    text: String,
}

/// Read one review
///
/// The response has no `customer_id`. This route does not know the caller, so `me` gets 422. Authors
/// read their own review with `GET /v1/customers/{id}/reviews/{product}`.
#[route(GET "/v1/products/{id}/reviews/{customer}", id = "readReview", who = any, task = "reviews",
    path(id: ProductId, customer: CustomerId), answers(200 = ReviewView<'_> "The review" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (product, customer) = (request.path("id")?, request.path_by("customer", CustomerId::from_str)?);
    let review = find(services, &product, &customer).await?;
    // A review that was removed and written again has its former version, with another text.
    Ok(Response::ok(&ReviewView::from(&review).of_anybody()).etag_of_parts(review.meta.version))
}

/// Read a customer's review of a product
#[route(GET "/v1/customers/{id}/reviews/{product}", id = "readCustomerReview", who = owner, task = "reviews",
    path(id: CustomerId, product: ProductId), answers(200 = ReviewView<'_> "The review" [ETag]))]
pub async fn own(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let review = find(services, &request.path("product")?, &customer).await?;
    Ok(Response::ok(&ReviewView::from(&review)).etag_of_parts(review.meta.version))
}

async fn find(services: &Services, product: &ProductId, author: &CustomerId) -> Result<Stored<Review>, Problem> {
    services.table.get(&review::get(product, author)?).await?.ok_or_else(no_such_review)
}

/// Write or change a review
///
/// `If-None-Match: *` creates the review, `If-Match` changes it. A customer has at most one review
/// of a product, and may write or change at most 200 reviews on a day in UTC. The customer must have
/// a profile. Readers see the `display_name` of this review, and never the name, the user name or
/// the id of the customer's profile. A change without `display_name` removes it, and so does the
/// erasure of the customer.
#[route(PUT "/v1/products/{id}/reviews/{customer}", id = "putReview", who = owner, task = "reviews",
    path(id: ProductId, customer: CustomerId), parameters(IfMatchOrNone, IfNoneMatch), body = NewReview,
    answers(200 = ReviewView<'_> "The review" [ETag], 201 = ReviewView<'_> "The new review" [Location, ETag]),
    refuses(
        not_found = "there is no such product or review, the customer has no profile, or the review would belong to \
            another customer than the caller",
        already_exists = "with Location",
        quota_exceeded = "retry after the time in Retry-After",
    ))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (product_id, customer_id) = names(request)?;
    request.owner(&customer_id)?;
    let precondition = request.precondition()?;
    let NewReview { rating, display_name, title, text } = request.body()?;
    let review = Review { product_id, customer_id, rating, display_name, title, text };
    match precondition {
        Precondition::Absent => create(services, review).await,
        Precondition::Version(version) => change(services, review, version).await,
    }
}

/// Remove a review
#[route(DELETE "/v1/products/{id}/reviews/{customer}", id = "deleteReview", who = owner, task = "reviews",
    path(id: ProductId, customer: CustomerId), parameters(IfMatchOrAny), answers(204 = () "Done"))]
pub async fn delete(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let (product, customer) = names(request)?;
    request.owner(&customer)?;
    let version = request.if_match_or_any()?;
    change_version(version, async || {
        let old = at_version(services, &product, &customer, version).await?;
        services.table.transact(&review::delete(&old, Instant::now())?).await?.map_err(changed_meanwhile)
    })
    .await?;
    Ok(Response::no_content())
}

/// List a product's reviews
///
/// The reviews show the display names of their authors, and not their ids.
#[route(GET "/v1/products/{id}/reviews", id = "listProductReviews", who = any, task = "reviews", path(id: ProductId),
    parameters(
        sort = SORT "`best` sorts by rating, the best first. Reviews with the same rating are sorted by time, the \
            newest first.",
        Limit,
        Cursor,
    ),
    answers(200 = PageWith<ReviewView<'_>, StatisticsView> "A page of reviews, with the average and count of all \
        reviews" [ETag, Link, LeftOut]),
    refuses(not_found))]
pub async fn of_product(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let product: ProductId = request.path("id")?;
    let query = sorted(request, &product)?;
    let parameters = [("product", product.as_str())];
    let mut page = request.page(&services.cursors, query.pattern().id, &parameters).await?;
    let (statistics, left_out) = statistics(services, &product).await?;
    page.leave_out(left_out);
    let list = page.read(services, query).await?;
    let statistics = StatisticsView::from(statistics);
    list.answer_with(|review| ReviewView::from(review).of_anybody(), &statistics).await
}

/// List reviews with their authors' ids
///
/// Returns the reviews of all products by the time of their creation, newest first, or the reviews
/// of one product. Staff need the author's id to remove a review.
#[route(GET "/v1/reviews", id = "listReviews", who = staff, task = "reviews",
    parameters(
        product: ProductId = "Only the reviews of this product.",
        sort = SORT "The order of the reviews of a product, as in its own list.",
        Limit,
        Cursor,
    ),
    answers(200 = Page<ReviewView<'_>> "A page of reviews" [Link, LeftOut]))]
pub async fn all(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let Some(product) = request.query_as::<ProductId>("product")? else {
        let list = recent::page(services, request).await?;
        return list.answer(ReviewView::from).await;
    };
    let query = sorted(request, &product)?;
    let parameters = [("product", product.as_str())];
    request.list(services, query, &parameters).await?.answer(ReviewView::from).await
}

fn sorted(request: &Request<'_>, product: &ProductId) -> Result<Query<ReviewSummary>, Problem> {
    Ok(match request.query_as("sort")?.unwrap_or(Sort::Newest) {
        Sort::Newest => review::newest(product)?,
        Sort::Best => review::best(product)?,
    })
}

/// List a customer's reviews
///
/// Returns the customer's reviews, newest first.
#[route(GET "/v1/customers/{id}/reviews", id = "listCustomerReviews", who = owner, task = "reviews",
    path(id: CustomerId),
    parameters(Limit, Cursor), answers(200 = Page<ReviewView<'_>> "A page of reviews" [Link, LeftOut]))]
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    request.list(services, review::by_customer(&customer)?, &parameters).await?.answer(ReviewView::from).await
}

const SORT: Described = described(r#"{"type": "string", "enum": ["newest", "best"], "default": "newest"}"#);

#[derive(Debug, Clone, Copy)]
enum Sort {
    Newest,
    Best,
}

impl FromStr for Sort {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "newest" => Ok(Self::Newest),
            "best" => Ok(Self::Best),
            _ => Err("must be newest or best"),
        }
    }
}

async fn create(services: &Services, review: Review) -> Result<Response, Problem> {
    let at = Instant::now();
    let review = Stored::new(review, services.born(at)?, at);
    let location = review_location(&review.product_id, &review.customer_id);
    recent::note_month(services, at).await?;
    match services.table.transact(&review::create(&review)?).await? {
        Ok(()) => Ok(Response::created(location, &ReviewView::from(&review)).etag(review.meta.version)),
        Err(refusals) if refusals.names(ReviewAction::Product) => Err(no_such_product()),
        Err(refusals) if refusals.names(ReviewAction::Customer) => Err(Problem::not_found("customer")),
        Err(refusals) if refusals.only(ReviewAction::Quota) => Err(Problem::quota_exceeded(Quota::Reviews, at)),
        Err(_) => {
            let exists = "This customer has already reviewed this product. Change the review with If-Match.";
            Err(Problem::new(Code::AlreadyExists, exists).location(location))
        }
    }
}

async fn change(services: &Services, wanted: Review, version: u64) -> Result<Response, Problem> {
    let mut review = at_version(services, &wanted.product_id, &wanted.customer_id, Some(version)).await?;
    let at = Instant::now();
    let change = review::change(&review, &wanted, at)?;
    services.table.transact(&change).await?.map_err(|refusals| {
        let is_quota = refusals.only(ReviewAction::Quota);
        if is_quota { Problem::quota_exceeded(Quota::Reviews, at) } else { changed_meanwhile(refusals) }
    })?;
    review.data = wanted;
    review.meta.version += 1;
    review.meta.updated_at = at;
    Ok(Response::ok(&ReviewView::from(&review)).etag(review.meta.version))
}

/// Reads the review that the request changes. The read is strong, because the write adds the
/// difference between the new and the old rating to the statistics.
///
/// # Errors
/// 404 if the review does not exist, 412 if it is at another version.
async fn at_version(
    services: &Services,
    product: &ProductId,
    customer: &CustomerId,
    version: Option<u64>,
) -> Result<Stored<Review>, Problem> {
    let review = services.table.get(&review::read_for_update(product, customer)?).await?.ok_or_else(no_such_review)?;
    let is_other = version.is_some_and(|version| review.meta.version != version);
    if is_other { Err(Problem::version_mismatch()) } else { Ok(review) }
}

/// Explains a refusal: another request changed or removed the review after this request read it, or
/// the author has no profile.
fn changed_meanwhile(refusals: Refusals<ReviewAction>) -> Problem {
    if refusals.names(ReviewAction::Customer) {
        Problem::not_found("customer")
    } else if refusals.iter().any(|refusal| refusal.item.is_none()) {
        no_such_review()
    } else {
        Problem::version_mismatch()
    }
}

/// Returns the review statistics of a product in the catalogue, and the number of unreadable items.
///
/// # Errors
/// 404 when the product is missing or retired.
async fn statistics(services: &Services, product: &ProductId) -> Result<(Statistics, usize), Problem> {
    let mut found = services.table.batch_get_readable(&review::stats(product)?).await?;
    found.require(0..1)?;
    take::<Product, _>(&mut found.items).filter(|product| !product.retired).ok_or_else(no_such_product)?;
    let stats = take::<ReviewStats, _>(&mut found.items);
    Ok((stats.map(|stats| Statistics::from(&stats.data)).unwrap_or_default(), found.unreadable.len()))
}

fn names(request: &Request<'_>) -> Result<(ProductId, CustomerId), Problem> {
    Ok((request.path("id")?, request.path("customer")?))
}

fn no_such_review() -> Problem {
    Problem::not_found("review")
}
