//! Reads a single order. Lists orders by customer and by status, and lists a customer's shipments.

use http_api::contract::rules::{Described, VERSION, any, described, list, list_of, text as line};
use http_api::contract::{Page, Schema, route};
use http_api::view::{OrderHead, OrderSummaryView};
use http_api::{Code, List, Problem, Request, Response, Services};
use key_schema::id::{CustomerId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::Entity as _;
use key_schema::key::KeyError;
use key_schema::order::addresses::Destination;
use key_schema::order::{self, ListedOrder, MAX_LINES, OrderNumber, OrderStatus, OrderSummary, Shipment};
use key_schema::order::{OrderItem, PlacedOrder};
use key_schema::request::Query;
use ordering::{no_such_order, visible, with_addresses};
use serde::Serialize;
use table::Page as Found;

use crate::asker::Asker;
use crate::view::{LineView, OrderView, StepView, history_views, line_views};

/// The cursor of a list that has only one page.
pub const NO_CURSOR: Described = described(r#"{"type": "null"}"#);

/// Read an order with its lines, history and payments
#[route(GET "/v1/orders/{id}", id = "readOrder", who = owner, task = "orders", path(id: OrderId),
    answers(200 = OrderView<'_> "The order" [ETag]))]
pub async fn get(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    show(services, request, &Asker::signed_in(request)?).await
}

pub async fn show(services: &Services, request: &Request<'_>, asker: &Asker) -> Result<Response, Problem> {
    let id: OrderId = request.path("id")?;
    let items = services.table.query(&order::get(&id)?).await?.items;
    let order = visible(items, Instant::now()).ok_or_else(no_such_order)?;
    asker.check(&order.head)?;
    // The addresses are in the customer's partition, and the Query did not read them.
    let order = with_addresses(services, order).await?;
    let response = Response::ok(&OrderView::new(&order, asker.is_staff()));
    let version = order.head.meta.version;
    // An erasure removes the addresses and leaves the version.
    Ok(match order.addresses {
        Some(_) => response.etag_of_parts(version),
        None => response.etag(version),
    })
}

#[derive(Serialize, Schema)]
struct OrderLines<'a> {
    #[field(rule = list::<LineView<'_>>(0..=MAX_LINES))]
    items: Vec<LineView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    next_cursor: (),
}

/// Read an order's lines alone
///
/// Returns all lines on one page, sorted by their numbers.
#[route(GET "/v1/orders/{id}/lines", id = "readOrderLines", who = owner, task = "orders", path(id: OrderId),
    answers(200 = OrderLines<'_> "The lines" [ETag]))]
pub async fn lines(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    part(services, request, order::parts::with_lines, |order, _| {
        let view = || OrderLines { items: line_views(order), next_cursor: () };
        order.has_all_lines().then(|| Response::ok(&view()))
    })
    .await
}

#[derive(Serialize, Schema)]
struct OrderHistory<'a> {
    items: Vec<StepView<'a>>,
    #[field(rule = NO_CURSOR, example = null)]
    next_cursor: (),
}

/// Read an order's history alone
///
/// Returns all status changes on one page, the oldest first.
#[route(GET "/v1/orders/{id}/history", id = "readOrderHistory", who = owner, task = "orders", path(id: OrderId),
    answers(200 = OrderHistory<'_> "The status changes" [ETag]))]
pub async fn history(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    part(services, request, order::parts::with_history, |order, for_staff| {
        let view = || OrderHistory { items: history_views(order, for_staff), next_cursor: () };
        order.has_begun().then(|| Response::ok(&view()))
    })
    .await
}

/// Responds with a part of an order, read in one Query with the head, if the caller may see the
/// order.
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

/// List a customer's orders
///
/// Returns the customer's orders, newest first. With `status`, a page may have fewer orders than
/// `limit` although `next_cursor` is not null.
#[route(GET "/v1/customers/{id}/orders", id = "listCustomerOrders", who = owner, task = "orders", path(id: CustomerId),
    parameters(status: OrderStatus = "Only the orders in this status.", From, To, Limit, Cursor),
    answers(200 = Page<OrderSummaryView<'_>> "A page of orders" [Link, LeftOut]))]
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
    List { page, found: alive }.answer(OrderSummaryView::from).await
}

/// An order in a list for staff, with what the next change of its status needs.
#[derive(Serialize, Schema)]
struct ListedOrderView<'a> {
    #[serde(flatten)]
    head: OrderHead<'a>,
    /// Only in searches and with `number`, and only if the order has an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a Destination>,
    #[field(rule = VERSION)]
    version: u64,
    /// The statuses to which staff may change the order, as `to` of the status change, with
    /// `version` in If-Match. Empty if the status is final.
    #[field(rule = list_of(any::<OrderStatus>(), 0..=2), example = ["paid", "cancelled"])]
    next_statuses: Vec<OrderStatus>,
}

impl<'a> From<&'a ListedOrder> for ListedOrderView<'a> {
    fn from(ListedOrder { order, version }: &'a ListedOrder) -> Self {
        Self {
            head: OrderHead::from(order),
            destination: order.destination.as_ref(),
            version: *version,
            next_statuses: order.status.next().collect(),
        }
    }
}

/// List the orders in a status, or find an order by its number
///
/// Returns the orders, newest first. Each order has what the next change of its status needs. With
/// `number` the list has this order, or none.
#[route(GET "/v1/orders", id = "listOrders", who = staff, task = "fulfilment",
    parameters(
        status: OrderStatus = "The status of the orders. Send either `status` or `number`.",
        number = line(1..=20) "The number of an order, in any case, with or without the hyphen.",
        From, To, Limit, Cursor,
    ),
    answers(200 = Page<ListedOrderView<'_>> "A page of orders" [Link, LeftOut]))]
pub async fn by_status(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let status: OrderStatus = match (request.query_as("status")?, request.query_as::<OrderNumber>("number")?) {
        (Some(status), None) => status,
        (None, Some(number)) => return with_number(services, request, number).await,
        _ => return Err(Problem::new(Code::InvalidParameter, "Send either `status` or `number`.")),
    };
    let (from, to) = request.query_range()?;
    let parameters = [("status", status.as_str()), ("from", text(request, "from")?), ("to", text(request, "to")?)];
    let layout = services.layout(&order::BY_STATUS).await?;
    request
        .list(services, order::by_status(status, from, to, layout)?, &parameters)
        .await?
        .answer(ListedOrderView::from)
        .await
}

async fn with_number(services: &Services, request: &Request<'_>, number: OrderNumber) -> Result<Response, Problem> {
    let parameters = [("number", text(request, "number")?)];
    let page = request.page(&services.cursors, order::NUMBER.id, &parameters).await?;
    let claim = services.table.get(&order::numbered(number)?).await?;
    let head = match claim {
        Some(claim) => services.table.get(&order::head(&claim.order_id)?).await?,
        None => None,
    };
    let order = head.and_then(|head| PlacedOrder::of([OrderItem::Order(head)]));
    let order = order.filter(|order| order.is_visible(Instant::now()));
    let found: Vec<ListedOrder> = order.iter().map(|order| ListedOrder::from(&order.head)).collect();
    let found: Vec<ListedOrderView<'_>> = found.iter().map(ListedOrderView::from).collect();
    page.answer(&found, |_| None).await
}

#[derive(Serialize, Schema)]
struct ShipmentView<'a> {
    #[serde(flatten)]
    head: OrderHead<'a>,
    #[field(example = "2026-11-21T09:30:00.000Z")]
    shipped_at: Instant,
    #[field(example = "DHL")]
    carrier: Option<&'a str>,
    /// The carrier's tracking number.
    #[field(example = "00340434161094042557")]
    tracking: Option<&'a str>,
}

impl<'a> From<&'a Shipment> for ShipmentView<'a> {
    fn from(Shipment { order, shipped_at, carrier, tracking }: &'a Shipment) -> Self {
        Self {
            head: OrderHead::from(order),
            shipped_at: *shipped_at,
            carrier: carrier.as_deref(),
            tracking: tracking.as_deref(),
        }
    }
}

/// List a customer's shipped orders
///
/// Returns the shipments, newest first.
#[route(GET "/v1/customers/{id}/shipments", id = "listShipments", who = owner, task = "orders", path(id: CustomerId),
    parameters(since: Instant = "Earliest instant of shipment, inclusive.", Limit, Cursor),
    answers(200 = Page<ShipmentView<'_>> "A page of shipments" [Link, LeftOut]))]
pub async fn shipments(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let since = request.query_instant("since")?;
    let parameters = [("customer", customer.as_str()), ("since", text(request, "since")?)];
    request.list(services, order::shipments(&customer, since)?, &parameters).await?.answer(ShipmentView::from).await
}

/// Returns a parameter as the client spelled it, because a cursor is bound to the spelling.
fn text<'a>(request: &'a Request<'_>, name: &str) -> Result<&'a str, Problem> {
    Ok(request.query(name)?.unwrap_or_default())
}
