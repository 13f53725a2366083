//! The newest reviews of all products.

use http_api::{Problem, Request, Response, Store};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::review::recent::{self, MONTHS_OF_A_PAGE, Month, RecentReview, ReviewMonth};
use table::{Page as Found, WriteError};

use crate::view::ReviewView;

/// GET reviews/recent, newest first.
pub async fn list(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let page = request.page(&store.cursors, recent::RECENT.id, &[])?;
    let found = read(store, page.limit(), page.after()).await?;
    let items: Vec<ReviewView<'_>> = found.items.iter().map(ReviewView::from).collect();
    page.answer(&items, |kept| found.end(kept))
}

/// Notes that a month has reviews, before the first of them is written. Nearly always it is noted already, which is cheaper to see than to try.
pub async fn note_month(store: &Store, at: Instant) -> Result<(), Problem> {
    let month = Month::of(at);
    if store.table.get(&recent::month(&month)?).await?.is_some() {
        return Ok(());
    }
    let now = Instant::now();
    match store.table.write(&recent::add_month(&Stored::new(ReviewMonth { month }, store.born(now)?, now))?).await {
        // Somebody else was first.
        Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Table(error)) => Err(error.into()),
    }
}

/// Reads a month after the other until the page is full: first the one in which the page before ended, or this one, then earlier ones that have
/// reviews, [`MONTHS_OF_A_PAGE`] at most, however far they lie apart. So most pages are one request a shard. None is more than one and twelve times two a
/// shard, which would take twelve months whose reviews all lie in the same few shards.
async fn read(store: &Store, limit: usize, after: Option<String>) -> Result<Found<Stored<RecentReview>>, Problem> {
    let first = after.as_deref().map_or_else(|| Month::of(Instant::now()), Month::of_sort_key);
    let mut found = store.table.query(&recent::of_month(&first)?.limit(limit).after(after)).await?;
    if found.next.is_some() {
        return Ok(found);
    }
    let earlier = store.table.query(&recent::months_before(&first)?.limit(MONTHS_OF_A_PAGE - 1)).await?;
    let mut last = first;
    let mut months = earlier.items.into_iter().map(|noted| noted.data.month).peekable();
    while found.items.len() < limit
        && let Some(month) = months.next()
    {
        found.append(store.table.query(&recent::of_month(&month)?.limit(limit - found.items.len())).await?);
        if found.next.is_some() {
            return Ok(found);
        }
        last = month;
    }
    // The last month that was read has nothing left.
    let more = months.peek().is_some() || earlier.next.is_some();
    found.next = more.then(|| last.as_str().to_owned());
    Ok(found)
}
