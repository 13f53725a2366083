//! The body of a new order.

use std::collections::BTreeSet;

use http_api::contract::Body;
use http_api::contract::rules::customer;
use http_api::{Code, Invalid, Problem};
use key_schema::id::{CustomerId, OrderReference, StoreId};
use key_schema::instant::Instant;
use key_schema::order::MAX_LINES;
use ordering::addresses::GivenAddresses;
use ordering::lines::{Lines, NewOrderLine, WantedLine};
use ordering::place::{Details, Wanted};

/// The tolerance for a `placed_at` ahead of this function's clock. Clocks differ, but an order
/// cannot be placed in the future.
const CLOCK_SKEW_SECONDS: i64 = 5 * 60;

#[derive(Body)]
#[body(check(placed_at) = not_in_the_future)]
pub struct NewOrder {
    /// The customer who orders, or `me` for the caller.
    #[field(rule = customer())]
    customer_id: CustomerId,
    /// Each product may appear at most once. The total of the lines is at most 10000000000000 minor
    /// units.
    #[field(rule = Lines)]
    lines: Vec<NewOrderLine>,
    reference: Option<OrderReference>,
    #[field(flatten)]
    addresses: GivenAddresses,
    /// Staff only: the time of the order, between 1970 and now.
    #[field(staff, left_out)]
    placed_at: Option<Instant>,
    /// Staff only: the store where the order was placed.
    #[field(staff, left_out)]
    store_id: Option<StoreId>,
    #[field(flatten)]
    details: Details,
}

fn not_in_the_future(placed_at: &Option<Instant>) -> Result<(), Invalid> {
    let known = Instant::EPOCH..=Instant::now().plus_seconds(CLOCK_SKEW_SECONDS);
    match placed_at {
        Some(at) if !known.contains(at) => Err(Invalid::new("must be between 1970 and now").under("placed_at")),
        _ => Ok(()),
    }
}

impl NewOrder {
    /// # Errors
    /// 422 `invalid_body` if a product is in several lines.
    pub fn wanted(self) -> Result<Wanted, Problem> {
        let Self { customer_id, lines, reference, addresses, placed_at, store_id, details } = self;
        let lines: Vec<_> = lines.into_iter().enumerate().map(|(position, line)| line.at(position)).collect();
        let mut seen = BTreeSet::new();
        let doubled: Vec<&WantedLine> = lines.iter().filter(|line| !seen.insert(&line.product_id)).collect();
        if !doubled.is_empty() {
            let problem = Problem::new(Code::InvalidBody, "A product is in more than one line.");
            let doubled = doubled.into_iter().take(MAX_LINES);
            return Err(problem.errors(doubled.map(|line| line.error("product_id", "is in an earlier line already"))));
        }
        Ok(Wanted {
            customer_id,
            guest: None,
            list: "/lines",
            lines,
            reference,
            origin: None,
            placed_at,
            store_id,
            details,
            expected_total: None,
            addresses,
            quote: None,
        })
    }
}
