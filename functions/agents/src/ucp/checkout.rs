//! Checkouts (<https://ucp.dev/2026-04-08/specification/checkout-rest>).

use http_api::contract::route;
use http_api::{Code, Once, Problem, Request, Response};
use key_schema::agent::{Agent, AgentScope};
use key_schema::checkout_session::{self, CheckoutSession, SessionAction, SessionKind, Wish};
use key_schema::guest_cart::CartToken;
use key_schema::id::CheckoutId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde_json::Value;

use super::wire::{Completion, Purchase, Wanted, body};
use super::{Root, error, nothing, view};
use crate::App;
use crate::access::agent;
use crate::purchase::{self, Seen, find, quote_text, see};
use crate::session::{self, Message, Status};

/// Create a checkout
#[route(POST "/ucp/checkout-sessions", id = "ucpCreateCheckout", who = any, task = "agents",
    spec = "https://ucp.dev/2026-04-08/specification/checkout-rest", errors = error)]
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    let purchase: Purchase = body(request)?;
    let once = Once::of_agent(request, &agent.id)?;
    let now = Instant::now();
    if let Some(replayed) = replay(app, once.as_ref()).await? {
        return Ok(replayed);
    }
    let Some(cart_id) = purchase.cart_id.as_deref() else {
        return begin(app, request, &agent, SessionKind::Checkout, purchase.wanted()?, None, once.as_ref()).await;
    };
    // The contents of a cart count, and not those of the request.
    let cart = match cart_id.parse() {
        Ok(id) => find(app, &agent, &id, SessionKind::Cart, now).await,
        Err(_) => Err(Problem::not_found("cart")),
    };
    let cart = match cart {
        Ok(cart) if !cart.cancelled => cart,
        Err(problem) if problem.code() != Code::NotFound => return Err(problem),
        _ => return missing(app, request, Root::Checkout, "cart").await,
    };
    if let Some(id) = &cart.checkout
        && let Ok(session) = find(app, &agent, id, SessionKind::Checkout, now).await
        && let Ok(seen) = see(app, request, &agent, session, now).await?
        && !matches!(seen.status, Status::Completed | Status::Canceled)
    {
        return Ok(Response::ok(&view::session(app, request, &seen).await?));
    }
    let wanted = Wanted { wish: cart.wish.clone(), messages: Vec::new() };
    begin(app, request, &agent, SessionKind::Checkout, wanted, Some(&cart), once.as_ref()).await
}

/// Read a checkout
#[route(GET "/ucp/checkout-sessions/{id}", id = "ucpReadCheckout", who = any, task = "agents", path(id: CheckoutId),
    spec = "https://ucp.dev/2026-04-08/specification/checkout-rest", errors = error)]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    show(app, request, SessionKind::Checkout).await
}

/// Replace a checkout
#[route(PUT "/ucp/checkout-sessions/{id}", id = "ucpReplaceCheckout", who = any, task = "agents",
    path(id: CheckoutId), spec = "https://ucp.dev/2026-04-08/specification/checkout-rest", errors = error)]
pub async fn update(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    replace(app, request, SessionKind::Checkout).await
}

/// Place the order of a checkout
#[route(POST "/ucp/checkout-sessions/{id}/complete", id = "ucpCompleteCheckout", who = any, task = "agents",
    path(id: CheckoutId), spec = "https://ucp.dev/2026-04-08/specification/checkout-rest", errors = error)]
pub async fn complete(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    let (completion, buyer): (Completion, Purchase) = (body(request)?, body(request)?);
    let buyer = buyer.buyer()?;
    let once = Once::of_agent(request, &agent.id)?;
    let now = Instant::now();
    let found = match request.path("id") {
        Ok(id) => find(app, &agent, &id, SessionKind::Checkout, now).await,
        Err(_) => Err(Problem::not_found("checkout")),
    };
    let session = match found {
        Ok(session) => session,
        Err(problem) if problem.code() == Code::NotFound => {
            return missing(app, request, Root::Checkout, "checkout").await;
        }
        Err(problem) => return Err(problem),
    };
    let token = match completion.token() {
        Ok(token) => token,
        Err(message) => {
            return answer(app, request, with(see(app, request, &agent, session, now).await?, message)).await;
        }
    };
    let completion = purchase::Completion { id: &session.id, token: &token, buyer, once: once.as_ref() };
    answer(app, request, purchase::complete(app, request, &agent, completion).await?).await
}

/// Cancel a checkout
#[route(POST "/ucp/checkout-sessions/{id}/cancel", id = "ucpCancelCheckout", who = any, task = "agents",
    path(id: CheckoutId), spec = "https://ucp.dev/2026-04-08/specification/checkout-rest", errors = error)]
pub async fn cancel(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    end(app, request, SessionKind::Checkout).await
}

const fn root(kind: SessionKind) -> Root {
    match kind {
        SessionKind::Cart => Root::Cart,
        SessionKind::Checkout => Root::Checkout,
    }
}

/// Adds a message to a session's state.
fn with(seen: Result<Seen, Vec<Message>>, message: Message) -> Result<Seen, Vec<Message>> {
    match seen {
        Ok(mut seen) => {
            seen.evaluation.messages.push(message);
            Ok(seen)
        }
        Err(messages) => Err(messages),
    }
}

async fn answer(app: &App, request: &Request<'_>, seen: Result<Seen, Vec<Message>>) -> Result<Response, Problem> {
    let shown = match seen {
        Ok(seen) => view::session(app, request, &seen).await?,
        Err(messages) => nothing(app, request, Root::Checkout, &messages).await?,
    };
    Ok(Response::ok(&shown))
}

/// Returns the result of a request for a session that does not exist.
async fn missing(app: &App, request: &Request<'_>, root: Root, what: &str) -> Result<Response, Problem> {
    let message = Message::unrecoverable("not_found", format!("There is no such {what}, or it has expired."));
    Ok(Response::ok(&nothing(app, request, root, &[message]).await?))
}

const fn name(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Cart => "cart",
        SessionKind::Checkout => "checkout",
    }
}

/// Returns the first response to a request with the same key, if there was one.
pub async fn replay(app: &App, once: Option<&Once>) -> Result<Option<Response>, Problem> {
    match once {
        Some(once) => once.replay(&app.shop.services).await,
        None => Ok(None),
    }
}

/// Returns the id of a request's session. No session has an id that is malformed.
fn session_id(request: &Request<'_>) -> Result<CheckoutId, Problem> {
    request.path("id").map_err(|_| Problem::not_found("session"))
}

fn created(kind: SessionKind, id: &CheckoutId, shown: &Value) -> Response {
    let path = match kind {
        SessionKind::Cart => "carts",
        SessionKind::Checkout => "checkout-sessions",
    };
    Response::created(format!("/ucp/{path}/{}", id.as_str()), shown)
}

/// Begins a session.
pub async fn begin(
    app: &App,
    request: &Request<'_>,
    agent: &Stored<Agent>,
    kind: SessionKind,
    wanted: Wanted,
    cart: Option<&Stored<CheckoutSession>>,
    once: Option<&Once>,
) -> Result<Response, Problem> {
    let (services, now) = (&app.shop.services, Instant::now());
    let Wanted { mut wish, messages } = wanted;
    let mut evaluation = match session::evaluate(app, request, agent, kind, &wish, true, now).await? {
        Ok(evaluation) => evaluation,
        Err(found) => {
            let messages: Vec<Message> = messages.into_iter().chain(found).collect();
            return Ok(Response::ok(&nothing(app, request, root(kind), &messages).await?));
        }
    };
    keep(&mut wish, &evaluation);
    evaluation.messages.extend(messages);
    let (id, born) = (CheckoutId::generate(now, services.random()?), services.born(now)?);
    let session = CheckoutSession {
        quote: quote_text(evaluation.quote.as_ref())?,
        ..CheckoutSession::new(id.clone(), agent.id.clone(), kind, wish, &CartToken::new(services.random()?), now)
    };
    let status = Status::of(&evaluation.messages);
    let seen = Seen { session: Stored::new(session, born.clone(), now), evaluation, status, order: None };
    let response = created(kind, &id, &view::session(app, request, &seen).await?);
    let claim = once.map(|once| once.claim_with(&response, born, now)).transpose()?;
    let create = checkout_session::create(&seen.session, agent.checkouts_per_day, cart, claim)?;
    if let Err(refusals) = services.table.transact(&create).await? {
        if let Some(replayed) = replay(app, once).await? {
            return Ok(replayed);
        }
        if refusals.names(SessionAction::Quota) {
            return Err(Problem::daily_limit(agent.checkouts_per_day, "carts and checkouts of this agent", now));
        }
        return Err(table::TableError::Contended.into());
    }
    Ok(response)
}

/// Leaves out the lines that are not for sale, and codes that were not checked.
fn keep(wish: &mut Wish, evaluation: &session::Evaluation) {
    wish.lines.retain(|line| evaluation.lines.iter().any(|known| known.product_id == line.product_id));
    if !evaluation.are_codes_checked {
        wish.codes.clear();
    }
}

pub async fn show(app: &App, request: &Request<'_>, kind: SessionKind) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    let now = Instant::now();
    let found = match session_id(request) {
        Ok(id) => find(app, &agent, &id, kind, now).await,
        Err(problem) => Err(problem),
    };
    let session = match found {
        // A cancelled cart is gone.
        Ok(session) if !(kind == SessionKind::Cart && session.cancelled) => session,
        Err(problem) if problem.code() != Code::NotFound => return Err(problem),
        _ => return missing(app, request, root(kind), name(kind)).await,
    };
    let shown = match see(app, request, &agent, session, now).await? {
        Ok(seen) => {
            if kind == SessionKind::Checkout {
                purchase::note_price(app, &seen, now).await?;
            }
            view::session(app, request, &seen).await?
        }
        Err(messages) => nothing(app, request, root(kind), &messages).await?,
    };
    Ok(Response::ok(&shown))
}

/// Replaces a session. An order that was not paid is cancelled first.
pub async fn replace(app: &App, request: &Request<'_>, kind: SessionKind) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    let Wanted { mut wish, messages } = body::<Purchase>(request)?.wanted()?;
    let once = Once::of_agent(request, &agent.id)?;
    if let Some(replayed) = replay(app, once.as_ref()).await? {
        return Ok(replayed);
    }
    let mut session = match open(app, request, &agent, kind).await {
        Err(problem) if problem.code() == Code::NotFound => {
            return missing(app, request, root(kind), name(kind)).await;
        }
        other => other?,
    };
    let now = Instant::now();
    let mut evaluation = match session::evaluate(app, request, &agent, kind, &wish, true, now).await? {
        Ok(evaluation) => evaluation,
        Err(found) => {
            let messages: Vec<Message> = messages.into_iter().chain(found).collect();
            return Ok(Response::ok(&nothing(app, request, root(kind), &messages).await?));
        }
    };
    keep(&mut wish, &evaluation);
    evaluation.messages.extend(messages);
    let quote = quote_text(evaluation.quote.as_ref())?;
    let status = Status::of(&evaluation.messages);
    let mut shown = session.clone();
    shown.data.wish = wish.clone();
    shown.data.expires_at = now.plus_seconds(checkout_session::LIFETIME_SECONDS);
    let seen = Seen { session: shown, evaluation, status, order: None };
    let response = Response::ok(&view::session(app, request, &seen).await?);
    let mut backoff = table::Backoff::new();
    loop {
        let born = app.shop.services.born(now)?;
        let claim = once.as_ref().map(|once| once.claim_with(&response, born, now)).transpose()?;
        let change = checkout_session::replace(&session, &wish, &quote, claim, now)?;
        if app.shop.services.table.transact(&change).await?.is_ok() {
            return Ok(response);
        }
        if let Some(replayed) = replay(app, once.as_ref()).await? {
            return Ok(replayed);
        }
        // Another request changed the session. The last one counts.
        backoff.after_conflict().await?;
        session = open(app, request, &agent, kind).await?;
    }
}

/// Returns the session of a request, open for changes.
async fn open(
    app: &App,
    request: &Request<'_>,
    agent: &Stored<Agent>,
    kind: SessionKind,
) -> Result<Stored<CheckoutSession>, Problem> {
    purchase::undo(app, agent, &session_id(request)?, kind).await
}

/// Cancels a session, and its order if that was not paid. Returns the session as it was.
pub async fn end(app: &App, request: &Request<'_>, kind: SessionKind) -> Result<Response, Problem> {
    let agent = agent(app, request, AgentScope::Checkout).await?;
    let once = Once::of_agent(request, &agent.id)?;
    if let Some(replayed) = replay(app, once.as_ref()).await? {
        return Ok(replayed);
    }
    let mut backoff = table::Backoff::new();
    loop {
        let session = match open(app, request, &agent, kind).await {
            Err(problem) if problem.code() == Code::NotFound => {
                return missing(app, request, root(kind), name(kind)).await;
            }
            other => other?,
        };
        let now = Instant::now();
        let shown = match see(app, request, &agent, session.clone(), now).await? {
            Ok(seen) => view::session(app, request, &Seen { status: Status::Canceled, ..seen }).await?,
            Err(messages) => nothing(app, request, root(kind), &messages).await?,
        };
        let response = Response::ok(&shown);
        let born = app.shop.services.born(now)?;
        let claim = once.as_ref().map(|once| once.claim_with(&response, born, now)).transpose()?;
        if app.shop.services.table.transact(&checkout_session::cancel(&session, claim, now)?).await?.is_ok() {
            return Ok(response);
        }
        if let Some(replayed) = replay(app, once.as_ref()).await? {
            return Ok(replayed);
        }
        backoff.after_conflict().await?;
    }
}
