//! Addresses: entries of a map on the profile, set and removed individually.
//!
//! A change touches only its own entry, so it needs no If-Match. Two clients that set two addresses
//! at once both succeed.

use http_api::read::text;
use http_api::{Code, Problem, Request, Response, Store};
use key_schema::customer::{self, Address, MAX_ADDRESSES};
use key_schema::id::AddressName;
use key_schema::instant::Instant;
use table::WriteError;

use crate::owner;
use crate::profile::{no_customer, place_name, respond};

/// PUT /v1/customers/{id}/addresses/{name}: sets an address and returns the customer.
pub async fn put(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let name: AddressName = request.path("name")?;
    let address = read(request)?;
    match store.table.update(&customer::put_address(owner.customer(), &name, &address, Instant::now())?).await {
        Ok(customer) => Ok(respond(&customer)),
        Err(WriteError::Refused(None)) => Err(no_customer()),
        Err(WriteError::Refused(Some(_))) => {
            Err(Problem::new(Code::InvalidBody, format!("A customer has at most {MAX_ADDRESSES} addresses.")))
        }
        Err(WriteError::Table(error)) => Err(error.into()),
    }
}

/// DELETE /v1/customers/{id}/addresses/{name}: removes an address. A client can repeat the request.
pub async fn remove(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let name: AddressName = request.path("name")?;
    match store.table.update(&customer::remove_address(owner.customer(), &name, Instant::now())?).await {
        // An address that does not exist counts as removed, so a repeated request succeeds.
        Ok(_) | Err(WriteError::Refused(Some(_))) => Ok(Response::no_content()),
        Err(WriteError::Refused(None)) => Err(no_customer()),
        Err(WriteError::Table(error)) => Err(error.into()),
    }
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
