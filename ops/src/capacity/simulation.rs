//! Simulates the capacity that auto scaling would have provisioned over a series.
//!
//! The rules are those of DynamoDB's auto scaling ("Managing throughput capacity automatically with
//! DynamoDB auto scaling", Developer Guide):
//!
//! - If the consumption exceeds the target utilization for 2 minutes, the capacity grows to the
//!   consumption divided by the target. The change takes some minutes.
//! - If the utilization is more than 20 percentage points below the target for 15 minutes, the
//!   capacity falls. A day has at most 27 decreases: 4 at any time, and then one in each hour
//!   (limits of `UpdateTable`).
//! - Unused capacity of the last 5 minutes serves bursts. When it is used up, DynamoDB throttles
//!   requests.
//!
//! An hour is billed at its highest capacity.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::metrics::{MINUTE, Series};

const HIGH_MINUTES: usize = 2;
const LOW_MINUTES: usize = 15;
/// The capacity falls when the utilization is more than this many percentage points below the
/// target.
const LOW_MARGIN: u64 = 20;
/// The minutes between an alarm and the new capacity.
const DELAY_MINUTES: u64 = 3;
const BURST_MINUTES: u64 = 5;
const HOUR_MINUTES: u64 = 60;
const DAY_MINUTES: u64 = 24 * HOUR_MINUTES;
/// The number of decreases in a day that may be less than an hour apart.
const FREE_DECREASES: u64 = 4;
/// The half units that a capacity of one unit per second serves in a minute.
const SERVED: u64 = 2 * MINUTE as u64;

/// The bounds of auto scaling, in units a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bounds {
    pub min: u64,
    pub max: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Simulated {
    /// The sum of the capacities of all hours: unit-hours.
    pub unit_hours: u64,
    pub throttled_minutes: u64,
    pub throttled_units: u64,
}

/// Returns the capacity at which this consumption in one minute equals the target utilization.
#[must_use]
pub fn needed(half_units: u64, target: u64) -> u64 {
    half_units.saturating_mul(100).div_ceil(SERVED * target.max(1)).max(1)
}

/// The lower bound serves the quietest hour, and the upper bound serves the busiest minute.
#[must_use]
pub fn bounds(series: &Series, (start, end): (i64, i64), target: u64) -> Bounds {
    let peak = series.minutes.values().copied().max().unwrap_or_default();
    let mut hours: BTreeMap<i64, u64> = (start / 3_600..end.div_euclid(3_600)).map(|hour| (hour, 0)).collect();
    for (minute, units) in &series.minutes {
        if let Some(sum) = hours.get_mut(&minute.div_euclid(3_600)) {
            *sum += units;
        }
    }
    let quiet = hours.values().copied().min().unwrap_or(peak * HOUR_MINUTES) / HOUR_MINUTES;
    let max = needed(peak, target);
    Bounds { min: needed(quiet, target).min(max), max }
}

/// Returns the capacity that the busiest minute of the last hour needs. A table that starts with less
/// throttles requests until auto scaling has reacted.
#[must_use]
pub fn initial(series: &Series, end: i64, bounds: Bounds, target: u64) -> u64 {
    let busiest = series.minutes.range(end - 3_600..).map(|(_, units)| *units).max().unwrap_or_default();
    needed(busiest, target).clamp(bounds.min, bounds.max)
}

/// Simulates auto scaling from the start to the end of a series, in seconds since 1970.
#[must_use]
pub fn simulate(series: &Series, (start, end): (i64, i64), bounds: Bounds, target: u64) -> Simulated {
    let mut result = Simulated::default();
    let mut scaling = Scaling::new(bounds, target);
    let mut highest = 0;
    let minutes = u64::try_from((end - start) / MINUTE).unwrap_or_default();
    for (minute, at) in (0..minutes).zip((start..end).step_by(60)) {
        let consumed = series.minutes.get(&at).copied().unwrap_or_default();
        let capacity = scaling.capacity(minute);
        highest = capacity.max(highest);
        let throttled = scaling.serve(consumed, capacity);
        result.throttled_minutes += u64::from(throttled > 0);
        result.throttled_units += throttled.div_ceil(2);
        scaling.observe(minute, consumed, capacity);
        if (minute + 1) % HOUR_MINUTES == 0 || minute + 1 == minutes {
            result.unit_hours += highest;
            highest = 0;
        }
    }
    result
}

struct Scaling {
    bounds: Bounds,
    target: u64,
    capacity: u64,
    /// A started change: the minute in which it takes effect, and the new capacity.
    change: Option<(u64, u64)>,
    /// The half units that were consumed in each of the last minutes.
    recent: VecDeque<u64>,
    /// Unused half units that serve bursts.
    burst: u64,
    day: u64,
    decreases: u64,
    last_decrease: Option<u64>,
}

impl Scaling {
    fn new(bounds: Bounds, target: u64) -> Self {
        let recent = VecDeque::with_capacity(LOW_MINUTES);
        let (capacity, burst) = (bounds.min, bounds.min * SERVED * BURST_MINUTES);
        Self { bounds, target, capacity, change: None, recent, burst, day: 0, decreases: 0, last_decrease: None }
    }

    fn capacity(&mut self, minute: u64) -> u64 {
        if let Some((at, capacity)) = self.change
            && at <= minute
        {
            self.capacity = capacity;
            self.change = None;
        }
        self.capacity
    }

    /// Serves the consumption of a minute, and returns the part that is throttled.
    fn serve(&mut self, consumed: u64, capacity: u64) -> u64 {
        let (provided, most) = (capacity * SERVED, capacity * SERVED * BURST_MINUTES);
        if consumed <= provided {
            self.burst = (self.burst + provided - consumed).min(most);
            return 0;
        }
        let beyond = consumed - provided;
        let throttled = beyond.saturating_sub(self.burst);
        self.burst = self.burst.saturating_sub(beyond);
        throttled
    }

    /// Starts a change of the capacity if the last minutes require it.
    fn observe(&mut self, minute: u64, consumed: u64, capacity: u64) {
        if self.recent.len() == LOW_MINUTES {
            self.recent.pop_front();
        }
        self.recent.push_back(consumed);
        if self.change.is_some() {
            return;
        }
        let percent = |consumed: u64| consumed.saturating_mul(100) / (capacity * SERVED);
        let above = self.recent.iter().rev().take(HIGH_MINUTES);
        let is_high = self.recent.len() >= HIGH_MINUTES && above.clone().all(|one| percent(*one) > self.target);
        let low = self.target.saturating_sub(LOW_MARGIN);
        let is_low = self.recent.len() == LOW_MINUTES && self.recent.iter().all(|one| percent(*one) < low);
        let busiest = if is_high { above.max() } else { self.recent.iter().max() };
        let wanted = needed(busiest.copied().unwrap_or_default(), self.target).clamp(self.bounds.min, self.bounds.max);
        let may_change = (is_high && wanted > capacity) || (is_low && wanted < capacity && self.may_decrease(minute));
        if may_change {
            self.change = Some((minute + DELAY_MINUTES, wanted));
        }
    }

    /// Returns whether another decrease is permitted, and counts it.
    fn may_decrease(&mut self, minute: u64) -> bool {
        if minute / DAY_MINUTES != self.day {
            (self.day, self.decreases) = (minute / DAY_MINUTES, 0);
        }
        let is_hour_old = self.last_decrease.is_none_or(|last| minute - last >= HOUR_MINUTES);
        if self.decreases < FREE_DECREASES || is_hour_old {
            self.decreases += 1;
            self.last_decrease = Some(minute);
            return true;
        }
        false
    }
}
