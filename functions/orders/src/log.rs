use http_api::contract::rules::{Described, Named, Text, described, long_text, named};
use http_api::contract::{Body, Page, Schema, route};
use http_api::{Code, List, Problem, Request, Response, Services};
use key_schema::id::{LogId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::{self, LogLine, OrderLog, OrderStatus};
use ordering::no_such_order;
use serde::Serialize;

const LOG_TEXT: Named<Text> = named(
    "LogText",
    "1 to 4000 bytes. Line feeds and tabs are the only allowed control characters.",
    long_text(1..=4000),
);
const DAY: Described = described(r#"{"type": "string", "format": "date", "examples": ["2026-11-20"]}"#);

#[derive(Body)]
struct NewLogLine {
    #[field(rule = LOG_TEXT, example = "The customer called.")]
    text: String,
}

#[derive(Serialize, Schema)]
#[schema(page = "LogPage")]
struct LogLineView<'a> {
    id: &'a LogId,
    order_id: &'a OrderId,
    at: Instant,
    /// The author's id.
    #[field(example = "sam")]
    by: &'a str,
    #[field(rule = LOG_TEXT, example = "The customer called.")]
    text: &'a str,
}

impl<'a> From<&'a LogLine> for LogLineView<'a> {
    fn from(LogLine { id, order_id, at, by, text }: &'a LogLine) -> Self {
        Self { id, order_id, at: *at, by, text }
    }
}

/// Add a line to an order's log
#[route(POST "/v1/orders/{id}/log", id = "addLogLine", who = staff, task = "fulfilment", path(id: OrderId),
    body = NewLogLine, answers(201 = LogLineView<'_> "The line" [Location, ETag]), refuses(not_found))]
pub async fn add(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let order_id: OrderId = request.path("id")?;
    let NewLogLine { text } = request.body()?;
    let at = Instant::now();
    let id = LogId::generate(at, services.random()?);
    let list_shards = services.layout(&order::daily_log::OF_DAY).await?.write;
    let line = OrderLog { id, order_id, at, by: staff.id().to_string(), text, list_shards };
    let line = Stored::new(line, services.born(at)?, at);
    services.table.transact(&order::add_log(&line)?).await?.map_err(|_| no_such_order())?;
    let version = line.meta.version;
    let location = http_api::url::location(&["orders", line.order_id.as_str(), "log"]);
    Ok(Response::created(location, &LogLineView::from(&LogLine::from(line.data))).etag(version))
}

/// List the log lines of a day
///
/// Returns the log lines of all orders on a day in UTC, oldest first.
#[route(GET "/v1/log", id = "listLog", who = staff, task = "fulfilment",
    parameters(required day = DAY "The day in UTC.", Limit, Cursor),
    answers(200 = Page<LogLineView<'_>> "A page of lines" [Link, LeftOut]))]
pub async fn of_day(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let midnight = request
        .query_day("day")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `day` is missing."))?;
    let day = midnight.day();
    let parameters = [("day", day.as_str())];
    let layout = services.layout(&order::daily_log::OF_DAY).await?;
    let List { mut page, found } = request.list(services, order::daily_log::of_day(&day, layout)?, &parameters).await?;
    // The index lacks the authors and the times, so the function reads the lines by key.
    let read = order::daily_log::read(found.items.iter().map(|listed| &listed.id))?;
    let lines = services.table.batch_get_readable(&read).await?;
    page.leave_out(lines.unreadable.len());
    let mut lines = lines.items.into_iter();
    let found = found.filter_map(|_| lines.next().flatten().map(|line| LogLine::from(line.data)));
    List { page, found }.answer(LogLineView::from).await
}

/// Read an order's log
///
/// Returns the lines, oldest first.
#[route(GET "/v1/orders/{id}/log", id = "readLog", who = staff, task = "fulfilment", path(id: OrderId),
    parameters(Limit, Cursor),
    answers(200 = Page<LogLineView<'_>> "A page of lines" [Link, LeftOut]), refuses(not_found))]
pub async fn list(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let order_id: OrderId = request.path("id")?;
    let parameters = [("order", order_id.as_str())];
    let page = request.page(&services.cursors, order::LOG.id, &parameters).await?;
    let head = services.table.get(&order::head(&order_id)?).await?;
    // Orders in status `placing` and expired orders are invisible, so a read of their log gets 404.
    if head.is_none_or(|head| head.status == OrderStatus::Placing || head.is_expired(Instant::now())) {
        return Err(no_such_order());
    }
    page.read(services, order::log(&order_id)?).await?.answer(LogLineView::from).await
}
