//! Money that goes from one customer to another, in one transaction that reads nothing beforehand: what it needs are its conditions.

use http_api::read::parsed;
use http_api::{Code, Once, Problem, Request, Response, Store};
use key_schema::id::{CustomerId, EntryId};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Stored};
use key_schema::wallet::{self, Part, Side, Transfer, Wallet, WalletError};
use table::{Refusal, TransactError};

use crate::view::{TransferView, entries_of, movement};

/// POST transfers, once for each Idempotency-Key.
pub async fn create(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let once = Once::required(request)?;
    let transfer = read(store, request)?;
    request.owner(&transfer.from)?;
    // Nothing ever changes a transfer.
    let answer = Response::created(entries_of(&transfer.from), &TransferView::from(&transfer)).etag(1);
    let claim = once.claim_with(&answer, transfer.id.born(), transfer.at)?;
    match store.table.transact(&wallet::transfer(&transfer, claim)?).await {
        Ok(()) => Ok(answer),
        Err(TransactError::Refused(refusals)) => once.replay_or(store, refused(&transfer, &refusals)).await,
        Err(TransactError::Table(error)) => Err(error.into()),
    }
}

fn read(store: &Store, request: &Request<'_>) -> Result<Transfer, Problem> {
    let mut body = request.object()?;
    let from = body.required("from", parsed::<CustomerId>);
    let mut to = body.required("to", parsed::<CustomerId>);
    if from.is_some() && from == to {
        to = body.refuse("to", "must not be the one who pays");
    }
    let (money, note) = movement(&mut body);
    let (from, to, money, note) = body.finish((from, to, money, note))?;
    let at = Instant::now();
    Ok(Transfer { id: EntryId::generate(at, store.random()?), from, to, money, note, at })
}

/// What the transaction's refusals mean, the most telling first: whether there are the accounts, then whether they can have this money between
/// them at all, then whether there is enough of it.
fn refused(transfer: &Transfer, refusals: &[Refusal<Part>]) -> Problem {
    let of = |part| refusals.iter().find(|refusal| refusal.label == part);
    let missing: Vec<&str> = [(Side::From, "/from"), (Side::To, "/to")]
        .into_iter()
        .filter(|(side, _)| of(Part::Customer(*side)).is_some())
        .map(|(_, pointer)| pointer)
        .collect();
    if !missing.is_empty() {
        let problem = Problem::new(Code::AccountNotFound, "There is no such account; nothing was moved.");
        return missing.into_iter().fold(problem, |problem, pointer| problem.error(pointer, "is no customer"));
    }
    let taking =
        of(Part::Wallet(Side::From)).map(|refusal| wallet::minus(wallet_in(refusal).as_deref(), transfer.money));
    let giving = of(Part::Wallet(Side::To)).map(|refusal| wallet::plus(wallet_in(refusal).as_deref(), transfer.money));
    let impossible = |detail: String, pointer: &'static str| {
        Problem::new(Code::InvalidBody, "The wallets cannot have this money between them.").error(pointer, detail)
    };
    match (taking, giving) {
        (Some(Err(WalletError::OtherCurrency)), _) => {
            impossible("is not the currency of the wallet that pays".to_owned(), "/amount/currency")
        }
        (_, Some(Err(WalletError::OtherCurrency))) => {
            impossible("is not the currency of the wallet that gets it".to_owned(), "/amount/currency")
        }
        (_, Some(Err(error @ WalletError::TooMuch))) => impossible(error.to_string(), "/amount/amount"),
        (Some(Err(_)), _) => Problem::new(Code::InsufficientFunds, "There is less in the wallet; nothing was moved.")
            .error("/amount/amount", WalletError::Insufficient.to_string()),
        // The key alone, and whoever looks for its record finds none that counts.
        _ if of(Part::Idempotency).is_some() => Once::in_progress(),
        _ => Problem::internal(format!("unexpected refusal of {:?}", refusals.first().map(|refusal| refusal.label))),
    }
}

/// The wallet as it was when it was refused.
fn wallet_in(refusal: &Refusal<Part>) -> Option<Stored<Wallet>> {
    Stored::from_item(refusal.item.as_deref()?.clone()).ok()
}
