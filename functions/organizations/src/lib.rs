//! Organizations: their teams, members and invitations, and the memberships of a customer.

mod access;
mod invitations;
mod members;
mod organizations;
mod teams;
mod view;

use http_api::{Error, Routes, Store};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .checking(Store::sign_ins)
        .on("POST /v1/organizations", |store, request| Box::pin(organizations::create(store, request)))
        .on("GET /v1/organizations/{id}", |store, request| Box::pin(organizations::read(store, request)))
        .on("PATCH /v1/organizations/{id}", |store, request| Box::pin(organizations::rename(store, request)))
        .on("PUT /v1/organizations/{id}/teams/{team}", |store, request| Box::pin(teams::put(store, request)))
        .on("DELETE /v1/organizations/{id}/teams/{team}", |store, request| Box::pin(teams::remove(store, request)))
        .on("GET /v1/organizations/{id}/members", |store, request| Box::pin(members::list(store, request)))
        .on("PUT /v1/organizations/{id}/members/{customer}", |store, request| Box::pin(members::put(store, request)))
        .on("DELETE /v1/organizations/{id}/members/{customer}", |store, request| {
            Box::pin(members::remove(store, request))
        })
        .on("GET /v1/organizations/{id}/invitations", |store, request| {
            Box::pin(invitations::of_organization(store, request))
        })
        .on("DELETE /v1/organizations/{id}/invitations/{customer}", |store, request| {
            Box::pin(invitations::remove(store, request))
        })
        .on("GET /v1/customers/{id}/invitations", |store, request| Box::pin(invitations::of_customer(store, request)))
        .on("GET /v1/customers/{id}/organizations", |store, request| Box::pin(members::of_customer(store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("organizations");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}
