//! Organizations: their teams, members and invitations, and the memberships of a customer.

mod access;
mod invitations;
mod members;
mod organizations;
mod room;
mod teams;
mod view;

use http_api::{Error, Routes, Services};
use key_schema::organization;
use key_schema::pattern::Pattern;

/// The access patterns of the route that sets a membership. The route also invites customers, and
/// accepts invitations.
const PUT_MEMBER: &[&Pattern] = &[
    &organization::PREPARE,
    &organization::PUT_MEMBER,
    &organization::invitation::INVITE,
    &organization::invitation::OPEN,
    &organization::invitation::INVITERS,
    &organization::invitation::ACCEPT,
    &organization::invitation::PREPARE,
    &organization::invitation::WITHDRAW,
];

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("POST /v1/organizations", &[&organization::CREATE], |services, request| {
            Box::pin(organizations::create(services, request))
        })
        .on("GET /v1/organizations/{id}", &[&organization::GET, &organization::MEMBER], |services, request| {
            Box::pin(organizations::read(services, request))
        })
        .on("PATCH /v1/organizations/{id}", &[&organization::RENAMED, &organization::RENAME], |services, request| {
            Box::pin(organizations::rename(services, request))
        })
        .on(
            "PUT /v1/organizations/{id}/teams/{team}",
            &[&organization::CREATE_TEAM, &organization::CHANGE_TEAM],
            |services, request| Box::pin(teams::put(services, request)),
        )
        .on("DELETE /v1/organizations/{id}/teams/{team}", &[&organization::DELETE_TEAM], |services, request| {
            Box::pin(teams::remove(services, request))
        })
        .on(
            "GET /v1/organizations/{id}/members",
            &[&organization::MEMBER, &organization::HEAD_ONLY, &organization::MEMBERS],
            |services, request| Box::pin(members::list(services, request)),
        )
        .on("PUT /v1/organizations/{id}/members/{customer}", PUT_MEMBER, |services, request| {
            Box::pin(members::put(services, request))
        })
        .on(
            "DELETE /v1/organizations/{id}/members/{customer}",
            &[&organization::PREPARE, &organization::REMOVE_MEMBER, &organization::REMOVE_GHOST],
            |services, request| Box::pin(members::remove(services, request)),
        )
        .on(
            "GET /v1/organizations/{id}/invitations",
            &[&organization::MEMBER, &organization::HEAD_ONLY, &organization::invitation::OF_ORGANIZATION],
            |services, request| Box::pin(invitations::of_organization(services, request)),
        )
        .on(
            "DELETE /v1/organizations/{id}/invitations/{customer}",
            &[&organization::invitation::PREPARE, &organization::invitation::WITHDRAW],
            |services, request| Box::pin(invitations::remove(services, request)),
        )
        .on("GET /v1/customers/{id}/invitations", &[&organization::invitation::OF_CUSTOMER], |services, request| {
            Box::pin(invitations::of_customer(services, request))
        })
        .on("GET /v1/customers/{id}/organizations", &[&organization::OF_CUSTOMER], |services, request| {
            Box::pin(members::of_customer(services, request))
        })
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("organizations");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
