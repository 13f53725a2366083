mod deposits;
mod transfers;
mod view;

use http_api::{Error, Problem, Request, Response, Routes, Services};
use key_schema::id::CustomerId;
use key_schema::idempotency;
use key_schema::wallet::{self, WalletItem};

use crate::view::{EntryView, WalletView};

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("GET /v1/customers/{id}/wallet", &[&wallet::READ], |services, request| Box::pin(read(services, request)))
        .on("GET /v1/customers/{id}/wallet/entries", &[&wallet::ENTRIES], |services, request| {
            Box::pin(entries(services, request))
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

/// GET customers/{id}/wallet: returns the balances. For a customer without a wallet, the response
/// has version 0, no balances and no ETag.
async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let mut found = services.table.batch_get(&wallet::read(&customer)?).await?.into_iter();
    if found.next().flatten().is_none() {
        return Err(Problem::not_found("customer"));
    }
    Ok(match found.next().flatten() {
        Some(WalletItem::Wallet(wallet)) => {
            Response::ok(&WalletView::new(&customer, Some(&wallet))).etag(wallet.meta.version)
        }
        _ => Response::ok(&WalletView::new(&customer, None)),
    })
}

/// GET customers/{id}/wallet/entries: lists the entries, newest first.
async fn entries(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    let list = request.list(services, wallet::entries(&customer)?, &parameters).await?;
    list.answer(|entry| EntryView::from(&entry.data)).await
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("wallet");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
