use http_api::{Problem, Request, Response, Services};
use key_schema::residence::{self, LivingIn};

use crate::view::ResidentView;

/// GET places/{path}/customers: lists the customers of a country or of a city, by city and id.
pub async fn customers(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let place: LivingIn = request.path("path")?;
    // Each place has exactly one valid segment, so the cursor is bound to the place.
    let segment = place.to_segment();
    let parameters = [("place", segment.as_str())];
    request.list(services, residence::of_place(&place)?, &parameters).await?.answer(ResidentView::from)
}
