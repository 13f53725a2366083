//! `GET /v1/search/orders`.

use http_api::contract::rules::{VERSION, any, component, integer, list_of};
use http_api::contract::{PageWith, Schema, route};
use http_api::{Problem, Request, Response};
use key_schema::id::{CustomerId, OrderId, OrderReference};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::{OrderNumber, OrderStatus};
use search_index::{OrderDocument, OrderQuery};
use serde::Serialize;

use crate::App;
use crate::list;
use crate::parameters::text;
use crate::products::Price;

/// Search orders
///
/// Returns the orders, newest first. An order matches if its id, number, reference, customer or
/// status begins with `q`, or if these five fields together contain all words of `q`. Case and
/// accents are ignored.
#[route(GET "/v1/search/orders", id = "searchOrders", who = staff, task = "search",
    parameters(SearchText, Limit, Cursor),
    answers(200 = PageWith<OrderSummary<'_>, Found> "A page of orders" [Link, LeftOut]))]
pub async fn search(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let text = text(request)?;
    let parameters = [("q", request.query("q")?.unwrap_or_default())];
    let page = request.page(&app.services.cursors, "search.orders", &parameters).await?;
    let query = OrderQuery { text, size: list::size(&page), after: list::after(&page)? };
    let mut found = list::found(app.client.search_orders(&query).await)?;
    let ends = list::cut(&mut found, &page)?;
    let items: Vec<_> = found.hits.iter().map(|hit| OrderSummary::from(&hit.document)).collect();
    page.answer_with(&items, |kept| ends.behind(kept), &Found { total: found.total }).await
}

#[derive(Serialize, Schema)]
#[schema(name = "OrderSearch")]
struct Found {
    /// The number of all matching orders.
    total: u64,
}

/// An order in a list for staff, with what the next change of its status needs.
#[derive(Serialize, Schema)]
#[schema(name = "ListedOrder")]
struct OrderSummary<'a> {
    #[field(rule = any::<OrderId>())]
    id: &'a str,
    #[field(rule = any::<OrderNumber>())]
    number: &'a str,
    #[field(rule = any::<OrderReference>())]
    reference: Option<&'a str>,
    #[field(rule = any::<CustomerId>())]
    customer_id: &'a str,
    #[field(rule = any::<OrderStatus>())]
    status: &'a str,
    #[field(rule = any::<Money>(), example = {"amount": 258, "currency": "USD"})]
    total: Price<'a>,
    #[field(rule = any::<Instant>())]
    placed_at: &'a str,
    #[field(rule = integer(1..=u64::MAX), example = 1)]
    line_count: u64,
    /// Only in searches and with `number`, and only if the order has an address.
    #[field(rule = component("Destination", r#"{"country": "DE", "city": "Ulm"}"#))]
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<Destination<'a>>,
    #[field(rule = VERSION)]
    version: u64,
    /// The statuses to which staff may change the order, as `to` of the status change, with
    /// `version` in If-Match. Empty if the status is final.
    #[field(rule = list_of(any::<OrderStatus>(), 0..=2), example = ["paid", "cancelled"])]
    next_statuses: Vec<OrderStatus>,
}

#[derive(Serialize)]
struct Destination<'a> {
    country: &'a str,
    city: &'a str,
}

impl<'a> From<&'a OrderDocument> for OrderSummary<'a> {
    fn from(order: &'a OrderDocument) -> Self {
        let status = order.status.parse::<OrderStatus>();
        Self {
            id: &order.id,
            number: &order.number,
            reference: order.reference.as_deref(),
            customer_id: &order.customer_id,
            status: &order.status,
            total: Price { amount: order.total_amount, currency: &order.total_currency },
            placed_at: &order.placed_at,
            line_count: order.line_count,
            destination: (order.destination_country.as_deref())
                .zip(order.destination_city.as_deref())
                .map(|(country, city)| Destination { country, city }),
            version: order.version,
            next_statuses: status.into_iter().flat_map(OrderStatus::next).collect(),
        }
    }
}
