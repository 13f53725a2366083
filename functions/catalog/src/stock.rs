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
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Adjustment, MAX_STOCK, ProductAction, Stock, StockError};
use table::retry_on_conflict;

use crate::body::PIECES;
use crate::products::{no_such_product, stock_missing};
use crate::view::StockView;

const MAX_ADJUSTMENT: i64 = MAX_STOCK.cast_signed();

#[derive(Body)]
#[body(name = "StockChange")]
struct NewStock {
    #[field(rule = PIECES, example = 50)]
    set: u64,
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
#[route(PUT "/v1/products/{id}/stock", id = "putStock", who = staff, task = "stock",
    path(id: ProductId), body = NewStock,
    answers(200 = StockView "The stock"),
    refuses(not_found, has_variants = "the stock of a parent cannot be set"))]
pub async fn set(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let NewStock { set } = request.body()?;
    let stock = services.table.update(&product::set_stock(&id, set, Instant::now())?).await?;
    match stock {
        Ok(stock) => Ok(Response::ok(&StockView { stock: stock.available })),
        Err(_) => Err(not_for_sale(services, &id).await?),
    }
}

/// Adjust the stock by a number of pieces, once
///
/// Adds the pieces to the stock once, and returns the resulting stock.
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
    let Movement { adjust: by, reason } = request.body()?;
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

fn impossible(error: StockError, stock: &Stock) -> Problem {
    match error {
        StockError::Insufficient => Problem::new(Code::InsufficientStock, "There are not enough pieces in stock.")
            .error("/adjust", format!("only {} in stock", stock.available)),
        StockError::TooLarge => {
            Problem::new(Code::InvalidBody, "The stock cannot become so large.").error("/adjust", error.to_string())
        }
    }
}
