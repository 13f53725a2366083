//! The settings: values that clients share, such as a banner or feature switches.
//!
//! Every caller may read the public values, which usually come from memory
//! ([`http_api::SettingsCache`]). Only staff may read the private values. Only staff may change any
//! value.
//!
//! This function also manages the shipping zones, the tax rules ([`key_schema::pricing`]) and the
//! promotions ([`key_schema::promotion`]), and the endpoints to which the shop sends its events
//! ([`webhooks`]).

mod body;
mod current;
mod promotions;
mod rules;
mod tax_rules;
mod webhooks;
mod zones;

use http_api::{Error, Services, Webhooks};

http_api::routes! {
    Services;
    current::public,
    current::whole,
    current::put,
    zones::countries,
    zones::list,
    zones::read,
    zones::put,
    zones::delete,
    tax_rules::list,
    tax_rules::read,
    tax_rules::put,
    tax_rules::delete,
    promotions::create,
    promotions::list,
    promotions::read,
    promotions::change,
    promotions::delete,
    webhooks::create,
    webhooks::list,
    webhooks::read,
    webhooks::change,
    webhooks::renew_secret,
    webhooks::remove,
    webhooks::deliveries,
    webhooks::delivery,
    webhooks::redeliver,
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    let services = Services { webhooks: Webhooks::from_env(), ..Services::from_env().await? };
    http_api::run(routes(), services).await
}
