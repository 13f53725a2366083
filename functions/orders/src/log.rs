use http_api::fields::long_text;
use http_api::{Code, List, Problem, Request, Response, Services, read_fields};
use key_schema::id::{LogId, OrderId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::{self, LogLine, OrderLog, OrderStatus};

use crate::view::no_such_order;

pub async fn add(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let staff = request.staff()?;
    let order_id: OrderId = request.path("id")?;
    read_fields!(request.object()? => {
        text: required(long_text(1..=4000)),
    });
    let at = Instant::now();
    let id = LogId::generate(at, services.random()?);
    let list_shards = services.layout(&order::daily_log::OF_DAY).await?.write;
    let line = OrderLog { id, order_id, at, by: staff.id().to_string(), text, list_shards };
    let line = Stored::new(line, services.born(at)?, at);
    services.table.transact(&order::add_log(&line)?).await?.map_err(|_| no_such_order())?;
    let version = line.meta.version;
    let location = http_api::url::location(&["orders", line.order_id.as_str(), "log"]);
    Ok(Response::created(location, &LogLine::from(line.data)).etag(version))
}

/// GET log?day=: lists the notes of one day (UTC) about all orders, oldest first. The index
/// lacks the authors and the times. So the function then reads the notes by key.
pub async fn of_day(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let midnight = request
        .query_day("day")?
        .ok_or_else(|| Problem::new(Code::InvalidParameter, "The query parameter `day` is missing."))?;
    let day = midnight.day();
    let parameters = [("day", day.as_str())];
    let layout = services.layout(&order::daily_log::OF_DAY).await?;
    let List { mut page, found } = request.list(services, order::daily_log::of_day(&day, layout)?, &parameters).await?;
    let read = order::daily_log::read(found.items.iter().map(|listed| &listed.id))?;
    let lines = services.table.batch_get_readable(&read).await?;
    page.leave_out(lines.unreadable.len());
    let mut lines = lines.items.into_iter();
    let found = found.filter_map(|_| lines.next().flatten().map(|line| LogLine::from(line.data)));
    List { page, found }.answer(|line| line).await
}

/// GET orders/{id}/log: lists the notes, oldest first.
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
    page.read(services, order::log(&order_id)?).await?.answer(|line| line).await
}
