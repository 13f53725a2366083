//! Many clients order one product at the same time: the rate of orders, by clients and shards.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use emulators::table::{Counts, Model};
use futures::{StreamExt as _, TryStreamExt as _};
use key_schema::id::ProductId;
use serde::Serialize;
use tokio::time::Instant;

use super::simulation::{Outcome, Simulation, simulated};
use crate::BenchError;
use crate::report::{Table, millis, quantile};

/// Each client places at least this many orders on average.
const ORDERS_PER_CLIENT: u64 = 8;

/// The orders of one product by so many clients.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) shards: u32,
    pub(super) clients: u16,
    pub(super) orders: u64,
    /// The pieces in the stock for each order.
    pub(super) stock: u64,
    /// Whether busy orders cannot give the stock more shards.
    pub(super) is_fixed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) shards: u32,
    pub(super) clients: u16,
    pub(super) orders: u64,
    pub(super) orders_per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
    /// Requests to the table that conflicted with a transaction in progress.
    pub(super) conflicts_per_order: f64,
    /// Requests to the table that a full partition refused.
    pub(super) throttles_per_order: f64,
    /// Responses with status 503. The client retried after each.
    pub(super) unavailable: u64,
    /// Write units of all requests, with those that conflicted.
    pub(super) write_units_per_order: f64,
}

/// Measures the load in simulated time. The stock must be exact afterwards.
pub(super) fn measure(load: Load, model: Model) -> Result<Figures, BenchError> {
    simulated(model.seed, async move || {
        let shop = Simulation::open(model, false)?;
        let hot = ProductId::new("hot")?;
        let orders = load.orders.max(ORDERS_PER_CLIENT * u64::from(load.clients));
        let initial = orders * load.stock;
        shop.sell(&hot, initial, load.shards, load.is_fixed).await?;
        let (before, begun) = (shop.counts(), Instant::now());
        let (next, unavailable) = (Cell::new(0), Cell::new(0));
        // The time at which each order was placed, and how long it took.
        let placed = RefCell::new(Vec::new());
        let buyers = (0..load.clients).map(|number| shop.buyer(u64::from(number))).collect::<Result<Vec<_>, _>>()?;
        let buying = buyers.iter().map(async |buyer| {
            while next.replace(next.get() + 1) < orders {
                let start = Instant::now();
                match buyer.order(&shop, &[&hot]).await? {
                    Outcome::Placed { retries, .. } => {
                        unavailable.set(unavailable.get() + retries);
                        placed.borrow_mut().push((begun.elapsed(), start.elapsed()));
                    }
                    Outcome::SoldOut => return Err(wrong!("the stock is sold out too early")),
                }
            }
            Ok(())
        });
        let () = futures::stream::iter(buying).buffer_unordered(load.clients.into()).try_collect().await?;
        let (after, placed) = (shop.counts(), placed.into_inner());
        let left = shop.pieces(&hot).await?;
        if placed.len() as u64 != orders || left != initial - orders {
            return Err(wrong!(
                "{} of {orders} orders were placed, and {left} of {initial} pieces are left",
                placed.len()
            ));
        }
        Ok(Figures::new(load.shards, load.clients, &placed, unavailable.get(), (before, after)))
    })
}

impl Figures {
    /// Returns the figures of placed orders: when each one was placed, in ascending order, and how long
    /// it took.
    pub(super) fn new(
        shards: u32,
        clients: u16,
        placed: &[(Duration, Duration)],
        unavailable: u64,
        (before, after): (Counts, Counts),
    ) -> Self {
        let each = |total: f64| total / placed.len() as f64;
        let times: Vec<_> = placed.iter().map(|(_, took)| *took).collect();
        let at = |thousandths| millis(quantile(&times, thousandths));
        Self {
            shards,
            clients,
            orders: placed.len() as u64,
            orders_per_second: rate(&placed.iter().map(|(at, _)| at.as_secs_f64()).collect::<Vec<_>>()),
            p50_ms: at(500),
            p95_ms: at(950),
            p99_ms: at(990),
            conflicts_per_order: each((after.conflicts - before.conflicts) as f64),
            throttles_per_order: each((after.throttles - before.throttles) as f64),
            unavailable,
            write_units_per_order: each(after.write_units - before.write_units),
        }
    }
}

/// Returns the rate while all clients order: between the first tenth and the last tenth of the
/// orders. The times are in ascending order.
fn rate(times: &[f64]) -> f64 {
    let at = |tenths: usize| times.get((times.len() * tenths / 10).saturating_sub(1)).copied().unwrap_or_default();
    let share = (times.len() * 9 / 10 - times.len() / 10) as f64;
    share / (at(9) - at(1)).max(f64::EPSILON)
}

pub(super) fn table(figures: &[Figures]) -> Table {
    let mut table = Table::new(
        "shards | clients | orders/s | p50 ms | p95 ms | p99 ms | conflicts per order | throttles per order | 503 | \
        write units per order",
    );
    for figures in figures {
        let Figures { shards, clients, orders_per_second, p50_ms, p95_ms, p99_ms, unavailable, .. } = figures;
        let Figures { conflicts_per_order, throttles_per_order, write_units_per_order, .. } = figures;
        table.row(format_args!(
            "{shards} | {clients} | {orders_per_second:.0} | {p50_ms:.0} | {p95_ms:.0} | {p99_ms:.0} | \
            {conflicts_per_order:.2} | {throttles_per_order:.2} | {unavailable} | {write_units_per_order:.1}"
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use emulators::table::Throughput;

    use super::*;

    fn model(seed: u64) -> Model {
        Model { warm: Throughput { reads: 40_000, writes: 40_000 }, seed, ..Model::default() }
    }

    /// [`measure`] itself fails if an order is lost or placed twice.
    #[test]
    fn the_same_seed_gives_the_same_figures_and_the_stock_is_exact_down_to_the_last_piece() {
        // The stock has one piece for each order, so late orders find their piece in another shard.
        let load = Load { shards: 4, clients: 6, orders: 60, stock: 1, is_fixed: false };
        let first = measure(load, model(1)).unwrap();
        assert_eq!(measure(load, model(1)).unwrap(), first);
        assert_ne!(measure(load, model(2)).unwrap(), first);
        assert!(first.conflicts_per_order > 0.0, "{first:?}");
    }

    #[test]
    fn more_shards_place_more_orders_a_second() {
        let at =
            |shards, is_fixed| measure(Load { shards, clients: 8, orders: 64, stock: 10, is_fixed }, model(1)).unwrap();
        let (one, growing, eight) = (at(1, true), at(1, false), at(8, true));
        // Busy orders give a stock four shards, unless its number is fixed.
        assert!(growing.orders_per_second > one.orders_per_second * 1.5, "{one:?} {growing:?}");
        assert!(eight.orders_per_second > one.orders_per_second * 4.0, "{one:?} {eight:?}");
        assert!(eight.conflicts_per_order < one.conflicts_per_order, "{one:?} {eight:?}");
    }

    #[test]
    fn a_rate_leaves_out_the_first_and_the_last_tenth() {
        let times: Vec<f64> = (1..=100).map(|second| f64::from(second) / 10.0).collect();
        assert!((rate(&times) - 10.0).abs() < 1e-9);
    }
}
