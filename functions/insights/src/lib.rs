//! Insights: data for staff about the whole shop.

mod audit;
mod counters;
mod metrics;
mod sales;
mod stores;

use http_api::{Error, Routes, Store};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .checking(Store::sign_ins)
        .on("GET /v1/audit/expirations", |store, request| Box::pin(audit::expirations(store, request)))
        .on("GET /v1/counters/{name}", |store, request| Box::pin(counters::read(store, request)))
        .on("POST /v1/counters/{name}", |store, request| Box::pin(counters::add(store, request)))
        .on("POST /v1/counters/{name}/split", |store, request| Box::pin(counters::split(store, request)))
        .on("POST /v1/metrics", |store, request| Box::pin(metrics::store(store, request)))
        .on("GET /v1/metrics/{name}", |store, request| Box::pin(metrics::list(store, request)))
        .on("GET /v1/sales/{country}", |store, request| Box::pin(sales::of_place(store, request)))
        .on("GET /v1/stores/{id}", |store, request| Box::pin(stores::read(store, request)))
        .on("PUT /v1/stores/{id}", |store, request| Box::pin(stores::put(store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("insights");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}
