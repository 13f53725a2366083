//! Stock: set outright, or adjusted exactly once.
//!
//! # Why an adjustment's answer is exact
//! A transaction gives nothing back, so the stock after an adjustment cannot be read out of the write that made it, and a read afterwards
//! would show what others did in between. Instead the stock is read strongly, the new one is computed, and the transaction writes that very
//! number on the condition that the stock still is what was read. Whoever loses the race reads again. The answer is part of the same
//! transaction, in the record of the idempotency key, so the effect exists exactly when the answer does, and a repetition gets its bytes.
//!
//! # How a repetition is recognised
//! The record's condition refuses the transaction when the key is in use, so nothing is read beforehand that a first attempt would not need.
//! Only before an attempt is given up, because too little is in stock or the product is gone, the record is looked for: it may have been the
//! first attempt of this very request that used up the stock. The look comes after the stock was read. The other way round, the first
//! attempt could take effect in between, and a request that has succeeded would be answered with `insufficient_stock`.

use http_api::read::{integer, text};
use http_api::{Code, Problem, Request, Response, Store};
use key_schema::id::ProductId;
use key_schema::idempotency::{self, Answer, IdempotencyRecord, LIFETIME_SECONDS, Scope};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Adjustment, MAX_STOCK, Part, Stock, StockError};
use table::{Backoff, TableError, TransactError, WriteError};

use crate::products::no_such_product;
use crate::view::StockView;

const MAX_ADJUSTMENT: i64 = MAX_STOCK.cast_signed();
/// The longest reason, in bytes of UTF-8.
const MAX_REASON: usize = 200;

/// PUT products/{id}/stock.
pub async fn set(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let mut body = request.object()?;
    let pieces = body.required("set", integer(0..=MAX_STOCK));
    let pieces = body.finish(pieces)?;
    match store.table.update(&product::set_stock(&id, pieces, Instant::now())?).await {
        Ok(stock) => Ok(Response::ok(&StockView { stock: stock.available })),
        Err(WriteError::Refused(_)) => Err(no_such_product()),
        Err(WriteError::Table(error)) => Err(error.into()),
    }
}

/// POST products/{id}/stock/adjustments, once for each Idempotency-Key.
pub async fn adjust(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let id: ProductId = request.path("id")?;
    let key = request.idempotency_key()?;
    let (by, reason) = movement(request)?;
    let claimed = Claim {
        scope: Scope { caller: staff.id().to_string(), key: key.to_owned() },
        request_hash: request.fingerprint()?,
    };
    let mut backoff = Backoff::new();
    loop {
        let (stock, pieces) = match plan(store, &id, by).await? {
            Ok(plan) => plan,
            Err(problem) => return claimed.recall(store).await?.ok_or(problem),
        };
        let at = Instant::now();
        let answer = Response::ok(&StockView { stock: pieces });
        let record = Stored::new(claimed.record(&answer, at)?, store.born(at)?, at);
        let adjustment = Adjustment { by, reason: reason.clone(), staff: staff.id().clone(), at };
        let claim = idempotency::claim(&record, at)?;
        let refusals = match store.table.transact(&product::adjust_stock(&stock, pieces, adjustment, claim)?).await {
            Ok(()) => return Ok(answer),
            Err(TransactError::Refused(refusals)) => refusals,
            Err(TransactError::Table(error)) => return Err(error.into()),
        };
        if refusals.iter().any(|refusal| refusal.label == Part::Idempotency)
            && let Some(first) = claimed.recall(store).await?
        {
            return Ok(first);
        }
        // Somebody else moved the stock after it was read.
        if !backoff.wait().await {
            return Err(TableError::Contended.into());
        }
    }
}

/// The stock as it is, and what it will be; or what stands against it.
async fn plan(store: &Store, id: &ProductId, by: i64) -> Result<Result<(Stored<Stock>, u64), Problem>, Problem> {
    let stock = store.table.get(&product::stock(id)?).await?.filter(|stock| stock.sellable);
    Ok(match stock {
        Some(stock) => stock.moved(by).map_err(|error| impossible(error, &stock)).map(|pieces| (stock, pieces)),
        None => Err(no_such_product()),
    })
}

fn movement(request: &Request<'_>) -> Result<(i64, String), Problem> {
    let mut body = request.object()?;
    let mut by = body.required("adjust", integer(-MAX_ADJUSTMENT..=MAX_ADJUSTMENT));
    if by == Some(0) {
        by = body.refuse("adjust", "must not be 0");
    }
    let reason = body.required("reason", text(1..=MAX_REASON));
    Ok(body.finish((by, reason))?)
}

/// An idempotency key with the request that it stands for.
struct Claim {
    scope: Scope,
    request_hash: String,
}

impl Claim {
    fn record(&self, answer: &Response, at: Instant) -> Result<IdempotencyRecord, Problem> {
        Ok(IdempotencyRecord {
            scope: self.scope.clone(),
            request_hash: self.request_hash.clone(),
            answer: Answer::Body { status: answer.status().as_u16(), body: answer.to_record()? },
            expires_at: at.plus_seconds(LIFETIME_SECONDS),
        })
    }

    /// The first answer again, if there was one, and if it was the answer to this request.
    async fn recall(&self, store: &Store) -> Result<Option<Response>, Problem> {
        let record = store.table.get(&idempotency::get(&self.scope)?).await?;
        let Some(record) = record.filter(|record| record.expires_at > Instant::now()) else {
            return Ok(None);
        };
        match &record.answer {
            Answer::Body { body, .. } if record.request_hash == self.request_hash => Response::replay(body).map(Some),
            _ => Err(Problem::new(
                Code::IdempotencyKeyReused,
                "This Idempotency-Key was used for another request; take a new one.",
            )),
        }
    }
}

fn impossible(error: StockError, stock: &Stock) -> Problem {
    match error {
        StockError::Insufficient => Problem::new(Code::InsufficientStock, "There are fewer pieces in stock.")
            .error("/adjust", format!("only {} in stock", stock.available)),
        StockError::TooLarge => {
            Problem::new(Code::InvalidBody, "The stock cannot grow so much.").error("/adjust", error.to_string())
        }
    }
}
