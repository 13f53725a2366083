//! Insights: counters, metrics, stores, sales by place, and the audit of expirations.

mod audit;
mod counters;
mod metrics;
mod stores;

use http_api::{Error, Routes, Services};

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("GET /v1/audit/expirations", |services, request| Box::pin(audit::expirations(services, request)))
        .on("GET /v1/counters/{name}", |services, request| Box::pin(counters::read(services, request)))
        .on("POST /v1/counters/{name}", |services, request| Box::pin(counters::add(services, request)))
        .on("POST /v1/counters/{name}/split", |services, request| Box::pin(counters::split(services, request)))
        .on("POST /v1/metrics", |services, request| Box::pin(metrics::store(services, request)))
        .on("GET /v1/metrics/{name}", |services, request| Box::pin(metrics::list(services, request)))
        .on("GET /v1/metrics/{name}/points/{id}", |services, request| Box::pin(metrics::get(services, request)))
        .on("GET /v1/sales/{country}", |services, request| Box::pin(stores::sales_of_region(services, request)))
        .on("GET /v1/stores/{id}", |services, request| Box::pin(stores::read(services, request)))
        .on("PUT /v1/stores/{id}", |services, request| Box::pin(stores::put(services, request)))
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("insights");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
