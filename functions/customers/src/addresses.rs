//! Addresses: entries of a map on the profile, set and removed individually.
//!
//! A change touches only its own entry, so it needs no If-Match. Two clients that set two addresses
//! at once both succeed. An If-Match header with the customer's ETag is honoured.

use http_api::read::text;
use http_api::{Code, Problem, Request, Response, Store};
use key_schema::customer::{self, Address, Customer, MAX_ADDRESSES};
use key_schema::id::AddressName;
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item, Stored};
use table::{TableError, WriteError};

use crate::owner;
use crate::profile::{no_customer, place_name, respond};

/// PUT /v1/customers/{id}/addresses/{name}: sets an address and returns the customer.
pub async fn put(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let name: AddressName = request.path("name")?;
    let version = request.if_match_optional()?;
    let address = read(request)?;
    let put = customer::put_address(owner.customer(), &name, &address, version, Instant::now())?;
    match store.table.update(&put).await {
        Ok(customer) => Ok(respond(&customer)),
        Err(WriteError::Refused(None)) => Err(no_customer()),
        Err(WriteError::Refused(Some(stored))) if !is_at(&stored, version)? => Err(Problem::version_mismatch()),
        Err(WriteError::Refused(Some(_))) => {
            Err(Problem::new(Code::InvalidBody, format!("A customer can have at most {MAX_ADDRESSES} addresses.")))
        }
        Err(WriteError::Table(error)) => Err(error.into()),
    }
}

/// DELETE /v1/customers/{id}/addresses/{name}: removes an address. A client can repeat the request.
pub async fn remove(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let name: AddressName = request.path("name")?;
    let version = request.if_match_optional()?;
    let remove = customer::remove_address(owner.customer(), &name, version, Instant::now())?;
    match store.table.update(&remove).await {
        Err(WriteError::Refused(None)) => Err(no_customer()),
        Err(WriteError::Refused(Some(stored))) if !is_at(&stored, version)? => Err(Problem::version_mismatch()),
        // A repeated request finds no such address: it is removed already.
        Ok(_) | Err(WriteError::Refused(Some(_))) => Ok(Response::no_content()),
        Err(WriteError::Table(error)) => Err(error.into()),
    }
}

/// Returns whether the stored customer is at the version that the client has named, if it named one.
fn is_at(stored: &Item, version: Option<u64>) -> Result<bool, TableError> {
    let Some(version) = version else { return Ok(true) };
    Ok(Stored::<Customer>::from_item(stored.clone())?.meta.version == version)
}

fn read(request: &Request<'_>) -> Result<Address, Problem> {
    let mut body = request.object()?;
    let street = body.required("street", text(1..=200));
    let city = body.required("city", place_name);
    let postal_code = body.optional("postal_code", text(1..=32));
    let region = body.optional("region", place_name);
    let country = body.required("country", place_name);
    let (street, city, postal_code, region, country) = body.finish((street, city, postal_code, region, country))?;
    Ok(Address { street, city, postal_code, region, country })
}
