//! Reads a single order. Lists orders by customer and by status, and lists a customer's shipments.

use http_api::{Code, List, Problem, Request, Response, Services};
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Entity as _;
use key_schema::key::KeyError;
use key_schema::order::{self, ListedOrder, OrderStatus, OrderSummary};
use key_schema::order::{OrderItem, PlacedOrder};
use key_schema::request::Query;
use serde::Serialize;
use table::Page as Found;

use crate::view::{View, history_views, line_views, no_such_order, visible, with_addresses};

/// GET orders/{id}: returns the head, the lines and the history, read in one Query. The addresses
/// of an order are in its customer's partition and take a second read.
pub async fn get(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let id: OrderId = request.path("id")?;
    let items = services.table.query(&order::get(&id)?).await?.items;
    let order = visible(items, Instant::now()).ok_or_else(no_such_order)?;
    request.owner(&order.head.customer_id).map_err(|_| no_such_order())?;
    let order = with_addresses(services, order).await?;
    let response = Response::ok(&View::new(&order, request.caller().is_staff()));
    let version = order.head.meta.version;
    // An erasure removes the addresses and leaves the version.
    Ok(match order.addresses {
        Some(_) => response.etag_of_parts(version),
        None => response.etag(version),
    })
}

/// GET orders/{id}/lines: returns the lines alone, read in one Query with the head.
pub async fn lines(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    part(services, request, order::parts::with_lines, |order, _| {
        order.has_all_lines().then(|| Response::all(&line_views(order)))
    })
    .await
}

/// GET orders/{id}/history: returns the history alone, read in one Query with the head.
pub async fn history(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    part(services, request, order::parts::with_history, |order, for_staff| {
        order.has_begun().then(|| Response::all(&history_views(order, for_staff)))
    })
    .await
}

/// Responds with a part of an order, if the caller may see the order.
async fn part(
    services: &Services,
    request: &Request<'_>,
    query: fn(&OrderId) -> Result<Query<OrderItem>, KeyError>,
    view: fn(&PlacedOrder, for_staff: bool) -> Option<Response>,
) -> Result<Response, Problem> {
    request.signed_in()?;
    let id: OrderId = request.path("id")?;
    let items = services.table.query(&query(&id)?).await?.items;
    let order = PlacedOrder::of(items).filter(|order| order.is_visible(Instant::now())).ok_or_else(no_such_order)?;
    request.owner(&order.head.customer_id).map_err(|_| no_such_order())?;
    Ok(view(&order, request.caller().is_staff()).ok_or_else(no_such_order)?.etag(order.head.meta.version))
}

/// The maximum number of further Queries for a page. A page leaves out expired orders, and orders
/// in a status other than the requested one. Further Queries fill it up. After the last one it
/// stays short.
const MAX_REFILLS: usize = 4;

/// GET customers/{id}/orders?status=&from=&to=: lists a customer's orders, newest first. A page may
/// have fewer orders than `limit` although more follow ([`MAX_REFILLS`]).
pub async fn of_customer(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let (from, to) = request.query_range()?;
    let status = request.query_as::<OrderStatus>("status")?;
    let parameters = [
        ("customer", customer.as_str()),
        ("status", status.map_or("", |status| status.as_str())),
        ("from", text(request, "from")?),
        ("to", text(request, "to")?),
    ];
    let mut page = request.page(&services.cursors, order::OF_CUSTOMER.id, &parameters).await?;
    let (now, mut alive) = (Instant::now(), Found::<OrderSummary>::new([], page.after()));
    for _ in 0..=MAX_REFILLS {
        let missing = page.limit() - alive.items.len();
        let query = order::of_customer(&customer, from, to)?.limit(missing).after(alive.next.take());
        let found = services.table.query_readable(&query).await?;
        alive.append(found.filter_map(|copy| {
            let shown = !copy.is_expired(now) && status.is_none_or(|status| copy.status == status);
            shown.then(|| copy.data.into())
        }));
        if alive.next.is_none() || alive.items.len() >= page.limit() {
            break;
        }
    }
    page.leave_out(alive.left_out());
    List { page, found: alive }.answer(|order| order).await
}

#[derive(Serialize)]
struct QueuedOrder<'a> {
    #[serde(flatten)]
    listed: &'a ListedOrder,
    next_statuses: Vec<OrderStatus>,
}

impl<'a> From<&'a ListedOrder> for QueuedOrder<'a> {
    fn from(listed: &'a ListedOrder) -> Self {
        Self { listed, next_statuses: listed.order.status.next().collect() }
    }
}

/// GET orders?status=&from=&to=: lists orders by status, newest first, as staff's work queue.
pub async fn by_status(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let status: OrderStatus = request
        .query_as("status")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `status` is missing."))?;
    let (from, to) = request.query_range()?;
    let parameters = [("status", status.as_str()), ("from", text(request, "from")?), ("to", text(request, "to")?)];
    let layout = services.layout(&order::BY_STATUS).await?;
    request
        .list(services, order::by_status(status, from, to, layout)?, &parameters)
        .await?
        .answer(QueuedOrder::from)
        .await
}

/// GET customers/{id}/shipments?since=: lists shipments, newest first.
pub async fn shipments(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let since = request.query_instant("since")?;
    let parameters = [("customer", customer.as_str()), ("since", text(request, "since")?)];
    request.list(services, order::shipments(&customer, since)?, &parameters).await?.answer(|order| order).await
}

/// Returns a parameter as the client spelled it, because a cursor is bound to the spelling.
fn text<'a>(request: &'a Request<'_>, name: &str) -> Result<&'a str, Problem> {
    Ok(request.query(name)?.unwrap_or_default())
}
