//! Lists the orders that have a picking station, and the orders that wait for a station.

use http_api::contract::{PageWith, Schema, route};
use http_api::{List, Problem, Request, Response, Services};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::picking;
use serde::Serialize;

#[derive(Serialize, Schema)]
#[schema(name = "PickingPage")]
struct Stations {
    /// The orders with a picking station.
    jobs: Vec<Job>,
}

#[derive(Serialize, Schema)]
#[schema(name = "PickingJob")]
struct Job {
    order_id: OrderId,
}

#[derive(Serialize, Schema)]
#[schema(name = "WaitingJob")]
struct Waiting {
    order_id: OrderId,
    waiting_since: Instant,
}

/// List the orders in picking and the orders that wait for picking
///
/// Returns the warehouse's picking queue. A paid order waits for a picking station, and keeps the
/// station until it is shipped or cancelled. `jobs` are the orders with a station. `items` are the
/// waiting orders, the oldest order first.
#[route(GET "/v1/picking", id = "readPicking", who = staff, task = "fulfilment", parameters(Limit, Cursor),
    answers(200 = PageWith<Waiting, Stations> "The orders with a station, and a page of the waiting orders"
        [Link, LeftOut]))]
pub async fn queue(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let List { page, found } = request.list(services, picking::waiting()?, &[]).await?;
    // The stations are read after the list. So an order that gets a station between the two reads
    // is not missed, and it is shown only once.
    let jobs = services.table.get(&picking::stations()?).await?.map(|stations| stations.data.jobs).unwrap_or_default();
    let found = found.filter_map(|job| {
        let job = Some(job).filter(|job| !jobs.contains(&job.order_id))?;
        Some(Waiting { waiting_since: job.meta.created_at, order_id: job.data.order_id })
    });
    let stations = Stations { jobs: jobs.into_iter().map(|order_id| Job { order_id }).collect() };
    List { page, found }.answer_with(|waiting| waiting, &stations).await
}
