//! The function `search`: full text search of products, for anybody, and of orders, for staff.
//!
//! It reads only the index, which trails the table by the stream's delay. A client that needs the
//! current state of an item reads it by its id from the function that owns it.

mod disabled;
mod list;
mod orders;
mod parameters;
mod products;

pub use disabled::Disabled;
use http_api::{Measured, Routes};
use key_schema::cursor::{CursorKeyError, Cursors};
use search_index::{ConfigError, SearchClient};

/// The function's state, built once at start-up.
#[derive(Debug)]
pub struct App {
    /// The client of the index.
    pub client: SearchClient,
    /// The keys that seal and open the cursors of lists.
    pub cursors: Cursors,
}

/// The reason why the function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The search engine's client cannot be set up.
    #[error(transparent)]
    Search(#[from] ConfigError),
    /// `CURSOR_KEYS` is missing or unusable.
    #[error("CURSOR_KEYS: {0}")]
    Cursors(#[from] CursorKeyError),
}

impl App {
    /// Creates the app from the environment: `SEARCH_ENDPOINT`, `SEARCH_INDEX_PREFIX`,
    /// `CURSOR_KEYS`, and the SDK's variables.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn from_env() -> Result<Self, StartError> {
        let cursors = Cursors::new(&std::env::var("CURSOR_KEYS").unwrap_or_default())?;
        Ok(Self { client: SearchClient::from_env()?, cursors })
    }
}

impl Measured for App {}

/// Returns the routes, under the keys in template.yaml.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::new()
        .on("GET /v1/search/products", |app, request| Box::pin(products::search(app, request)))
        .on("GET /v1/search/orders", |app, request| Box::pin(orders::search(app, request)))
}

/// Runs the function. With `SEARCH_SERVICE=none` it answers every route with 503 `search_disabled`.
///
/// # Errors
/// [`StartError`], or an error of the Lambda Runtime API.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("search");
    if std::env::var("SEARCH_SERVICE").is_ok_and(|service| service == "none") {
        return http_api::run(disabled::routes(), Disabled).await;
    }
    http_api::run(routes(), App::from_env()?).await
}
