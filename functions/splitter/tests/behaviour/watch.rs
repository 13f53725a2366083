//! A table whose throttles are counted, its counters, and a splitter that reads the counts.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use aws::{Api, CloudWatch, Credentials, Service, SharedCredentialsProvider};
use emulators::contributors::{InsightServer, Throttles};
use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use key_schema::counter;
use key_schema::counter::CounterItem;
use key_schema::id::CounterName;
use key_schema::instant::Instant;
use splitter::round::{Round, RoundError, Splitter};
use table::{Table, TableError};
use tokio::time;

/// A timeout that is long enough for every round.
const PATIENCE: time::Duration = time::Duration::from_secs(60);

pub struct Watch {
    pub test: TestTable,
    pub throttles: Throttles,
    pub insights: InsightServer,
    pub splitter: Splitter,
    table: Table,
    turn: AtomicU32,
}

pub fn name(text: &str) -> CounterName {
    CounterName::new(text).unwrap()
}

/// Returns the partition key of a counter's first shard, or of its head.
pub fn partition(of: &str, head: bool) -> String {
    let read = counter::read(&name(of)).unwrap();
    read.keys()[usize::from(!head)].pk.as_str().to_owned()
}

/// Returns the start of a minute, counted from an hour ago. So the throttles that tests record are
/// in other minutes than the throttles of the table.
pub fn minute(number: i64) -> Instant {
    static HOUR_AGO: LazyLock<i64> = LazyLock::new(|| (Instant::now().as_seconds() / 60 - 60) * 60);
    Instant::EPOCH.plus_seconds(*HOUR_AGO + 60 * number)
}

impl Watch {
    pub async fn begin() -> Self {
        let test = TestTable::create().await;
        let throttles = test.count_throttles();
        let insights = InsightServer::start(throttles.clone()).await.unwrap();
        let splitter = splitter(&test, insights.url());
        Self { throttles, insights, splitter, table: test.table(), turn: AtomicU32::new(0), test }
    }

    /// Creates another splitter, as another execution environment would.
    pub fn another(&self) -> Splitter {
        splitter(&self.test, self.insights.url())
    }

    /// Runs one round.
    pub async fn round_at(&self, now: Instant) -> Result<Round, RoundError> {
        self.splitter.run_round(now, time::Instant::now() + PATIENCE).await
    }

    /// Runs one round, which must succeed.
    pub async fn round(&self, now: Instant) -> Round {
        self.round_at(now).await.unwrap()
    }

    /// Records this many throttled requests of a partition in the minute that begins at `minute`.
    pub fn throttle(&self, partition: &str, minute: Instant, requests: usize) {
        for _ in 0..requests {
            self.throttles.record_at(partition, minute.as_seconds());
        }
    }

    /// Makes the table throttle requests for this partition from now on.
    pub fn heat(&self, partition: &str, rate: f64, count: Option<u32>) {
        let fault = Fault { kind: FaultKind::Throttle, rate, count, seed: 7 };
        self.test.faults().add_to_keys(fault, partition).unwrap();
    }

    /// Adds 1 to a counter, as the route of counters does. Each call uses the next shard. Returns
    /// false after a refusal.
    pub async fn add(&self, counter: &str) -> bool {
        let name = name(counter);
        let Ok(head) = self.table.get(&counter::head(&name).unwrap()).await else { return false };
        let shard = self.turn.fetch_add(1, Ordering::Relaxed) % counter::shards(head.as_deref());
        let add = counter::add(&name, shard, 1, None, Instant::now()).unwrap();
        matches!(self.table.transact(&add).await, Ok(Ok(())))
    }

    /// Reads the value and the number of shards of a counter.
    pub async fn try_count(&self, counter: &str) -> Result<(u64, u64), TableError> {
        let mut found = self.table.batch_get(&counter::read(&name(counter)).unwrap()).await?;
        let head = found.iter().flatten().find_map(|entity| match entity {
            CounterItem::Counter(head) => Some(head.data.clone()),
            _ => None,
        });
        if let Some(rest) = head.as_ref().and_then(|head| counter::rest(head).unwrap()) {
            found.extend(self.table.batch_get(&rest).await?);
        }
        let values = found.iter().flatten().map(|entity| match entity {
            CounterItem::CounterShard(shard) => shard.counted,
            _ => 0,
        });
        Ok((values.sum(), counter::shards(head.as_ref()).into()))
    }

    /// Reads the value and the number of shards of a counter. The read must succeed.
    pub async fn count(&self, counter: &str) -> (u64, u64) {
        self.try_count(counter).await.unwrap()
    }

    /// Returns the number of shards of a counter.
    pub async fn shards(&self, counter: &str) -> u64 {
        self.count(counter).await.1
    }
}

fn splitter(test: &TestTable, url: &str) -> Splitter {
    Splitter::new(test.table(), cloudwatch(url))
}

pub fn cloudwatch(url: &str) -> CloudWatch {
    let credentials = SharedCredentialsProvider::new(Credentials::new("key", "secret", None, None, "test"));
    CloudWatch::new(Service::of(Api::CloudWatch, "us-east-1", Some(url), credentials).unwrap())
}
