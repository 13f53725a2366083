//! The function `search`: full text search of products, for every caller, and of orders, for staff.
//!
//! It searches only the index, which is behind the table by the stream's delay. It reads the table
//! only to learn whether a caller's session has ended. A client that needs the current state of an
//! item reads the item by id from the function that owns it.

mod list;
mod orders;
mod parameters;
mod products;
mod suggestions;

use http_api::{Code, Has, Keys, Measured, PatternCost, Problem, Request, Response, Routes, Services};
use search_index::{ConfigError, SearchClient};
use table::{SetupError, Table};

#[derive(Debug)]
pub struct App {
    pub client: SearchClient,
    /// The function reads only the revocations of sign-ins from the table. The common checks of
    /// requests read the settings only for writes.
    pub services: Services,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Search(#[from] ConfigError),
    #[error(transparent)]
    Table(#[from] SetupError),
}

impl App {
    /// Creates the state from the environment: `SEARCH_ENDPOINT`, `SEARCH_INDEX_PREFIX`,
    /// `CURSOR_KEYS_SECRET`, `TABLE_NAME`, the SDK's variables, and optionally `SEARCH_SERVICE`.
    pub async fn from_env() -> Result<Self, StartError> {
        let client = SearchClient::from_env()?;
        Ok(Self { client, services: Services::new(Table::from_env().await?, Keys::of_cursors()?) })
    }
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

impl Has<Services> for App {
    fn part(&self) -> &Services {
        &self.services
    }
}

http_api::routes! { App; products::search, suggestions::suggest, orders::search }

/// Runs the function. With `SEARCH_SERVICE=none` every route responds 503 `search_disabled`.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("search");
    if std::env::var("SEARCH_SERVICE").is_ok_and(|service| service == "none") {
        return http_api::run(disabled_routes(), Disabled).await;
    }
    http_api::run(routes(), App::from_env().await?).await
}

/// The state of a deployment without a search engine (`SearchService=none`).
#[derive(Debug)]
pub struct Disabled;

impl Measured for Disabled {}

/// Returns the routes, each of which answers 503 `search_disabled`.
fn disabled_routes() -> Routes<Disabled> {
    Routes::new()
        .on("GET /v1/search/products", |_, _| Box::pin(async { Err(search_disabled()) }))
        .on("GET /v1/search/suggestions", |_, _| Box::pin(async { Err(search_disabled()) }))
        .on("GET /v1/search/orders", |_, request| Box::pin(async move { disabled_orders(request) }))
}

/// Callers who are not staff get the same response as with an engine.
fn disabled_orders(request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    Err(search_disabled())
}

fn search_disabled() -> Problem {
    Problem::new(Code::SearchDisabled, "This deployment has no search. Read products by category instead.")
}
