//! Customers by where they live.

use http_api::{Problem, Request, Response, Store};
use key_schema::residence::{self, LivingIn};

use crate::view::ResidentView;

/// GET places/{path}/customers, by city and id: those of a country, or of a city of it.
pub async fn customers(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let place: LivingIn = request.path("path")?;
    // A place has one address.
    let segment = place.to_segment();
    let parameters = [("place", segment.as_str())];
    let page = request.page(&store.cursors, residence::OF_PLACE.id, &parameters)?;
    let query = residence::of_place(&place)?.limit(page.limit()).after(page.after());
    let found = store.table.query(&query).await?;
    let items: Vec<ResidentView<'_>> = found.items.iter().map(ResidentView::from).collect();
    page.answer(&items, |kept| found.end(kept))
}
