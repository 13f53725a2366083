//! Sessions: a customer's signed-in devices. No caller can list or extend an expired session. But a
//! caller can end it, because the tokens of its sign-in may still be valid.

use http_api::contract::rules::integer;
use http_api::contract::{Body, Page, route};
use http_api::url::location;
use http_api::{Problem, Request, Response, Services};
use key_schema::id::{CustomerId, SessionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::quota::Quota;
use key_schema::session::{self, Session, SessionAction};
use table::retry_on_conflict;

use crate::owner;
use crate::profile::no_customer;
use crate::view::{DEVICE, SessionView};

/// The longest lifetime of a session: 30 days.
const MAX_TTL_SECONDS: i64 = 2_592_000;
/// The lifetime of a session when the request gives none: one day.
const DEFAULT_TTL_SECONDS: i64 = 86_400;

#[derive(Body)]
struct NewSession {
    #[field(rule = DEVICE, example = "Ann's phone")]
    device: String,
    /// The session's lifetime in seconds.
    #[field(rule = integer(1..=MAX_TTL_SECONDS), default = DEFAULT_TTL_SECONDS, example = 3600)]
    ttl_seconds: i64,
}

#[derive(Body)]
struct SessionChange {
    #[field(rule = DEVICE, left_out)]
    device: Option<String>,
    /// The session's lifetime in seconds from now.
    #[field(rule = integer(1..=MAX_TTL_SECONDS), default = DEFAULT_TTL_SECONDS, example = 3600)]
    ttl_seconds: i64,
}

/// Start a session
///
/// Records a device on which the customer is signed in. The customer must have a profile. If the
/// token identifies its sign-in (claim `sid`, or `origin_jti` with Cognito), the end of the session
/// also ends that sign-in.
#[route(POST "/v1/customers/{id}/sessions", id = "createSession", who = owner, task = "sessions", path(id: CustomerId),
    body = NewSession, answers(201 = SessionView<'_> "The session" [Location, ETag]),
    refuses(
        not_found = "the customer has no profile, or is not the caller",
        quota_exceeded = "retry after the time in Retry-After",
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let NewSession { device, ttl_seconds } = request.body()?;
    let now = Instant::now();
    // Staff may begin a session for a customer. The session does not store the sign-in of a staff
    // token, because it is not the customer's.
    let mine = owner.caller().id() == owner.customer();
    let session = Session {
        sign_in: owner.caller().sign_in().filter(|_| mine).cloned(),
        id: SessionId::generate(now, services.random()?),
        customer_id: owner.customer().clone(),
        expires_at: now.plus_seconds(ttl_seconds),
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

/// List a customer's active sessions
///
/// Returns the active sessions, sorted by their expiry. The session that expires next comes first.
/// Ended and expired sessions are not in the list.
#[route(GET "/v1/customers/{id}/sessions", id = "listSessions", who = owner, task = "sessions", path(id: CustomerId),
    parameters(Limit, Cursor), answers(200 = Page<SessionView<'_>> "A page of sessions" [Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let parameters = [("customer", owner.customer().as_str())];
    let query = session::active(owner.customer(), Instant::now())?;
    request.list(services, query, &parameters).await?.answer(SessionView::from).await
}

/// Extend a session, or rename its device
///
/// Extends the session's lifetime, counted from now. Without `ttl_seconds` it is one day. A session
/// that lasts longer keeps its remaining time.
#[route(PUT "/v1/sessions/{id}", id = "putSession", who = owner, task = "sessions", path(id: SessionId),
    body = SessionChange, answers(200 = SessionView<'_> "The session"))]
pub async fn prolong(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.signed_in()?;
    let SessionChange { device, ttl_seconds } = request.body()?;
    retry_on_conflict(async || {
        let now = Instant::now();
        let session = readable_session(services, request).await?;
        if !session.is_active(now) {
            return Err(no_session());
        }
        let expires_at = now.plus_seconds(ttl_seconds).max(session.expires_at);
        let device = device.as_ref().unwrap_or(&session.device);
        // If another request has changed or ended the session, the next attempt reads it again.
        let extended = services.table.update(&session::extend(&session, expires_at, device, now)?).await?;
        Ok(extended.ok().map(|session| Response::ok(&SessionView::from(&session))))
    })
    .await
}

/// End a session
///
/// Ends the session, and the sign-in of the token with which the session was started. The tokens of
/// that sign-in become invalid within 30 seconds: public routes treat the caller as anonymous, and
/// all other routes respond with 401 `unauthenticated`. The same applies to tokens whose `sid` is the
/// session's id. Tokens that name no sign-in stay valid until they expire. The expiry of a session
/// does not end the sign-in. So a client can still end a session up to 31 days after its expiry.
#[route(DELETE "/v1/sessions/{id}", id = "deleteSession", who = owner, task = "sessions", path(id: SessionId),
    answers(204 = () "Done"))]
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
