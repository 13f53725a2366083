//! The shop's settings: values that clients share, such as a banner or feature switches.
//!
//! Every caller may read the public values, which usually come from memory
//! ([`http_api::SettingsCache`]). Only staff may read the private values. Only staff may change any
//! value.

mod body;
mod current;

use http_api::{Error, Routes, Services};
use key_schema::settings;

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("GET /v1/settings", &[&settings::READ], |services, _| Box::pin(current::public(services)))
        .on("GET /v1/settings/private", &[&settings::READ], |services, request| {
            Box::pin(current::whole(services, request))
        })
        // Staff end the maintenance with this route, so it works during maintenance, too.
        .on_always("PUT /v1/settings", &[&settings::CREATE, &settings::CHANGE, &settings::READ], |services, request| {
            Box::pin(current::put(services, request))
        })
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    http_api::run(routes(), Services::from_env().await?).await
}
