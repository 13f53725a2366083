//! Orders of guests. The token of a guest cart opens the cart, and the token of an order opens this
//! order ([`key_schema::order::guest`]).

use http_api::contract::rules::{money, one_of, visible_text};
use http_api::contract::{Body, Schema, route};
use http_api::view::{CUSTOMER_NAME, OrderSummaryView};
use http_api::{Code, Invalid, Once, Problem, Request, Response, Services};
use key_schema::address::PostalAddress;
use key_schema::customer::{self, Customer};
use key_schema::guest_cart::{self, CartToken, GuestCart};
use key_schema::id::{CustomerId, GuestCartId, MethodId, OrderId};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::Money;
use key_schema::order::addresses::Guest;
use key_schema::order::guest::{Claimable, ClaimableItem, OrderToken, claim as move_to, claimable};
use key_schema::order::{MAX_TOTAL, OrderAction, OrderStatus, OrderSummary, earlier, head, read_for_update};
use key_schema::payment::PaymentMethod;
use key_schema::text::Email;
use ordering::addresses::GivenAddresses;
use ordering::place::{Details, NewGuest, replay};
use ordering::promotions::CODES;
use ordering::quote::QUOTE_ID;
use ordering::visible;
use serde::Serialize;
use table::retry_on_conflict;

use crate::App;
use crate::asker::Asker;
use crate::checkout::{self, CartCheckout, Checkout, quote_or_addresses};
use crate::payments::NewPayment;
use crate::place::created;
use crate::quote::{self, QuoteRequest, QuoteView};
use crate::status::StatusChange;
use crate::view::{GuestOrderView, OrderView};
use crate::{list, payments, status};

/// The header with the token of a guest cart.
const CART_TOKEN: &str = "cart-token";
/// The idempotency key of a checkout without one. A cart can be ordered only once.
const CHECKOUT: &str = "checkout";
/// The number of orders that a request claims at most.
const CLAIMED_AT_ONCE: usize = 25;
/// The number of a guest's newest orders among which a request finds orders to claim. Archived orders
/// are older, and cannot be claimed.
const LISTED: usize = 100;

fn no_cart() -> Problem {
    Problem::not_found("cart")
}

/// The cart of a request, whose token the request has.
struct Opened {
    id: GuestCartId,
    token: CartToken,
}

impl Opened {
    fn by(request: &Request<'_>) -> Result<Self, Problem> {
        let id = request.path("id")?;
        let token = request.secret(CART_TOKEN).ok_or_else(no_cart)?;
        Ok(Self { id, token: CartToken::given(token) })
    }

    async fn read(&self, services: &Services, now: Instant) -> Result<Option<Stored<GuestCart>>, Problem> {
        let cart = services.table.get(&guest_cart::get(&self.id)?).await?;
        Ok(cart.filter(|cart| cart.is_open(&self.token, now)))
    }

    /// Returns the owner to whom the quotes of this cart are sealed. Nobody can sign in with this id.
    fn owner(&self) -> String {
        format!("{}{}", CustomerId::guests(), self.id)
    }
}

/// # Errors
/// 403 `guest_orders_disabled` if only customers with an account may order.
async fn open_for_guests(app: &App) -> Result<(), Problem> {
    match app.limits().await?.guest_orders {
        true => Ok(()),
        false => Err(Problem::new(Code::GuestOrdersDisabled, "Only customers with an account can order. Sign in.")),
    }
}

#[derive(Body)]
#[body(example = {})]
#[allow(dead_code, reason = "the address and the name are checked and dropped")]
struct GuestQuote {
    /// The guest's address. A quote does not need it.
    #[field(left_out)]
    email: Option<Email>,
    #[field(rule = CUSTOMER_NAME, left_out)]
    name: Option<String>,
    shipping_address: Option<PostalAddress>,
    /// The address on the invoice. It is allowed only with a `shipping_address`.
    #[field(example = null)]
    billing_address: Option<PostalAddress>,
    /// The id of the wanted method.
    #[field(example = "post")]
    shipping_method: Option<MethodId>,
    #[field(rule = CODES, default, left_out)]
    codes: Vec<String>,
}

/// Get the price of a guest cart
///
/// As `POST /v1/customers/{id}/cart/quote`, for a visitor without an account. The quote is valid for
/// this cart alone. Promotions that depend on the customer, such as those for first orders, do not
/// apply: their codes are refused with the reason `account_required`. Addresses must be complete.
#[route(POST "/v1/carts/{id}/quote", id = "quoteGuestCart", who = any, task = "cart", path(id: GuestCartId),
    parameters(CartToken), body = GuestQuote, answers(200 = QuoteView<'_> "The price"),
    refuses(
        not_found,
        guest_orders_disabled,
        promotion_unknown,
        promotion_expired,
        promotion_used_up,
        promotion_not_applicable,
        shipping_unavailable,
        has_variants = "with an entry in `errors` for each line with a parent of variants",
        invalid_body = "also if a required address is missing",
        cart_empty,
        unknown_product = "with an entry in `errors` for each line",
        quota_exceeded = "guests have entered too many unknown codes on this day",
    ))]
pub async fn price(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let opened = Opened::by(request)?;
    // A quote checks the form of the address, so that a shop can show an error before the checkout.
    let GuestQuote { shipping_address, billing_address, shipping_method, codes, .. } = request.body()?;
    let addresses = GivenAddresses::whole(shipping_address, billing_address);
    let wanted = QuoteRequest { addresses, shipping_method, codes };
    let now = Instant::now();
    let cart = opened.read(&app.services, now).await?.ok_or_else(no_cart)?;
    open_for_guests(app).await?;
    let guests = CustomerId::guests();
    let owner = quote::Quoter { customer: &guests, guesser: Some(&guests), sealed_for: &opened.owner() };
    quote::answer(app, wanted, &cart.lines, owner, now).await
}

#[derive(Body)]
#[body(check(quote_id, shipping_address) = one_source_of_addresses,
    check(quote_id, billing_address) = one_source_of_addresses)]
struct GuestCheckout {
    /// The address for mail about the order. Mail is sent only after the order is paid.
    email: Email,
    #[field(rule = CUSTOMER_NAME, example = "Ann Ångström")]
    name: String,
    /// The total that the guest has seen.
    #[field(rule = money(0..=MAX_TOTAL, "ExpectedTotal", ""), left_out)]
    expected_total: Option<Money>,
    #[field(left_out)]
    shipping_address: Option<PostalAddress>,
    /// The address on the invoice. It is allowed only with a `shipping_address`.
    #[field(left_out)]
    billing_address: Option<PostalAddress>,
    /// The `id` of a quote. It has the addresses, so no address can be given beside it.
    #[field(rule = QUOTE_ID, left_out)]
    quote_id: Option<String>,
}

fn one_source_of_addresses(quote_id: &Option<String>, address: &Option<PostalAddress>) -> Result<(), Invalid> {
    quote_or_addresses(quote_id, address.is_some())
}

/// Order the contents of a guest cart
///
/// As `POST /v1/customers/{id}/cart/checkout`, for a visitor without an account. The `order_token` in
/// the response gives access to the order at `/v1/guest/orders/{id}`. The limits of a customer's orders
/// apply to the email address. A cart is ordered once: a repeated request returns the order with its
/// token for 24 hours, even without an Idempotency-Key. A customer who has verified the same address
/// claims the order with `POST /v1/customers/{id}/orders/claim`.
#[route(POST "/v1/carts/{id}/checkout", id = "checkoutGuestCart", who = any, task = "cart", path(id: GuestCartId),
    parameters(CartToken, OptionalIdempotencyKey), body = GuestCheckout,
    answers(201 = GuestOrderView<'_> "The order with its token" [Location, ETag, IdempotencyReplayed]),
    refuses(
        not_found,
        guest_orders_disabled,
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
        quantity_limit = "the unpaid orders of the address would have too many pieces of a product, with an entry \
            in `errors` for each line",
        too_many_pending_orders = "the address has too many unpaid orders, or they have too many lines",
        conflict = "the cart or a promotion changed meanwhile",
        cart_empty,
        unknown_product = "with an entry in `errors` for each line",
        quota_exceeded = "too many orders were placed with the address on this day",
    ))]
pub async fn order(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let services = &app.services;
    let opened = Opened::by(request)?;
    let GuestCheckout { email, name, expected_total, shipping_address, billing_address, quote_id } = request.body()?;
    let addresses = GivenAddresses::whole(shipping_address, billing_address);
    let checkout = Checkout { expected_total, details: Details::default(), addresses, quote_id };
    let once = Once::of_guest(request, &opened.id, Some(CHECKOUT))?;
    let now = Instant::now();
    let cart = opened.read(services, now).await?;
    let (customer_id, sealed_for) = (CustomerId::guest(&email), opened.owner());
    let token = opened.token;
    let guest = NewGuest { guest: Guest { email, name }, cart: token.clone() };
    let Some(cart) = cart else {
        // The first attempt may have removed the cart. A stranger may know the cart's id, but not its
        // token, from which the token of the order follows.
        if let Some(once) = &once
            && let Some(record) = services.table.get(&idempotency::get(once.scope())?).await?
            && let StoredResponse::Order(id) = &record.answer
            && let Some(head) = services.table.get(&head(id)?).await?
            && OrderToken::of(&guest.cart, id).opens(&head)
            && let Some(first) = replay(services, once, Some(&record), now).await?
        {
            return Ok(created(&first, Some(&token)));
        }
        return Err(no_cart());
    };
    open_for_guests(app).await?;
    let sale = CartCheckout {
        caller: None,
        customer_id,
        guest: Some(guest),
        lines: &cart.lines,
        cart: guest_cart::check_out(&cart)?,
        sealed_for: &sealed_for,
    };
    Ok(created(&checkout::order(app, checkout, sale, once.as_ref(), now).await?, Some(&token)))
}

/// Read a guest's order
#[route(GET "/v1/guest/orders/{id}", id = "readGuestOrder", who = any, task = "orders", path(id: OrderId),
    parameters(OrderToken), answers(200 = OrderView<'_> "The order" [ETag]), refuses(not_found))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    list::show(services, request, &Asker::with_token(request)?).await
}

#[derive(Body)]
struct GuestStatusChange {
    #[field(rule = one_of(&["cancelled"]), example = "cancelled")]
    to: OrderStatus,
    /// The reason, 1 to 1000 bytes.
    #[field(rule = visible_text(1..=1000), example = "wrong size")]
    note: Option<String>,
}

/// Cancel a guest's order
///
/// As a customer's cancellation with `POST /v1/orders/{id}/status`.
#[route(POST "/v1/guest/orders/{id}/status", id = "moveGuestOrder", who = any, task = "orders", path(id: OrderId),
    parameters(OrderToken, IfMatch), body = GuestStatusChange, answers(200 = OrderView<'_> "The order" [ETag]),
    refuses(
        not_found,
        forbidden = "only staff may cancel the order",
        illegal_transition = "the order's status does not allow this change",
    ))]
pub async fn change(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let asker = Asker::with_token(request)?;
    let GuestStatusChange { to, note } = request.body()?;
    status::change_as(app, request, &asker, StatusChange::of_guest(to, note)).await
}

#[derive(Body)]
struct NewGuestPayment {
    #[field(rule = one_of(&["card"]), example = "card")]
    method: PaymentMethod,
    /// A part of the order's total. The default is the part that no payment has secured yet.
    #[field(rule = money(1..=MAX_TOTAL, "PaymentMoney", ""), left_out)]
    amount: Option<Money>,
}

/// Pay a guest's order, wholly or partly
///
/// As `POST /v1/orders/{id}/payments`. A guest pays by card.
#[route(POST "/v1/guest/orders/{id}/payments", id = "payGuestOrder", who = any, task = "payments", path(id: OrderId),
    parameters(OrderToken, OptionalIdempotencyKey), body = NewGuestPayment,
    answers(
        201 = payments::NewPaymentView<'_> "The new payment" [Location, IdempotencyReplayed],
        200 = payments::NewPaymentView<'_> "A card payment of this amount that was not made yet",
    ),
    refuses(
        not_found,
        illegal_transition = "the order takes no money, or has too many payments",
        payment_declined = "the payment provider refuses the amount",
        invalid_body = "also for more than the part of the total that is not secured yet",
    ))]
pub async fn pay(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let asker = Asker::with_token(request)?;
    let once = Once::of_guest(request, &request.path::<OrderId>("id")?, None)?;
    let NewGuestPayment { method, amount } = request.body()?;
    payments::pay(app, request, &asker, NewPayment { method, amount }, once.as_ref()).await
}

/// List the payments of a guest's order
#[route(GET "/v1/guest/orders/{id}/payments", id = "listGuestPayments", who = any, task = "payments",
    path(id: OrderId), parameters(OrderToken), answers(200 = payments::PaymentListView<'_> "The payments" [ETag]),
    refuses(not_found))]
pub async fn list_payments(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    payments::show(app, request, &Asker::with_token(request)?).await
}

#[derive(Serialize, Schema)]
#[schema(name = "ClaimedOrders")]
struct ClaimedView<'a> {
    /// The orders that this request has claimed, newest first.
    items: Vec<OrderSummaryView<'a>>,
    /// Whether there are more orders to claim. Then repeat the request.
    remaining: bool,
}

/// Claim the orders that a customer placed as a guest
///
/// Moves the orders that were placed with the customer's verified email address to the customer. Their
/// tokens then give access no more. The request has no body. Each order is claimed once. A repeated
/// request returns only orders that were not claimed before. A request claims at most 25 orders.
/// Archived orders cannot be claimed.
#[route(POST "/v1/customers/{id}/orders/claim", id = "claimOrders", who = owner, task = "orders",
    path(id: CustomerId), answers(200 = ClaimedView<'_> "The claimed orders"),
    refuses(
        malformed_json, body_too_large, unsupported_content_encoding, invalid_body,
        email_unverified = "the customer has not verified the address",
        conflict = "the profile changed meanwhile",
    ))]
pub async fn claim(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let id: CustomerId = request.path("id")?;
    request.owner(&id)?;
    request.refuse_body()?;
    let customer = services.table.get(&customer::read_for_update(&id)?).await?;
    let customer = customer.filter(|customer| customer.erasing_since.is_none());
    let customer = customer.ok_or_else(|| Problem::not_found("customer"))?;
    if !customer.email_verified {
        return Err(Problem::new(Code::EmailUnverified, "Verify the email address first."));
    }
    let guest = CustomerId::guest(&customer.email);
    let page = services.table.query(&earlier(&guest)?.limit(LISTED)).await?;
    let mut open = page.items.into_iter().filter(|copy| copy.expires_at.is_none());
    let mut claimed = Vec::new();
    for copy in open.by_ref().take(CLAIMED_AT_ONCE) {
        claimed.extend(claim_one(services, &guest, &copy.id, &customer).await?);
    }
    let items = claimed.iter().map(OrderSummaryView::from).collect();
    Ok(Response::ok(&ClaimedView { items, remaining: open.next().is_some() }))
}

/// Moves one order. Returns `None` if the order is no guest's order any more.
async fn claim_one(
    services: &Services,
    guest: &CustomerId,
    id: &OrderId,
    customer: &Customer,
) -> Result<Option<OrderSummary>, Problem> {
    retry_on_conflict(async || {
        let items = services.table.query(&read_for_update(id)?).await?.items;
        let order = visible(items, Instant::now());
        let Some(order) = order.filter(|order| order.head.customer_id == *guest && order.head.expires_at.is_none())
        else {
            return Ok(Some(None));
        };
        if order.lacks_payment() {
            return Ok(None);
        }
        let (mut copy, mut addresses, mut of_guest, mut open) = (None, None, None, None);
        let read = services.table.batch_get(&claimable(guest, id, &customer.id)?).await?;
        for item in read.into_iter().flatten() {
            match item {
                ClaimableItem::CustomerOrder(item) => copy = Some(item),
                ClaimableItem::OrderAddresses(item) => addresses = Some(item),
                ClaimableItem::OpenOrders(item) if item.customer_id == *guest => of_guest = Some(item),
                ClaimableItem::OpenOrders(item) => open = Some(item),
            }
        }
        let Some(copy) = copy else { return Ok(None) };
        let entry = of_guest.filter(|_| order.head.is_open()).and_then(|open| open.entries.get(id).copied());
        let from = Claimable { order: &order, copy: &copy, addresses: addresses.as_ref(), entry, open: open.as_ref() };
        match services.table.transact(&move_to(&from, customer, Instant::now())?).await? {
            Ok(()) => Ok(Some(Some(OrderSummary { customer_id: customer.id.clone(), ..copy.data.into() }))),
            Err(refusals) if refusals.names(OrderAction::Customer) => {
                Err(Problem::new(Code::Conflict, "The profile changed meanwhile. Try again."))
            }
            // The order has changed, or another request claims it.
            Err(_) => Ok(None),
        }
    })
    .await
}
