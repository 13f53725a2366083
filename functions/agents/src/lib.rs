//! Agents: programs of other companies that buy for people.
//!
//! Staff register agents ([`registry`]). Each agent sends its API key or signs its requests ([`access`]),
//! and speaks the Universal Commerce Protocol ([`ucp`]) or the Agentic Commerce Protocol ([`acp`]). What it
//! wants is a [`session`], with which both do the same ([`flow`]). [`purchase`] turns it into an order.
//! Agents hear what becomes of their orders ([`notices`]).

mod access;
mod acp;
mod flow;
pub mod notices;
mod orders;
mod pages;
pub mod profiles;
mod purchase;
mod registry;
mod session;
mod ucp;
mod wire;

use aws::Reach;
use http_api::{Has, Keys, Measured, PatternCost, Problem, Request, Response, Services};
use key_schema::instant::Instant;
use key_schema::pattern::Pattern;
use key_schema::webhook_secret::WebhookKeys;
use key_schema::{agent, checkout_session, order, webhook_delivery, webhook_endpoint};
use ordering::Shop;
use profiles::Profiles;
use search_index::SearchClient;
use signatures::{Signed, SigningKeys, content_digest};

#[derive(Debug)]
pub struct App {
    pub shop: Shop,
    /// The search engine, if the deployment has one.
    pub search: Option<SearchClient>,
    /// The keys that sign responses and webhooks, if the deployment has them.
    pub signing: Option<Keys<SigningKeys>>,
    pub profiles: Profiles,
}

/// The access patterns of an event. Those of requests follow from the routes.
pub const PATTERNS: &[&Pattern] = &[
    &order::EDIT,
    &agent::GET,
    &checkout_session::GET,
    &webhook_endpoint::LIST,
    &webhook_endpoint::GET,
    &webhook_endpoint::ADOPT,
    &webhook_endpoint::CHANGE,
    &webhook_delivery::ADD,
];

impl App {
    /// Creates the state from the environment: the variables of [`Shop::from_env`], those of the search
    /// engine, `WEBHOOK_KEYS_SECRET` and `WEBHOOK_TARGETS`.
    pub async fn from_env() -> Result<Self, http_api::Error> {
        let shop = Shop::from_env().await?;
        let is_off = std::env::var("SEARCH_SERVICE").is_ok_and(|service| service == "none");
        let search = if is_off { None } else { Some(SearchClient::from_env()?) };
        let signing = Keys::from_env("WEBHOOK_KEYS_SECRET", |keys| Ok(SigningKeys::of(&WebhookKeys::new(keys)?))).ok();
        Ok(Self { shop, search, signing, profiles: Profiles::new(Reach::of_webhooks()) })
    }
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.shop.take()
    }
}

impl Has<Services> for App {
    fn part(&self) -> &Services {
        &self.shop.services
    }
}

/// Signs a response as UCP wants it (RFC 9421), if the deployment has keys.
async fn seal(app: &App, request: &Request<'_>, response: Response) -> Result<Response, Problem> {
    let keys = app.signing.as_ref().filter(|_| request.route().contains(" /ucp/"));
    let (Some(keys), Some(body)) = (keys, response.body()) else { return Ok(response) };
    let (status, digest) = (response.status().as_str().to_owned(), content_digest(body.as_bytes()));
    let components = [("@status", status.as_str()), ("content-digest", &digest), ("content-type", "application/json")];
    let signed = match keys.get().await {
        Ok(keys) => keys.sign(&components, Instant::now().as_seconds()),
        Err(error) => {
            tracing::warn!(%error, "a response is not signed");
            None
        }
    };
    // The request has had its effect, so its response matters more than the signature.
    let Some(Signed { input, signature }) = signed else { return Ok(response) };
    Ok(response.header("content-digest", digest).header("signature-input", input).header("signature", signature))
}

http_api::routes! {
    App, seal = seal;
    registry::list, registry::read, registry::put, registry::renew_key, registry::remove, ucp::profile::describe,
    ucp::profile::describe_of_april, ucp::checkout::create, ucp::checkout::read, ucp::checkout::update,
    ucp::checkout::complete, ucp::checkout::cancel, ucp::cart::create, ucp::cart::read, ucp::cart::update,
    ucp::cart::cancel, ucp::catalog::search, ucp::catalog::lookup, ucp::catalog::detail, ucp::order::read,
    acp::describe, acp::create, acp::read, acp::update, acp::complete, acp::cancel
}

pub async fn run() -> Result<(), http_api::Error> {
    telemetry::init("agents");
    let hear: http_api::Hear<App> = |app, text, context| Box::pin(notices::hear(app, text, context));
    http_api::run_and_hear(routes(), App::from_env().await?, hear).await
}
