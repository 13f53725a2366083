//! Stock: staff set the number of pieces, or adjust it once per idempotency key.
//!
//! # Why the response to an adjustment is exact
//! A transaction returns no values, and a later read would include other callers' changes. Instead
//! the function reads the stock with strong consistency, computes the new number, and writes that
//! number on the condition that the stock is unchanged. If another request was faster, the function
//! reads again.
//!
//! The response is part of the same transaction, in the record of the idempotency key. So the
//! effect exists if and only if the stored response exists, and a repeated request gets the same
//! bytes. [`Once`] describes how the function recognises a repeated request.

use http_api::fields::{integer, text};
use http_api::{Code, Once, Problem, Request, Response, Services, read_fields};
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Adjustment, MAX_STOCK, ProductAction, Stock, StockError};
use table::retry_on_conflict;

use crate::products::{no_such_product, stock_missing};
use crate::view::StockView;

const MAX_ADJUSTMENT: i64 = MAX_STOCK.cast_signed();
/// The longest reason, in bytes of UTF-8.
const MAX_REASON: usize = 200;

pub async fn set(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    read_fields!(request.object()? => { set: required(integer(0..=MAX_STOCK)), });
    let stock = services.table.update(&product::set_stock(&id, set, Instant::now())?).await?;
    match stock {
        Ok(stock) => Ok(Response::ok(&StockView { stock: stock.available })),
        Err(_) => Err(not_for_sale(services, &id).await?),
    }
}

/// POST products/{id}/stock/adjustments: adjusts the stock once per Idempotency-Key.
pub async fn adjust(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let id: ProductId = request.path("id")?;
    let once = Once::required(request)?;
    let (by, reason) = movement(request)?;
    retry_on_conflict(async || {
        let (stock, pieces) = match plan(services, &id, by).await? {
            Ok(plan) => plan,
            Err(problem) => return once.replay_or(services, problem).await.map(Some),
        };
        let at = Instant::now();
        let answer = Response::ok(&StockView { stock: pieces });
        let adjustment = Adjustment { by, reason: reason.clone(), staff: staff.id().clone(), at };
        let claim = once.claim_with(&answer, services.born(at)?, at)?;
        let adjust = product::adjust_stock(&stock, pieces, adjustment, claim)?;
        let Err(refusals) = services.table.transact(&adjust).await? else { return Ok(Some(answer)) };
        // If the key has no stored response, another request changed the stock after this request
        // read it. Then this request tries again.
        if refusals.names(ProductAction::Idempotency) { once.replay(services).await } else { Ok(None) }
    })
    .await
}

async fn plan(services: &Services, id: &ProductId, by: i64) -> Result<Result<(Stored<Stock>, u64), Problem>, Problem> {
    let stock = services.table.get(&product::stock(id)?).await?.filter(|stock| stock.sellable);
    Ok(match stock {
        Some(stock) => stock.moved(by).map_err(|error| impossible(error, &stock)).map(|pieces| (stock, pieces)),
        None => Err(not_for_sale(services, id).await?),
    })
}

async fn not_for_sale(services: &Services, id: &ProductId) -> Result<Problem, Problem> {
    Ok(match services.table.get(&product::read_for_update(id)?).await? {
        Some(product) if !product.retired && product.variants.is_some() => Problem::new(
            Code::HasVariants,
            "A product that is sold as variants has no stock. Change the stock of a variant.",
        ),
        Some(product) if !product.retired && services.table.get(&product::stock(id)?).await?.is_none() => {
            stock_missing(id)
        }
        _ => no_such_product(),
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

fn impossible(error: StockError, stock: &Stock) -> Problem {
    match error {
        StockError::Insufficient => Problem::new(Code::InsufficientStock, "There are not enough pieces in stock.")
            .error("/adjust", format!("only {} in stock", stock.available)),
        StockError::TooLarge => {
            Problem::new(Code::InvalidBody, "The stock cannot become so large.").error("/adjust", error.to_string())
        }
    }
}
