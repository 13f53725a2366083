//! Metrics: points of time series, stored in batches and read by range.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use http_api::body::Invalid;
use http_api::fields::{array, instant, parsed};
use http_api::json::Value;
use http_api::{Code, FieldError, Problem, Request, Response, Services, read_fields};
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

/// POST metrics: stores up to [`MAX_POINTS`] points, each independently of the others. A point with
/// the same name, instant and id replaces the earlier point, so a client can send a point again.
pub async fn store(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let now = Instant::now();
    let read = read(services, request, now)?;
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
fn read(
    services: &Services,
    request: &Request<'_>,
    now: Instant,
) -> Result<Vec<Result<Stored<MetricPoint>, Invalid>>, Problem> {
    read_fields!(request.object()? => {
        points: required(array(1..=MAX_POINTS, Ok)),
    });
    let mut numbers = request.texts_of("points", "value")?.into_iter();
    let mut all = Vec::with_capacity(points.len());
    for point in points {
        let (number, generated) = (numbers.next().flatten(), PointId::generate(now, services.random()?));
        all.push(read_point(point, number, generated, now));
    }
    Ok(all)
}

/// Reads a point. `number` is the text of its value.
fn read_point(
    point: Value<'_>,
    number: Option<&str>,
    generated: PointId,
    now: Instant,
) -> Result<Stored<MetricPoint>, Invalid> {
    read_fields!(point.object()? => {
        name: required(parsed::<MetricName>),
        value: required(|value| match (value, number) {
        (Value::Integer(_) | Value::OtherNumber, Some(text)) => {
            text.parse::<Decimal>().map_err(|error| Invalid::new(error.to_string()))
        }
        _ => Err(Invalid::new("must be a number")),
    }),
        at: required(|value| {
        let at = instant(value)?;
        metric::check_time(at, now).map_err(|error| Invalid::new(error.to_string()))?;
        Ok(at)
    }),
        id: optional(parsed::<PointId>),
    });
    Ok(MetricPoint { name, at, id: id.unwrap_or(generated), value }.stored())
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

/// GET metrics/{name}?from=&to=: lists the points of a range, oldest first. Without `to` the list
/// ends with the newest point. Without `from` it begins one day before `to`. Without both it begins
/// one day ago.
///
/// A page usually takes one request per shard of one day. The upper bound is one request per shard
/// of each of 32 days, apart from rare second requests to a shard.
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
    let read = || {
        let days = days.iter().map(|(month, day)| (table(services, *month), day.clone())).collect();
        Table::query_in_turn(days, page.limit(), page.after())
    };
    let found = services.metrics.attempt(read).await?;
    page.leave_out(found.left_out());
    let items = found.items.iter().map(PointView::new).collect::<Result<Vec<_>, _>>()?;
    page.answer(&items, |kept| found.end(kept)).await
}

/// GET metrics/{name}/points/{id}?at=: returns one point. The id determines the shard, so the read
/// takes one request.
pub async fn get(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (name, id): (MetricName, PointId) = (request.path("name")?, request.path("id")?);
    let at = request
        .query_instant("at")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `at` is missing."))?;
    let get = metric::get(&name, at, &id)?;
    let read = || async { table(services, Month::of(at)).get(&get).await };
    let found = services.metrics.attempt(read).await?;
    let point = found.filter(|point| !point.is_expired(Instant::now()));
    Ok(Response::ok(&PointView::new(&point.ok_or_else(|| Problem::not_found("point"))?)?))
}

#[derive(Serialize)]
struct Report<'a> {
    results: Vec<Outcome<'a>>,
}

#[derive(Serialize)]
struct Outcome<'a> {
    index: usize,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a PointId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
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

#[derive(Serialize)]
struct PointView<'a> {
    name: &'a MetricName,
    /// The value with exactly the digits that the client sent.
    value: Box<RawValue>,
    at: Instant,
    id: &'a PointId,
}

impl<'a> PointView<'a> {
    fn new(point: &'a Stored<MetricPoint>) -> Result<Self, Problem> {
        let MetricPoint { name, at, id, value } = &point.data;
        let value = RawValue::from_string(value.to_string()).map_err(Problem::internal)?;
        Ok(Self { name, value, at: *at, id })
    }
}
