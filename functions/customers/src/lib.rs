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

use http_api::{Keys, Owner, Problem, Request, Services};

http_api::routes! {
    Services;
    profile::create,
    list::list,
    profile::read,
    change::change,
    erase::erase,
    verification::request,
    verification::verify,
    profile::overview,
    data::copy,
    addresses::put,
    addresses::remove,
    sessions::create,
    sessions::list,
    sessions::prolong,
    sessions::end,
    cart::read,
    cart::empty,
    cart::read_line,
    cart::put_line,
    cart::remove_line,
    guest_cart::create,
    guest_cart::read,
    guest_cart::remove,
    guest_cart::put_line,
    guest_cart::remove_line,
    guest_cart::claim,
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
