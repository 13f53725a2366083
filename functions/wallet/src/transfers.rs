//! Transfers: one transaction moves money from one customer to another. The function reads nothing
//! before the transaction, because the transaction's conditions check all requirements.

use http_api::contract::route;
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::id::EntryId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::quota::Quota;
use key_schema::wallet::{self, Side, Transfer, Wallet, WalletAction, WalletError};
use table::{Refusal, Refusals};

use crate::view::{NewTransfer, TransferView, entries_of};

/// Move money from one wallet to another, once
///
/// Moves the money from one wallet to the other, or changes nothing. The customer `from` and staff
/// may call this. Location is the list of this customer's movements. In the lists of both wallets,
/// the movement has the transfer's id.
#[route(POST "/v1/transfers", id = "transferMoney", who = owner, task = "wallet",
    parameters(IdempotencyKey), body = NewTransfer,
    answers(201 = TransferView<'_> "The transfer" [Location, ETag, IdempotencyReplayed]),
    refuses(
        not_found = "the caller is neither the payer nor staff",
        account_not_found = "the payer or the recipient does not exist, and the entries in `errors` show which",
        insufficient_funds = "the wallet has less than the amount in this currency",
        invalid_body = "also for a transfer to oneself, or if the recipient's balance would exceed the maximum",
        quota_exceeded = "a customer can make 10,000 transfers a day",
    ))]
pub async fn create(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let once = Once::required(request)?;
    request.signed_in()?;
    let NewTransfer { from, to, amount: money, note } = request.body()?;
    let at = Instant::now();
    let transfer = Transfer { id: EntryId::generate(at, services.random()?), from, to, money, note, at };
    let owner = request.owner(&transfer.from)?;
    // A transfer never changes, so its version is always 1.
    let answer = Response::created(entries_of(&transfer.from), &TransferView::from(&transfer)).etag(1);
    let claim = once.claim_with(&answer, transfer.id.born(), transfer.at)?;
    let write = wallet::transfer(&transfer, claim, !owner.is_staff())?;
    let Err(refusals) = services.table.transact(&write).await? else { return Ok(answer) };
    once.replay_or(services, refused(&transfer, &refusals)).await
}

/// Returns the problem for a refused transaction. A missing account takes precedence over a limit.
/// A limit takes precedence over too little money.
fn refused(transfer: &Transfer, refusals: &Refusals<WalletAction>) -> Problem {
    let missing: Vec<&str> = [(Side::From, "/from"), (Side::To, "/to")]
        .into_iter()
        .filter(|(side, _)| refusals.names(WalletAction::Customer(*side)))
        .map(|(_, pointer)| pointer)
        .collect();
    if !missing.is_empty() {
        let problem = Problem::new(Code::AccountNotFound, "The account does not exist. No money was moved.");
        return missing.into_iter().fold(problem, |problem, pointer| problem.error(pointer, "is not a customer"));
    }
    if refusals.names(WalletAction::Quota) && !refusals.names(WalletAction::Idempotency) {
        return Problem::quota_exceeded(Quota::Transfers, transfer.at);
    }
    let wallet = |side| refusals.of(WalletAction::Wallet(side)).map(wallet_in);
    let taking = wallet(Side::From).map(|wallet| wallet::minus(wallet.as_deref(), transfer.money));
    let giving = wallet(Side::To).map(|wallet| wallet::plus(wallet.as_deref(), transfer.money));
    match (taking, giving) {
        (_, Some(Err(error @ WalletError::TooMuch))) => {
            Problem::new(Code::InvalidBody, "The money cannot move between these wallets.")
                .error("/amount/amount", error.to_string())
        }
        (Some(Err(_)), _) => {
            let detail = "The wallet's balance in this currency is too low. No money was moved.";
            Problem::new(Code::InsufficientFunds, detail).error("/amount/amount", WalletError::Insufficient.to_string())
        }
        // If only the record of the idempotency key caused the refusal, and `replay_or` finds no
        // valid record, the first request is in progress.
        _ if refusals.names(WalletAction::Idempotency) => Once::in_progress(),
        _ => Problem::unexpected(refusals),
    }
}

fn wallet_in(refusal: &Refusal<WalletAction>) -> Option<Stored<Wallet>> {
    refusal.stored().ok().flatten()
}
