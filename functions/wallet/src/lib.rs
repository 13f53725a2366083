//! Wallets: balances, their entries, deposits and transfers.

mod balance;
mod convert;
mod deposits;
mod transfers;
mod view;

use http_api::{Error, Routes, Store};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .checking(Store::sign_ins)
        .on("GET /v1/customers/{id}/wallet", |store, request| Box::pin(balance::read(store, request)))
        .on("GET /v1/customers/{id}/wallet/entries", |store, request| Box::pin(balance::entries(store, request)))
        .on("POST /v1/customers/{id}/wallet/deposits", |store, request| Box::pin(deposits::create(store, request)))
        .on("POST /v1/transfers", |store, request| Box::pin(transfers::create(store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("wallet");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}
