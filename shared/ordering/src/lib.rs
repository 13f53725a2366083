//! Places and pays orders, for the functions with routes: prices of baskets, quotes, and the limits of
//! open orders.
//!
//! [`quote`] fixes a price, and [`place`] places an order at this price, completely or not at all.
//! [`payments`] begins the payments of an order. The errors are the problems that clients get.

pub mod addresses;
mod bounds;
mod limits;
pub mod lines;
pub mod payments;
pub mod place;
pub mod price;
pub mod promotions;
pub mod quote;
mod refusal;

use ::payments::Account;
use http_api::{Has, Measured, PatternCost, Problem, Services};
use key_schema::id::OrderId;
use key_schema::instant::Instant;
use key_schema::order::open::Limits;
use key_schema::order::{OrderItem, PlacedOrder, addresses as order_addresses};

pub use limits::LimitsError;

/// The state of a function that places orders.
#[derive(Debug)]
pub struct Shop {
    pub services: Services,
    /// The limits of open orders that apply if the settings contain none.
    pub defaults: Limits,
    /// The account at the payment provider.
    pub account: Account,
}

impl Shop {
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self { services, defaults: Limits::default(), account: Account::with(None) }
    }

    /// Creates the state from the environment: `PENDING_ORDER_MINUTES`, and the variables of
    /// [`Services::from_env`] and [`Account::from_env`].
    pub async fn from_env() -> Result<Self, http_api::Error> {
        let defaults = limits::defaults(std::env::var("PENDING_ORDER_MINUTES").ok().as_deref())?;
        Ok(Self { defaults, account: Account::from_env()?, ..Self::new(Services::from_env().await?) })
    }
}

impl Measured for Shop {
    fn take(&self) -> Vec<PatternCost> {
        self.services.take()
    }
}

impl Has<Services> for Shop {
    fn part(&self) -> &Services {
        &self.services
    }
}

/// Puts an order together that is visible at `now`, from the items of its partition. A Query is not
/// isolated from the transaction that places an order. If it has returned only some of the items, the
/// order is invisible, too.
pub fn visible(items: Vec<OrderItem>, now: Instant) -> Option<PlacedOrder> {
    PlacedOrder::of(items).filter(|order| order.is_visible(now) && order.has_all_lines() && order.has_begun())
}

/// Reads the addresses and the guest, if the order has any.
pub async fn with_addresses(services: &Services, mut order: PlacedOrder) -> Result<PlacedOrder, Problem> {
    if order.head.has_addresses() {
        order.addresses = services.table.get(&order_addresses::get(&order.head)?).await?;
    }
    Ok(order)
}

pub fn location(id: &OrderId) -> String {
    http_api::url::location(&["orders", id.as_str()])
}

/// Returns 404 for an order that does not exist or is invisible to the caller.
pub fn no_such_order() -> Problem {
    Problem::not_found("order")
}
