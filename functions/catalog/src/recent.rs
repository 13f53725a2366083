use http_api::contract::{Page, route};
use http_api::{List, Problem, Request, Response, Services};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::review::recent::{self, MONTHS_OF_A_PAGE, Month, RecentReview, ReviewMonth};
use table::Page as Found;

use crate::view::ReviewView;

/// List the newest reviews of all products
///
/// Returns the reviews by the time of their creation, newest first. A page covers at most 12 months
/// that have reviews. So a page may have fewer entries than `limit` and still have a cursor.
#[route(GET "/v1/reviews/recent", id = "listRecentReviews", who = any, task = "reviews", parameters(Limit, Cursor),
    answers(200 = Page<ReviewView<'_>> "A page of reviews" [ETag, Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    page(services, request).await?.answer(|review| ReviewView::from(review).of_anybody()).await
}

/// Reads the requested page of the reviews of all products.
pub async fn page<'p>(
    services: &'p Services,
    request: &'p Request<'_>,
) -> Result<List<'p, Stored<RecentReview>>, Problem> {
    let mut page = request.page(&services.cursors, recent::RECENT.id, &[]).await?;
    let found = read(services, page.limit(), page.after()).await?;
    page.leave_out(found.left_out());
    Ok(List { page, found })
}

/// Writes the [`ReviewMonth`] of an instant, unless it exists. The caller writes its review
/// afterwards. The function reads the item first, because it nearly always exists, and a read is
/// cheaper than a refused write.
pub async fn note_month(services: &Services, at: Instant) -> Result<(), Problem> {
    let month = Month::of(at);
    if services.table.get(&recent::month(&month)?).await?.is_some() {
        return Ok(());
    }
    let now = Instant::now();
    let noted = Stored::new(ReviewMonth { month }, services.born(now)?, now);
    // A refusal means that another request has written the item.
    let _ = services.table.write(&recent::add_month(&noted)?).await?;
    Ok(())
}

/// Reads months one after another until the page is full. The first is the current month, or the
/// month in which the previous page ended. At most 11 earlier months with reviews follow
/// ([`MONTHS_OF_A_PAGE`] in total). The months need not be adjacent.
///
/// Most pages take one request per shard. The upper bound is one request for the list of months,
/// and two per shard for each of twelve months. A page needs that many only if the reviews of each
/// month are in very few shards.
async fn read(
    services: &Services,
    limit: usize,
    after: Option<String>,
) -> Result<Found<Stored<RecentReview>>, Problem> {
    let first = after.as_deref().map_or_else(|| Month::of(Instant::now()), Month::of_sort_key);
    let mut found = services.table.query_readable(&recent::of_month(&first)?.limit(limit).after(after)).await?;
    if found.next.is_some() {
        return Ok(found);
    }
    let earlier = services.table.query(&recent::months_before(&first)?.limit(MONTHS_OF_A_PAGE - 1)).await?;
    let mut last = first;
    let mut months = earlier.items.into_iter().map(|noted| noted.data.month).peekable();
    while found.items.len() < limit
        && let Some(month) = months.next()
    {
        found.append(services.table.query_readable(&recent::of_month(&month)?.limit(limit - found.items.len())).await?);
        if found.next.is_some() {
            return Ok(found);
        }
        last = month;
    }
    // The last month that this page read has no more reviews, so the next page starts after that
    // month.
    let more = months.peek().is_some() || earlier.next.is_some();
    found.next = more.then(|| last.as_str().to_owned());
    Ok(found)
}
