//! The settings: values that clients share, such as a banner or feature switches.
//!
//! Every caller may read the public values, which usually come from memory
//! ([`http_api::SettingsCache`]). Only staff may read the private values. Only staff may change any
//! value.
//!
//! This function also manages the shipping zones, the tax rules ([`pricing`]) and the promotions
//! ([`promotion`]).

mod body;
mod current;
mod promotions;
mod rules;
mod tax_rules;
mod zones;

use http_api::{Error, Routes, Services};
use key_schema::pricing::{ShippingZone, TaxRule};

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .public("GET /v1/settings", |services, _| Box::pin(current::public(services)))
        .on("GET /v1/settings/private", |services, request| Box::pin(current::whole(services, request)))
        // Staff end the maintenance with this route, so it works during maintenance, too.
        .on_always("PUT /v1/settings", |services, request| Box::pin(current::put(services, request)))
        .on("GET /v1/shipping/zones", |services, request| Box::pin(rules::list::<ShippingZone>(services, request)))
        .on("GET /v1/shipping/zones/{id}", |services, request| Box::pin(rules::read::<ShippingZone>(services, request)))
        .on("PUT /v1/shipping/zones/{id}", |services, request| Box::pin(rules::put(services, request, zones::read)))
        .on("DELETE /v1/shipping/zones/{id}", |services, request| {
            Box::pin(rules::delete::<ShippingZone>(services, request))
        })
        .on("GET /v1/tax/rules", |services, request| Box::pin(rules::list::<TaxRule>(services, request)))
        .on("GET /v1/tax/rules/{id}", |services, request| Box::pin(rules::read::<TaxRule>(services, request)))
        .on("PUT /v1/tax/rules/{id}", |services, request| Box::pin(rules::put(services, request, tax_rules::read)))
        .on("DELETE /v1/tax/rules/{id}", |services, request| Box::pin(rules::delete::<TaxRule>(services, request)))
        .on("POST /v1/promotions", |services, request| Box::pin(promotions::create(services, request)))
        .on("GET /v1/promotions", |services, request| Box::pin(promotions::list(services, request)))
        .on("GET /v1/promotions/{id}", |services, request| Box::pin(promotions::read(services, request)))
        .on("PATCH /v1/promotions/{id}", |services, request| Box::pin(promotions::change(services, request)))
        .on("DELETE /v1/promotions/{id}", |services, request| Box::pin(promotions::delete(services, request)))
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("settings");
    http_api::run(routes(), Services::from_env().await?).await
}
