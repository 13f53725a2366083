//! Deposits: money paid into a wallet.
//!
//! The response to a deposit contains the new balance in its currency, and the deposit's
//! transaction stores this response. So the function reads the balance, computes the new balance,
//! and adds the money on the condition that the balance is unchanged. If the write is refused, the
//! function reads again. A transfer does not need this, because its response has no balance.

use http_api::contract::route;
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::id::{CustomerId, EntryId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::wallet::{self, EntryKind, Side, WalletAction, WalletEntry, WalletError};
use table::retry_on_conflict;

use crate::view::{DepositView, EntryView, NewDeposit, entries_of};

/// Pay money into a wallet, once
///
/// Returns the movement, with the resulting balance in its currency. Location is the list of the
/// wallet's movements.
#[route(POST "/v1/customers/{id}/wallet/deposits", id = "depositIntoWallet", who = staff, task = "wallet",
    path(id: CustomerId), parameters(IdempotencyKey), body = NewDeposit,
    answers(201 = DepositView<'_> "The movement" [Location, ETag, IdempotencyReplayed]),
    refuses(
        account_not_found = "there is no such customer",
        invalid_body = "also if the deposit would exceed the maximum balance",
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let customer: CustomerId = request.path("id")?;
    let once = Once::required(request)?;
    let NewDeposit { amount: money, note } = request.body()?;
    retry_on_conflict(async || {
        let seen = services.table.get(&wallet::read_for_update(&customer)?).await?;
        let balance = match wallet::plus(seen.as_deref(), money) {
            Ok(balance) => balance,
            Err(error) => return once.replay_or(services, impossible(error)).await.map(Some),
        };
        let entry = entry(services, &customer, money, note.clone())?;
        let answer = DepositView { entry: EntryView::from(&entry), balance };
        // An entry never changes, so its version is always 1.
        let answer = Response::created(entries_of(&customer), &answer).etag(1);
        let claim = once.claim_with(&answer, entry.id.born(), entry.at)?;
        let deposit = wallet::deposit(&entry, seen.as_ref(), claim)?;
        let Err(refusals) = services.table.transact(&deposit).await? else { return Ok(Some(answer)) };
        if refusals.names(WalletAction::Customer(Side::To)) {
            return once.replay_or(services, no_such_account()).await.map(Some);
        }
        // If the idempotency key was not refused, the balance has changed since the read. The next
        // attempt reads the balance again.
        if refusals.names(WalletAction::Idempotency) { once.replay(services).await } else { Ok(None) }
    })
    .await
}

fn entry(
    services: &Services,
    customer: &CustomerId,
    money: Money,
    note: Option<String>,
) -> Result<WalletEntry, Problem> {
    let at = Instant::now();
    Ok(WalletEntry {
        customer_id: customer.clone(),
        id: EntryId::generate(at, services.random()?),
        amount: money.amount,
        currency: money.currency,
        kind: EntryKind::Deposit,
        at,
        counterparty: None,
        order_id: None,
        note,
    })
}

fn no_such_account() -> Problem {
    Problem::new(Code::AccountNotFound, "The customer does not exist.")
}

fn impossible(error: WalletError) -> Problem {
    Problem::new(Code::InvalidBody, "The wallet cannot accept this amount.").error("/amount/amount", error.to_string())
}
