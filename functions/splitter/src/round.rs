//! One round of the splitter: finds the hot counters and stocks, and splits each of them once. Then it
//! levels and merges the stocks with several shards.

use aws::{CloudWatch, CloudWatchError};
use futures::StreamExt as _;
use key_schema::counter::{self, MAX_SHARDS, Reason};
use key_schema::id::{CounterName, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{EncodeError, Stored};
use key_schema::product::{self, MAX_STOCK_SHARDS, ReshardReason, ShardedStock};
use key_schema::request::Query;
use serde::Serialize;
use table::{Measured, Table, TableError};
use tokio::time::{self, timeout_at};

use workflows::{WorkflowError, stock};

use crate::report::{self, Hot};

/// The number of counters and stocks that are split concurrently. It is low, because the table is
/// busy.
const AT_ONCE: usize = 4;
/// The maximum number of stocks that a round levels or merges.
const STOCKS: usize = 200;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Partition keys that CloudWatch reports as throttled, for any kind of item.
    pub throttled: u32,
    /// Hot counters and stocks among these keys ([`crate::report`] defines "hot").
    pub hot: u32,
    /// Counters and stocks that got more shards.
    pub split: u32,
    /// Counters and stocks that have the maximum number of shards and are still throttled.
    pub full: u32,
    /// Moves of pieces between the shards of a stock.
    pub moves: u32,
    /// Stocks of which shards were merged.
    pub merged: u32,
    /// Counters and stocks whose shards could not be changed. The log has each error. The next round
    /// tries again.
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
    #[error(transparent)]
    Stock(#[from] WorkflowError<()>),
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

    /// Splits each hot counter and stock that was throttled since its last split, once. Then levels and
    /// merges the stocks with several shards, also if the hot ones are unknown. Stops at `stop`.
    ///
    /// # Errors
    /// [`RoundError`] if the hot counters and stocks are unknown. A failed change is only counted.
    pub async fn run_round(&self, now: Instant, stop: time::Instant) -> Result<Round, RoundError> {
        let report = timeout_at(stop, self.report(now)).await.unwrap_or(Err(RoundError::Time));
        let round = match report {
            Ok(report) => Ok(self.split_all(&report, now, stop).await),
            Err(error) => Err(error),
        };
        let (moves, merged, failed) = self.settle_all(now, stop).await;
        let round = round?;
        Ok(Round { moves, merged, failed: round.failed + failed, ..round })
    }

    async fn split_all(&self, report: &report::Report, now: Instant, stop: time::Instant) -> Round {
        let hot = report.hot(now);
        let count = u32::try_from(hot.len()).unwrap_or(u32::MAX);
        let mut round = Round { throttled: report.keys(), hot: count, ..Round::default() };
        let mut outcomes = futures::stream::iter(&hot)
            .map(async |(hot, minute)| {
                let split = async {
                    match hot {
                        Hot::Counter(name) => self.split(name, *minute, now).await,
                        Hot::Stock(product) => self.spread(product, *minute).await,
                    }
                };
                timeout_at(stop, split).await.unwrap_or(Err(SplitError::Time))
            })
            .buffer_unordered(AT_ONCE);
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(Outcome::Split) => round.split += 1,
                Ok(Outcome::Cooling) => {}
                Ok(Outcome::Full) => round.full += 1,
                // The log has no counter name, because any client may have chosen it.
                Err(error) => {
                    tracing::error!(%error, "a hot counter or stock could not be split");
                    round.failed += 1;
                }
            }
        }
        round
    }

    /// Levels the stocks with several shards, and merges shards of calm ones. Returns the numbers of
    /// moves, of merged stocks and of failures.
    async fn settle_all(&self, now: Instant, stop: time::Instant) -> (u32, u32, u32) {
        let (mut moves, mut merged, mut failed) = (0, 0, 0);
        let listed = async { Ok::<_, SplitError>(self.table.query(&list()?).await?.items) };
        let listed = timeout_at(stop, listed).await.unwrap_or(Err(SplitError::Time));
        let failure = |error: SplitError| tracing::error!(%error, "the shards of a stock could not be levelled");
        let listed = listed.unwrap_or_else(|error| {
            failure(error);
            failed += 1;
            Vec::new()
        });
        let settle = async |stock| timeout_at(stop, self.settle(stock, now)).await.unwrap_or(Err(SplitError::Time));
        let mut settled = futures::stream::iter(&listed).map(settle).buffer_unordered(AT_ONCE);
        while let Some(outcome) = settled.next().await {
            match outcome {
                Ok((more, is_merged)) => (moves, merged) = (moves + more, merged + u32::from(is_merged)),
                Err(error) => {
                    failure(error);
                    failed += 1;
                }
            }
        }
        (moves, merged, failed)
    }

    async fn settle(&self, listed: &Stored<ShardedStock>, now: Instant) -> Result<(u32, bool), SplitError> {
        let is_merged = stock::settle(&self.table, listed, now).await?;
        let moves = stock::level_uneven(&self.table, &listed.product_id).await?;
        let is_folded = stock::fold_sales(&self.table, &listed.product_id).await?;
        if is_folded && listed.is_over(listed.meta.updated_at, now) {
            // A refusal means that the stock has several shards again.
            let _refused = self.table.write(&product::unlist(listed)?).await?;
        }
        Ok((moves, is_merged))
    }

    /// Gives a stock more shards that was throttled in this minute, unless it got some since then.
    async fn spread(&self, product: &ProductId, minute: Instant) -> Result<Outcome, SplitError> {
        let Some(first) = self.table.get(&product::stock(product).map_err(EncodeError::from)?).await? else {
            return Ok(Outcome::Cooling);
        };
        if first.shards() >= MAX_STOCK_SHARDS {
            return Ok(Outcome::Full);
        }
        let widened = stock::widen(&self.table, product, Some(first.shards()), ReshardReason::Since(minute)).await?;
        Ok(if widened > first.shards() { Outcome::Split } else { Outcome::Cooling })
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

fn list() -> Result<Query<Stored<ShardedStock>>, EncodeError> {
    Ok(product::sharded()?.limit(STOCKS))
}
