//! The function `customers`: profiles with their unique names, addresses, sessions and carts.
//!
//! Only the customer and staff may access a customer's data. Any other caller gets 404, as if the
//! data did not exist. Only staff may list all customers.

mod addresses;
mod cart;
mod change;
mod documents;
mod edges;
mod erase;
mod list;
mod memberships;
mod profile;
mod sessions;
mod verification;
mod view;

use http_api::{Owner, Problem, Request, Routes, Store};

/// Returns the routes, by the keys in template.yaml.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .checking(Store::sign_ins)
        .on("POST /v1/customers", |store, request| Box::pin(profile::create(store, request)))
        .on("GET /v1/customers", |store, request| Box::pin(list::list(store, request)))
        .on("GET /v1/customers/{id}", |store, request| Box::pin(profile::read(store, request)))
        .on("PATCH /v1/customers/{id}", |store, request| Box::pin(change::change(store, request)))
        .on("DELETE /v1/customers/{id}", |store, request| Box::pin(erase::erase(store, request)))
        .on("POST /v1/customers/{id}/email/verification", |store, request| {
            Box::pin(verification::request(store, request))
        })
        .on("PUT /v1/customers/{id}/email/verification", |store, request| {
            Box::pin(verification::verify(store, request))
        })
        .on("GET /v1/customers/{id}/overview", |store, request| Box::pin(profile::overview(store, request)))
        .on("PUT /v1/customers/{id}/addresses/{name}", |store, request| Box::pin(addresses::put(store, request)))
        .on("DELETE /v1/customers/{id}/addresses/{name}", |store, request| Box::pin(addresses::remove(store, request)))
        .on("POST /v1/customers/{id}/sessions", |store, request| Box::pin(sessions::create(store, request)))
        .on("GET /v1/customers/{id}/sessions", |store, request| Box::pin(sessions::list(store, request)))
        .on("PUT /v1/sessions/{id}", |store, request| Box::pin(sessions::prolong(store, request)))
        .on("DELETE /v1/sessions/{id}", |store, request| Box::pin(sessions::end(store, request)))
        .on("GET /v1/customers/{id}/cart", |store, request| Box::pin(cart::read(store, request)))
        .on("GET /v1/customers/{id}/cart/items/{product}", |store, request| Box::pin(cart::read_line(store, request)))
        .on("PUT /v1/customers/{id}/cart/items/{product}", |store, request| Box::pin(cart::put_line(store, request)))
        .on("DELETE /v1/customers/{id}/cart/items/{product}", |store, request| {
            Box::pin(cart::remove_line(store, request))
        })
}

/// Runs the function.
///
/// # Errors
/// Fails when the environment lacks a setting ([`http_api::StoreError`]), or when the Lambda
/// Runtime API fails.
pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("customers");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}

/// Returns the customer of a path `/v1/customers/{id}…`, for whom the caller may act.
///
/// # Errors
/// 401 without a token, 422 for a malformed id, 404 for another customer's.
fn owner(request: &Request<'_>) -> Result<Owner, Problem> {
    let caller = request.caller();
    caller.signed_in()?;
    caller.owner(&request.path("id")?)
}
