//! Nodes of the graph of customers: the edges of a customer, and the customers of a place. Each kind
//! of edge comes from a different kind of item.

use http_api::contract::{Page, route};
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::graph::{self, EdgeKind};
use key_schema::id::CustomerId;
use key_schema::residence::{self, LivingIn};
use key_schema::{follow, like, review, sales};

use crate::view::{EdgeView, ResidentView};

/// List the edges of one kind from a customer
///
/// Edges of the kinds `follows` and `likes` are sorted by the id of their target. Edges of the kinds
/// `reviewed` and `bought` are sorted by time, newest first. A customer has at most one edge of the
/// kind `lives-in`. Edges of the kind `bought` appear with a short delay. They disappear when the
/// order is cancelled or returned. An unknown customer has no edges.
#[route(GET "/v1/graph/{node}/edges", id = "listEdges", who = staff, task = "customers", path(node: CustomerId),
    parameters(required kind: EdgeKind = "The kind of the edges.", Limit, Cursor),
    answers(200 = Page<EdgeView<'_>> "A page of edges" [Link, LeftOut]))]
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

/// List the customers who live in a place
///
/// Returns the customers by city and id.
#[route(GET "/v1/places/{path}/customers", id = "listResidents", who = staff, task = "customers", path(Place),
    parameters(Limit, Cursor), answers(200 = Page<ResidentView<'_>> "A page of customers" [Link, LeftOut]))]
pub async fn of_location(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let place: LivingIn = request.path("path")?;
    // Each place has exactly one valid segment, so the cursor is bound to the place.
    let segment = place.to_segment();
    let parameters = [("place", segment.as_str())];
    request.list(services, residence::of_location(&place)?, &parameters).await?.answer(ResidentView::from).await
}
