//! Organizations: their teams, members and invitations, and the memberships of a customer.

mod access;
mod invitations;
mod members;
mod organizations;
mod room;
mod teams;
mod view;

use http_api::{Error, Services};

http_api::routes! {
    Services;
    organizations::create, organizations::read, organizations::rename,
    teams::put, teams::remove,
    members::list, members::put, members::remove,
    invitations::of_organization, invitations::remove, invitations::of_customer,
    members::of_customer
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("organizations");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
