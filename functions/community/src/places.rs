//! Lists customers by place of residence.

use http_api::{Problem, Request, Response, Services};
use key_schema::residence::{self, LivingIn};

use crate::view::ResidentView;

/// GET places/{path}/customers: lists the customers of a country, or of one of its cities, by city
/// and id.
pub async fn customers(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let place: LivingIn = request.path("path")?;
    // Each place has exactly one valid segment, so the cursor is bound to the place.
    let segment = place.to_segment();
    let parameters = [("place", segment.as_str())];
    let page = request.page(&services.cursors, residence::OF_PLACE.id, &parameters)?;
    let query = residence::of_place(&place)?.limit(page.limit()).after(page.after());
    let found = services.table.query(&query).await?;
    let items: Vec<ResidentView<'_>> = found.items.iter().map(ResidentView::from).collect();
    page.answer(&items, |kept| found.end(kept))
}
