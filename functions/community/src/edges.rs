//! Lists the edges of a node in the graph of customers. Each kind of edge has a separate source.

use http_api::{Code, Page, Problem, Request, Response, Services};
use key_schema::graph::{self, EdgeKind};
use key_schema::id::CustomerId;
use key_schema::item::FromItem;
use key_schema::request::Query;
use key_schema::{follow, like, review, sales};
use table::Page as Found;

use crate::view::EdgeView;

/// GET graph/{node}/edges?kind=: lists the edges of a kind, in one request for any kind. An unknown
/// node has no edges.
pub async fn of_node(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let node: CustomerId = request.path("node")?;
    let kind: EdgeKind = request
        .query_as("kind")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `kind` is missing."))?;
    let parameters = [("node", node.as_str()), ("kind", kind.as_str())];
    let page = request.page(&services.cursors, "graph.edges", &parameters)?;
    match kind {
        EdgeKind::Follows => {
            let found = read(services, &page, follow::following(&node)?).await?;
            answer(&page, &found, EdgeView::follows)
        }
        EdgeKind::Likes => {
            let found = read(services, &page, like::of_customer(&node)?).await?;
            answer(&page, &found, EdgeView::likes)
        }
        EdgeKind::Reviewed => {
            let found = read(services, &page, review::by_customer(&node)?).await?;
            answer(&page, &found, EdgeView::reviewed)
        }
        EdgeKind::Bought => {
            let found = read(services, &page, sales::bought(&node)?).await?;
            answer(&page, &found, EdgeView::bought)
        }
        EdgeKind::LivesIn => {
            let profile = services.table.get(&graph::lives_in(&node)?).await?;
            let place = profile.as_deref().and_then(|profile| profile.place.as_ref());
            Ok(Response::all(place.map(EdgeView::lives_in).as_slice()))
        }
    }
}

async fn read<T: FromItem>(services: &Services, page: &Page<'_>, query: Query<T>) -> Result<Found<T>, Problem> {
    Ok(services.table.query(&query.limit(page.limit()).after(page.after())).await?)
}

fn answer<'a, T>(
    page: &Page<'_>,
    found: &'a Found<T>,
    view: impl Fn(&'a T) -> EdgeView<'a>,
) -> Result<Response, Problem> {
    let items: Vec<EdgeView<'_>> = found.items.iter().map(view).collect();
    page.answer(&items, |kept| found.end(kept))
}
