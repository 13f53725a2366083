//! The settings: values that clients share, such as a banner or feature switches.
//!
//! Every caller may read the public values, which usually come from memory
//! ([`http_api::SettingsCache`]). Only staff may read the private values. Only staff may change any
//! value.
//!
//! This function also manages the shipping zones, the tax rules ([`key_schema::pricing`]) and the
//! promotions ([`key_schema::promotion`]).

mod body;
mod current;
mod promotions;
mod rules;
mod tax_rules;
mod zones;

use http_api::{Error, Services};

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
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    http_api::run(routes(), Services::from_env().await?).await
}
