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

use http_api::contract::rules::{Integer, integer, text};
use http_api::contract::{Body, Context, Node, Rule, RuleSchema, Schemas, route};
use http_api::json::Value;
use http_api::{Code, Invalid, Once, Problem, Request, Response, Services};
use key_schema::id::{LocationId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Adjustment, MAX_STOCK, MAX_STOCK_SHARDS, ProductAction, Stock, StockError};
use table::{Refusals, TableError, retry_on_conflict};
use workflows::{WorkflowError, stock};

use crate::body::PIECES;
use crate::products::{no_such_product, stock_missing};
use crate::stock_at;
use crate::view::{StockShardsView, StockView};

const MAX_ADJUSTMENT: i64 = MAX_STOCK.cast_signed();

#[derive(Body)]
#[body(name = "StockChange")]
struct NewStock {
    #[field(rule = PIECES, example = 50)]
    set: u64,
    /// The location, `main` by default. Customers buy only the pieces of `main`.
    #[field(left_out)]
    location: Option<LocationId>,
}

#[derive(Body)]
#[body(name = "StockAdjustment")]
struct Movement {
    /// The number of pieces, negative to remove pieces, not 0.
    #[field(rule = NotZero(integer(-MAX_ADJUSTMENT..=MAX_ADJUSTMENT)), example = -3)]
    adjust: i64,
    /// 1 to 200 bytes.
    #[field(rule = text(1..=200), example = "broken in transport")]
    reason: String,
    /// The location, `main` by default. Customers buy only the pieces of `main`.
    #[field(left_out)]
    location: Option<LocationId>,
}

struct NotZero(Integer<i64>);

impl Rule<i64> for NotZero {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<i64, Invalid> {
        match self.0.read(value, context)? {
            0 => Err(Invalid::new("must not be 0")),
            other => Ok(other),
        }
    }
}

impl RuleSchema for NotZero {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        self.0.schema(schemas).with("not", Node::map([("const", 0.into())]))
    }
}

/// Set the stock
///
/// Replaces the stock. Pieces in unpaid orders and in orders before picking are not in the stock. A
/// cancellation or a lapse adds them to the number that you set. So set a number without these
/// pieces. The request can be repeated and needs no If-Match.
///
/// With a `location` the request sets the stock at that location. Orders take pieces only from the
/// location `main`, and the availability that customers see is that of `main`.
#[route(PUT "/v1/products/{id}/stock", id = "putStock", who = staff, task = "stock",
    path(id: ProductId), body = NewStock,
    answers(200 = StockView "The stock"),
    refuses(not_found, has_variants = "the stock of a parent cannot be set"))]
pub async fn set(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let NewStock { set, location } = request.body()?;
    if let Some(location) = stock_at::further(location) {
        return stock_at::set(services, &id, &location, set).await;
    }
    let one = services.table.update(&product::set_stock(&id, set, Instant::now())?).await?;
    if let Ok(stock) = one {
        return Ok(Response::ok(&StockView { stock: stock.available }));
    }
    retry_on_conflict(async || {
        let first = found(services, &id).await?.filter(|stock| stock.sellable);
        let Some(first) = first else { return Err(not_for_sale(services, &id).await?) };
        let written = services.table.transact(&product::set_shards(&first, set, Instant::now())?).await?;
        Ok(written.is_ok().then(|| Response::ok(&StockView { stock: set })))
    })
    .await
}

#[derive(Body)]
#[body(name = "StockShardsChange")]
struct NewShards {
    /// 1 to 64.
    #[field(rule = integer(1..=MAX_STOCK_SHARDS), example = 16)]
    shards: u32,
}

/// Set the number of shards of the stock
///
/// Prepares a product for a sale. Orders take pieces from one of the shards, so with 16 shards many
/// more orders a second can be placed than with 1. The pieces are spread evenly. An order is refused
/// only if all shards together have too few pieces. The request can be repeated. Orders that
/// repeatedly conflict quadruple the number. An hour after its last change, it falls to a quarter
/// again, but not below the number that staff have set.
#[route(PUT "/v1/products/{id}/stock/shards", id = "putStockShards", who = staff, task = "stock",
    path(id: ProductId), body = NewShards,
    answers(200 = StockShardsView "The number of shards, and the pieces of all shards"),
    refuses(not_found, has_variants = "a parent has no stock"))]
pub async fn put_shards(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let NewShards { shards } = request.body()?;
    let Some(stock) = stock::reshard(&services.table, &id, shards).await.map_err(failed)? else {
        return Err(not_for_sale(services, &id).await?);
    };
    telemetry::crash_point("catalog.stock.resharded");
    stock::level(&services.table, &id).await.map_err(failed)?;
    Ok(Response::ok(&StockShardsView { shards, stock: stock.available }))
}

/// Reads the first shard of a stock. If it is missing, a stock of the earlier form is moved.
pub async fn found(services: &Services, id: &ProductId) -> Result<Option<Stored<Stock>>, Problem> {
    stock::found(&services.table, id).await.map_err(failed)
}

/// Like [`found`], but moves no stock.
pub async fn seen(services: &Services, id: &ProductId) -> Result<Option<Stored<Stock>>, Problem> {
    stock::seen(&services.table, id).await.map_err(failed)
}

/// Returns the first shard with the pieces of all shards.
pub async fn whole(services: &Services, first: Stored<Stock>) -> Result<Stored<Stock>, Problem> {
    stock::whole(&services.table, first).await.map_err(failed)
}

/// Merges the shards of a stock.
pub async fn merge(services: &Services, id: &ProductId) -> Result<(), Problem> {
    stock::reshard(&services.table, id, 1).await.map(drop).map_err(failed)
}

/// Makes an attempt that needs a stock in one shard. If the table refuses the stock, its shards are
/// merged before the next attempt.
pub async fn in_one_shard<F>(services: &Services, id: &ProductId, attempt: impl Fn() -> F) -> Result<Response, Problem>
where
    F: Future<Output = Result<Result<Response, Refusals<ProductAction>>, Problem>>,
{
    retry_on_conflict(async || {
        if let Ok(response) = attempt().await? {
            return Ok(Some(response));
        }
        let first = found(services, id).await?.ok_or_else(|| stock_missing(id))?;
        if first.shards.is_some() {
            merge(services, id).await?;
        }
        Ok(None)
    })
    .await
}

fn failed(error: WorkflowError<ProductAction>) -> Problem {
    match error {
        WorkflowError::Table(error) => error.into(),
        WorkflowError::Contended => TableError::Contended.into(),
        error => Problem::internal(error),
    }
}

/// Adjust the stock by a number of pieces, once
///
/// Adds the pieces to the stock once, and returns the resulting stock. For a stock in several shards,
/// concurrent orders may have changed the returned number. With a `location` the request adjusts the
/// stock at that location, which begins with 0 pieces.
#[route(POST "/v1/products/{id}/stock/adjustments", id = "adjustStock", who = staff, task = "stock",
    path(id: ProductId),
    parameters(IdempotencyKey), body = Movement,
    answers(200 = StockView "The stock" [IdempotencyReplayed]),
    refuses(
        not_found,
        insufficient_stock = "the stock would be below zero",
        has_variants = "the product is a parent",
        invalid_body = "also if the stock would be too large",
    ))]
pub async fn adjust(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let id: ProductId = request.path("id")?;
    let once = Once::required(request)?;
    let Movement { adjust: by, reason, location } = request.body()?;
    if let Some(location) = stock_at::further(location) {
        let adjustment = Adjustment { by, reason, staff: staff.id().clone(), at: Instant::now() };
        return stock_at::adjust(services, (&id, &location), &once, adjustment).await;
    }
    retry_on_conflict(async || {
        let (shards, pieces) = match plan(services, &id, by).await? {
            Ok(plan) => plan,
            Err(problem) => return once.replay_or(services, problem).await.map(Some),
        };
        let at = Instant::now();
        let answer = Response::ok(&StockView { stock: pieces });
        let adjustment = Adjustment { by, reason: reason.clone(), staff: staff.id().clone(), at };
        let claim = once.claim_with(&answer, services.born(at)?, at)?;
        let adjust = product::adjust_stock(&shards, &adjustment, claim)?;
        let Err(refusals) = services.table.transact(&adjust).await? else { return Ok(Some(answer)) };
        // If the key has no stored response, another request changed the stock after this request
        // read it. Then this request tries again.
        if refusals.names(ProductAction::Idempotency) { once.replay(services).await } else { Ok(None) }
    })
    .await
}

/// Returns the shards of the stock, and the number of pieces after the adjustment.
async fn plan(
    services: &Services,
    id: &ProductId,
    by: i64,
) -> Result<Result<(Vec<Stored<Stock>>, u64), Problem>, Problem> {
    let first = found(services, id).await?.filter(|stock| stock.sellable);
    let Some(first) = first else { return Ok(Err(not_for_sale(services, id).await?)) };
    let shards = stock::shards(&services.table, first.clone()).await.map_err(failed)?;
    let whole = Stock { available: shards.iter().map(|shard| shard.available).sum(), ..first.data };
    Ok(whole.moved(by).map_err(|error| impossible(error, &whole)).map(|pieces| (shards, pieces)))
}

pub async fn not_for_sale(services: &Services, id: &ProductId) -> Result<Problem, Problem> {
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

pub fn impossible(error: StockError, stock: &Stock) -> Problem {
    match error {
        StockError::Insufficient => Problem::new(Code::InsufficientStock, "There are not enough pieces in stock.")
            .error("/adjust", format!("only {} in stock", stock.available)),
        StockError::TooLarge => {
            Problem::new(Code::InvalidBody, "The stock cannot become so large.").error("/adjust", error.to_string())
        }
    }
}
