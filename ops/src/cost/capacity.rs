//! Compares on-demand with provisioned capacity.
//!
//! On demand, AWS bills each consumed unit. Provisioned capacity is a rate in units per second. AWS
//! bills it by the hour, even if it is unused: one unit per second for an hour is a unit-hour. So
//! provisioned capacity is cheaper above the break-even utilization. This utilization is the price
//! of a unit-hour, divided by the on-demand price of the 3,600 units that a unit-hour can serve.
//! The comparison assumes steady traffic. With peaks, the utilization is lower than the target
//! utilization.

use serde::Serialize;

use super::bill::Bill;
use super::money::Nano;
use super::prices::Prices;
use crate::error::OpsError;

const HOUR: u64 = 3_600;
/// Hundredths of a percent in 100 percent.
const WHOLE: u128 = 10_000;

/// The break-even utilizations of a Region, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BreakEven {
    pub reads: u64,
    pub writes: u64,
}

/// The cost of the table or an index in each of the two modes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Modes {
    pub place: &'static str,
    /// Read units a month.
    pub reads: u64,
    /// Write units a month.
    pub writes: u64,
    #[serde(rename = "on_demand_nano_dollars")]
    pub on_demand: Nano,
    /// Read units a second to provision.
    pub read_capacity: u64,
    /// Write units a second to provision.
    pub write_capacity: u64,
    #[serde(rename = "provisioned_nano_dollars")]
    pub provisioned: Nano,
}

/// Returns the break-even utilizations, rounded to the nearest hundredth of a percent.
///
/// # Errors
/// A usage error if a price is missing.
pub fn break_even(prices: &Prices) -> Result<BreakEven, OpsError> {
    let of = |on_demand: &str, provisioned: &str| -> Result<u64, OpsError> {
        let (unit, hour) = (prices.price(on_demand)?, prices.price(provisioned)?);
        let above = u128::from(hour.pico) * u128::from(unit.per) * WHOLE;
        let below = u128::from(unit.pico) * u128::from(hour.per) * u128::from(HOUR);
        let utilization = (above + below / 2).checked_div(below).unwrap_or(u128::MAX);
        Ok(u64::try_from(utilization).unwrap_or(u64::MAX))
    };
    Ok(BreakEven {
        reads: of("dynamodb.reads", "dynamodb.read-capacity")?,
        writes: of("dynamodb.writes", "dynamodb.write-capacity")?,
    })
}

/// Returns the capacity, in units per second, that serves the units of a month at this utilization.
/// The result is at least one, the minimum of a table or an index.
#[must_use]
pub fn provision(units: u128, hours: u64, target_percent: u64) -> u64 {
    let served = u128::from(hours.max(1) * HOUR * target_percent.max(1));
    u64::try_from((units * 100).div_ceil(served).max(1)).unwrap_or(u64::MAX)
}

pub fn modes(bill: &Bill, prices: &Prices, hours: u64, target_percent: u64) -> Result<Vec<Modes>, OpsError> {
    let compare = |(place, units): (&&'static str, &super::bill::MonthlyUnits)| {
        let on_demand = prices.amount("dynamodb.reads", units.half_reads, 2)?
            + prices.amount("dynamodb.writes", units.writes, 1)?;
        let reads = units.half_reads.div_ceil(2);
        let read_capacity = provision(reads, hours, target_percent);
        let write_capacity = provision(units.writes, hours, target_percent);
        let of = |item: &str, capacity: u64| prices.amount(item, u128::from(capacity) * u128::from(hours), 1);
        Ok(Modes {
            place,
            reads: u64::try_from(reads).unwrap_or(u64::MAX),
            writes: u64::try_from(units.writes).unwrap_or(u64::MAX),
            on_demand,
            read_capacity,
            write_capacity,
            provisioned: of("dynamodb.read-capacity", read_capacity)? + of("dynamodb.write-capacity", write_capacity)?,
        })
    };
    bill.units.iter().map(compare).collect()
}
