//! The function `search`: full text over products, for anybody, and over orders, for staff.
//!
//! It reads the index alone. What the index shows trails the table by the stream's delay; whoever needs the present state of a thing reads it by its
//! id from the function that owns it.

mod disabled;
mod list;
mod orders;
mod parameters;
mod products;

pub use disabled::Disabled;
use http_api::{Measured, Routes};
use key_schema::cursor::{CursorKeyError, Cursors};
use search_index::{ConfigError, SearchClient};

/// What the function builds once.
#[derive(Debug)]
pub struct App {
    /// The index.
    pub client: SearchClient,
    /// Seals and opens the cursors of lists.
    pub cursors: Cursors,
}

/// Why the function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no way to the search engine.
    #[error(transparent)]
    Search(#[from] ConfigError),
    /// `CURSOR_KEYS` is missing or unusable.
    #[error("CURSOR_KEYS: {0}")]
    Cursors(#[from] CursorKeyError),
}

impl App {
    /// From the environment: `SEARCH_ENDPOINT`, `SEARCH_INDEX_PREFIX`, `CURSOR_KEYS`, and the SDK's own variables.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn from_env() -> Result<Self, StartError> {
        let cursors = Cursors::new(&std::env::var("CURSOR_KEYS").unwrap_or_default())?;
        Ok(Self { client: SearchClient::from_env()?, cursors })
    }
}

impl Measured for App {}

/// The routes, by the keys that template.yaml gives them.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::new()
        .on("GET /v1/search/products", |app, request| Box::pin(products::search(app, request)))
        .on("GET /v1/search/orders", |app, request| Box::pin(orders::search(app, request)))
}

/// Runs the function. With `SEARCH_SERVICE=none` it answers every route with 503 `search_disabled`.
///
/// # Errors
/// [`StartError`], or when the Lambda Runtime API fails.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("search");
    if std::env::var("SEARCH_SERVICE").is_ok_and(|service| service == "none") {
        return http_api::run(disabled::routes(), Disabled).await;
    }
    http_api::run(routes(), App::from_env()?).await
}
