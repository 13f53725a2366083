//! Erases a customer.
//!
//! The request first marks the profile. From then on the table refuses transactions for which the
//! customer must exist. So the customer gets no further items, such as editorships.
//!
//! The profile is deleted after the belongings, so that an interrupted request can be repeated.
//! Every step can run again. One transaction deletes the profile with the claims of its user name
//! and email address. Other customers can then use these names.
//!
//! The sessions end after the profile is deleted, because the caller may need the same token to
//! repeat the request. The functions then refuse the tokens of these sessions. If the request is
//! interrupted, the janitor ends the sessions.
//!
//! After it has deleted the profile, the request erases the belongings once more, because an index
//! may not have shown all of them. Meanwhile, other requests can have added only followers and
//! carts, and carts expire. If this step is interrupted, a client can still repeat the request, and
//! then gets 404.
//!
//! If no client repeats an interrupted request, the janitor finishes it. The janitor also removes
//! the customer's archive ([`key_schema::erasure`]). Orders stay because accounting needs them.
//! Reviews stay, too, without their display names.

use http_api::contract::route;
use http_api::{Problem, Request, Response, Services, change_version};
use key_schema::customer::{self, Customer};
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::session::{self, Session};
use table::{Budget, TableError};
use workflows::erasure;
use workflows::removal::RemovalError;

use crate::owner;
use crate::profile::{changed_meanwhile, no_customer, refused};

/// Erase a customer
///
/// Removes the profile with its addresses, and the customer's sessions, cart, questions with their
/// answers, likes, and follows in both directions. Removes the customer's memberships of
/// organizations, editorships of documents, and own documents with their history, even if other
/// customers edit them. Releases the email address and the user name. Within minutes, archived
/// sessions and carts of the customer are deleted too. Orders, wallet and reviews stay. An order's
/// addresses keep only country and city, even if the order is not shipped yet. The customer's
/// documents in organizations also stay, but no longer have an owner. Their history still contains
/// the customer's id as an author. An organization that loses its last admin has no admin until staff
/// appoints one. If one request cannot remove everything, the response is 503. To continue, repeat
/// the same request after the time in Retry-After. The repeated request continues even if its
/// response is 404. If no client repeats it, the janitor continues after some minutes. An erasure
/// that has begun cannot be undone. From then on, requests that need the customer get 404.
///
/// Also removes the addresses and names of orders that were placed with the customer's verified
/// address as a guest. With the id of a guest, staff erase a guest without an account.
#[route(DELETE "/v1/customers/{id}", id = "deleteCustomer", who = owner, task = "profile", path(id: CustomerId),
    parameters(IfMatchOrAny), answers(204 = () "Done"))]
pub async fn erase(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let owner = owner(request)?;
    let version = request.if_match_or_any()?;
    let budget = &Budget::begin(&services.table);
    // Another attempt may finish the erasure after the next read. If the customer then signs up
    // again, the new items are younger than this instant, and stay.
    let until = Instant::now();
    let Some(customer) = change_version(version, async || begin(services, owner.customer(), version).await).await?
    else {
        erase_remaining(services, owner.customer(), budget).await?;
        // A guest has no profile.
        return if owner.customer().is_guest() { Ok(Response::no_content()) } else { Err(no_customer()) };
    };
    erasure::erase(&services.table, &customer, until, budget).await.map_err(removal_failed)?;
    erase_remaining(services, owner.customer(), budget).await?;
    Ok(Response::no_content())
}

/// Marks the profile, if there is one, and returns it.
async fn begin(
    services: &Services,
    customer: &CustomerId,
    version: Option<u64>,
) -> Result<Option<Stored<Customer>>, Problem> {
    let Some(customer) = services.table.get(&customer::read_for_update(customer)?).await? else {
        return Ok(None);
    };
    if version.is_some_and(|version| customer.meta.version != version) {
        return Err(Problem::version_mismatch());
    }
    if customer.erasing_since.is_none() {
        let begun = services.table.update(&customer::begin_erasure(&customer, Instant::now())?).await?;
        begun.map_err(|refusal| changed_meanwhile(&refusal))?;
        telemetry::crash_point("customers.erasure.begun");
    }
    Ok(Some(customer))
}

/// Erases belongings that an index did not show earlier, and ends the sessions. If the customer has
/// a new profile, the function does nothing, and the janitor removes the older items.
async fn erase_remaining(services: &Services, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), Problem> {
    // If the customer signs up again after the next read, the new items are younger than this
    // instant, and stay.
    let until = Instant::now();
    if services.table.get(&customer::read_for_update(customer)?).await?.is_some() {
        return Ok(());
    }
    erasure::erase_belongings(&services.table, customer, until, budget).await.map_err(removal_failed)?;
    let ended = |sessions: &[Stored<Session>]| {
        services.sign_ins.ended(sessions.iter().flat_map(|session| session::sign_ins(session)));
    };
    erasure::end_sessions(&services.table, customer, until, budget, ended).await.map_err(removal_failed)
}

pub fn removal_failed(error: RemovalError) -> Problem {
    match error {
        RemovalError::Refused(refusals) => refused(&refusals),
        RemovalError::Contended => TableError::Contended.into(),
        RemovalError::Table(error) => error.into(),
        RemovalError::Encode(error) => error.into(),
    }
}
