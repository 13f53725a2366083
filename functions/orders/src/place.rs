//! Placing an order: everything in one transaction, or nothing.
//!
//! One BatchGet reads the customer, the products and the record of the idempotency key. One transaction then writes head, lines, first step of
//! the history, the customer's copy, the claims on reference and idempotency key, and takes every line's pieces from stock on the condition that
//! there are enough. What the transaction refuses, it names by position: each line that cannot be served gets its own entry in the answer.
//!
//! A repeated request finds the record of its first attempt, before anything else is looked at: the first answer holds even where the world
//! has changed since. Two attempts at the same time race for the record inside their transactions; the loser finds the winner's.

use http_api::read::{array, instant, integer, money, parsed};
use http_api::{Code, Problem, Request, Response, SignedIn, Store};
use key_schema::entity::AnyEntity;
use key_schema::id::{CustomerId, OrderId, OrderReference, ProductId, StoreId};
use key_schema::idempotency::{self, Answer, IdempotencyRecord, Scope};
use key_schema::instant::Instant;
use key_schema::item::{FromItem as _, Item, Stored};
use key_schema::money::{Money, MoneyError};
use key_schema::order::{
    self, MAX_LINES, MAX_QUANTITY, Order, OrderLine, OrderStatus, Part, Placement, ReferenceClaim,
};
use key_schema::product::{Product, Stock};
use key_schema::request::{Guarded, MAX_TRANSACTION_ACTIONS};
use table::{Refusal, TransactError};

use crate::view::{Whole, location};

/// How far ahead of this function's clock a `placed_at` may lie: clocks differ, histories do not begin in the future.
const CLOCK_SKEW_SECONDS: i64 = 5 * 60;
/// More lines than this are not even read.
const MAX_LINES_READ: usize = 10_000;
/// The largest amount that a line may have been paid, in minor units.
const MAX_LINE_AMOUNT: i64 = 1_000_000_000_000;

/// What is to be ordered.
#[derive(Debug)]
pub struct Wanted {
    /// For whom.
    pub customer_id: CustomerId,
    /// The lines, in order.
    pub lines: Vec<WantedLine>,
    /// The client's own number.
    pub reference: Option<OrderReference>,
    /// Staff only: when it was placed.
    pub placed_at: Option<Instant>,
    /// Staff only: where.
    pub store_id: Option<StoreId>,
}

/// One line of it.
#[derive(Debug)]
pub struct WantedLine {
    /// What.
    pub product_id: ProductId,
    /// How many pieces.
    pub quantity: u64,
    /// Staff only: what was paid for the line.
    pub total: Option<Money>,
}

/// The idempotency key of a request with what tells it from another request.
#[derive(Debug)]
pub struct Once {
    scope: Scope,
    hash: String,
}

impl Once {
    /// From a request that has a key.
    pub fn new(request: &Request<'_>, caller: &SignedIn, key: &str) -> Result<Self, Problem> {
        let scope = Scope { caller: caller.id().to_string(), key: key.to_owned() };
        Ok(Self { scope, hash: request.fingerprint()? })
    }

    /// Whose key, and which.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The first answer again, if the record is this request's.
    pub async fn replay(&self, store: &Store, record: &IdempotencyRecord) -> Result<Response, Problem> {
        if record.request_hash != self.hash {
            return Err(Problem::new(Code::IdempotencyKeyReused, "This Idempotency-Key belongs to another request."));
        }
        let Answer::Order(id) = &record.answer else {
            return Err(Problem::internal("the idempotency record of an order holds another answer"));
        };
        let items = store.table.query(&order::edit(id)?).await?.items;
        let whole =
            Whole::assemble(items).ok_or_else(|| Problem::internal("the order of an idempotency record is missing"))?;
        Ok(created(&whole.into_placed()).header("idempotency-replayed", "true"))
    }

    fn claim(&self, order: &Stored<Order>, now: Instant) -> Result<Guarded, Problem> {
        let record = IdempotencyRecord {
            scope: self.scope.clone(),
            request_hash: self.hash.clone(),
            answer: Answer::Order(order.id.clone()),
            expires_at: now.plus_seconds(idempotency::LIFETIME_SECONDS),
        };
        Ok(idempotency::claim(&Stored::new(record, order.meta.born.clone(), now), now)?)
    }
}

/// Whether a record still counts.
pub fn is_live(record: &IdempotencyRecord, now: Instant) -> bool {
    record.expires_at > now
}

/// POST orders.
pub async fn create(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let caller = request.signed_in()?;
    let once = Once::new(request, &caller, request.idempotency_key()?)?;
    let wanted = read(request, &caller)?;
    request.owner(&wanted.customer_id)?;
    place(store, &caller, wanted, Some(&once), Some(once.scope()), None).await
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
            // A field that only staff may give is an unknown field to everybody else.
            let total = if caller.is_staff() { line.optional("total", money(0..=MAX_LINE_AMOUNT)) } else { Some(None) };
            let (product_id, quantity, total) = line.finish((product_id, quantity, total))?;
            Ok(WantedLine { product_id, quantity, total })
        }),
    );
    let reference = body.optional("reference", parsed::<OrderReference>);
    let (placed_at, store_id) = if caller.is_staff() {
        (body.optional("placed_at", instant), body.optional("store_id", parsed::<StoreId>))
    } else {
        (Some(None), Some(None))
    };
    let mut placed_at = placed_at;
    if let Some(Some(at)) = placed_at
        && !(Instant::EPOCH..=Instant::now().plus_seconds(CLOCK_SKEW_SECONDS)).contains(&at)
    {
        placed_at = body.refuse("placed_at", "must lie between 1970 and now");
    }
    let (customer_id, lines, reference, placed_at, store_id) =
        body.finish((customer_id, lines, reference, placed_at, store_id))?;
    let mut seen = std::collections::BTreeSet::new();
    let doubled: Vec<usize> =
        (0..).zip(&lines).filter(|(_, line)| !seen.insert(&line.product_id)).map(|(at, _)| at).collect();
    if !doubled.is_empty() {
        let problem = Problem::new(Code::InvalidBody, "A product stands in more than one line.");
        let at_line = |problem: Problem, at| {
            problem.error(format!("/lines/{at}/product_id"), "stands in an earlier line already")
        };
        return Err(doubled.into_iter().take(MAX_LINES).fold(problem, at_line));
    }
    Ok(Wanted { customer_id, lines, reference, placed_at, store_id })
}

/// Places an order. `lookup` is the scope of an idempotency record that nobody has looked for yet; `cart` is the cart's removal.
pub async fn place(
    store: &Store,
    caller: &SignedIn,
    wanted: Wanted,
    once: Option<&Once>,
    lookup: Option<&Scope>,
    cart: Option<Guarded>,
) -> Result<Response, Problem> {
    let now = Instant::now();
    let fits = |lines| {
        order::actions(lines, wanted.reference.is_some(), once.is_some(), cart.is_some()) <= MAX_TRANSACTION_ACTIONS
    };
    let too_many = |most: usize| Problem::new(Code::TooManyLines, format!("An order has at most {most} lines."));
    if wanted.lines.len() > MAX_LINES {
        return Err(too_many(MAX_LINES));
    }
    // A repetition of an order that did go through was within the limit, so nothing is lost by looking at it first.
    if !fits(wanted.lines.len()) {
        return Err(too_many((0..MAX_LINES).rev().find(|lines| fits(*lines)).unwrap_or(0)));
    }
    let known = order::prepare(&wanted.customer_id, lookup, wanted.lines.iter().map(|line| &line.product_id))?;
    let mut known = store.table.batch_get(&known).await?.into_iter();
    let customer = known.next().flatten();
    if lookup.is_some()
        && let (Some(once), Some(Some(AnyEntity::IdempotencyRecord(record)))) = (once, known.next())
        && is_live(&record, now)
    {
        return once.replay(store, &record).await;
    }
    if customer.is_none() {
        return Err(Problem::not_found("customer"));
    }
    let order_id = OrderId::generate(wanted.placed_at.unwrap_or(now), store.random()?);
    let whole = assemble(store, &wanted, order_id, known.collect(), caller, now)?;
    let claim = once.map(|once| once.claim(&whole.order, now)).transpose()?;
    let lines: Vec<Stored<OrderLine>> =
        whole.lines.iter().map(|line| Stored::new(line.clone(), whole.order.meta.born.clone(), now)).collect();
    let by = caller.id().as_str();
    let transaction = order::place(Placement { order: &whole.order, lines: &lines, by, claim, cart })?;
    match store.table.transact(&transaction).await {
        Ok(()) => {
            telemetry::crash_point("orders.placed");
            Ok(created(&whole))
        }
        Err(TransactError::Refused(refusals)) => refused(store, once, refusals, now).await,
        Err(TransactError::Table(error)) => Err(error.into()),
    }
}

/// Head, lines and first step, from what was wanted and the products as they are.
fn assemble(
    store: &Store,
    wanted: &Wanted,
    id: OrderId,
    products: Vec<Option<AnyEntity>>,
    caller: &SignedIn,
    now: Instant,
) -> Result<Whole, Problem> {
    let (mut lines, mut unknown) = (Vec::with_capacity(wanted.lines.len()), Vec::new());
    for (at, (line, product)) in (0_u64..).zip(wanted.lines.iter().zip(products)) {
        match product {
            Some(AnyEntity::Product(product)) if !product.retired => {
                lines.push(order_line(&id, at + 1, line, &product).map_err(|error| amount_refused(at, error))?);
            }
            _ => unknown.push(at),
        }
    }
    if !unknown.is_empty() {
        return Err(unknown_products(unknown));
    }
    let total = order::total(lines.iter().map(|line| &line.total)).map_err(|error| {
        Problem::new(Code::InvalidBody, "The order's total cannot be calculated.").error("/lines", error.to_string())
    })?;
    let total = total.ok_or_else(|| Problem::new(Code::InvalidBody, "An order has at least one line."))?;
    let order = Order {
        id,
        customer_id: wanted.customer_id.clone(),
        status: OrderStatus::Pending,
        placed_at: wanted.placed_at.unwrap_or(now),
        reference: wanted.reference.clone(),
        store_id: wanted.store_id.clone(),
        total,
        line_count: u64::try_from(lines.len()).map_err(Problem::internal)?,
        expires_at: None,
        invoice_number: None,
    };
    let first = order::history(&order, order.status, order.placed_at, caller.id().as_str(), None);
    Ok(Whole { order: Stored::new(order, store.born(now)?, now), lines, history: vec![first] })
}

fn order_line(order_id: &OrderId, number: u64, line: &WantedLine, product: &Product) -> Result<OrderLine, MoneyError> {
    let total = match line.total {
        Some(total) if total.currency != product.price.currency => return Err(MoneyError::Mixed),
        // What was really paid counts, also where it does not divide by the quantity.
        Some(total) => total,
        None => product.price.times(line.quantity)?,
    };
    Ok(OrderLine {
        order_id: order_id.clone(),
        line: number,
        product_id: line.product_id.clone(),
        name: product.name.clone(),
        quantity: line.quantity,
        unit_price: product.price,
        total,
        expires_at: None,
    })
}

fn amount_refused(at: u64, error: MoneyError) -> Problem {
    let field = if error == MoneyError::Mixed { "total/currency" } else { "quantity" };
    Problem::new(Code::InvalidBody, "A line's total cannot be calculated.")
        .error(format!("/lines/{at}/{field}"), error.to_string())
}

fn unknown_products(lines: impl IntoIterator<Item = u64>) -> Problem {
    let problem = Problem::new(Code::UnknownProduct, "The order names products that are not in the catalogue.");
    let at_line = |problem: Problem, at| problem.error(format!("/lines/{at}/product_id"), "is not in the catalogue");
    lines.into_iter().fold(problem, at_line)
}

/// What the transaction's refusals mean, the most telling first.
async fn refused(
    store: &Store,
    once: Option<&Once>,
    refusals: Vec<Refusal<Part>>,
    now: Instant,
) -> Result<Response, Problem> {
    let of = |part| refusals.iter().find(|refusal| refusal.label == part);
    if let (Some(once), Some(refusal)) = (once, of(Part::Idempotency)) {
        // The other of two concurrent attempts was first; what it did is the answer to both.
        let record = decoded::<IdempotencyRecord>(refusal.item.as_deref()).filter(|record| is_live(record, now));
        return match record {
            Some(record) => once.replay(store, &record).await,
            None => Err(Problem::new(
                Code::IdempotencyInProgress,
                "The first request with this Idempotency-Key is still running.",
            )),
        };
    }
    if let Some(refusal) = of(Part::Reference) {
        let problem = Problem::new(Code::AlreadyExists, "There is an order with this reference.");
        let first = decoded::<ReferenceClaim>(refusal.item.as_deref());
        return Err(match first {
            Some(claim) => problem.location(location(&claim.order_id)),
            None => problem,
        });
    }
    if of(Part::Customer).is_some() {
        return Err(Problem::not_found("customer"));
    }
    if of(Part::Cart).is_some() {
        return Err(Problem::new(Code::Conflict, "The cart changed while it was checked out; look at it again."));
    }
    let short: Vec<(u64, Option<Stored<Stock>>)> = refusals
        .iter()
        .filter_map(|refusal| match refusal.label {
            Part::Stock(line) => Some((line.saturating_sub(1), decoded(refusal.item.as_deref()))),
            _ => None,
        })
        .collect();
    if short.is_empty() {
        // A fresh id that exists already.
        return Err(Problem::internal(format!(
            "unexpected refusal of {:?}",
            refusals.first().map(|refusal| refusal.label)
        )));
    }
    let gone: Vec<u64> = short
        .iter()
        .filter(|(_, stock)| !stock.as_ref().is_some_and(|stock| stock.sellable))
        .map(|(at, _)| *at)
        .collect();
    if !gone.is_empty() {
        // Retired between the read and the transaction.
        return Err(unknown_products(gone));
    }
    let problem = Problem::new(Code::InsufficientStock, "There are not enough pieces in stock; nothing was ordered.");
    Err(short.into_iter().fold(problem, |problem, (at, stock)| {
        let available = stock.map_or(0, |stock| stock.available);
        problem.error(format!("/lines/{at}/quantity"), format!("only {available} in stock"))
    }))
}

fn decoded<T: key_schema::item::Entity>(item: Option<&Item>) -> Option<Stored<T>> {
    Stored::from_item(item?.clone()).ok()
}

fn created(whole: &Whole) -> Response {
    Response::created(whole.location(), &whole.view()).etag(whole.order.meta.version)
}
