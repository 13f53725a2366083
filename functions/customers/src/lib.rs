//! The function `customers`: profiles with their unique names, addresses, sessions and carts.
//!
//! Only the customer and staff may access a customer's data. Any other caller gets 404, as if the
//! data did not exist. Only staff may list all customers.

mod addresses;
mod cart;
mod change;
mod data;
mod erase;
mod guest_cart;
mod list;
mod profile;
mod sessions;
mod verification;
mod view;

use http_api::{Keys, Owner, Problem, Request, Routes, Services};

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("POST /v1/customers", |services, request| Box::pin(profile::create(services, request)))
        .on("GET /v1/customers", |services, request| Box::pin(list::list(services, request)))
        .on("GET /v1/customers/{id}", |services, request| Box::pin(profile::read(services, request)))
        .on("PATCH /v1/customers/{id}", |services, request| Box::pin(change::change(services, request)))
        .on("DELETE /v1/customers/{id}", |services, request| Box::pin(erase::erase(services, request)))
        .on("POST /v1/customers/{id}/email/verification", |services, request| {
            Box::pin(verification::request(services, request))
        })
        .on("PUT /v1/customers/{id}/email/verification", |services, request| {
            Box::pin(verification::verify(services, request))
        })
        .on("GET /v1/customers/{id}/overview", |services, request| Box::pin(profile::overview(services, request)))
        .on("GET /v1/customers/{id}/data", |services, request| Box::pin(data::copy(services, request)))
        .on("PUT /v1/customers/{id}/addresses/{name}", |services, request| Box::pin(addresses::put(services, request)))
        .on("DELETE /v1/customers/{id}/addresses/{name}", |services, request| {
            Box::pin(addresses::remove(services, request))
        })
        .on("POST /v1/customers/{id}/sessions", |services, request| Box::pin(sessions::create(services, request)))
        .on("GET /v1/customers/{id}/sessions", |services, request| Box::pin(sessions::list(services, request)))
        .on("PUT /v1/sessions/{id}", |services, request| Box::pin(sessions::prolong(services, request)))
        .on("DELETE /v1/sessions/{id}", |services, request| Box::pin(sessions::end(services, request)))
        .on("GET /v1/customers/{id}/cart", |services, request| Box::pin(cart::read(services, request)))
        .on("DELETE /v1/customers/{id}/cart", |services, request| Box::pin(cart::empty(services, request)))
        .on("POST /v1/customers/{id}/cart/claim", |services, request| Box::pin(guest_cart::claim(services, request)))
        .on("POST /v1/carts", |services, request| Box::pin(guest_cart::create(services, request)))
        .on("GET /v1/carts/{id}", |services, request| Box::pin(guest_cart::read(services, request)))
        .on("DELETE /v1/carts/{id}", |services, request| Box::pin(guest_cart::remove(services, request)))
        .on("PUT /v1/carts/{id}/items/{product}", |services, request| Box::pin(guest_cart::put_line(services, request)))
        .on("DELETE /v1/carts/{id}/items/{product}", |services, request| {
            Box::pin(guest_cart::remove_line(services, request))
        })
        .on("GET /v1/customers/{id}/cart/items/{product}", |services, request| {
            Box::pin(cart::read_line(services, request))
        })
        .on("PUT /v1/customers/{id}/cart/items/{product}", |services, request| {
            Box::pin(cart::put_line(services, request))
        })
        .on("DELETE /v1/customers/{id}/cart/items/{product}", |services, request| {
            Box::pin(cart::remove_line(services, request))
        })
}

pub async fn run() -> Result<(), lambda_runtime::Error> {
    telemetry::init("customers");
    let services = Services { codes: Some(Keys::of_codes()?), ..Services::from_env().await? };
    http_api::run(routes(), services).await
}

/// Returns the customer of a path `/v1/customers/{id}…`, for whom the caller may act.
///
/// # Errors
/// 401 without a token, 422 for a malformed id, 404 for the id of another customer.
fn owner(request: &Request<'_>) -> Result<Owner, Problem> {
    let caller = request.caller();
    caller.signed_in()?;
    caller.owner(&request.path("id")?)
}
