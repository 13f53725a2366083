use http_api::contract::route;
use http_api::{Once, Problem, Request, Response};
use key_schema::guest_cart::CartToken;
use key_schema::order::guest::OrderToken;
use ordering::location;
use ordering::place::{Placed, Source, place};

use crate::App;
use crate::new_order::NewOrder;
use crate::view::{GuestOrderView, OrderView, guest_location};

/// Place an order
///
/// Places the order and reduces the stock for all lines, or changes nothing. The total of the lines
/// is at most 10000000000000 minor units. Only staff may send `placed_at`, `store_id`, `lapses` and a
/// line's `total` and `discounts`. From other callers they are unknown fields.
///
/// If the shop has shipping zones, tax rules or promotions without a code, customers must check out
/// a cart with a quote instead. The setting `quote_optional` can remove this requirement. An order of
/// staff has no price of shipping, no tax and no promotions.
///
/// A customer's order lapses when it is not paid before `lapses_at`. Then `system` cancels it with
/// the note `lapsed`, usually within a minute after `lapses_at`. Until the cancellation the order can
/// still be paid. An order that staff places lapses only if its `lapses` is true. A customer has at
/// most 20 pending orders. Together, these orders have at most 1,000 lines, and at most 1,000 pieces
/// of each product. The setting `orders` changes these limits.
#[route(POST "/v1/orders", id = "placeOrder", who = owner, task = "orders", parameters(IdempotencyKey),
    body = NewOrder, answers(201 = OrderView<'_> "The order" [Location, ETag, IdempotencyReplayed]),
    refuses(
        not_found = "the customer has no profile",
        insufficient_stock = "with an entry in `errors` for each line",
        has_variants = "with an entry in `errors` for each line with a parent of variants",
        quantity_limit = "the customer's unpaid orders would have too many pieces of a product, with an entry in \
            `errors` for each line",
        already_exists = "Location is the order that has the reference",
        too_many_pending_orders = "the customer has too many unpaid orders, or they have too many lines",
        quote_required = "check out a cart with a quote instead",
        unknown_product = "with an entry in `errors` for each line",
        too_many_lines = "an order has at most 500 lines",
        quota_exceeded = "the customer has placed too many orders on this day",
    ))]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let once = Once::required(request)?;
    let wanted = request.body::<NewOrder>()?.wanted()?;
    request.owner(&wanted.customer_id)?;
    let placed = place(app, Some(&caller), wanted, Some(&once), Some(once.scope()), Source::Request).await?;
    Ok(created(&placed, None))
}

/// Returns the response with an order that was placed now, or by an earlier request.
pub fn created(placed: &Placed, cart: Option<&CartToken>) -> Response {
    // The only step is that of the caller, who may see it.
    let (order, id, view) = (&placed.order, &placed.order.head.id, OrderView::new(&placed.order, true));
    let response = match cart {
        None => Response::created(location(id), &view),
        Some(cart) => {
            let token = OrderToken::of(cart, id);
            Response::created(guest_location(id), &GuestOrderView { order: view, order_token: token.as_str() })
        }
    };
    let response = if placed.is_replay { response.header("idempotency-replayed", "true") } else { response };
    response.etag(order.head.meta.version)
}
