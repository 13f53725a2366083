//! Checkout: turns the cart into an order. The transaction that makes the order visible also
//! removes the cart.

use std::collections::BTreeMap;

use http_api::contract::rules::money;
use http_api::contract::{Body, route};
use http_api::{Code, Invalid, Once, Problem, Request, Response, SignedIn};
use key_schema::cart::{self, CartLine};
use key_schema::id::{CustomerId, ProductId};
use key_schema::idempotency;
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::order::MAX_TOTAL;
use key_schema::request::Guarded;
use ordering::addresses::GivenAddresses;
use ordering::lines::WantedLine;
use ordering::place::{Details, NewGuest, Placed, Source, Wanted, first_response_or, place, replay};
use ordering::promotions;
use ordering::quote::{self, QUOTE_ID, Quote, Quoted};

use crate::App;
use crate::place::created;
use crate::view::OrderView;

#[derive(Body)]
#[body(example = {}, check(quote_id, addresses) = one_source_of_addresses)]
pub struct Checkout {
    /// The total that the customer has seen.
    #[field(rule = money(0..=MAX_TOTAL, "ExpectedTotal", ""), example = {"amount": 258, "currency": "USD"})]
    pub expected_total: Option<Money>,
    #[field(flatten)]
    pub details: Details,
    #[field(flatten)]
    pub addresses: GivenAddresses,
    /// The `id` of a quote. It has the addresses, so no address can be given beside it.
    #[field(rule = QUOTE_ID)]
    pub quote_id: Option<String>,
}

fn one_source_of_addresses(quote_id: &Option<String>, addresses: &GivenAddresses) -> Result<(), Invalid> {
    quote_or_addresses(quote_id, !addresses.is_empty())
}

pub fn quote_or_addresses(quote_id: &Option<String>, has_addresses: bool) -> Result<(), Invalid> {
    if quote_id.is_some() && has_addresses {
        return Err(Invalid::new("already contains the addresses, so leave them out").under("quote_id"));
    }
    Ok(())
}

/// Order the contents of the cart
///
/// Places the order and removes the cart, or changes nothing. The order has the current prices.
///
/// With the `quote_id` of a quote, the order has exactly the price, the addresses and the shipping
/// method of the quote. If anything has changed since the quote, the request is refused with
/// `quote_changed`. The entries of `errors` then name each line that has changed, with the product,
/// the reason, and the price of one piece in the quote and now. Their pointers are
/// `/items/0/unit_price`, `/items/0/quantity` and `/items/0/product_id` (a product that was created
/// again), `/items/0` for a line that is not in the quote, and `/items` for a line that is no longer
/// in the cart. Further entries point to the other changed parts: `/discounts`, `/shipping_methods`
/// and `/tax_lines`. If the shop has shipping zones, tax rules or promotions without a code,
/// customers need a quote. The setting `quote_optional` can remove this requirement.
///
/// Send the total that the customer has seen as `expected_total`: the `subtotal` of the cart, or the
/// `total` of the quote. If the total is another one, the request is refused with `price_changed`.
///
/// The Idempotency-Key is optional. Without a key, a repeated request finds the cart empty. The
/// entries of `errors` point to the lines of the cart and name their products. The order lapses like
/// any other order of a customer.
#[route(POST "/v1/customers/{id}/cart/checkout", id = "checkoutCart", who = owner, task = "cart", path(id: CustomerId),
    parameters(OptionalIdempotencyKey), body = Checkout,
    answers(201 = OrderView<'_> "The order" [Location, ETag, IdempotencyReplayed]),
    refuses(
        price_changed = "the total is not the expected total",
        quote_required = "get a quote and send its id",
        quote_expired,
        quote_changed = "with an entry in `errors` for each line and each part that changed",
        promotion_unknown,
        promotion_expired,
        promotion_used_up,
        promotion_not_applicable,
        insufficient_stock = "with an entry in `errors` for each line",
        has_variants = "with an entry in `errors` for each line with a parent of variants",
        quantity_limit = "the customer's unpaid orders would have too many pieces of a product, with an entry in \
            `errors` for each line",
        too_many_pending_orders = "the customer has too many unpaid orders, or they have too many lines",
        conflict = "the cart or a promotion changed meanwhile",
        cart_empty,
        unknown_product = "with an entry in `errors` for each line",
        quota_exceeded = "the customer has placed too many orders on this day",
    ))]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    let customer_id: CustomerId = request.path("id")?;
    let owner = request.owner(&customer_id)?;
    let caller = owner.caller();
    let checkout: Checkout = request.body()?;
    let once = Once::optional(request)?;
    let now = Instant::now();
    let cart = services.table.get(&cart::get(&customer_id)?).await?.filter(|cart| cart.expires_at > now);
    // The idempotency record is read after the cart. So if the cart is missing because the first
    // attempt has removed it, this read finds the record.
    if let Some(once) = &once
        && let Some(record) = services.table.get(&idempotency::get(once.scope())?).await?
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(created(&first, None));
    }
    let cart = cart.ok_or_else(cart_empty)?;
    let sale = CartCheckout {
        caller: Some(caller),
        guest: None,
        lines: &cart.lines,
        cart: cart::check_out(&cart)?,
        sealed_for: customer_id.as_str(),
        customer_id: customer_id.clone(),
    };
    Ok(created(&order(app, checkout, sale, once.as_ref(), now).await?, None))
}

/// What a customer's and a guest's checkout have in common.
#[derive(Debug)]
pub struct CartCheckout<'a> {
    /// The caller, unless a guest orders.
    pub caller: Option<&'a SignedIn>,
    /// The customer, or the id of the guest.
    pub customer_id: CustomerId,
    pub guest: Option<NewGuest>,
    /// The lines of the cart.
    pub lines: &'a BTreeMap<ProductId, CartLine>,
    /// The write that removes the cart.
    pub cart: Guarded,
    /// As in [`Quoter`](crate::quote::Quoter).
    pub sealed_for: &'a str,
}

pub async fn order(
    app: &App,
    checkout: Checkout,
    sale: CartCheckout<'_>,
    once: Option<&Once>,
    now: Instant,
) -> Result<Placed, Problem> {
    let services = &app.services;
    let Checkout { expected_total, details, addresses, quote_id: sealed } = checkout;
    let CartCheckout { caller, customer_id, guest, lines, cart, sealed_for } = sale;
    if lines.is_empty() {
        return Err(cart_empty());
    }
    // All guests are one customer for promotions.
    let buyer = if guest.is_some() { &CustomerId::guests() } else { &customer_id };
    let (addresses, quote) = match sealed {
        None => (addresses, None),
        Some(sealed) => {
            let quote = Quote::open(services, sealed_for, &sealed, now).await?;
            let (rules, limits) = tokio::try_join!(quote::rules(services), app.limits())?;
            let promotions = match promotions::usable(services, buyer, &rules, quote.codes(), None, now).await {
                Ok(promotions) => promotions,
                // The first attempt may have completed meanwhile, and used up a promotion.
                Err(problem) => return first_response_or(services, once, now, problem).await,
            };
            let (rounding, shipping_tax) = (limits.tax_rounding, limits.shipping_tax);
            (quote.addresses(), Some(Quoted { quote, rules, promotions, rounding, shipping_tax }))
        }
    };
    let wanted = Wanted {
        customer_id,
        guest,
        list: "/items",
        lines: lines_of(lines),
        reference: None,
        origin: None,
        placed_at: None,
        store_id: None,
        details,
        expected_total,
        addresses,
        quote,
    };
    place(app, caller, wanted, once, None, Source::Cart(&cart)).await
}

pub fn cart_empty() -> Problem {
    Problem::new(Code::CartEmpty, "The cart is empty.")
}

/// Returns the lines of a cart, in the sequence in which the customer added them.
pub fn lines_of(lines: &BTreeMap<ProductId, CartLine>) -> Vec<WantedLine> {
    let wanted_line = |(at, (product, line)): (usize, (&ProductId, &CartLine))| WantedLine {
        pointer: format!("/items/{at}"),
        product_id: product.clone(),
        quantity: line.quantity,
        total: None,
        discounts: Vec::new(),
    };
    cart::in_sequence(lines).into_iter().enumerate().map(wanted_line).collect()
}
