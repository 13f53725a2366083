//! Organizations: their teams, members and invitations, and the memberships of a customer.

mod access;
mod invitations;
mod members;
mod organizations;
mod room;
mod teams;
mod view;

use http_api::{Error, Routes, Services};

/// The access patterns of the route that sets a membership. The route also invites customers, and
/// accepts invitations.
#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("POST /v1/organizations", |services, request| Box::pin(organizations::create(services, request)))
        .on("GET /v1/organizations/{id}", |services, request| Box::pin(organizations::read(services, request)))
        .on("PATCH /v1/organizations/{id}", |services, request| Box::pin(organizations::rename(services, request)))
        .on("PUT /v1/organizations/{id}/teams/{team}", |services, request| Box::pin(teams::put(services, request)))
        .on("DELETE /v1/organizations/{id}/teams/{team}", |services, request| {
            Box::pin(teams::remove(services, request))
        })
        .on("GET /v1/organizations/{id}/members", |services, request| Box::pin(members::list(services, request)))
        .on("PUT /v1/organizations/{id}/members/{customer}", |services, request| {
            Box::pin(members::put(services, request))
        })
        .on("DELETE /v1/organizations/{id}/members/{customer}", |services, request| {
            Box::pin(members::remove(services, request))
        })
        .on("GET /v1/organizations/{id}/invitations", |services, request| {
            Box::pin(invitations::of_organization(services, request))
        })
        .on("DELETE /v1/organizations/{id}/invitations/{customer}", |services, request| {
            Box::pin(invitations::remove(services, request))
        })
        .on("GET /v1/customers/{id}/invitations", |services, request| {
            Box::pin(invitations::of_customer(services, request))
        })
        .on("GET /v1/customers/{id}/organizations", |services, request| {
            Box::pin(members::of_customer(services, request))
        })
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("organizations");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
