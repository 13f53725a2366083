//! The shop's settings: values that clients share, such as a banner or feature switches.
//!
//! Anybody may read the public values, which usually come from memory
//! ([`http_api::SettingsCache`]). Staff set them, and read and set the private values.

mod body;
mod current;

use http_api::{Error, Measured, PatternCost, Routes, SettingsCache, Store};

/// The parts that the function builds once.
#[derive(Debug)]
pub struct App {
    /// The table.
    pub store: Store,
    /// The settings that this execution environment has cached.
    pub settings: SettingsCache,
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.store.take()
    }
}

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::new()
        .on("GET /v1/settings", |app, _| Box::pin(current::public(app)))
        .on("GET /v1/settings/private", |app, request| Box::pin(current::whole(app, request)))
        .on("PUT /v1/settings", |app, request| Box::pin(current::put(app, request)))
}

/// Answers requests until the environment is shut down.
///
/// # Errors
/// An incomplete environment, or an error of the Runtime API.
pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    let app = App { store: Store::from_env().await?, settings: SettingsCache::default() };
    http_api::run(routes(), app).await
}
