//! The purchase: a session becomes an order, once, and the order is paid.
//!
//! The order is placed before it is paid, so that its stock is reserved. From then on the order tells the
//! state of the session: a declined card leaves both open, and the agent sends another token.

use http_api::{Code, Once, Problem, Request, Response};
use key_schema::agent::Agent;
use key_schema::checkout_session::{self, Buyer, CheckoutSession, Origin, SessionKind, Wish};
use key_schema::id::{CheckoutId, CustomerId, OrderId};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder};
use key_schema::payment::{PaymentMethod, PaymentStatus};
use key_schema::request::Guarded;
use ordering::payments::Tried;
use ordering::place::{Details, NewGuest, Source, Wanted, place};
use ordering::promotions;
use ordering::quote::{self, Quote, Quoted};
use ordering::{payments, visible, with_addresses};
use table::TableError;

use crate::App;
use crate::pages::Pages;
use crate::session::{self, Evaluation, Message, Status};

/// How often a purchase begins anew because the session changed meanwhile.
const ATTEMPTS: usize = 4;
/// How many instruments an agent may try for one order after the first one.
const MAX_TRIES: u64 = 9;

/// A session with its state.
#[derive(Debug)]
pub struct Seen {
    pub session: Stored<CheckoutSession>,
    pub evaluation: Evaluation,
    pub status: Status,
    pub order: Option<PlacedOrder>,
}

/// Reads a session of an agent.
///
/// # Errors
/// 404 for a session that has expired, of another kind, of another agent, or of an earlier agent with the
/// same id.
pub async fn find(
    app: &App,
    agent: &Stored<Agent>,
    id: &CheckoutId,
    kind: SessionKind,
    now: Instant,
) -> Result<Stored<CheckoutSession>, Problem> {
    let found = app.shop.services.table.get(&checkout_session::get(id)?).await?;
    let is_own = |session: &Stored<CheckoutSession>| {
        let is_of_agent = session.agent == agent.id && session.meta.created_at >= agent.meta.created_at;
        is_of_agent && session.kind == kind && session.expires_at > now
    };
    found.filter(is_own).ok_or_else(|| Problem::not_found(if kind == SessionKind::Cart { "cart" } else { "checkout" }))
}

/// Returns the state of a session: that of its order, if it has one.
pub async fn see(
    app: &App,
    request: &Request<'_>,
    agent: &Stored<Agent>,
    session: Stored<CheckoutSession>,
    now: Instant,
) -> Result<Result<Seen, Vec<Message>>, Problem> {
    if let Some(id) = &session.order_id {
        let order = read_order(app, id).await?;
        return Ok(Ok(of_order(session, order)));
    }
    let evaluated = session::evaluate(app, request, agent, session.kind, &session.wish, false, now).await?;
    Ok(evaluated.map(|evaluation| {
        let status = if session.cancelled { Status::Canceled } else { Status::of(&evaluation.messages) };
        Seen { session, evaluation, status, order: None }
    }))
}

pub async fn read_order(app: &App, id: &OrderId) -> Result<PlacedOrder, Problem> {
    let services = &app.shop.services;
    let items = services.table.query(&order::read_for_update(id)?).await?.items;
    let order = visible(items, Instant::now()).ok_or_else(Once::in_progress)?;
    with_addresses(services, order).await
}

/// Returns an order with the present state of its open payment, which the table may not know yet.
async fn refreshed(app: &App, order: PlacedOrder) -> Result<PlacedOrder, Problem> {
    let open = order.payments.iter().find(|payment| payment.status.is_open());
    let Some(intent) = open.and_then(|payment| payment.intent.clone()) else { return Ok(order) };
    let settled = app.shop.settled(&order.head.id, Some(&intent)).await?;
    with_addresses(&app.shop.services, settled.order).await
}

fn of_order(session: Stored<CheckoutSession>, order: PlacedOrder) -> Seen {
    let mut evaluation = Evaluation::of_order(&order, &session.wish);
    let standing = Standing::of(&order);
    let status = match &standing {
        Standing::Paid => Status::Completed,
        Standing::Cancelled => Status::Canceled,
        Standing::InProgress | Standing::Free => Status::CompleteInProgress,
        Standing::NeedsBuyer => {
            let content = "The card's issuer wants the buyer to authenticate the payment.";
            evaluation.messages.push(Message::for_buyer("requires_3ds", content));
            Status::RequiresEscalation
        }
        Standing::Unpaid(_) if session.tries >= MAX_TRIES => {
            let content = "Too many instruments were tried. The buyer has to pay in the shop.";
            evaluation.messages.push(Message::for_buyer("payment_failed", content));
            Status::RequiresEscalation
        }
        Standing::Unpaid(None) => Status::ReadyForComplete,
        Standing::Unpaid(Some(declined)) => {
            let content = format!("The payment was declined: {declined}. Send another instrument.");
            evaluation.messages.push(Message::error("payment_failed", "$.payment.instruments[0]", content));
            Status::ReadyForComplete
        }
    };
    Seen { session, evaluation, status, order: Some(order) }
}

/// How far the payment of an order has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Standing {
    Paid,
    Cancelled,
    InProgress,
    NeedsBuyer,
    /// The order costs nothing. Staff confirm it.
    Free,
    /// Nothing was paid. The text is the code of the last refusal.
    Unpaid(Option<String>),
}

impl Standing {
    pub fn of(order: &PlacedOrder) -> Self {
        match order.head.status {
            OrderStatus::Pending => {}
            OrderStatus::Placing => return Self::InProgress,
            OrderStatus::Cancelled => return Self::Cancelled,
            _ => return Self::Paid,
        }
        let card = order.payments.iter().rev().find(|payment| payment.method == PaymentMethod::Card);
        let Some(payment) = card else {
            return if order.head.total.amount == 0 { Self::Free } else { Self::Unpaid(None) };
        };
        match payment.status {
            PaymentStatus::ActionRequired => Self::NeedsBuyer,
            PaymentStatus::Starting
            | PaymentStatus::Processing
            | PaymentStatus::Authorised
            | PaymentStatus::Captured => Self::InProgress,
            PaymentStatus::Pending | PaymentStatus::Cancelled | PaymentStatus::Failed => {
                Self::Unpaid(payment.declined.clone())
            }
        }
    }
}

/// What an earlier request with the same key has done.
#[derive(Debug)]
pub enum Earlier {
    Placed(OrderId),
    /// It has shown a price, or the order of this checkout, or it has tried another card.
    Answered(CheckoutId),
    /// It has changed nothing.
    Shown(Response),
}

/// A request that completes a session.
#[derive(Debug)]
pub struct Completion<'a> {
    pub id: &'a CheckoutId,
    /// The token of a card.
    pub token: &'a str,
    /// Some agents name the buyer only now.
    pub buyer: Option<Buyer>,
    pub once: Option<&'a Once>,
    /// What an earlier request with its key has done.
    pub earlier: Option<Earlier>,
}

/// The state of a session after a request to complete it.
#[derive(Debug)]
pub struct Completed {
    pub seen: Result<Seen, Vec<Message>>,
    /// Whether the request's key is stored.
    pub uses_key: bool,
}

impl Completed {
    const fn with_key(seen: Seen) -> Self {
        Self { seen: Ok(seen), uses_key: true }
    }

    const fn without_key(seen: Result<Seen, Vec<Message>>) -> Self {
        Self { seen, uses_key: false }
    }
}

/// Completes a session.
pub async fn complete(
    app: &App,
    request: &Request<'_>,
    agent: &Stored<Agent>,
    completion: Completion<'_>,
) -> Result<Completed, Problem> {
    let Completion { id, token, mut buyer, once, earlier: known } = completion;
    let mut known = Some(known);
    // The goods and the price with which this request began.
    let mut first = None;
    for _ in 0..ATTEMPTS {
        let now = Instant::now();
        let earlier = match known.take() {
            Some(known) => known,
            None => earlier(app, once, now).await?,
        };
        if let Some(Earlier::Shown(_)) = earlier {
            return Err(Once::in_progress());
        }
        let session = find(app, agent, id, SessionKind::Checkout, now).await?;
        if session.cancelled {
            return Err(ended("canceled"));
        }
        if let Some(order_id) = session.order_id.clone() {
            let order = read_order(app, &order_id).await?;
            let goes_on = match (&earlier, Standing::of(&order)) {
                (None, Standing::Unpaid(_) | Standing::NeedsBuyer) => true,
                (Some(Earlier::Placed(placed)), Standing::Unpaid(None)) => *placed == order_id,
                _ => false,
            };
            // A customer who has claimed the order pays it in the shop.
            if !goes_on || !order.head.customer_id.is_guest() {
                let seen = of_order(session, refreshed(app, order).await?);
                return Ok(Completed { seen: Ok(seen), uses_key: earlier.is_some() });
            }
            if session.tries >= MAX_TRIES {
                return Ok(Completed { seen: Ok(of_order(session, order)), uses_key: earlier.is_some() });
            }
            if earlier.is_none() {
                let claim = claim(app, once, id, now)?;
                if app.shop.services.table.transact(&checkout_session::try_again(&session, claim, now)?).await?.is_err()
                {
                    continue;
                }
            }
            return pay(app, session, &order_id, token).await.map(Completed::with_key);
        }
        let is_new = |buyer: &mut Buyer| session.wish.buyer.as_ref() != Some(buyer);
        if earlier.is_none()
            && let Some(buyer) = buyer.take_if(is_new)
        {
            let wish = Wish { buyer: Some(buyer), ..session.wish.clone() };
            // The price stays the one that the agent has seen.
            let change = checkout_session::replace(&session, &wish, &session.quote, None, now)?;
            app.shop.services.table.transact(&change).await?.map_err(|_| Problem::from(TableError::Contended))?;
            continue;
        }
        let began = first.get_or_insert_with(|| (session.wish.clone(), session.quote.clone()));
        let is_same = (&session.wish, &session.quote) == (&began.0, &began.1);
        let mut seen = match see(app, request, agent, session, now).await? {
            Ok(seen) => seen,
            Err(messages) => return Ok(Completed { seen: Err(messages), uses_key: earlier.is_some() }),
        };
        if earlier.is_some() || !is_same {
            // This request has had its answer, or another one has changed the goods meanwhile.
            seen.evaluation.messages.push(price_changed());
            return Ok(Completed { seen: Ok(seen), uses_key: earlier.is_some() });
        }
        if seen.status != Status::ReadyForComplete {
            return Ok(Completed::without_key(Ok(seen)));
        }
        let quote = match (stored_quote(&seen.session), &seen.evaluation.quote) {
            (Some(quote), Some(now)) if quote.has_price_of(now) => quote,
            _ => return renew(app, seen, once, now).await.map(Completed::with_key),
        };
        match order(app, request, agent, &seen, quote, once, now).await {
            Ok(order) => {
                telemetry::crash_point("checkouts.placed");
                let session = find(app, agent, id, SessionKind::Checkout, now).await?;
                if order.head.total.amount == 0 {
                    let seen = of_order(session, with_addresses(&app.shop.services, order).await?);
                    return Ok(Completed::with_key(seen));
                }
                return pay(app, session, &order.head.data.id, token).await.map(Completed::with_key);
            }
            Err(problem) => match problem.code() {
                // The session or a promotion changed.
                Code::Conflict => {}
                Code::QuoteChanged
                | Code::PromotionUnknown
                | Code::PromotionExpired
                | Code::PromotionUsedUp
                | Code::PromotionNotApplicable => {
                    let now = Instant::now();
                    return match see(app, request, agent, seen.session, now).await? {
                        Ok(seen) => renew(app, seen, once, now).await.map(Completed::with_key),
                        Err(messages) => Ok(Completed::without_key(Err(messages))),
                    };
                }
                Code::InsufficientStock | Code::HasVariants | Code::UnknownProduct => {
                    let seen = see(app, request, agent, seen.session, Instant::now()).await?;
                    return Ok(Completed::without_key(seen));
                }
                Code::QuantityLimit | Code::TooManyPendingOrders | Code::QuotaExceeded => {
                    let message = Message::error("limit_reached", "$.buyer.email", problem.detail());
                    seen.evaluation.messages.push(message);
                    seen.status = Status::Incomplete;
                    return Ok(Completed::without_key(Ok(seen)));
                }
                _ => return Err(problem),
            },
        }
    }
    Err(TableError::Contended.into())
}

/// Returns what an earlier request with the key has done.
pub async fn earlier(app: &App, once: Option<&Once>, now: Instant) -> Result<Option<Earlier>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let record = app.shop.services.table.get(&idempotency::get(once.scope())?).await?;
    match once.first(record.as_deref(), now)? {
        Some(StoredResponse::Order(id)) => Ok(Some(Earlier::Placed(id.clone()))),
        Some(StoredResponse::Checkout(id)) => Ok(Some(Earlier::Answered(id.clone()))),
        Some(StoredResponse::Body { body, .. }) => Ok(Some(Earlier::Shown(Response::replay(body)?))),
        Some(_) => Err(Problem::internal("the idempotency record of a purchase has another response")),
        None => Ok(None),
    }
}

fn claim(app: &App, once: Option<&Once>, id: &CheckoutId, now: Instant) -> Result<Option<Guarded>, Problem> {
    let claim = |once: &Once| once.claim(StoredResponse::Checkout(id.clone()), app.shop.services.born(now)?, now);
    once.map(claim).transpose()
}

fn stored_quote(session: &CheckoutSession) -> Option<Quote> {
    serde_json::from_str(session.quote.as_deref()?).ok()
}

pub fn quote_text(quote: Option<&Quote>) -> Result<Option<String>, Problem> {
    quote.map(serde_json::to_string).transpose().map_err(Problem::internal)
}

fn price_changed() -> Message {
    let content = "The price has changed. Show the buyer the new total, and complete the checkout again.";
    Message::warning("price_changed", "$.totals", content)
}

/// Stores the present price, so that the agent can complete the session with it, and says that it is new.
/// The key of the request is used up, so its repetition does not charge the price.
async fn renew(app: &App, mut seen: Seen, once: Option<&Once>, now: Instant) -> Result<Seen, Problem> {
    let quote = quote_text(seen.evaluation.quote.as_ref())?;
    let claim = claim(app, once, &seen.session.id, now)?;
    let replace = checkout_session::replace(&seen.session, &seen.session.wish, &quote, claim, now)?;
    app.shop.services.table.transact(&replace).await?.map_err(|_| Problem::from(TableError::Contended))?;
    seen.session.data.quote = quote;
    seen.evaluation.messages.push(price_changed());
    Ok(seen)
}

/// Stores the price that a read is about to show, if the agent has seen another one. Another request may
/// change the session meanwhile, and then that one counts.
pub async fn note_price(app: &App, seen: &Seen, now: Instant) -> Result<(), Problem> {
    let is_known = match (stored_quote(&seen.session), &seen.evaluation.quote) {
        (Some(before), Some(now)) => before.has_price_of(now),
        (_, now) => now.is_none(),
    };
    if !is_known && seen.order.is_none() && !seen.session.cancelled {
        let quote = quote_text(seen.evaluation.quote.as_ref())?;
        let replace = checkout_session::replace(&seen.session, &seen.session.wish, &quote, None, now)?;
        let _ = app.shop.services.table.transact(&replace).await?;
    }
    Ok(())
}

async fn order(
    app: &App,
    request: &Request<'_>,
    agent: &Stored<Agent>,
    seen: &Seen,
    quote: Quote,
    once: Option<&Once>,
    now: Instant,
) -> Result<PlacedOrder, Problem> {
    let (shop, session) = (&app.shop, &seen.session);
    let services = &shop.services;
    let guest = seen.evaluation.guest.clone().ok_or_else(|| Problem::internal("a ready session has no buyer"))?;
    let guests = CustomerId::guests_of(&agent.id);
    let Pages { api, .. } = Pages::read(app, request).await?;
    let (rules, limits) = tokio::try_join!(quote::rules(services), shop.limits())?;
    let promotions = promotions::usable(services, &guests, &rules, quote.codes(), None, now).await?;
    let (rounding, shipping_tax) = (limits.tax_rounding, limits.shipping_tax);
    // The buyer may have been named after the price was shown, and names the receiver.
    let addresses = seen.evaluation.quote.as_ref().unwrap_or(&quote).addresses();
    let wanted = Wanted {
        customer_id: CustomerId::guest(&guest.email),
        guest: Some(NewGuest { guest, cart: session.cart_token() }),
        list: "/line_items",
        lines: session::wanted(&session.wish.lines),
        reference: None,
        origin: Some(Origin { agent: agent.id.clone(), checkout: session.id.clone(), api }),
        placed_at: None,
        store_id: None,
        details: Details::default(),
        expected_total: None,
        addresses,
        quote: Some(Quoted { quote, rules, promotions, rounding, shipping_tax }),
    };
    Ok(place(shop, None, wanted, once, None, Source::Session(session)).await?.order)
}

async fn pay(app: &App, session: Stored<CheckoutSession>, order: &OrderId, token: &str) -> Result<Seen, Problem> {
    let Tried { order, is_known } = payments::pay_with_token(&app.shop, order, token).await?;
    let order = with_addresses(&app.shop.services, order).await?;
    let standing = Standing::of(&order);
    let mut seen = of_order(session, order);
    match (standing, is_known) {
        (Standing::Unpaid(_), false) => {
            seen.evaluation.messages.clear();
            seen.status = Status::CompleteInProgress;
        }
        (Standing::Unpaid(None), true) => {
            let content = "The payment was refused. Send another instrument.";
            seen.evaluation.messages.push(Message::error("payment_failed", "$.payment.instruments[0]", content));
        }
        _ => {}
    }
    Ok(seen)
}

/// A session that was to be opened for changes.
#[derive(Debug)]
pub enum Undone {
    Open(Stored<CheckoutSession>),
    /// Its order is being paid.
    InProgress(Stored<CheckoutSession>),
}

/// Cancels the unpaid order of a session, if it has one, and opens the session for changes.
///
/// # Errors
/// 409 `checkout_completed` or `checkout_canceled`.
pub async fn undo(app: &App, agent: &Stored<Agent>, mut session: Stored<CheckoutSession>) -> Result<Undone, Problem> {
    for _ in 0..ATTEMPTS {
        if session.cancelled {
            return Err(ended("canceled"));
        }
        let Some(order_id) = &session.order_id else { return Ok(Undone::Open(session)) };
        let order = refreshed(app, read_order(app, order_id).await?).await?;
        match Standing::of(&order) {
            Standing::Unpaid(_) | Standing::NeedsBuyer | Standing::Free if order.head.customer_id.is_guest() => {}
            Standing::Cancelled => return Err(ended("canceled")),
            Standing::Paid => return Err(ended("completed")),
            Standing::InProgress => return Ok(Undone::InProgress(session)),
            Standing::Unpaid(_) | Standing::NeedsBuyer | Standing::Free => {
                return Err(Problem::new(Code::Conflict, "A customer has claimed the order, and pays it in the shop."));
            }
        }
        let with = [(OrderAction::Cart, checkout_session::reopen(&session, Instant::now())?)];
        payments::cancel_unpaid(&app.shop, &order, &with).await?;
        session = find(app, agent, &session.id, session.kind, Instant::now()).await?;
    }
    Err(TableError::Contended.into())
}

/// Returns 409 for a session whose order is being paid.
pub fn in_progress() -> Problem {
    Problem::new(Code::Conflict, "The payment is being processed.")
}

/// Returns 409 for a session that takes no more changes.
pub fn ended(how: &'static str) -> Problem {
    let code = if how == "completed" { "checkout_completed" } else { "checkout_canceled" };
    Problem::new(Code::IllegalTransition, format!("This checkout is {how} and cannot change.")).spoken(code)
}
