//! `GET /v1/search/orders`.

use http_api::{Problem, Request, Response};
use key_schema::order::OrderStatus;
use search_index::{OrderDocument, OrderQuery};
use serde::Serialize;

use crate::App;
use crate::list;
use crate::parameters::text;
use crate::products::Price;

/// Finds orders by id, reference, customer or status, newest first. Only staff may search orders.
pub async fn search(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let text = text(request)?;
    let parameters = [("q", request.query("q")?.unwrap_or_default())];
    let page = request.page(&app.cursors, "search.orders", &parameters).await?;
    let query = OrderQuery { text, size: list::size(&page), after: list::after(&page)? };
    let mut found = list::found(app.client.search_orders(&query).await)?;
    let ends = list::cut(&mut found, &page)?;
    let items: Vec<_> = found.hits.iter().map(|hit| OrderSummary::from(&hit.document)).collect();
    page.answer_with(&items, |kept| ends.behind(kept), &Found { total: found.total }).await
}

#[derive(Serialize)]
struct Found {
    total: u64,
}

#[derive(Serialize)]
struct OrderSummary<'a> {
    id: &'a str,
    reference: Option<&'a str>,
    customer_id: &'a str,
    status: &'a str,
    total: Price<'a>,
    placed_at: &'a str,
    line_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<Destination<'a>>,
    version: u64,
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
