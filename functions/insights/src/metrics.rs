//! Metrics: points of time series, stored in batches and read by range.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use http_api::contract::rules::{self, Component, Integer, OneOf, any, component, each, integer, list_of, one_of};
use http_api::contract::{Body, Context, FromBody as _, Node, Page, Rule, RuleSchema, Schema, Schemas, route};
use http_api::json::Value;
use http_api::{Code, FieldError, Invalid, Problem, Request, Response, Services};
use key_schema::id::{MAX_ID_BYTES, MetricName, PointId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored, key_of};
use key_schema::key::Key;
use key_schema::metric::{self, Decimal, MAX_POINTS, MetricPoint};
use key_schema::month::Month;
use key_schema::request::{BatchWriteAction, MAX_BATCH_WRITE};
use serde::Serialize;
use serde_json::value::RawValue;
use table::{Table, TableError};

/// The maximum number of errors reported per point. A report on many points must fit into a
/// response.
const MAX_ERRORS: usize = 3;
/// The length of the default range: without `from`, a list begins this long before its end.
const DEFAULT_RANGE_SECONDS: i64 = 24 * 60 * 60;

const INDEX: Integer<usize> = integer(0..=MAX_POINTS - 1);
const STATUSES: OneOf = one_of(&["stored", "refused"]);
const CODES: OneOf = one_of(&["invalid_body", "throttled", "unavailable"]);
const FIELD_ERROR: Component = component("FieldError", r#"{"pointer": "/value", "detail": "must be a number"}"#);

#[derive(Body)]
pub struct NewMetrics {
    /// An invalid element is refused independently of the other elements.
    #[field(rule = each::<NewMetricPoint>(1..=MAX_POINTS))]
    points: Vec<Result<NewMetricPoint, Invalid>>,
}

#[derive(Body)]
pub struct NewMetricPoint {
    #[field(example = "till:3")]
    name: MetricName,
    value: Decimal,
    /// At most 30 days ago and at most 5 minutes ahead.
    #[field(rule = Recent)]
    at: Instant,
    /// Distinguishes the points of one instant. The default is a generated id.
    #[field(example = "9f6cf1a5")]
    id: Option<PointId>,
}

/// An instant for which the table stores points.
struct Recent;

impl Rule<Instant> for Recent {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<Instant, Invalid> {
        let at = Instant::read(value, context)?;
        metric::check_time(at, Instant::now()).map_err(|error| Invalid::new(error.to_string()))?;
        Ok(at)
    }
}

impl RuleSchema for Recent {
    fn schema(&self, schemas: &mut Schemas) -> Node {
        Instant::schema(schemas)
    }

    fn example(&self) -> Option<Node> {
        Instant::example()
    }
}

/// Store points of metrics
///
/// Stores up to 500 points. Each point is accepted or refused independently. The response has one
/// result per point, in the order of the points. Name, instant and id together identify a point. So
/// a point with an `id` can be sent again and is stored once. A new value replaces the old one. A
/// point is kept for 30 days from its instant. The response is 503 when no point could be stored.
#[route(POST "/v1/metrics", id = "storeMetrics", who = staff, task = "measurements", body = NewMetrics,
    answers(200 = Report<'_> "The result of each point"),
    refuses(invalid_body = "the body as a whole is invalid, or has a number that is too large to read, such as 1e400"))]
pub async fn store(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let read = read(services, request)?;
    let mut distinct = BTreeMap::new();
    for point in read.iter().flatten() {
        // DynamoDB refuses a batch that names a key twice, so only the last point of each key is
        // written.
        distinct.insert(point.key()?, point);
    }
    let mut months: BTreeMap<Month, Vec<&Stored<MetricPoint>>> = BTreeMap::new();
    for point in distinct.values() {
        months.entry(Month::of(point.at)).or_default().push(point);
    }
    // The writes run concurrently, in at most 20 requests and one more for each further month. So
    // all retries together take no longer than the retries of one request.
    let chunks = months.iter().flat_map(|(month, points)| points.chunks(MAX_BATCH_WRITE).map(|chunk| (*month, chunk)));
    let writes = chunks.map(|(month, chunk)| write(services, month, chunk));
    let unwritten: BTreeMap<Key, Code> = try_join_all(writes).await?.into_iter().flatten().collect();
    if let Some(code) = unwritten.values().next().filter(|_| unwritten.len() == distinct.len()) {
        let all = "no point could be written";
        return Err(if *code == Code::Throttled { Problem::throttled(all) } else { Problem::unavailable(all) });
    }
    let mut results = Vec::with_capacity(read.len());
    for (index, point) in read.iter().enumerate() {
        results.push(match point {
            Ok(point) => Outcome::of(index, &point.id, unwritten.get(&point.key()?)),
            Err(invalid) => Outcome::invalid(index, invalid),
        });
    }
    Ok(Response::ok(&Report { results }))
}

/// Reads the points of the body. Each result is the item to store, or the errors of the point.
fn read(services: &Services, request: &Request<'_>) -> Result<Vec<Result<Stored<MetricPoint>, Invalid>>, Problem> {
    let NewMetrics { points } = request.body_with_numbers("points", "value")?;
    let now = Instant::now();
    let mut all = Vec::with_capacity(points.len());
    for point in points {
        let generated = PointId::generate(now, services.random()?);
        all.push(point.map(|NewMetricPoint { name, value, at, id }| {
            MetricPoint { name, at, id: id.unwrap_or(generated), value }.stored()
        }));
    }
    Ok(all)
}

fn table(services: &Services, month: Month) -> Table {
    services.metrics.table(&services.table, month.table(services.table.name()))
}

/// Writes points of one month in one request to the table. Returns the keys of points that may not
/// have been written.
async fn write(
    services: &Services,
    month: Month,
    points: &[&Stored<MetricPoint>],
) -> Result<Vec<(Key, Code)>, Problem> {
    let all = |code| points.iter().map(|point| Ok((point.key()?, code))).collect::<Result<Vec<_>, Problem>>();
    let batch = metric::store(points.iter().copied())?;
    let write = || async { table(services, month).batch_write(&batch).await };
    match services.metrics.attempt(write).await {
        Ok(left) => Ok(left.iter().filter_map(key_written).map(|key| (key, Code::Throttled)).collect()),
        Err(TableError::Throttled | TableError::Contended | TableError::Unprocessed(_)) => all(Code::Throttled),
        Err(TableError::Unavailable(_)) => all(Code::Unavailable),
        Err(error) => Err(error.into()),
    }
}

fn key_written(action: &BatchWriteAction) -> Option<Key> {
    match action {
        BatchWriteAction::Put(item) => key_of(item),
        BatchWriteAction::Delete(key) => Some(key.clone()),
    }
}

/// List the points of a metric
///
/// Returns the points, oldest first. Points are kept for 30 days and then removed. A metric without
/// points has an empty list. The list shows stored points with a short delay.
#[route(GET "/v1/metrics/{name}", id = "listMetric", who = staff, task = "measurements", path(name: MetricName),
    parameters(
        from: Instant = "The first instant. The default is one day before `to`, or one day before now if `to` is \
            missing.",
        to: Instant = "The last instant. The default is the instant of the newest point.",
        Limit, Cursor,
    ),
    answers(200 = Page<PointView<'_>> "A page of points" [Link, LeftOut]))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let name: MetricName = request.path("name")?;
    let (from, to) = request.query_range()?;
    let given = |parameter| Ok::<_, Problem>(request.query(parameter)?.unwrap_or_default());
    let parameters = [("name", name.as_str()), ("from", given("from")?), ("to", given("to")?)];
    let mut page = request.page(&services.cursors, metric::OF_NAME.id, &parameters).await?;
    let now = Instant::now();
    let from = from.unwrap_or_else(|| to.unwrap_or(now).plus_seconds(-DEFAULT_RANGE_SECONDS));
    let to = to.unwrap_or(Instant::MAX);
    let mut days = Vec::new();
    for month in Month::visible(now) {
        let of_month = metric::of_name(&name, from.max(month.begins()), to.min(month.ends()), now)?;
        days.extend(of_month.into_iter().map(|day| (month, day)));
    }
    // A page usually takes one request per shard of one day. The upper bound is one request per shard
    // of each of 32 days, apart from rare second requests to a shard.
    let read = || {
        let days = days.iter().map(|(month, day)| (table(services, *month), day.clone())).collect();
        Table::query_in_turn(days, page.limit(), page.after())
    };
    let found = services.metrics.attempt(read).await?;
    page.leave_out(found.left_out());
    let items = found.items.iter().map(PointView::new).collect::<Result<Vec<_>, _>>()?;
    page.answer(&items, |kept| found.end(kept)).await
}

/// Read one point of a metric
///
/// Returns the point with this id at this instant. A point is kept for 30 days.
#[route(GET "/v1/metrics/{name}/points/{id}", id = "readMetricPoint", who = staff, task = "measurements",
    path(name: MetricName, id: PointId), parameters(required at: Instant = "The instant of the point."),
    answers(200 = PointView<'_> "The point"), refuses(not_found))]
pub async fn get(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (name, id): (MetricName, PointId) = (request.path("name")?, request.path("id")?);
    let at = request
        .query_instant("at")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `at` is missing."))?;
    // The id determines the shard, so the read takes one request.
    let get = metric::get(&name, at, &id)?;
    let read = || async { table(services, Month::of(at)).get(&get).await };
    let found = services.metrics.attempt(read).await?;
    let point = found.filter(|point| !point.is_expired(Instant::now()));
    Ok(Response::ok(&PointView::new(&point.ok_or_else(|| Problem::not_found("point"))?)?))
}

#[derive(Serialize, Schema)]
#[schema(name = "MetricsReport")]
struct Report<'a> {
    #[field(rule = rules::list::<Outcome<'_>>(0..=MAX_POINTS))]
    results: Vec<Outcome<'a>>,
}

#[derive(Serialize, Schema)]
#[schema(name = "StoredPoint")]
struct Outcome<'a> {
    /// The point's position in the request, from 0.
    #[field(rule = INDEX, example = 1)]
    index: usize,
    #[field(rule = STATUSES, example = "refused")]
    status: &'static str,
    /// The point's id. Even a point that was not stored has an id, so that it can be sent again.
    #[field(example = "9f6cf1a5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a PointId>,
    /// The reason for the refusal. With `throttled` and `unavailable` the point may be sent again,
    /// with its id.
    #[field(rule = CODES)]
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[field(rule = list_of(FIELD_ERROR, 0..=MAX_ERRORS))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<&'a FieldError>,
}

impl<'a> Outcome<'a> {
    /// Returns the outcome of a readable point. The outcome of an unwritten point also has the id,
    /// so that the client can send the point again.
    fn of(index: usize, id: &'a PointId, unwritten: Option<&Code>) -> Self {
        let status = if unwritten.is_some() { "refused" } else { "stored" };
        Self { index, status, id: Some(id), code: unwritten.map(|code| code.name()), errors: Vec::new() }
    }

    fn invalid(index: usize, invalid: &'a Invalid) -> Self {
        // A pointer with the name of an unknown field may be as long as the body. Long pointers are
        // left out.
        let brief = invalid.errors().iter().filter(|error| error.pointer.len() <= MAX_ID_BYTES);
        let (code, errors) = (Some(Code::InvalidBody.name()), brief.take(MAX_ERRORS).collect());
        Self { index, status: "refused", id: None, code, errors }
    }
}

#[derive(Serialize, Schema)]
#[schema(name = "MetricPoint")]
struct PointView<'a> {
    #[field(example = "till:3")]
    name: &'a MetricName,
    // The value has exactly the digits that the client sent.
    #[field(rule = any::<Decimal>())]
    value: Box<RawValue>,
    at: Instant,
    #[field(example = "9f6cf1a5")]
    id: &'a PointId,
}

impl<'a> PointView<'a> {
    fn new(point: &'a Stored<MetricPoint>) -> Result<Self, Problem> {
        let MetricPoint { name, at, id, value } = &point.data;
        let value = RawValue::from_string(value.to_string()).map_err(Problem::internal)?;
        Ok(Self { name, value, at: *at, id })
    }
}
