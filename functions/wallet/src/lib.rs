mod deposits;
mod transfers;
mod view;

use http_api::contract::{Page, route};
use http_api::{Error, Problem, Request, Response, Services};
use key_schema::customer::Customer;
use key_schema::id::CustomerId;
use key_schema::item::take;
use key_schema::wallet::{self, Wallet};

use crate::view::{EntryView, WalletView};

http_api::routes! { Services; read, entries, deposits::create, transfers::create }

/// Read a wallet's balances
///
/// Returns the wallet. It has a balance in each currency. `balance` is the balance in the shop's
/// currency, US dollars. `balances` lists all balances above zero in the order of the currencies'
/// codes. Before the first movement the wallet has version 0 and no ETag.
#[route(GET "/v1/customers/{id}/wallet", id = "readWallet", who = owner, task = "wallet", path(id: CustomerId),
    answers(200 = WalletView<'_> "The wallet" [ETag]))]
async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let mut found = services.table.batch_get(&wallet::read(&customer)?).await?;
    take::<Customer, _>(&mut found).ok_or_else(|| Problem::not_found("customer"))?;
    Ok(match take::<Wallet, _>(&mut found) {
        Some(wallet) => Response::ok(&WalletView::new(&customer, Some(&wallet))).etag(wallet.meta.version),
        None => Response::ok(&WalletView::new(&customer, None)),
    })
}

/// List the movements of a wallet
///
/// Returns the movements, newest first. The sum of all movements in a currency is the balance in
/// this currency.
#[route(GET "/v1/customers/{id}/wallet/entries", id = "listWalletEntries", who = owner, task = "wallet",
    path(id: CustomerId), parameters(Limit, Cursor),
    answers(200 = Page<EntryView<'_>> "A page of movements" [Link, LeftOut]))]
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
