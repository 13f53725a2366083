//! Explains why an order was not placed.

use http_api::{Code, Once, Problem, Reason, Services};
use key_schema::idempotency::IdempotencyRecord;
use key_schema::instant::Instant;
use key_schema::item::{FromItem, Stored};
use key_schema::money::{Money, MoneyError};
use key_schema::order::{self, Order, OrderAction, OrderStatus, ReferenceClaim};
use key_schema::product::Stock;
use key_schema::promotion::AppliedPromotion;
use table::{Refusal, Refusals, TableError};

use crate::lines::WantedLine;
use crate::location;
use crate::place::{Placed, Wanted, replay};
use crate::promotions;

/// The upper bound for the time that an order stays in status `placing`. The janitor undoes the
/// order well before that.
const LONGEST_PLACING_SECONDS: i64 = 60 * 60;

/// Returns the problem of a checkout whose total differs from the total that the customer has seen.
pub fn price_changed(expected: Money, total: Money) -> Problem {
    let detail = format!(
        "is {} {}, but the order's total is now {} {} (minor units)",
        expected.amount, expected.currency, total.amount, total.currency
    );
    Problem::new(
        Code::PriceChanged,
        "The total has changed. Read the cart again, or get a new quote, and show the customer the new total.",
    )
    .error("/expected_total", detail)
}

/// Returns the problem of an order without a quote, although shipping zones, tax rules or automatic
/// promotions exist.
pub fn quote_required() -> Problem {
    Problem::new(
        Code::QuoteRequired,
        "Shipping, tax and promotions must be known. Get a quote and check the cart out with it.",
    )
}

pub fn amount_refused(line: &WantedLine, error: MoneyError) -> Problem {
    let (field, detail) = match error {
        MoneyError::Mixed => ("total/currency", "The total of a line has another currency than the product."),
        _ => ("quantity", "The total of a line is too large."),
    };
    Problem::new(Code::InvalidBody, detail).errors([line.error(field, error.to_string())])
}

pub fn unknown_products<'a>(lines: impl IntoIterator<Item = &'a WantedLine>) -> Problem {
    let problem = Problem::new(Code::UnknownProduct, "The order has products that are not in the catalogue.");
    let at_line =
        |line: &WantedLine| line.error("product_id", "is not in the catalogue").reason(Reason::UnknownProduct);
    problem.errors(lines.into_iter().map(at_line))
}

pub fn parents_of_variants<'a>(lines: impl IntoIterator<Item = &'a WantedLine>) -> Problem {
    let problem = Problem::new(Code::HasVariants, "The order has products that are sold only as variants.");
    let at_line =
        |line: &WantedLine| line.error("product_id", "has variants: choose one of them").reason(Reason::HasVariants);
    problem.errors(lines.into_iter().map(at_line))
}

const REFERENCE_TAKEN: &str = "An order with this reference already exists.";

/// Returns the problem of an order whose reference is taken, or `None` if the reference is free.
pub async fn reference_taken(services: &Services, order: &Order, now: Instant) -> Result<Option<Problem>, Problem> {
    let Some(claim) = ReferenceClaim::of(order) else { return Ok(None) };
    match services.table.get(&order::reference(&claim)?).await? {
        Some(first) => claimed(services, &first, now).await.map(Some),
        None => Ok(None),
    }
}

async fn claimed(services: &Services, claim: &Stored<ReferenceClaim>, now: Instant) -> Result<Problem, Problem> {
    // The function may still undo an order in status `placing` and release the reference. An
    // expired order keeps its reference, even if its head no longer exists.
    let first = services.table.get(&order::head(&claim.order_id)?).await?;
    let long_ago = claim.meta.created_at.plus_seconds(LONGEST_PLACING_SECONDS) < now;
    let placed = first.map_or(long_ago, |first| first.status != OrderStatus::Placing);
    Ok(if placed {
        Problem::new(Code::AlreadyExists, REFERENCE_TAKEN).location(location(&claim.order_id))
    } else {
        Problem::new(
            Code::IdempotencyInProgress,
            "An order with this reference is being placed now. Try again shortly.",
        )
    })
}

/// Returns the problem of a refused transaction. Of several refusals, the most specific one
/// decides. If a concurrent attempt of the same request was first, returns the order of that
/// attempt instead.
pub async fn refused(
    services: &Services,
    is_staff: bool,
    once: Option<&Once>,
    wanted: &Wanted,
    applied: &[AppliedPromotion],
    refusals: &Refusals<OrderAction>,
    now: Instant,
) -> Result<Placed, Problem> {
    if let (Some(once), Some(refusal)) = (once, refusals.of(OrderAction::Idempotency)) {
        // A concurrent attempt of the same request was first, and this attempt gets the same
        // response.
        let record = stored::<IdempotencyRecord>(refusal);
        return replay(services, once, record.as_deref(), now).await?.ok_or_else(Once::in_progress);
    }
    if let Some(refusal) = refusals.of(OrderAction::Reference) {
        return Err(match stored::<ReferenceClaim>(refusal) {
            Some(claim) => claimed(services, &claim, now).await?,
            None => Problem::new(Code::AlreadyExists, REFERENCE_TAKEN),
        });
    }
    if refusals.names(OrderAction::Customer) {
        return Err(Problem::not_found("customer"));
    }
    if refusals.names(OrderAction::Cart) {
        return Err(Problem::new(Code::Conflict, "The cart changed during the checkout. Read it again."));
    }
    if let Some(problem) = promotions::refused(applied, refusals) {
        return Err(problem);
    }
    let short: Vec<(&WantedLine, Option<Stored<Stock>>)> = refusals
        .iter()
        .filter_map(|refusal| match refusal.action {
            OrderAction::Stock(number) => {
                let at = usize::try_from(number).ok()?.checked_sub(1)?;
                Some((wanted.lines.get(at)?, stored(refusal)))
            }
            _ => None,
        })
        .collect();
    if refusals.names(OrderAction::Order) {
        // The janitor has begun to undo the order, so this attempt cannot complete it. The client
        // can retry.
        return Err(TableError::Contended.into());
    }
    if short.is_empty() {
        // The remaining refusals mean that the new id exists already.
        return Err(Problem::unexpected(refusals));
    }
    let missing: Vec<&WantedLine> = short.iter().filter(|(_, stock)| stock.is_none()).map(|(line, _)| *line).collect();
    if !missing.is_empty() {
        // The products were read before the transaction, so only their stock is damaged.
        let problem = Problem::stock_unavailable("the stock of an order's line is missing or unreadable");
        let detail = "cannot be sold until its stock is repaired";
        let at_line = |line: &WantedLine| line.error("product_id", detail).reason(Reason::StockUnavailable);
        return Err(problem.errors(missing.into_iter().map(at_line)));
    }
    let gone: Vec<&WantedLine> = short
        .iter()
        .filter(|(_, stock)| stock.as_ref().is_some_and(|stock| !stock.sellable))
        .map(|(line, _)| *line)
        .collect();
    if !gone.is_empty() {
        // The products were retired, or became parents, between the read and the transaction.
        return Err(unknown_products(gone));
    }
    let is_enough = |line: &WantedLine, stock: &Stored<Stock>| stock.available >= line.quantity;
    if short.iter().any(|(line, stock)| stock.as_ref().is_some_and(|stock| is_enough(line, stock))) {
        // A product was revived between the read and the transaction, perhaps with another price.
        return Err(TableError::Contended.into());
    }
    let problem = Problem::new(Code::InsufficientStock, "There are not enough pieces in stock. No order was placed.");
    Err(problem.errors(short.into_iter().map(|(line, stock)| {
        let available = stock.map_or(0, |stock| stock.available);
        if available == 0 {
            return line.error("quantity", "out of stock").reason(Reason::OutOfStock);
        }
        // Only staff may see the exact stock.
        let exact = is_staff.then(|| format!("only {available} in stock"));
        let detail = exact.unwrap_or_else(|| "not enough in stock".to_owned());
        line.error("quantity", detail).reason(Reason::InsufficientStock)
    })))
}

fn stored<T>(refusal: &Refusal<OrderAction>) -> Option<Stored<T>>
where
    Stored<T>: FromItem,
{
    refusal.stored().ok().flatten()
}
