//! Nodes of the graph of customers: the edges of a customer, and the customers of a place. Each kind
//! of edge comes from a different kind of item.

use http_api::{Code, Problem, Request, Response, Services};
use key_schema::graph::{self, EdgeKind};
use key_schema::id::CustomerId;
use key_schema::residence::{self, LivingIn};
use key_schema::{follow, like, review, sales};

use crate::view::{EdgeView, ResidentView};

/// GET graph/{node}/edges?kind=: lists the edges of one kind with one request to the table. An
/// unknown node has no edges.
pub async fn of_node(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let node: CustomerId = request.path("node")?;
    let kind: EdgeKind = request
        .query_as("kind")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `kind` is missing."))?;
    let parameters = [("node", node.as_str()), ("kind", kind.as_str())];
    let page = request.page(&services.cursors, "graph.edges", &parameters).await?;
    match kind {
        EdgeKind::Follows => page.read(services, follow::following(&node)?).await?.answer(EdgeView::follows).await,
        EdgeKind::Likes => page.read(services, like::of_customer(&node)?).await?.answer(EdgeView::likes).await,
        EdgeKind::Reviewed => page.read(services, review::by_customer(&node)?).await?.answer(EdgeView::reviewed).await,
        EdgeKind::Bought => page.read(services, sales::bought(&node)?).await?.answer(EdgeView::bought).await,
        EdgeKind::LivesIn => {
            let profile = services.table.get(&graph::lives_in(&node)?).await?;
            let place = profile.as_deref().and_then(|profile| profile.place.as_ref());
            Ok(Response::all(place.map(EdgeView::lives_in).as_slice()))
        }
    }
}

/// GET places/{path}/customers: lists the customers of a country or of a city, by city and id.
pub async fn of_location(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let place: LivingIn = request.path("path")?;
    // Each place has exactly one valid segment, so the cursor is bound to the place.
    let segment = place.to_segment();
    let parameters = [("place", segment.as_str())];
    request.list(services, residence::of_location(&place)?, &parameters).await?.answer(ResidentView::from).await
}
