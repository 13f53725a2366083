//! The function `search`: full text search of products, for every caller, and of orders, for staff.
//!
//! It searches only the index, which is behind the table by the stream's delay. It reads the table
//! only to learn whether a caller's session has ended. A client that needs the current state of an
//! item reads the item by id from the function that owns it.

mod disabled;
mod list;
mod orders;
mod parameters;
mod products;

pub use disabled::Disabled;
use http_api::{Checks, Measured, PatternCost, Routes, SettingsCache, SignIns};
use key_schema::cursor::{CursorKeyError, Cursors};
use search_index::{ConfigError, SearchClient};
use table::{SetupError, Table};

/// The function's state, built once at start-up.
#[derive(Debug)]
pub struct App {
    /// The client of the index.
    pub client: SearchClient,
    /// The keys that seal and open the cursors of lists.
    pub cursors: Cursors,
    /// The table with the revocations of sign-ins. The function reads nothing else from it.
    pub table: Table,
    /// The cache of callers' sign-ins in this execution environment.
    pub sign_ins: SignIns,
    /// The cache of the settings. The common checks of requests use it only for writes.
    pub settings: SettingsCache,
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
    /// The table's client cannot be set up.
    #[error(transparent)]
    Table(#[from] SetupError),
}

impl App {
    /// Creates the state from the environment: `SEARCH_ENDPOINT`, `SEARCH_INDEX_PREFIX`,
    /// `CURSOR_KEYS`, `TABLE_NAME`, the SDK's variables, and optionally `SEARCH_SERVICE`.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn from_env() -> Result<Self, StartError> {
        let cursors = Cursors::new(&std::env::var("CURSOR_KEYS").unwrap_or_default())?;
        let (client, table) = (SearchClient::from_env()?, Table::from_env().await?);
        Ok(Self { client, cursors, table, sign_ins: SignIns::default(), settings: SettingsCache::default() })
    }
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.table.take()
    }
}

/// Returns the routes. Their keys equal the keys of the routes in template.yaml.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::<App>::new()
        .checking(|app| Checks { table: &app.table, sign_ins: &app.sign_ins, settings: &app.settings })
        .on("GET /v1/search/products", &[], |app, request| Box::pin(products::search(app, request)))
        .on("GET /v1/search/orders", &[], |app, request| Box::pin(orders::search(app, request)))
}

/// Runs the function. With `SEARCH_SERVICE=none` every route responds 503 `search_disabled`.
///
/// # Errors
/// [`StartError`], or an error of the Lambda Runtime API.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("search");
    if std::env::var("SEARCH_SERVICE").is_ok_and(|service| service == "none") {
        return http_api::run(disabled::routes(), Disabled).await;
    }
    http_api::run(routes(), App::from_env().await?).await
}
