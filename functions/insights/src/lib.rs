//! Insights: counters, metrics, stores, sales by place, and the audit of expirations.

mod audit;
mod counters;
mod metrics;
mod stores;

use http_api::{Error, Services};

http_api::routes! {
    Services;
    metrics::store, metrics::get, metrics::list,
    counters::read, counters::add, counters::split,
    audit::expirations,
    stores::sales_of_region, stores::read, stores::put
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("insights");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
