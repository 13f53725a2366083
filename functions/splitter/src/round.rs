//! One round of the splitter: finds the hot counters and splits each of them once.

use aws::{CloudWatch, CloudWatchError};
use futures::StreamExt as _;
use key_schema::counter::{self, MAX_SHARDS, Reason};
use key_schema::id::CounterName;
use key_schema::instant::Instant;
use key_schema::item::EncodeError;
use serde::Serialize;
use table::{Measured, Table, TableError};
use tokio::time::{self, timeout_at};

use crate::report;

/// The number of counters that are split concurrently. It is low, because the table is busy.
const AT_ONCE: usize = 4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Partition keys that CloudWatch reports as throttled, for any kind of item.
    pub throttled: u32,
    /// Hot counters among these keys ([`crate::report`] defines "hot").
    pub hot: u32,
    /// Counters whose number of shards was doubled.
    pub split: u32,
    /// Counters that have the maximum number of shards and are still throttled.
    pub full: u32,
    /// Counters that could not be split. The log has each error. The next report has these counters
    /// again.
    pub failed: u32,
}

/// The reason why the hot counters are unknown.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The name of the rule that counts throttled keys cannot be read.
    #[error("the rule of throttled keys cannot be looked up: {0}")]
    Table(#[from] TableError),
    /// The table has no rule that counts throttled keys.
    #[error("Contributor Insights is not enabled on the table")]
    NoRule,
    /// CloudWatch returned no report.
    #[error(transparent)]
    Report(#[from] CloudWatchError),
    /// The rule or the report did not arrive in time.
    #[error("the report did not arrive in time")]
    Time,
}

#[derive(Debug, thiserror::Error)]
enum SplitError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("no time is left")]
    Time,
}

enum Outcome {
    Split,
    /// The counter was already split after the throttled minute began.
    Cooling,
    Full,
}

#[derive(Debug)]
pub struct Splitter {
    table: Table,
    cloudwatch: CloudWatch,
}

impl Splitter {
    #[must_use]
    pub const fn new(table: Table, cloudwatch: CloudWatch) -> Self {
        Self { table, cloudwatch }
    }

    /// Returns the capacity that each access pattern has consumed since the last call.
    #[must_use]
    pub fn costs(&self) -> Vec<Measured> {
        self.table.meter().take()
    }

    /// Splits each hot counter that was throttled since its last split, once. Stops at `stop`.
    ///
    /// # Errors
    /// [`RoundError`] if the hot counters are unknown. A failed split is only counted.
    pub async fn run_round(&self, now: Instant, stop: time::Instant) -> Result<Round, RoundError> {
        let report = timeout_at(stop, self.report(now)).await.map_err(|_| RoundError::Time)??;
        let hot = report.hot(now);
        let count = u32::try_from(hot.len()).unwrap_or(u32::MAX);
        let mut round = Round { throttled: report.keys(), hot: count, ..Round::default() };
        let mut outcomes = futures::stream::iter(&hot)
            .map(async |(name, minute)| {
                let split = timeout_at(stop, self.split(name, *minute, now)).await;
                split.unwrap_or(Err(SplitError::Time))
            })
            .buffer_unordered(AT_ONCE);
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(Outcome::Split) => round.split += 1,
                Ok(Outcome::Cooling) => {}
                Ok(Outcome::Full) => round.full += 1,
                // The log has no counter name, because any client may have chosen it.
                Err(error) => {
                    tracing::error!(%error, "a hot counter could not be split");
                    round.failed += 1;
                }
            }
        }
        Ok(round)
    }

    async fn report(&self, now: Instant) -> Result<report::Report, RoundError> {
        // Each round reads the name of the rule, because the table gets a new rule when Contributor
        // Insights is enabled again.
        let rule = self.table.throttles_rule().await?.ok_or(RoundError::NoRule)?;
        Ok(report::Report::fetch(&self.cloudwatch, &rule, report::window(now)).await?)
    }

    /// Splits a counter that was throttled in this minute, unless it was split since then.
    async fn split(&self, name: &CounterName, minute: Instant, now: Instant) -> Result<Outcome, SplitError> {
        let seen = self.table.get(&counter::head(name).map_err(EncodeError::from)?).await?;
        if counter::shards(seen.as_deref()) >= MAX_SHARDS {
            return Ok(Outcome::Full);
        }
        let is_cooling = seen.as_ref().is_some_and(|head| head.meta.updated_at > minute);
        let split = counter::split(name, seen.as_ref(), Reason::Throttled(minute), now)?.filter(|_| !is_cooling);
        let Some(split) = split else { return Ok(Outcome::Cooling) };
        match self.table.update(&split).await? {
            Ok(_) => Ok(Outcome::Split),
            // A refusal means that the counter was split after this function read it.
            Err(_) => Ok(Outcome::Cooling),
        }
    }
}
