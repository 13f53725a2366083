//! Money that is paid in.
//!
//! A deposit answers the balance after it, and the answer is part of its transaction. So the balance is read, the new one is computed, and the
//! money is added on the condition that the balance still is what was read; whoever loses the race reads again. (A transfer answers no balance, and
//! needs none of this.)

use http_api::{Code, Once, Problem, Request, Response, Store};
use key_schema::id::{CustomerId, EntryId};
use key_schema::instant::Instant;
use key_schema::money::Money;
use key_schema::wallet::{self, EntryKind, Part, Side, WalletEntry, WalletError};
use table::{Backoff, TableError, TransactError};

use crate::view::{DepositView, EntryView, entries_of, movement};

/// POST customers/{id}/wallet/deposits, once for each Idempotency-Key.
pub async fn create(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let customer: CustomerId = request.path("id")?;
    let once = Once::required(request)?;
    let (money, note) = read(request)?;
    let mut backoff = Backoff::new();
    loop {
        let seen = store.table.get(&wallet::edit(&customer)?).await?;
        let balance = match wallet::plus(seen.as_deref(), money) {
            Ok(balance) => balance,
            Err(error) => return once.replay_or(store, impossible(error)).await,
        };
        let entry = entry(store, &customer, money, note.clone())?;
        let answer = DepositView { entry: EntryView::from(&entry), balance };
        // Nothing ever changes an entry.
        let answer = Response::created(entries_of(&customer), &answer).etag(1);
        let claim = once.claim_with(&answer, entry.id.born(), entry.at)?;
        let refusals = match store.table.transact(&wallet::deposit(&entry, seen.as_ref(), claim)?).await {
            Ok(()) => return Ok(answer),
            Err(TransactError::Refused(refusals)) => refusals,
            Err(TransactError::Table(error)) => return Err(error.into()),
        };
        let refused = |part| refusals.iter().any(|refusal| refusal.label == part);
        if refused(Part::Customer(Side::To)) {
            return once.replay_or(store, no_such_account()).await;
        }
        if refused(Part::Idempotency)
            && let Some(first) = once.replay(store).await?
        {
            return Ok(first);
        }
        // Somebody else moved the balance after it was read.
        if !backoff.wait().await {
            return Err(TableError::Contended.into());
        }
    }
}

fn read(request: &Request<'_>) -> Result<(Money, Option<String>), Problem> {
    let mut body = request.object()?;
    let fields = movement(&mut body);
    Ok(body.finish(fields)?)
}

fn entry(store: &Store, customer: &CustomerId, money: Money, note: Option<String>) -> Result<WalletEntry, Problem> {
    let at = Instant::now();
    Ok(WalletEntry {
        customer_id: customer.clone(),
        id: EntryId::generate(at, store.random()?),
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
    Problem::new(Code::AccountNotFound, "There is no such customer.")
}

fn impossible(error: WalletError) -> Problem {
    let field = if error == WalletError::OtherCurrency { "/amount/currency" } else { "/amount/amount" };
    Problem::new(Code::InvalidBody, "The wallet cannot take this money.").error(field, error.to_string())
}
