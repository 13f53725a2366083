//! Addresses: entries of a map on the profile, set and removed individually.
//!
//! A change touches only its own entry, so it needs no If-Match. Two clients that set two addresses
//! at once both succeed. If a client sends an If-Match, it must be the customer's current ETag.

use http_api::contract::route;
use http_api::view::CustomerView;
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::address::PostalAddress;
use key_schema::customer::{self, Customer, MAX_ADDRESSES};
use key_schema::id::{AddressName, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use table::Refusal;

use crate::owner;
use crate::profile::{no_customer, respond};

/// Set one address
///
/// Adds or replaces the address with this name. It changes no other address, so If-Match is
/// optional. A customer can have at most 50 addresses.
#[route(PUT "/v1/customers/{id}/addresses/{name}", id = "putAddress", who = owner, task = "profile",
    path(id: CustomerId, name: AddressName), parameters(IfMatchOptional), body = PostalAddress,
    answers(200 = CustomerView<'_> "The customer" [ETag]),
    refuses(invalid_body = "also for more than 50 addresses"))]
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let name: AddressName = request.path("name")?;
    let version = request.if_match_optional()?;
    let address: PostalAddress = request.body()?;
    let put = customer::put_address(owner.customer(), &name, &address, version, Instant::now())?;
    match services.table.update(&put).await? {
        Ok(customer) => Ok(respond(&customer)),
        Err(refusal) => {
            refused(&refusal, version)?;
            Err(Problem::new(Code::InvalidBody, format!("A customer can have at most {MAX_ADDRESSES} addresses.")))
        }
    }
}

/// Remove one address
///
/// Removes the address with this name. A repeated request also succeeds. If-Match is optional.
#[route(DELETE "/v1/customers/{id}/addresses/{name}", id = "deleteAddress", who = owner, task = "profile",
    path(id: CustomerId, name: AddressName), parameters(IfMatchOptional), answers(204 = () "Done"))]
pub async fn remove(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let name: AddressName = request.path("name")?;
    let version = request.if_match_optional()?;
    let remove = customer::remove_address(owner.customer(), &name, version, Instant::now())?;
    if let Err(refusal) = services.table.update(&remove).await? {
        refused(&refusal, version)?;
        // Any other refusal means that the address does not exist. So a repeated request succeeds.
    }
    Ok(Response::no_content())
}

/// Explains a refused write. Fails with 404 if the customer is missing or is being erased, and with
/// 412 if the stored version is not the client's.
fn refused(refusal: &Refusal, version: Option<u64>) -> Result<(), Problem> {
    let customer = refusal.stored::<Stored<Customer>>()?.filter(|customer| customer.erasing_since.is_none());
    let customer = customer.ok_or_else(no_customer)?;
    if version.is_some_and(|version| customer.meta.version != version) {
        return Err(Problem::version_mismatch());
    }
    Ok(())
}
