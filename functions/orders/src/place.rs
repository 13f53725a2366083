//! Places an order: completely, or not at all.
//!
//! One BatchGet reads the customer, the products and the record of the idempotency key. One
//! transaction then writes head, lines, first step of the history, the customer's copy, and the
//! claims on reference and idempotency key. It also takes each line's pieces from stock, on the
//! condition that there are enough.
//!
//! The response has one error for each refused line, because a refused transaction shows the
//! refused actions by position. An order with more lines than a transaction can hold is placed in
//! several transactions. It stays invisible until the last one ([`workflows::staging`]).
//!
//! A repeated request looks up the record of its first attempt before any check. So it gets the
//! first response even if data has changed since. If two attempts run concurrently, only one
//! transaction writes the record. The other attempt is refused and reads this record.

use std::borrow::Cow;

use http_api::fields::{array, boolean, instant, integer, money, parsed};
use http_api::{Code, Once, Problem, Request, Response, Services, SignedIn};
use key_schema::entity::AnyEntity;
use key_schema::id::{CustomerId, OrderId, OrderReference, ProductId, StoreId};
use key_schema::idempotency::{self, IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::money::{Money, MoneyError};
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{
    self, MAX_LINES, MAX_QUANTITY, MAX_TOTAL, Order, OrderAction, OrderLine, OrderStatus, Placement, open,
};
use key_schema::product::Product;
use key_schema::request::{Guarded, MAX_TRANSACTION_ACTIONS};
use table::{Backoff, Refusals, TableError};
use workflows::staging::{self, Placing, StagingError};

use crate::App;
use crate::bounds;
use crate::refusal::{amount_refused, price_changed, reference_taken, refused, unknown_products};
use crate::view::OrderCollection;

/// The tolerance for a `placed_at` ahead of this function's clock. Clocks differ, but an order
/// cannot be placed in the future.
const CLOCK_SKEW_SECONDS: i64 = 5 * 60;
/// The maximum number of lines that are read. A longer array gets a single error about its length.
const MAX_LINES_READ: usize = 10_000;
/// The largest amount that a client may state for a line, in minor units.
const MAX_LINE_AMOUNT: i64 = 1_000_000_000_000;

/// An order that a caller wants to place.
#[derive(Debug)]
pub struct Wanted {
    /// The customer.
    pub customer_id: CustomerId,
    /// The JSON Pointer to the list of lines, in the request's body or in the cart.
    pub list: &'static str,
    /// The lines, in order.
    pub lines: Vec<WantedLine>,
    /// The client's reference for the order.
    pub reference: Option<OrderReference>,
    /// Staff only: the time of placing.
    pub placed_at: Option<Instant>,
    /// Staff only: the shop where it was placed.
    pub store_id: Option<StoreId>,
    /// Staff only: whether the order lapses. A customer's order always lapses.
    pub lapses: bool,
    /// The total that the client has shown to the customer. Any other total is refused.
    pub expected_total: Option<Money>,
}

/// A line of the wanted order.
#[derive(Debug)]
pub struct WantedLine {
    /// The JSON Pointer to the line, in the request's body or in the cart.
    pub pointer: String,
    /// The product.
    pub product_id: ProductId,
    /// The number of pieces.
    pub quantity: u64,
    /// Staff only: the amount paid for the line.
    pub total: Option<Money>,
}

impl WantedLine {
    /// Adds an error about one field of this line to a problem.
    pub fn error(&self, problem: Problem, field: &str, detail: impl Into<Cow<'static, str>>) -> Problem {
        problem.line_error(format!("{}/{field}", self.pointer), &self.product_id, detail)
    }
}

/// Returns the first response again, if the record belongs to this request and has not expired. The
/// function rebuilds this response from items of the order that never change.
pub async fn replay(
    services: &Services,
    once: &Once,
    record: Option<&IdempotencyRecord>,
    now: Instant,
) -> Result<Option<Response>, Problem> {
    let Some(answer) = once.first(record, now)? else { return Ok(None) };
    let StoredResponse::Order(id) = answer else {
        return Err(Problem::internal("the idempotency record of an order holds another answer"));
    };
    let items = services.table.query(&order::read_for_update(id)?).await?.items;
    // A large order takes several transactions, so some items may still be missing.
    let collection = OrderCollection::assemble(items).ok_or_else(Once::in_progress)?;
    Ok(Some(created(&collection.into_placed()).header("idempotency-replayed", "true")))
}

/// POST orders: places an order.
pub async fn create(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let once = Once::required(request)?;
    let wanted = read(request, &caller)?;
    request.owner(&wanted.customer_id)?;
    place(app, &caller, wanted, Some(&once), Some(once.scope()), None).await
}

fn read(request: &Request<'_>, caller: &SignedIn) -> Result<Wanted, Problem> {
    let mut body = request.object()?;
    let customer_id = body.required("customer_id", parsed::<CustomerId>);
    let lines = body.required(
        "lines",
        array(1..=MAX_LINES_READ, |value| {
            let mut line = value.object()?;
            let product_id = line.required("product_id", parsed::<ProductId>);
            let quantity = line.required("quantity", integer(1..=MAX_QUANTITY));
            // Only staff may send `total`. For any other caller it is an unknown field.
            let total = if caller.is_staff() { line.optional("total", money(0..=MAX_LINE_AMOUNT)) } else { Some(None) };
            let (product_id, quantity, total) = line.finish((product_id, quantity, total))?;
            Ok(WantedLine { pointer: String::new(), product_id, quantity, total })
        }),
    );
    let reference = body.optional("reference", parsed::<OrderReference>);
    let (placed_at, store_id, lapses) = if caller.is_staff() {
        let placed_at = body.optional("placed_at", instant);
        (placed_at, body.optional("store_id", parsed::<StoreId>), body.optional("lapses", boolean))
    } else {
        (Some(None), Some(None), Some(None))
    };
    let mut placed_at = placed_at;
    if let Some(Some(at)) = placed_at
        && !(Instant::EPOCH..=Instant::now().plus_seconds(CLOCK_SKEW_SECONDS)).contains(&at)
    {
        placed_at = body.refuse("placed_at", "must be between 1970 and now");
    }
    let (customer_id, mut lines, reference, placed_at, store_id, lapses) =
        body.finish((customer_id, lines, reference, placed_at, store_id, lapses))?;
    let lapses = lapses == Some(true);
    for (at, line) in lines.iter_mut().enumerate() {
        line.pointer = format!("/lines/{at}");
    }
    let mut seen = std::collections::BTreeSet::new();
    let doubled: Vec<&WantedLine> = lines.iter().filter(|line| !seen.insert(&line.product_id)).collect();
    if !doubled.is_empty() {
        let problem = Problem::new(Code::InvalidBody, "A product is in more than one line.");
        return Err(doubled
            .into_iter()
            .take(MAX_LINES)
            .fold(problem, |problem, line| line.error(problem, "product_id", "is in an earlier line already")));
    }
    let list = "/lines";
    Ok(Wanted { customer_id, list, lines, reference, placed_at, store_id, lapses, expected_total: None })
}

/// Places an order. `lookup` is the scope of the idempotency record, if the record was not read
/// yet. `cart` is the write that removes the cart.
pub async fn place(
    app: &App,
    caller: &SignedIn,
    wanted: Wanted,
    once: Option<&Once>,
    lookup: Option<&Scope>,
    cart: Option<Guarded>,
) -> Result<Response, Problem> {
    let (services, now) = (&app.services, Instant::now());
    if wanted.lines.len() > MAX_LINES {
        return Err(Problem::new(Code::TooManyLines, format!("An order can have at most {MAX_LINES} lines.")));
    }
    let bounded = !caller.is_staff();
    let known = wanted.lines.iter().map(|line| &line.product_id);
    let known = order::prepare(&wanted.customer_id, bounded, lookup, known)?;
    let mut known = services.table.batch_get(&known).await?.into_iter();
    let customer = known.next().flatten();
    let mut open = match bounded.then(|| known.next().flatten()) {
        Some(Some(AnyEntity::OpenOrders(open))) => Some(open),
        _ => None,
    };
    if lookup.is_some()
        && let (Some(once), Some(Some(AnyEntity::IdempotencyRecord(record)))) = (once, known.next())
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(first);
    }
    if customer.is_none() {
        return first_response_or(services, once, now, Problem::not_found("customer")).await;
    }
    let limits = if bounded || wanted.lapses { Some(app.limits().await?) } else { None };
    let lapses_at = limits.map(|limits| limits.lapse_of(now));
    let order_id = OrderId::generate(wanted.placed_at.unwrap_or(now), services.random()?);
    let mut collection = match assemble(services, &wanted, order_id, lapses_at, known.collect(), caller, now) {
        Ok(collection) => collection,
        // The first attempt may have completed during these reads, and data may have changed since.
        Err(problem) => return first_response_or(services, once, now, problem).await,
    };
    collection.order.data.list_shards = services.layout(&order::BY_STATUS).await?.write;
    let lines: Vec<Stored<OrderLine>> = collection
        .lines
        .iter()
        .map(|line| Stored::new(line.clone(), collection.order.meta.born.clone(), now))
        .collect();
    let placing =
        Attempt { services, collection: &collection, lines: &lines, once, by: caller.id().as_str(), cart, now };
    let limits = limits.filter(|_| bounded);
    let mut backoff = Backoff::new();
    let refusals = loop {
        let entry = match limits {
            None => Some(None),
            Some(limits) => match bounds::entry(services, open.as_ref(), &wanted.lines, limits, now).await {
                Ok(entry) => {
                    entry.map(|entry| open::enter(&collection.order, entry, open.as_ref())).transpose()?.map(Some)
                }
                Err(problem) => {
                    let problem = reference_taken(services, &collection.order, now).await?.unwrap_or(problem);
                    return first_response_or(services, once, now, problem).await;
                }
            },
        };
        if let Some(entry) = entry {
            let Err(refusals) = placing.send(entry).await? else { return Ok(created(&collection)) };
            if !refusals.only(OrderAction::Open) {
                break refusals;
            }
        }
        // Another order of the customer changed the open orders, or the attempt read only some
        // lines of an order. The limits depend on all open orders, so the next attempt reads them
        // again.
        backoff.after_conflict().await?;
        open = services.table.get(&open::get(&wanted.customer_id)?).await?;
    };
    match refused(services, caller, once, &wanted.lines, &refusals, now).await {
        Err(problem) => first_response_or(services, once, now, problem).await,
        answer => answer,
    }
}

/// An order that is ready to be placed.
struct Attempt<'a> {
    services: &'a Services,
    collection: &'a OrderCollection,
    lines: &'a [Stored<OrderLine>],
    once: Option<&'a Once>,
    by: &'a str,
    cart: Option<Guarded>,
    now: Instant,
}

impl Attempt<'_> {
    /// Sends the order's transactions. Returns their refusals, if the table refused them. `open` is
    /// the write of the order's entry in the customer's open orders.
    async fn send(&self, open: Option<Guarded>) -> Result<Result<(), Refusals<OrderAction>>, Problem> {
        let Self { services, collection, lines, once, by, now, .. } = *self;
        let (order, cart) = (&collection.order, self.cart.clone());
        let claim = |once: &Once| once.claim(StoredResponse::Order(order.id.clone()), order.meta.born.clone(), now);
        let claim = once.map(claim).transpose()?;
        let is_claimed = order.reference.is_some();
        let actions = order::actions(lines.len(), is_claimed, once.is_some(), open.is_some(), cart.is_some());
        if actions <= MAX_TRANSACTION_ACTIONS {
            let transaction = order::place(Placement { order, lines, by, claim, open, cart })?;
            let placed = services.table.transact(&transaction).await?;
            return Ok(placed.inspect(|()| telemetry::crash_point("orders.placed")));
        }
        let mut order = order.clone();
        order.data.status = OrderStatus::Placing;
        let work = Work::Placing { key: once.map(|once| once.scope().clone()), lines: 0 };
        order.data.unfinished = Some(Unfinished { since: now, work });
        match staging::place(&services.table, Placing { order: &order, lines, by, claim, open, cart }).await {
            Ok(()) => Ok(Ok(())),
            Err(StagingError::Refused(refusals)) => Ok(Err(refusals)),
            Err(error) => Err(staging_failed(error)),
        }
    }
}

/// Returns the first response if another attempt has completed meanwhile. Otherwise returns
/// `problem`.
async fn first_response_or(
    services: &Services,
    once: Option<&Once>,
    now: Instant,
    problem: Problem,
) -> Result<Response, Problem> {
    if let Some(once) = once
        && let Some(record) = services.table.get(&idempotency::get(once.scope())?).await?
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(first);
    }
    Err(problem)
}

/// Maps a failure of work in several transactions to the client's problem.
pub fn staging_failed(error: StagingError) -> Problem {
    match error {
        StagingError::Table(error) => error.into(),
        StagingError::Contended => TableError::Contended.into(),
        error => Problem::internal(error),
    }
}

/// Builds head, lines and first step from the wanted order and the current products.
fn assemble(
    services: &Services,
    wanted: &Wanted,
    id: OrderId,
    lapses_at: Option<Instant>,
    products: Vec<Option<AnyEntity>>,
    caller: &SignedIn,
    now: Instant,
) -> Result<OrderCollection, Problem> {
    let (mut lines, mut unknown) = (Vec::with_capacity(wanted.lines.len()), Vec::new());
    for (number, (line, product)) in (1_u64..).zip(wanted.lines.iter().zip(products)) {
        match product {
            Some(AnyEntity::Product(product)) if !product.retired => {
                lines.push(order_line(&id, number, line, &product).map_err(|error| amount_refused(line, error))?);
            }
            _ => unknown.push(line),
        }
    }
    if !unknown.is_empty() {
        return Err(unknown_products(unknown));
    }
    let refused =
        |detail: String| Problem::new(Code::InvalidBody, "The order's total is invalid.").error(wanted.list, detail);
    let total = order::total(lines.iter().map(|line| &line.total)).map_err(|error| refused(error.to_string()))?;
    let total = total.ok_or_else(|| Problem::new(Code::InvalidBody, "An order must have at least one line."))?;
    if total.amount > MAX_TOTAL {
        return Err(refused(format!("add up to more than {MAX_TOTAL} minor units")));
    }
    if let Some(expected) = wanted.expected_total.filter(|expected| *expected != total) {
        return Err(price_changed(expected, total));
    }
    let order = Order {
        reference: wanted.reference.clone(),
        by_customer: !caller.is_staff(),
        lapses_at,
        store_id: wanted.store_id.clone(),
        ..Order::new(
            id,
            wanted.customer_id.clone(),
            wanted.placed_at.unwrap_or(now),
            total,
            u64::try_from(lines.len()).map_err(Problem::internal)?,
        )
    };
    let first = order::history(&order, order.status, order.placed_at, caller.id().as_str(), None);
    Ok(OrderCollection { order: Stored::new(order, services.born(now)?, now), lines, history: vec![first] })
}

fn order_line(
    order_id: &OrderId,
    number: u64,
    line: &WantedLine,
    product: &Stored<Product>,
) -> Result<OrderLine, MoneyError> {
    let total = match line.total {
        Some(total) if total.currency != product.price.currency => return Err(MoneyError::Mixed),
        // The function accepts the paid amount, even if it is not a multiple of the quantity.
        Some(total) => total,
        None => product.price.times(line.quantity)?,
    };
    Ok(OrderLine {
        order_id: order_id.clone(),
        line: number,
        product_id: line.product_id.clone(),
        product_born: Some(product.meta.born.clone()),
        name: product.name.clone(),
        quantity: line.quantity,
        unit_price: product.price,
        total,
        expires_at: None,
    })
}

fn created(collection: &OrderCollection) -> Response {
    Response::created(collection.location(), &collection.view()).etag(collection.order.meta.version)
}
