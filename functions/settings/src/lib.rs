//! The shop's settings: values that clients agree on, such as a banner or what is switched on.
//!
//! Anybody may read the public ones, which come out of memory most of the time ([`http_api::SettingsCache`]). Staff set them, and the private ones.

mod body;
mod current;

use http_api::{Error, Measured, PatternCost, Routes, SettingsCache, Store};

/// What the function builds once.
#[derive(Debug)]
pub struct App {
    /// The table.
    pub store: Store,
    /// The settings as this environment knows them.
    pub settings: SettingsCache,
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.store.take()
    }
}

/// The routes of this function.
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
/// When the environment lacks what the function needs, or the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    let app = App { store: Store::from_env().await?, settings: SettingsCache::default() };
    http_api::run(routes(), app).await
}
