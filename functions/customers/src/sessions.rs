//! Sessions: a customer's signed-in devices. No caller can list or extend an expired session. But a
//! caller can end it, because the tokens of its sign-in may still be valid.

use http_api::body::Invalid;
use http_api::fields::{integer, text};
use http_api::json::Value;
use http_api::url::location;
use http_api::{Problem, Request, Response, Services, read_fields};
use key_schema::id::SessionId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::quota::Quota;
use key_schema::session::{self, Session, SessionAction};
use table::retry_on_conflict;

use crate::owner;
use crate::profile::no_customer;
use crate::view::SessionView;

/// The longest lifetime of a session: 30 days.
const MAX_TTL_SECONDS: i64 = 2_592_000;
/// The lifetime of a session when the request gives none: one day.
const DEFAULT_TTL_SECONDS: i64 = 86_400;

/// POST /v1/customers/{id}/sessions: starts a session, if the customer has a profile.
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    read_fields!(request.object()? => {
        device: required(device),
        ttl_seconds: optional(integer(1..=MAX_TTL_SECONDS)),
    });
    let now = Instant::now();
    // Staff may begin a session for a customer. The session does not store the sign-in of a staff
    // token, because it is not the customer's.
    let mine = owner.caller().id() == owner.customer();
    let session = Session {
        sign_in: owner.caller().sign_in().filter(|_| mine).cloned(),
        id: SessionId::generate(now, services.random()?),
        customer_id: owner.customer().clone(),
        expires_at: now.plus_seconds(ttl_seconds.unwrap_or(DEFAULT_TTL_SECONDS)),
        device,
    };
    let session = Stored::new(session, services.born(now)?, now);
    if let Err(refusals) = services.table.transact(&session::create(&session)?).await? {
        if refusals.names(SessionAction::Customer) {
            return Err(no_customer());
        }
        // The id is new. So if the session was refused, too, an earlier attempt of this request has
        // written it, and the response to that attempt was lost.
        if refusals.names(SessionAction::Quota) && !refusals.names(SessionAction::Session) {
            return Err(Problem::quota_exceeded(Quota::Sessions, now));
        }
    }
    let location = location(&["sessions", session.id.as_str()]);
    Ok(Response::created(location, &SessionView::from(&session)).etag(session.meta.version))
}

/// GET /v1/customers/{id}/sessions: lists the sessions by expiry, the earliest first.
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let parameters = [("customer", owner.customer().as_str())];
    let query = session::active(owner.customer(), Instant::now())?;
    request.list(services, query, &parameters).await?.answer(SessionView::from).await
}

/// PUT /v1/sessions/{id}: extends the session, and may rename the device. The request never
/// shortens the session.
pub async fn prolong(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    read_fields!(request.object()? => {
        device: optional(device),
        ttl_seconds: optional(integer(1..=MAX_TTL_SECONDS)),
    });
    retry_on_conflict(async || {
        let now = Instant::now();
        let session = readable_session(services, request).await?;
        if !session.is_active(now) {
            return Err(no_session());
        }
        let expires_at = now.plus_seconds(ttl_seconds.unwrap_or(DEFAULT_TTL_SECONDS)).max(session.expires_at);
        let device = device.as_ref().unwrap_or(&session.device);
        // If another request has changed or ended the session, the next attempt reads it again.
        let extended = services.table.update(&session::extend(&session, expires_at, device, now)?).await?;
        Ok(extended.ok().map(|session| Response::ok(&SessionView::from(&session))))
    })
    .await
}

/// DELETE /v1/sessions/{id}: ends a session, expired or not. The functions then refuse the tokens
/// of the sign-in that began it, and tokens that name the session itself ([`http_api::SignIns`]).
pub async fn end(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let session = readable_session(services, request).await?;
    // A refusal would mean that a new session has the same random id, which cannot happen.
    services.table.transact(&session::end(&session, Instant::now())?).await?.map_err(|_| no_session())?;
    services.sign_ins.ended(session::sign_ins(&session));
    Ok(Response::no_content())
}

/// Reads the session of the path, expired or not, if the caller may act for its customer.
///
/// # Errors
/// 404 if the session is missing or belongs to another customer.
async fn readable_session(services: &Services, request: &Request<'_>) -> Result<Stored<Session>, Problem> {
    let caller = request.signed_in()?;
    let id: SessionId = request.path("id")?;
    let found = services.table.get(&session::get(&id)?).await?;
    found.filter(|session| caller.is_staff() || session.customer_id == *caller.id()).ok_or_else(no_session)
}

fn no_session() -> Problem {
    Problem::not_found("session")
}

fn device(value: Value<'_>) -> Result<String, Invalid> {
    text(1..=200)(value)
}
