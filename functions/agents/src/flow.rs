//! What agents can do with a session, whatever their protocol: begin, see, replace, complete and cancel it.

use http_api::{Code, Once, Problem, Request, Response};
use key_schema::agent::Agent;
use key_schema::checkout_session::{self, Buyer, CheckoutSession, SessionAction, SessionKind, Wish};
use key_schema::guest_cart::CartToken;
use key_schema::id::CheckoutId;
use key_schema::idempotency::StoredResponse;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde_json::Value;

use crate::App;
use crate::purchase::{self, Completed, Completion, Earlier, Seen, Undone, find, quote_text, see};
use crate::session::{self, Kind, Message, Status};
use crate::{acp, ucp};

/// What an agent wants, with messages about the parts that cannot be what it says.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub wish: Wish,
    pub messages: Vec<Message>,
    /// What the shop must not replace with something else, so a change without it does not happen.
    pub refused: Vec<Message>,
}

/// The protocol in which the agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Ucp,
    Acp,
}

/// A request of an agent about its sessions of one kind.
#[derive(Debug)]
pub struct Flow<'a> {
    pub app: &'a App,
    pub request: &'a Request<'a>,
    pub agent: Stored<Agent>,
    pub protocol: Protocol,
    pub kind: SessionKind,
    pub once: Option<Once>,
}

impl Flow<'_> {
    /// Returns the first response to a request with the same key, if there was one, or the present state of
    /// a session whose order goes on.
    pub async fn replay(&self) -> Result<Option<Response>, Problem> {
        let now = Instant::now();
        match purchase::earlier(self.app, self.once.as_ref(), now).await? {
            None => Ok(None),
            Some(Earlier::Shown(first)) => Ok(Some(self.marked(first))),
            Some(Earlier::Answered(id)) => match find(self.app, &self.agent, &id, self.kind, now).await {
                Ok(session) => self.answer(self.see(session, now).await?).await.map(Some),
                Err(problem) if problem.code() == Code::NotFound => self.nothing(&[self.unknown()]).await.map(Some),
                Err(problem) => Err(problem),
            },
            Some(Earlier::Placed(_)) => Err(Problem::internal("the idempotency record of a session has an order")),
        }
    }

    /// Says that a response is a repetition, in the words of the protocol.
    fn marked(&self, first: Response) -> Response {
        match self.protocol {
            Protocol::Ucp => first,
            Protocol::Acp => first.header("idempotent-replayed", "true"),
        }
    }

    /// Reads the Idempotency-Key, which may be missing.
    pub fn once(self) -> Result<Self, Problem> {
        let once = Once::of_agent(self.request, &self.agent.id)?;
        Ok(Self { once, ..self })
    }

    /// Returns the id of the session. No session has an id that is malformed.
    fn id(&self) -> Result<CheckoutId, Problem> {
        self.request.path("id").map_err(|_| Problem::not_found("session"))
    }

    async fn shown(&self, seen: &Seen) -> Result<Value, Problem> {
        match self.protocol {
            Protocol::Ucp => ucp::view::session(self.app, self.request, seen).await,
            Protocol::Acp => acp::view::session(self.app, self.request, &self.agent, seen).await,
        }
    }

    /// Returns the response for goods that the shop does not sell.
    async fn nothing(&self, messages: &[Message]) -> Result<Response, Problem> {
        match self.protocol {
            Protocol::Ucp => ucp::nothing_of(self.app, self.request, self.kind, messages).await,
            Protocol::Acp => Err(acp::nothing(messages)),
        }
    }

    /// Returns the response of a session that does not exist.
    async fn missing(&self) -> Result<Response, Problem> {
        self.keep(self.nothing(&[self.unknown()]).await?).await
    }

    fn unknown(&self) -> Message {
        let what = if self.kind == SessionKind::Cart { "cart" } else { "checkout" };
        Message::unrecoverable("not_found", format!("There is no such {what}, or it has expired."))
    }

    /// Stores the response to a request that has changed nothing with its key, as UCP wants it for every
    /// result. Returns the response of another attempt that was quicker.
    pub async fn keep(&self, response: Response) -> Result<Response, Problem> {
        self.keep_as(response.stored()?, response).await
    }

    async fn keep_as(&self, stored: StoredResponse, response: Response) -> Result<Response, Problem> {
        let Some(once) = &self.once else { return Ok(response) };
        let is_order = matches!(stored, StoredResponse::Checkout(_));
        if once.keep(&self.app.shop.services, stored, Instant::now()).await? {
            return Ok(response);
        }
        match purchase::earlier(self.app, Some(once), Instant::now()).await? {
            Some(Earlier::Shown(first)) => Ok(self.marked(first)),
            // Another attempt has just placed the order.
            Some(_) if !is_order => Err(Once::in_progress()),
            _ => Ok(response),
        }
    }

    /// Returns the state of a session, and stores the key. An order goes on, and its link is a secret, so a
    /// repeated request gets its present state.
    pub async fn kept(&self, seen: Result<Seen, Vec<Message>>) -> Result<Response, Problem> {
        let of_order = seen.as_ref().ok().filter(|seen| seen.order.is_some()).map(|seen| seen.session.id.clone());
        let response = self.answer(seen).await?;
        match of_order {
            Some(id) => self.keep_as(StoredResponse::Checkout(id), response).await,
            None => self.keep(response).await,
        }
    }

    async fn answer(&self, seen: Result<Seen, Vec<Message>>) -> Result<Response, Problem> {
        match seen {
            Ok(seen) => {
                if self.kind == SessionKind::Checkout {
                    purchase::note_price(self.app, &seen, Instant::now()).await?;
                }
                Ok(Response::ok(&self.shown(&seen).await?))
            }
            Err(messages) => self.nothing(&messages).await,
        }
    }

    async fn find(&self, now: Instant) -> Result<Option<Stored<CheckoutSession>>, Problem> {
        let found = match self.id() {
            Ok(id) => find(self.app, &self.agent, &id, self.kind, now).await,
            Err(problem) => Err(problem),
        };
        match found {
            // A cancelled cart is gone.
            Ok(session) => Ok(Some(session).filter(|session| self.kind == SessionKind::Checkout || !session.cancelled)),
            Err(problem) if problem.code() == Code::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Returns a session as it is, with messages why a request does not change it.
    async fn unchanged(&self, session: Stored<CheckoutSession>, messages: Vec<Message>) -> Result<Response, Problem> {
        let seen = self.see(session, Instant::now()).await?.map(|mut seen| {
            // The agent has nothing to do about a session that is over.
            if !matches!(seen.status, Status::Completed | Status::Canceled) {
                seen.evaluation.messages.extend(messages);
            }
            seen
        });
        self.kept(seen).await
    }

    async fn see(&self, session: Stored<CheckoutSession>, now: Instant) -> Result<Result<Seen, Vec<Message>>, Problem> {
        see(self.app, self.request, &self.agent, session, now).await
    }

    /// Begins a session.
    pub async fn begin(self, wanted: Wanted, cart: Option<&Stored<CheckoutSession>>) -> Result<Response, Problem> {
        let Self { app, request, agent, kind, once, .. } = &self;
        let (services, now) = (&app.shop.services, Instant::now());
        let Wanted { mut wish, messages, refused } = wanted;
        let mut evaluation = match session::evaluate(app, request, agent, *kind, &wish, true, now).await? {
            Ok(evaluation) => evaluation,
            Err(found) => {
                let messages: Vec<Message> = messages.into_iter().chain(refused).chain(found).collect();
                return self.keep(self.nothing(&messages).await?).await;
            }
        };
        keep(&mut wish, &evaluation);
        evaluation.messages.extend(messages);
        evaluation.messages.extend(refused.into_iter().map(|message| Message { kind: Kind::Warning, ..message }));
        let (id, born) = (CheckoutId::generate(now, services.random()?), services.born(now)?);
        let session = CheckoutSession {
            quote: quote_text(evaluation.quote.as_ref())?,
            ..CheckoutSession::new(id.clone(), agent.id.clone(), *kind, wish, &CartToken::new(services.random()?), now)
        };
        let status = Status::of(&evaluation.messages);
        let seen = Seen { session: Stored::new(session, born.clone(), now), evaluation, status, order: None };
        let response = Response::created(self.location(&id), &self.shown(&seen).await?);
        let claim = once.as_ref().map(|once| once.claim_with(&response, born, now)).transpose()?;
        let create = checkout_session::create(&seen.session, agent.checkouts_per_day, cart, claim)?;
        if let Err(refusals) = services.table.transact(&create).await? {
            if let Some(replayed) = self.replay().await? {
                return Ok(replayed);
            }
            if refusals.names(SessionAction::Quota) {
                return Err(Problem::daily_limit(agent.checkouts_per_day, "carts and checkouts of this agent", now));
            }
            return Err(table::TableError::Contended.into());
        }
        Ok(response)
    }

    fn location(&self, id: &CheckoutId) -> String {
        let path = match (self.protocol, self.kind) {
            (Protocol::Ucp, SessionKind::Cart) => "ucp/carts",
            (Protocol::Ucp, SessionKind::Checkout) => "ucp/checkout-sessions",
            (Protocol::Acp, _) => "acp/checkout_sessions",
        };
        format!("/{path}/{}", id.as_str())
    }

    pub async fn show(self) -> Result<Response, Problem> {
        let now = Instant::now();
        let Some(session) = self.find(now).await? else { return self.missing().await };
        self.answer(self.see(session, now).await?).await
    }

    /// Replaces what the agent wants. `want` gets what it wanted before.
    pub async fn replace(
        self,
        want: impl Fn(&Wish) -> Result<Wanted, Problem> + Send + Sync,
    ) -> Result<Response, Problem> {
        let Self { app, request, agent, kind, once, .. } = &self;
        if let Some(replayed) = self.replay().await? {
            return Ok(replayed);
        }
        let mut backoff = table::Backoff::new();
        loop {
            let Some(session) = self.find(Instant::now()).await? else { return self.missing().await };
            let refused = want(&session.wish)?.refused;
            if !refused.is_empty() {
                return self.unchanged(session, refused).await;
            }
            let session = match purchase::undo(app, agent, session).await? {
                Undone::Open(session) => session,
                Undone::InProgress(session) if self.protocol == Protocol::Ucp => {
                    let content = "The payment is being processed, so nothing was changed. Read the checkout again.";
                    return self
                        .unchanged(session, vec![Message::error("payment_in_progress", "$.status", content)])
                        .await;
                }
                Undone::InProgress(_) => return Err(purchase::in_progress()),
            };
            let Wanted { mut wish, messages, refused } = want(&session.wish)?;
            if !refused.is_empty() {
                return self.unchanged(session, refused).await;
            }
            let now = Instant::now();
            let mut evaluation = match session::evaluate(app, request, agent, *kind, &wish, true, now).await? {
                Ok(evaluation) => evaluation,
                Err(found) => {
                    let messages: Vec<Message> = messages.into_iter().chain(found).collect();
                    return self.keep(self.nothing(&messages).await?).await;
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
            let response = Response::ok(&self.shown(&seen).await?);
            let born = app.shop.services.born(now)?;
            let claim = once.as_ref().map(|once| once.claim_with(&response, born, now)).transpose()?;
            let change = checkout_session::replace(&session, &wish, &quote, claim, now)?;
            if app.shop.services.table.transact(&change).await?.is_ok() {
                return Ok(response);
            }
            if let Some(replayed) = self.replay().await? {
                return Ok(replayed);
            }
            // Another request changed the session. The last one counts.
            backoff.after_conflict().await?;
        }
    }

    /// Places the order of a checkout, and pays it with this token. A token that cannot be one is a message.
    pub async fn complete(self, token: Result<String, Message>, buyer: Option<Buyer>) -> Result<Response, Problem> {
        let now = Instant::now();
        let earlier = purchase::earlier(self.app, self.once.as_ref(), now).await?;
        if let Some(Earlier::Shown(first)) = earlier {
            return Ok(self.marked(first));
        }
        let Some(session) = self.find(now).await? else { return self.missing().await };
        let token = match token {
            Ok(token) => token,
            Err(_) if session.cancelled => return Err(purchase::ended("canceled")),
            Err(message) => return self.unchanged(session, vec![message]).await,
        };
        let completion = Completion { id: &session.id, token: &token, buyer, once: self.once.as_ref(), earlier };
        let Completed { seen, uses_key } = purchase::complete(self.app, self.request, &self.agent, completion).await?;
        if uses_key { self.answer(seen).await } else { self.kept(seen).await }
    }

    /// Cancels a session, and its order if that was not paid. Returns the session as it was.
    pub async fn end(self) -> Result<Response, Problem> {
        if let Some(replayed) = self.replay().await? {
            return Ok(replayed);
        }
        let mut backoff = table::Backoff::new();
        loop {
            let Some(session) = self.find(Instant::now()).await? else { return self.missing().await };
            let Undone::Open(session) = purchase::undo(self.app, &self.agent, session).await? else {
                return Err(purchase::in_progress());
            };
            let now = Instant::now();
            let response = match self.see(session.clone(), now).await? {
                Ok(seen) => Response::ok(&self.shown(&Seen { status: Status::Canceled, ..seen }).await?),
                Err(messages) => self.nothing(&messages).await?,
            };
            let born = self.app.shop.services.born(now)?;
            let claim = self.once.as_ref().map(|once| once.claim_with(&response, born, now)).transpose()?;
            let cancel = checkout_session::cancel(&session, claim, now)?;
            if self.app.shop.services.table.transact(&cancel).await?.is_ok() {
                return Ok(response);
            }
            if let Some(replayed) = self.replay().await? {
                return Ok(replayed);
            }
            backoff.after_conflict().await?;
        }
    }
}

/// Leaves out the lines that are not for sale, and codes that were not checked.
fn keep(wish: &mut Wish, evaluation: &session::Evaluation) {
    wish.lines.retain(|line| evaluation.lines.iter().any(|known| known.product_id == line.product_id));
    if !evaluation.are_codes_checked {
        wish.codes.clear();
    }
}
