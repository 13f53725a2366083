//! The shop's settings: values that clients share, such as a banner or feature switches.
//!
//! Every caller may read the public values, which usually come from memory
//! ([`http_api::SettingsCache`]). Only staff may read the private values, and set both kinds.

mod body;
mod current;

use http_api::{Error, Measured, PatternCost, Routes, Services, SettingsCache};
use key_schema::settings;

/// The function's state, built once at start-up.
#[derive(Debug)]
pub struct App {
    /// The table.
    pub services: Services,
    /// The cache of the settings in this execution environment.
    pub settings: SettingsCache,
}

impl Measured for App {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<App> {
    Routes::<App>::new()
        .checking(|app| app.services.sign_ins())
        .on("GET /v1/settings", &[&settings::READ], |app, _| Box::pin(current::public(app)))
        .on("GET /v1/settings/private", &[&settings::READ], |app, request| Box::pin(current::whole(app, request)))
        .on("PUT /v1/settings", &[&settings::CREATE, &settings::CHANGE], |app, request| {
            Box::pin(current::put(app, request))
        })
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    let app = App { services: Services::from_env().await?, settings: SettingsCache::default() };
    http_api::run(routes(), app).await
}
