//! Measures the capacity that each access pattern consumes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::types::ConsumedCapacity;
use item_model::pattern::{Consistency, Pattern};
use serde_json::{Value, json};

/// The consumption of one access pattern since the meter was last read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub pattern: &'static Pattern,
    /// The number of successful requests. Each retry of a batch's unprocessed part counts, too.
    pub requests: u32,
    /// Capacity units as DynamoDB reports them: read units for reads, write units for writes.
    pub capacity_units: f64,
    pub items: u32,
    /// The size of the returned items in bytes, as DynamoDB counts it.
    pub bytes: u64,
}

/// The form of a function's log line.
impl From<&Measured> for Value {
    fn from(measured: &Measured) -> Self {
        json!({"pattern": measured.pattern.id, "requests": measured.requests, "units": measured.capacity_units})
    }
}

/// A collection of [`Measured`], with one entry for each pattern.
#[derive(Debug, Default)]
pub struct Meter {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    measured: Vec<Measured>,
    /// The write units since the start.
    written: f64,
}

impl Meter {
    /// Returns the measurements since the previous call, and resets them.
    #[must_use]
    pub fn take(&self) -> Vec<Measured> {
        std::mem::take(&mut self.counts().measured)
    }

    /// Returns the write units of all requests since the meter was created.
    pub(crate) fn written(&self) -> f64 {
        self.counts().written
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record<'a>(
        &self,
        pattern: &'static Pattern,
        consumed: impl IntoIterator<Item = &'a ConsumedCapacity>,
        items: usize,
        bytes: usize,
    ) {
        let units: f64 = consumed.into_iter().filter_map(ConsumedCapacity::capacity_units).sum();
        let mut counts = self.counts();
        if pattern.consistency == Consistency::Write {
            counts.written += units;
        }
        let measured = &mut counts.measured;
        let entry = match measured.iter_mut().position(|known| known.pattern.id == pattern.id) {
            Some(known) => measured.get_mut(known),
            None => {
                measured.push(Measured { pattern, requests: 0, capacity_units: 0.0, items: 0, bytes: 0 });
                measured.last_mut()
            }
        };
        if let Some(entry) = entry {
            entry.requests += 1;
            entry.capacity_units += units;
            entry.items += u32::try_from(items).unwrap_or(u32::MAX);
            entry.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
    }
}
