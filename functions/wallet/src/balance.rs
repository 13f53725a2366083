use http_api::{Problem, Request, Response, Services};
use key_schema::entity::AnyEntity;
use key_schema::id::CustomerId;
use key_schema::wallet;

use crate::view::{EntryView, WalletView};

/// GET customers/{id}/wallet: returns the balances. For a customer without a wallet, the response
/// has version 0, no balances and no ETag.
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let mut found = services.table.batch_get(&wallet::read(&customer)?).await?.into_iter();
    if found.next().flatten().is_none() {
        return Err(Problem::not_found("customer"));
    }
    Ok(match found.next().flatten() {
        Some(AnyEntity::Wallet(wallet)) => {
            Response::ok(&WalletView::new(&customer, Some(&wallet))).etag(wallet.meta.version)
        }
        _ => Response::ok(&WalletView::new(&customer, None)),
    })
}

/// GET customers/{id}/wallet/entries: lists the entries, newest first.
pub async fn entries(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let customer: CustomerId = request.path("id")?;
    request.owner(&customer)?;
    let parameters = [("customer", customer.as_str())];
    let list = request.list(services, wallet::entries(&customer)?, &parameters).await?;
    list.answer(|entry| EntryView::from(&entry.data))
}
