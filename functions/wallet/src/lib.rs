mod balance;
mod deposits;
mod transfers;
mod view;

use http_api::{Error, Routes, Services};
use key_schema::{idempotency, wallet};

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("GET /v1/customers/{id}/wallet", &[&wallet::READ], |services, request| {
            Box::pin(balance::read(services, request))
        })
        .on("GET /v1/customers/{id}/wallet/entries", &[&wallet::ENTRIES], |services, request| {
            Box::pin(balance::entries(services, request))
        })
        .on(
            "POST /v1/customers/{id}/wallet/deposits",
            &[&wallet::EDIT, &wallet::DEPOSIT, &idempotency::GET],
            |services, request| Box::pin(deposits::create(services, request)),
        )
        .on("POST /v1/transfers", &[&wallet::TRANSFER, &idempotency::GET], |services, request| {
            Box::pin(transfers::create(services, request))
        })
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("wallet");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
