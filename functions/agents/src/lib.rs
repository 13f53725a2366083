//! Agents: programs of other companies that buy for people.
//!
//! Staff register agents ([`registry`]). Each agent sends its API key, and speaks the Universal Commerce
//! Protocol ([`ucp`]). What an agent wants is a [`session`], and [`purchase`] turns it into an order.

mod access;
mod purchase;
mod registry;
mod session;
mod ucp;

use http_api::{Has, Measured, PatternCost, Services};
use ordering::Shop;
use search_index::SearchClient;

#[derive(Debug)]
pub struct App {
    pub shop: Shop,
    /// The search engine, if the deployment has one.
    pub search: Option<SearchClient>,
}

impl App {
    /// Creates the state from the environment: the variables of [`Shop::from_env`], and those of the search
    /// engine.
    pub async fn from_env() -> Result<Self, http_api::Error> {
        let shop = Shop::from_env().await?;
        let is_off = std::env::var("SEARCH_SERVICE").is_ok_and(|service| service == "none");
        let search = if is_off { None } else { Some(SearchClient::from_env()?) };
        Ok(Self { shop, search })
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

http_api::routes! {
    App;
    registry::list, registry::read, registry::put, registry::renew_key, registry::remove, ucp::profile::describe,
    ucp::checkout::create, ucp::checkout::read, ucp::checkout::update, ucp::checkout::complete,
    ucp::checkout::cancel, ucp::cart::create, ucp::cart::read, ucp::cart::update, ucp::cart::cancel,
    ucp::catalog::search, ucp::catalog::lookup, ucp::catalog::detail, ucp::order::read
}

pub async fn run() -> Result<(), http_api::Error> {
    telemetry::init("agents");
    http_api::run(routes(), App::from_env().await?).await
}
