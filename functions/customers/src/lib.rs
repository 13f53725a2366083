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
use key_schema::pattern::Pattern;
use key_schema::{customer, question, recipient, session};
use workflows::erasure::{PATTERNS, with_patterns};
use workflows::personal;

const ERASE_CUSTOMER: &[&Pattern] = &with_patterns::<{ 1 + PATTERNS.len() }>(&[&customer::BEGIN_ERASURE]);

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("POST /v1/customers", &[&customer::CREATE], |services, request| {
            Box::pin(profile::create(services, request))
        })
        .on(
            "GET /v1/customers",
            &[&customer::GET, &customer::BY_EMAIL, &customer::BY_TIER, &customer::ALL, &customer::HYDRATE],
            |services, request| Box::pin(list::list(services, request)),
        )
        .on("GET /v1/customers/{id}", &[&customer::GET], |services, request| Box::pin(profile::read(services, request)))
        .on(
            "PATCH /v1/customers/{id}",
            &[&customer::EDIT, &customer::UPDATE, &customer::RENAME, &recipient::LIFT],
            |services, request| Box::pin(change::change(services, request)),
        )
        .on("DELETE /v1/customers/{id}", ERASE_CUSTOMER, |services, request| Box::pin(erase::erase(services, request)))
        .on(
            "POST /v1/customers/{id}/email/verification",
            &[&key_schema::verification::READ, &key_schema::verification::REQUEST, &key_schema::verification::VERIFY],
            |services, request| Box::pin(verification::request(services, request)),
        )
        .on(
            "PUT /v1/customers/{id}/email/verification",
            &[
                &customer::EDIT,
                &key_schema::verification::READ,
                &key_schema::verification::TRY,
                &key_schema::verification::VERIFY,
            ],
            |services, request| Box::pin(verification::verify(services, request)),
        )
        .on("GET /v1/customers/{id}/overview", &[&customer::OVERVIEW, &question::OF_CUSTOMER], |services, request| {
            Box::pin(profile::overview(services, request))
        })
        .on("GET /v1/customers/{id}/data", personal::PATTERNS, |services, request| {
            Box::pin(data::copy(services, request))
        })
        .on("PUT /v1/customers/{id}/addresses/{name}", &[&customer::PUT_ADDRESS], |services, request| {
            Box::pin(addresses::put(services, request))
        })
        .on("DELETE /v1/customers/{id}/addresses/{name}", &[&customer::REMOVE_ADDRESS], |services, request| {
            Box::pin(addresses::remove(services, request))
        })
        .on("POST /v1/customers/{id}/sessions", &[&session::CREATE], |services, request| {
            Box::pin(sessions::create(services, request))
        })
        .on("GET /v1/customers/{id}/sessions", &[&session::ACTIVE], |services, request| {
            Box::pin(sessions::list(services, request))
        })
        .on("PUT /v1/sessions/{id}", &[&session::GET, &session::EXTEND], |services, request| {
            Box::pin(sessions::prolong(services, request))
        })
        .on("DELETE /v1/sessions/{id}", &[&session::GET, &session::END], |services, request| {
            Box::pin(sessions::end(services, request))
        })
        .on(
            "GET /v1/customers/{id}/cart",
            &[&key_schema::cart::GET, &key_schema::cart::PRODUCTS],
            |services, request| Box::pin(cart::read(services, request)),
        )
        .on("DELETE /v1/customers/{id}/cart", &[&key_schema::cart::DISCARD], |services, request| {
            Box::pin(cart::empty(services, request))
        })
        .on(
            "POST /v1/customers/{id}/cart/claim",
            &[
                &key_schema::guest_cart::GET,
                &key_schema::cart::GET,
                &key_schema::guest_cart::CLAIM,
                &key_schema::cart::PRODUCTS,
            ],
            |services, request| Box::pin(guest_cart::claim(services, request)),
        )
        .on("POST /v1/carts", &[&key_schema::guest_cart::CREATE], |services, request| {
            Box::pin(guest_cart::create(services, request))
        })
        .on("GET /v1/carts/{id}", &[&key_schema::guest_cart::GET, &key_schema::cart::PRODUCTS], |services, request| {
            Box::pin(guest_cart::read(services, request))
        })
        .on("DELETE /v1/carts/{id}", &[&key_schema::guest_cart::DISCARD], |services, request| {
            Box::pin(guest_cart::remove(services, request))
        })
        .on(
            "PUT /v1/carts/{id}/items/{product}",
            &[&key_schema::cart::PRODUCTS, &key_schema::guest_cart::GET, &key_schema::guest_cart::PUT_LINE],
            |services, request| Box::pin(guest_cart::put_line(services, request)),
        )
        .on("DELETE /v1/carts/{id}/items/{product}", &[&key_schema::guest_cart::REMOVE_LINE], |services, request| {
            Box::pin(guest_cart::remove_line(services, request))
        })
        .on(
            "GET /v1/customers/{id}/cart/items/{product}",
            &[&key_schema::cart::GET, &key_schema::cart::PRODUCTS],
            |services, request| Box::pin(cart::read_line(services, request)),
        )
        .on(
            "PUT /v1/customers/{id}/cart/items/{product}",
            &[&key_schema::cart::PREPARE, &key_schema::cart::CREATE, &key_schema::cart::PUT_LINE],
            |services, request| Box::pin(cart::put_line(services, request)),
        )
        .on("DELETE /v1/customers/{id}/cart/items/{product}", &[&key_schema::cart::REMOVE_LINE], |services, request| {
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
