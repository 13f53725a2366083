use std::collections::BTreeMap;

use key_schema::leaderboard::VIEW_SAMPLE;
use serde::Serialize;

use super::capacity::provision;
use super::measured::{Measured, Route, TABLE, Units};
use super::money::Nano;
use super::prices::Prices;
use super::profile::{Operation, Profile};
use super::stack::Stack;
use crate::error::OpsError;

/// The bytes in a GB, as AWS bills storage and logs.
const GB: u64 = 1 << 30;
const MB_OF_GB: u64 = 1 << 10;
/// The MB-milliseconds in a GB-second.
const MB_MS: u64 = 1_024 * 1_000;
/// One invocation in twenty is traced.
const TRACED: u64 = 20;
const ACCESS_LINE: u64 = 260;
const EVENT_BYTES: u64 = 1_024;
/// CloudWatch compresses stored log lines to about 15 percent.
const COMPRESSED: (u64, u64) = (15, 100);
/// The requests that a message in a queue causes: one each to send, receive and delete it.
const QUEUE_REQUESTS: u64 = 3;
/// The polls of a queue in an hour. Lambda uses five connections, and each poll takes 20 seconds.
const POLLS_AN_HOUR: u64 = 5 * 180;
/// The days in a month, for the size of retained data.
const DAYS: u64 = 30;
/// The name of the row for costs that belong to no route.
pub const STACK: &str = "the stack";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub service: Service,
    /// The part of the service, with its unit.
    pub item: &'static str,
    /// The route, the operation, or [`STACK`].
    pub route: String,
    /// The table or the index, for capacity units.
    pub place: Option<&'static str>,
    /// The quantity in thousandths of the unit.
    pub milli_quantity: u64,
    #[serde(rename = "nano_dollars")]
    pub amount: Nano,
    /// Whether the amount is the same without traffic.
    pub idle: bool,
}

/// The lines of a month, and the units for a comparison of the capacity modes.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    /// The lines. A line with an amount of 0 shows a quantity that is free of charge.
    pub lines: Vec<Line>,
    /// The capacity units of the month, by table or index.
    pub(crate) units: BTreeMap<&'static str, MonthlyUnits>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MonthlyUnits {
    pub half_reads: u128,
    pub writes: u128,
}

impl Bill {
    #[must_use]
    pub fn total(&self) -> Nano {
        self.lines.iter().map(|line| line.amount).sum()
    }

    pub fn sum(&self, is_wanted: impl Fn(&Line) -> bool) -> Nano {
        self.lines.iter().filter(|line| is_wanted(line)).map(|line| line.amount).sum()
    }

    /// Returns the sums by a key, the largest first.
    pub fn sums_by<K: Ord + Clone>(&self, key: impl Fn(&Line) -> Option<K>) -> Vec<(K, Nano)> {
        let mut sums = BTreeMap::<K, Nano>::new();
        for line in &self.lines {
            if let Some(key) = key(line) {
                *sums.entry(key).or_default() += line.amount;
            }
        }
        let mut sums: Vec<(K, Nano)> = sums.into_iter().collect();
        sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sums
    }
}

pub(crate) struct Biller<'a> {
    prices: &'a Prices,
    bill: Bill,
    route: String,
    idle: bool,
}

/// A quantity in parts of a unit, and the number of parts in a unit.
type Quantity = (u128, u64);

impl Biller<'_> {
    fn add(&mut self, service: Service, item: &'static str, price: &str, quantity: Quantity) -> Result<(), OpsError> {
        self.add_in(None, service, item, price, quantity)
    }

    fn add_in(
        &mut self,
        place: Option<&'static str>,
        service: Service,
        item: &'static str,
        price: &str,
        (quantity, parts): Quantity,
    ) -> Result<(), OpsError> {
        if quantity == 0 {
            return Ok(());
        }
        let amount = self.prices.amount(price, quantity, parts)?;
        self.push(place, service, item, (quantity, parts), amount);
        Ok(())
    }

    fn push(
        &mut self,
        place: Option<&'static str>,
        service: Service,
        item: &'static str,
        (quantity, parts): Quantity,
        amount: Nano,
    ) {
        let milli_quantity = u64::try_from(quantity * 1_000 / u128::from(parts.max(1))).unwrap_or(u64::MAX);
        let (route, idle) = (self.route.clone(), self.idle);
        self.bill.lines.push(Line { service, item, route, place, milli_quantity, amount, idle });
    }

    /// Adds the capacity units of `times` requests. Only one in `sample` of them consumes `units`.
    fn capacity(&mut self, units: &BTreeMap<&'static str, Units>, times: u64, sample: u64) -> Result<(), OpsError> {
        for (place, units) in units {
            let (half_reads, writes) = (times_u128(units.half_reads, times), times_u128(units.writes, times));
            let total = self.bill.units.entry(place).or_default();
            total.half_reads += half_reads / u128::from(sample);
            total.writes += writes / u128::from(sample);
            self.add_in(Some(place), Service::DynamoDb, "read units", "dynamodb.reads", (half_reads, 2 * sample))?;
            self.add_in(Some(place), Service::DynamoDb, "write units", "dynamodb.writes", (writes, sample))?;
        }
        Ok(())
    }

    /// Replaces the on-demand lines by the provisioned capacity that steady traffic needs at the
    /// target utilization.
    fn provision(&mut self, profile: &Profile) -> Result<(), OpsError> {
        const UNITS: [&str; 2] = ["read units", "write units"];
        self.bill.lines.retain(|line| line.service != Service::DynamoDb || !UNITS.contains(&line.item));
        STACK.clone_into(&mut self.route);
        let (hours, target) = (profile.hours_per_month, profile.capacity.target_percent);
        for (place, units) in self.bill.units.clone() {
            let capacity = |units| (u128::from(provision(units, hours, target)) * u128::from(hours), 1);
            let (reads, writes) = (capacity(units.half_reads.div_ceil(2)), capacity(units.writes));
            self.add_in(Some(place), Service::DynamoDb, "hours of read capacity", "dynamodb.read-capacity", reads)?;
            self.add_in(Some(place), Service::DynamoDb, "hours of write capacity", "dynamodb.write-capacity", writes)?;
        }
        Ok(())
    }

    fn invocations(&mut self, stack: &Stack, function: &str, duration_ms: u64, times: u64) -> Result<(), OpsError> {
        let memory = u64::from(stack.functions.get(function).copied().unwrap_or(512));
        let price = if stack.architecture == "arm64" { "lambda.arm64" } else { "lambda.x86_64" };
        let duration = times_u128(memory * duration_ms, times);
        self.add(Service::Lambda, "invocations", "lambda.requests", (u128::from(times), 1))?;
        self.add(Service::Lambda, "GB-seconds", price, (duration, MB_MS))?;
        let traced = if stack.is_traced { u128::from(times) } else { 0 };
        self.add(Service::XRay, "traces", "xray.traces", (traced, TRACED))
    }

    fn logs(&mut self, stack: &Stack, bytes: u128) -> Result<(), OpsError> {
        self.add(Service::Logs, "GB of log lines", "logs.ingested", (bytes, GB))?;
        // In the long run, the lines of one retention period are stored.
        let stored = bytes * u128::from(stack.billed.log_retention_days * COMPRESSED.0);
        self.add(Service::Logs, "GB of stored lines", "logs.stored", (stored, GB * DAYS * COMPRESSED.1))
    }
}

fn times_u128(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

pub fn bill(profile: &Profile, stack: &Stack, prices: &Prices) -> Result<Bill, OpsError> {
    profile.check()?;
    let measured = Measured::get()?;
    let mut biller = Biller { prices, bill: Bill::default(), route: STACK.to_owned(), idle: true };
    if profile.stack {
        idle(&mut biller, profile, stack, measured)?;
        biller.idle = false;
        stored(&mut biller, profile, stack)?;
        let mut waking = BTreeMap::<&str, u64>::new();
        for (key, traffic) in &profile.routes {
            let Some(route) = measured.route(key) else { continue };
            let detail = traffic.detail();
            let times = profile.per_month(key, [detail.per_month, detail.per_day, detail.per_hour])?;
            if times > 0 {
                for (function, metrics) in &route.metrics {
                    if *function != route.function && stack.functions.contains_key(function) {
                        let most = waking.entry(function).or_default();
                        *most = (*metrics).max(*most);
                    }
                }
                let duration = detail.duration_ms.unwrap_or(profile.duration_ms);
                let response = detail.response_bytes.unwrap_or(profile.response_bytes);
                requests(&mut biller, profile, stack, measured, route, times, (duration, response))?;
            }
        }
        // The metrics of a consumer cost the same, whether one route or many routes cause it to
        // run.
        biller.route = STACK.to_owned();
        let metrics: u64 = waking.values().sum();
        biller.add(Service::CloudWatch, "metrics of consumers", "cloudwatch.metrics", (u128::from(metrics), 1))?;
    }
    biller.idle = false;
    for operation in &profile.operations {
        let Operation { name, per_month, per_day, per_hour, .. } = operation;
        let times = profile.per_month(name, [*per_month, *per_day, *per_hour])?;
        biller.route.clone_from(name);
        biller.capacity(&BTreeMap::from([(TABLE, units_of(operation))]), times, 1)?;
    }
    if stack.is_provisioned {
        biller.provision(profile)?;
    }
    Ok(biller.bill)
}

/// Adds the lines that cost the same without traffic.
fn idle(biller: &mut Biller<'_>, profile: &Profile, stack: &Stack, measured: &Measured) -> Result<(), OpsError> {
    let (billed, hours) = (&stack.billed, profile.hours_per_month);
    let number = |count: u64| (u128::from(count), 1);
    if let Some(search) = &billed.search {
        let price = format!("search.{}", search.instance_type);
        let nodes = times_u128(search.instances, hours);
        biller.add(Service::OpenSearch, "hours of nodes", &price, (nodes, 1))?;
        let disk = times_u128(search.instances, search.storage_gb);
        biller.add(Service::OpenSearch, "GB of disk", "search.storage", (disk, 1))?;
    }
    biller.add(Service::CloudWatch, "metrics in alarms", "cloudwatch.alarms", number(billed.alarm_metrics))?;
    biller.add(Service::CloudWatch, "dashboards", "cloudwatch.dashboards", number(billed.dashboards))?;
    biller.add(
        Service::CloudWatch,
        "rules of Contributor Insights",
        "cloudwatch.insights",
        number(billed.insights_rules),
    )?;
    let polls = times_u128(stack.polled_queues * POLLS_AN_HOUR, hours);
    biller.add(Service::Sqs, "polls of an empty queue", "sqs.requests", (polls, 1))?;
    for route in measured.routes().iter().filter(|route| route.is_scheduled()) {
        biller.route.clone_from(&route.route);
        let metrics: u64 = running(route, stack).filter_map(|function| route.metrics.get(function)).sum();
        biller.add(Service::CloudWatch, "metrics", "cloudwatch.metrics", number(metrics))?;
        work(biller, profile, stack, measured, route, hours * 60, profile.later_duration_ms)?;
    }
    biller.route = STACK.to_owned();
    Ok(())
}

/// Adds the lines for stored data, for requests to the bucket of pictures, and for requests that
/// match no route.
fn stored(biller: &mut Biller<'_>, profile: &Profile, stack: &Stack) -> Result<(), OpsError> {
    let megabytes = |megabytes: u64| (u128::from(megabytes), MB_OF_GB);
    let storage = &profile.storage;
    let (table_mb, own_tables_mb) = match stack.has_monthly_metrics {
        true => (storage.table_mb, storage.metrics_mb),
        false => (storage.table_mb.saturating_add(storage.metrics_mb), 0),
    };
    biller.add(Service::DynamoDb, "GB of storage", "dynamodb.storage", megabytes(table_mb))?;
    let infrequent = megabytes(own_tables_mb);
    biller.add(Service::DynamoDb, "GB in infrequent access", "dynamodb.storage-infrequent", infrequent)?;
    if stack.billed.point_in_time_recovery {
        biller.add(Service::DynamoDb, "GB of recovery", "dynamodb.recovery", megabytes(table_mb))?;
    }
    biller.add(Service::S3, "GB of pictures", "s3.storage", megabytes(storage.media_mb))?;
    biller.add(Service::S3, "GB of archive", "s3.storage", megabytes(storage.archive_mb))?;
    // An upload is a PUT and a copy, and AWS bills a copy as a PUT.
    biller.add(Service::S3, "PUT", "s3.puts", (times_u128(profile.media.uploads, 2), 1))?;
    biller.add(Service::S3, "GET", "s3.gets", (u128::from(profile.media.reads), 1))?;
    let unmatched = u128::from(profile.unmatched);
    biller.add(Service::ApiGateway, "requests without a route", "api.requests", (unmatched, 1))?;
    biller.logs(stack, unmatched * u128::from(ACCESS_LINE))
}

/// Adds the requests of one route. The last argument has the duration of an invocation, and the
/// size of a response.
fn requests(
    biller: &mut Biller<'_>,
    profile: &Profile,
    stack: &Stack,
    measured: &Measured,
    route: &Route,
    times: u64,
    (duration_ms, response_bytes): (u64, u64),
) -> Result<(), OpsError> {
    biller.route.clone_from(&route.route);
    let metrics = route.metrics.get(&route.function).copied().unwrap_or_default();
    biller.add(Service::CloudWatch, "metrics", "cloudwatch.metrics", (u128::from(metrics), 1))?;
    biller.add(Service::ApiGateway, "requests", "api.requests", (u128::from(times), 1))?;
    biller.add(Service::Transfer, "GB", "transfer.out", (times_u128(response_bytes, times), GB))?;
    biller.logs(stack, times_u128(ACCESS_LINE, times))?;
    work(biller, profile, stack, measured, route, times, duration_ms)
}

fn running<'a>(route: &'a Route, stack: &'a Stack) -> impl Iterator<Item = &'a String> {
    let all = std::iter::once(&route.function).chain(route.later.keys());
    all.filter(|function| stack.functions.contains_key(*function))
}

/// Adds the invocations of a route and of the functions that it causes to run. Also adds the
/// capacity units, events, mails and log lines of these functions.
fn work(
    biller: &mut Biller<'_>,
    profile: &Profile,
    stack: &Stack,
    measured: &Measured,
    route: &Route,
    times: u64,
    duration_ms: u64,
) -> Result<(), OpsError> {
    let (mut units, mails) = (BTreeMap::new(), u64::from(route.later.contains_key("Notifier")));
    for (pattern, uses) in route.all_uses() {
        measured.add(&mut units, pattern, uses);
    }
    biller.capacity(&units, times, 1)?;
    let mut sampled = BTreeMap::new();
    for (pattern, uses) in route.sampled_uses() {
        measured.add(&mut sampled, pattern, *uses);
    }
    biller.capacity(&sampled, times, VIEW_SAMPLE.0.into())?;
    let mut log_bytes = 0;
    for function in running(route, stack) {
        let duration_ms = if *function == route.function { duration_ms } else { profile.later_duration_ms };
        biller.invocations(stack, function, duration_ms, times)?;
        log_bytes += route.log_bytes.get(function).copied().unwrap_or_default();
    }
    biller.logs(stack, times_u128(log_bytes, times))?;
    if route.later.keys().any(|function| function.starts_with("Stream")) {
        // Lambda reads a table's stream for free.
        biller.push(None, Service::Streams, "reads by Lambda", (u128::from(times), 1), Nano::default());
    }
    let events = times_u128(route.events.values().sum(), times);
    biller.add(Service::EventBridge, "events", "events.published", (events, 1))?;
    let bytes = events * u128::from(EVENT_BYTES);
    biller.add(Service::EventBridge, "GB into the archive", "events.archived", (bytes, GB))?;
    let kept = bytes * u128::from(stack.billed.event_retention_days);
    biller.add(Service::EventBridge, "GB in the archive", "events.stored", (kept, GB * DAYS))?;
    if route.later.contains_key("Fulfilment") {
        biller.add(Service::Sqs, "requests", "sqs.requests", (times_u128(QUEUE_REQUESTS, times), 1))?;
    }
    biller.add(Service::Ses, "messages", "ses.messages", (times_u128(mails, times), 1))
}

/// Returns the units of one request of an operation, by DynamoDB's published rules.
fn units_of(operation: &Operation) -> Units {
    let factor = if operation.transactional { 2 } else { 1 };
    let consistent = if operation.strong || operation.transactional { 2 } else { 1 };
    Units {
        // Each started 4 KB costs half a unit, or one unit with strong consistency.
        half_reads: operation.read_bytes.iter().map(|bytes| bytes.div_ceil(4_096) * consistent * factor).sum(),
        // Each started KB costs a unit.
        writes: operation.write_bytes.iter().map(|bytes| bytes.div_ceil(1_024) * factor).sum(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    ApiGateway,
    Lambda,
    /// Reads, writes, storage and recovery.
    DynamoDb,
    Streams,
    /// Pictures, long texts and the archive.
    S3,
    EventBridge,
    Sqs,
    Ses,
    OpenSearch,
    Logs,
    /// Metrics, alarms, the dashboard and Contributor Insights.
    CloudWatch,
    XRay,
    /// Transfer to the internet.
    Transfer,
}

impl Service {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiGateway => "API Gateway",
            Self::Lambda => "Lambda",
            Self::DynamoDb => "DynamoDB",
            Self::Streams => "DynamoDB Streams",
            Self::S3 => "S3",
            Self::EventBridge => "EventBridge",
            Self::Sqs => "SQS",
            Self::Ses => "SES",
            Self::OpenSearch => "OpenSearch",
            Self::Logs => "CloudWatch Logs",
            Self::CloudWatch => "CloudWatch",
            Self::XRay => "X-Ray",
            Self::Transfer => "Data transfer",
        }
    }
}
