//! Places an order: completely, or not at all.
//!
//! One BatchGet reads the customer, the products and the record of the idempotency key. One
//! transaction then writes the head, the lines, the first step of the history and the customer's
//! copy of the head. It also claims the reference and the idempotency key. It takes each line's
//! pieces from stock, on the condition that there are enough.
//!
//! The response has one error for each refused line, because a refused transaction shows the
//! refused actions by position. An order with more lines than a transaction can hold is placed in
//! several transactions. The order stays invisible until the last transaction
//! ([`workflows::staging`]).
//!
//! A repeated request looks up the record of its first attempt before any check of stored data. So
//! it gets the first response even if data has changed since. If two attempts run concurrently,
//! only one transaction writes the record. The other attempt is refused and reads this record.

use std::fmt::Debug;

use http_api::contract::Body;
use http_api::{Code, Once, Problem, Services, SignedIn};
use key_schema::checkout_session::{self, CheckoutSession};
use key_schema::customer::Customer;
use key_schema::guest_cart::CartToken;
use key_schema::id::{CustomerId, OrderId, OrderReference, StoreId};
use key_schema::idempotency::{self, IdempotencyRecord, Scope, StoredResponse};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, MayBe as _, Stored, take};
use key_schema::money::Money;
use key_schema::order::addresses::Guest;
use key_schema::order::guest::OrderToken;
use key_schema::order::open::OpenOrders;
use key_schema::order::{self, Charges, MAX_LINES, Order, OrderAction, Origin, PlacedOrder, PreparedItem, open};
use key_schema::pricing::Pricing;
use key_schema::request::Guarded;
use table::{Backoff, Refusals, TableError};
use workflows::staging::{self, StagingError};
use workflows::{WorkflowError, stock};

use crate::addresses::GivenAddresses;
use crate::bounds;
use crate::lines::{self, Sold, WantedLine};
use crate::promotions;
use crate::quote::Quoted;
use crate::refusal::{price_changed, quote_required, reference_taken, refused};
use crate::{Shop, visible, with_addresses};

/// The guest who orders.
#[derive(Debug)]
pub struct NewGuest {
    pub guest: Guest,
    /// The token of the guest's cart, from which the token of the order follows.
    pub cart: CartToken,
}

/// What an order is placed from. The transaction of the order also changes it.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// The lines of a request.
    Request,
    /// A cart, with the write that removes it.
    Cart(&'a Guarded),
    /// A checkout session, which gets the id of the order.
    Session(&'a Stored<CheckoutSession>),
}

impl Source<'_> {
    fn write(self, order: &OrderId, now: Instant) -> Result<Option<Guarded>, EncodeError> {
        match self {
            Self::Request => Ok(None),
            Self::Cart(removal) => Ok(Some(removal.clone())),
            Self::Session(session) => checkout_session::complete(session, order, now).map(Some),
        }
    }
}

/// The fields that a new order and a checkout have in common, except the addresses.
#[derive(Debug, Default, Body)]
pub struct Details {
    /// Staff only: whether the order lapses when it is not paid in time. A customer's order always
    /// lapses.
    #[field(staff, left_out, default)]
    pub lapses: bool,
}

#[derive(Debug)]
pub struct Wanted {
    /// The customer, or the id of the guest.
    pub customer_id: CustomerId,
    pub guest: Option<NewGuest>,
    /// The JSON Pointer to the list of lines, in the request's body or in the cart.
    pub list: &'static str,
    /// The lines, in the sequence of their numbers in the order.
    pub lines: Vec<WantedLine>,
    pub reference: Option<OrderReference>,
    /// The agent and the session of an order that an agent places.
    pub origin: Option<Origin>,
    /// Staff only: the time of placing.
    pub placed_at: Option<Instant>,
    /// Staff only: the store where the order was placed.
    pub store_id: Option<StoreId>,
    pub details: Details,
    /// The total that the client has shown to the customer. Any other total is refused.
    pub expected_total: Option<Money>,
    pub addresses: GivenAddresses,
    /// The quote, with the current data that determines its price.
    pub quote: Option<Quoted>,
}

/// An order that a request has placed.
#[derive(Debug)]
pub struct Placed {
    /// The order as the first response showed it.
    pub order: PlacedOrder,
    /// Whether an earlier request with the same key has placed the order.
    pub is_replay: bool,
}

/// Returns the order of the first request again, if the record belongs to this request and has not
/// expired. Only an invoice, an erasure or a claim changes the data that the first response showed.
pub async fn replay(
    services: &Services,
    once: &Once,
    record: Option<&IdempotencyRecord>,
    now: Instant,
) -> Result<Option<Placed>, Problem> {
    let Some(answer) = once.first(record, now)? else { return Ok(None) };
    // An agent's request that ran at the same time may have been answered without an order.
    let StoredResponse::Order(id) = answer else { return Err(Once::in_progress()) };
    let items = services.table.query(&order::read_for_update(id)?).await?.items;
    // A large order takes several transactions, so some items may still be missing. The response is
    // repeated even after a retired order has expired.
    let order = visible(items, Instant::MIN).ok_or_else(Once::in_progress)?;
    let order = with_addresses(services, order).await?;
    Ok(Some(Placed { order: order.as_placed(), is_replay: true }))
}

/// Places an order. `caller` is absent for a guest. `lookup` is the scope of the idempotency record,
/// if the record was not read yet.
pub async fn place(
    shop: &Shop,
    caller: Option<&SignedIn>,
    wanted: Wanted,
    once: Option<&Once>,
    lookup: Option<&Scope>,
    from: Source<'_>,
) -> Result<Placed, Problem> {
    let mut backoff = Backoff::new();
    loop {
        if let Some(placed) = attempt(shop, caller, &wanted, once, lookup, from).await? {
            return Ok(placed);
        }
        backoff.after_conflict().await?;
    }
}

/// Returns `None` if another order has the number that follows from the new order's id. The next
/// attempt has another id.
async fn attempt(
    shop: &Shop,
    caller: Option<&SignedIn>,
    wanted: &Wanted,
    once: Option<&Once>,
    lookup: Option<&Scope>,
    from: Source<'_>,
) -> Result<Option<Placed>, Problem> {
    let (services, now) = (&shop.services, Instant::now());
    if wanted.lines.len() > MAX_LINES {
        return Err(Problem::new(Code::TooManyLines, format!("An order can have at most {MAX_LINES} lines.")));
    }
    let (bounded, guest) = (!caller.is_some_and(SignedIn::is_staff), wanted.guest.as_ref());
    let products = wanted.lines.iter().map(|line| &line.product_id);
    let known = order::prepare(&wanted.customer_id, bounded, lookup, products)?;
    let mut known = match lines::read_products(services, &known, &wanted.lines, 1).await {
        Ok(known) => known,
        Err(problem) => return first_response_or(services, once, now, problem).await.map(Some),
    };
    let mut open = take::<OpenOrders, _>(&mut known);
    let has_rules = take::<Pricing, _>(&mut known).is_some_and(|pricing| pricing.rules > 0);
    if let (Some(once), Some(record)) = (once, take::<IdempotencyRecord, _>(&mut known))
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(Some(first));
    }
    let customer = take::<Customer, _>(&mut known);
    if customer.is_none() && guest.is_none() {
        return first_response_or(services, once, now, Problem::not_found("customer")).await.map(Some);
    }
    let products = known.split_off(known.len().saturating_sub(wanted.lines.len()));
    let limits = if bounded || wanted.details.lapses { Some(shop.limits().await?) } else { None };
    if has_rules && wanted.quote.is_none() && limits.is_some_and(|limits| !limits.quote_optional) {
        return first_response_or(services, once, now, quote_required()).await.map(Some);
    }
    let lapses_at = limits.map(|limits| limits.lapse_of(now));
    let order_id = OrderId::generate(wanted.placed_at.unwrap_or(now), services.random()?);
    let mut order = match assemble(services, wanted, order_id, lapses_at, products, caller, now) {
        Ok(assembled) => assembled,
        // The first attempt may have completed during these reads, and data may have changed since.
        Err(problem) => return first_response_or(services, once, now, problem).await.map(Some),
    };
    let required = limits.is_some_and(|limits| bounded && limits.shipping_address_required);
    let given = guest.map(|guest| &guest.guest);
    order.addresses = match wanted.addresses.resolve(&mut order.head, customer.as_deref(), given, required, now) {
        Ok(addresses) => addresses,
        Err(problem) => return first_response_or(services, once, now, problem).await.map(Some),
    };
    order.head.data.list_shards = services.layout(&order::BY_STATUS).await?.write;
    let mut with = Vec::new();
    if let Some(once) = once {
        let answer = StoredResponse::Order(order.head.id.clone());
        with.push((OrderAction::Idempotency, once.claim(answer, order.head.meta.born.clone(), now)?));
    }
    with.extend(from.write(&order.head.id, now)?.map(|write| (OrderAction::Cart, write)));
    let limits = limits.filter(|_| bounded);
    let mut backoff = Backoff::new();
    let refusals = loop {
        if let Some(quoted) = &wanted.quote {
            let (applied, open) = (order.head.promotions(), open.as_deref());
            let checked = promotions::check_first(services, &wanted.customer_id, quoted, applied, open).await;
            if let Err(problem) = checked {
                return first_response_or(services, once, now, problem).await.map(Some);
            }
        }
        let entry = match limits {
            None => Some(None),
            Some(limits) => match bounds::entry(services, open.as_ref(), &wanted.lines, limits, now).await {
                Ok(entry) => entry.map(|entry| open::enter(&order.head, entry, open.as_ref())).transpose()?.map(Some),
                Err(problem) => {
                    let problem = reference_taken(services, &order.head, now).await?.unwrap_or(problem);
                    return first_response_or(services, once, now, problem).await.map(Some);
                }
            },
        };
        if let Some(entry) = entry {
            with.retain(|(action, _)| *action != OrderAction::Open);
            with.extend(entry.map(|entry| (OrderAction::Open, entry)));
            let Err(refusals) = send(services, &mut order, &with, once, now).await? else {
                return Ok(Some(Placed { order, is_replay: false }));
            };
            if !refusals.only(OrderAction::Open) {
                break refusals;
            }
        }
        // Another order of the customer changed the open orders, or the attempt did not find all
        // lines of an order. The limits depend on all open orders, so the next attempt reads them
        // again.
        backoff.after_conflict().await?;
        open = services.table.get(&open::get(&wanted.customer_id)?).await?;
    };
    if refusals.iter().all(|refusal| matches!(refusal.action, OrderAction::Number | OrderAction::Open)) {
        return Ok(None);
    }
    match refused(services, !bounded, once, wanted, order.head.promotions(), &refusals, now).await {
        Err(problem) => first_response_or(services, once, now, problem).await.map(Some),
        answer => answer.map(Some),
    }
}

/// Sends the order's transactions. Returns their refusals, if the table refused them.
async fn send(
    services: &Services,
    order: &mut PlacedOrder,
    with: &[(OrderAction, Guarded)],
    once: Option<&Once>,
    now: Instant,
) -> Result<Result<(), Refusals<OrderAction>>, Problem> {
    let place = |order: &PlacedOrder| order::place(order, with);
    match stock::transact(&services.table, order, place).await {
        // Lines that take their pieces from several shards have more actions.
        Err(StagingError::Table(TableError::TooManyActions(_))) => {}
        Err(error) => return Err(workflow_failed(error)),
        Ok(placed) => return Ok(placed.inspect(|()| telemetry::crash_point("orders.placed"))),
    }
    let staged = order.staged(once.map(|once| once.scope().clone()), now);
    match staging::place(&services.table, staged, with).await {
        Ok(()) => Ok(Ok(())),
        Err(StagingError::Refused(refusals)) => Ok(Err(refusals)),
        Err(error) => Err(workflow_failed(error)),
    }
}

/// Returns the first response if another attempt has completed meanwhile. Otherwise returns
/// `problem`.
pub async fn first_response_or(
    services: &Services,
    once: Option<&Once>,
    now: Instant,
    problem: Problem,
) -> Result<Placed, Problem> {
    if let Some(once) = once
        && let Some(record) = services.table.get(&idempotency::get(once.scope())?).await?
        && let Some(first) = replay(services, once, Some(&record), now).await?
    {
        return Ok(first);
    }
    Err(problem)
}

pub fn workflow_failed<A: Copy + Debug + Send + Sync + 'static>(error: WorkflowError<A>) -> Problem {
    match error {
        WorkflowError::Table(error) => error.into(),
        WorkflowError::Contended => TableError::Contended.into(),
        error => Problem::internal(error),
    }
}

/// Builds the order from the wanted order and the current products.
fn assemble(
    services: &Services,
    wanted: &Wanted,
    id: OrderId,
    lapses_at: Option<Instant>,
    mut products: Vec<Option<PreparedItem>>,
    caller: Option<&SignedIn>,
    now: Instant,
) -> Result<PlacedOrder, Problem> {
    let (sold, mut total) = Sold::all(&wanted.lines, products.iter_mut().map(PreparedItem::take_from), wanted.list)?;
    let mut lines: Vec<_> = (1_u64..).zip(&sold).map(|(number, sold)| sold.line(&id, number)).collect();
    let discount: i64 = sold.iter().map(Sold::discount).sum();
    let mut charges = (discount > 0).then(|| Charges::of_lines(total.amount, discount));
    let mut uses = Vec::new();
    if let Some(quoted) = &wanted.quote {
        let price = quoted.price(&sold, total.currency)?;
        for (line, priced) in lines.iter_mut().zip(&price.priced.lines) {
            (line.discount, line.tax, line.total.amount) = (priced.discount, priced.tax, priced.total);
            line.tax_rate = priced.rate;
        }
        total = price.total();
        (charges, uses) = (Some(price.charges()), price.uses(&id));
    }
    if let Some(expected) = wanted.expected_total.filter(|expected| *expected != total) {
        return Err(price_changed(expected, total));
    }
    let order = Order {
        reference: wanted.reference.clone(),
        origin: wanted.origin.clone(),
        by_customer: !caller.is_some_and(SignedIn::is_staff),
        lapses_at,
        token_hash: wanted.guest.as_ref().map(|guest| OrderToken::of(&guest.cart, &id).hash()),
        store_id: wanted.store_id.clone(),
        charges,
        ..Order::new(
            id,
            wanted.customer_id.clone(),
            wanted.placed_at.unwrap_or(now),
            total,
            u64::try_from(lines.len()).map_err(Problem::internal)?,
        )
    };
    let by = caller.map_or(&order.customer_id, SignedIn::id).to_string();
    let born = services.born(now)?;
    let lines = lines.into_iter().map(|line| Stored::new(line, born.clone(), now)).collect();
    Ok(PlacedOrder { uses, ..PlacedOrder::new(Stored::new(order, born, now), lines, &by) })
}
