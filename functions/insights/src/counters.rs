//! Counters: the number of occurrences of an event, such as a view of a product.
//!
//! Every caller may add without a token, because viewers of a product may be anonymous. Two limits
//! reduce abuse: the gateway's rate limit, and the maximum amount per request. A request creates at
//! most three items of a few hundred bytes: a shard, the head after a split, and the record of the
//! Idempotency-Key. Only staff see a sum.

use http_api::fields::integer;
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::counter::CounterItem;
use key_schema::counter::{self, Counter, MAX_ADD, Reason};
use key_schema::id::CounterName;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde::Serialize;
use table::{Attempt, Backoff};

/// The number of cancelled attempts of one request after which the function splits the counter.
const HOT_AFTER: u32 = 3;

/// POST counters/{name}: adds 1 or the body's amount. The Idempotency-Key is optional.
pub async fn add(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let name = name_of(request)?;
    let once = Once::of_anybody(request)?;
    let mut body = request.object()?;
    let amount = body.optional("add", integer(1..=MAX_ADD));
    let amount = body.finish(amount)?.unwrap_or(1);
    let answer = Response::ok(&Added { name: &name, added: amount });
    let (mut backoff, mut cancelled) = (Backoff::new(), 0);
    loop {
        // This read costs an extra request. With a cached number of shards the sum would still be
        // right, but the addition would not use the shards of a later split.
        let head = services.table.get(&counter::head(&name)?).await?;
        let shard = fastrand::u32(0..counter::shards(head.as_deref()));
        let at = Instant::now();
        let claim = match &once {
            Some(once) => Some(once.claim_with(&answer, services.born(at)?, at)?),
            None => None,
        };
        let add = counter::add(&name, shard, amount, claim, at)?;
        // After an error the table may have executed the addition. The function does not retry,
        // because without a key a retry could add the amount twice.
        match services.table.try_transact(&add, &mut backoff).await? {
            Attempt::Done => return Ok(answer),
            // A cancelled attempt has added nothing, and the next attempt may choose another shard.
            Attempt::Cancelled(busy) => {
                cancelled += 1;
                if cancelled % HOT_AFTER == 0 {
                    cool(services, &name, head.as_ref(), at).await?;
                }
                if !backoff.wait().await {
                    return Err(busy.into());
                }
            }
            Attempt::Refused(_) => {
                return match &once {
                    Some(once) => once.replay_or(services, Once::in_progress()).await,
                    None => Err(Problem::internal("an addition without a key was refused")),
                };
            }
        }
    }
}

/// Splits a counter whose additions conflict. If several requests try to split it, one succeeds,
/// and each continues with its addition.
async fn cool(
    services: &Services,
    name: &CounterName,
    head: Option<&Stored<Counter>>,
    at: Instant,
) -> Result<(), Problem> {
    if let Some(split) = counter::split(name, head, Reason::Hot, at)? {
        let _ = services.table.update(&split).await;
    }
    Ok(())
}

/// GET counters/{name}: returns the sum of a counter. A counter that was never split takes one
/// request. Otherwise a second request reads the further shards, whose number is in the head. If
/// every read requested all 64 shards, reading a small counter would cost 30 times as much.
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let name = name_of(request)?;
    let mut found = services.table.batch_get(&counter::read(&name)?).await?;
    let head = found.iter().flatten().find_map(|entity| match entity {
        CounterItem::Counter(head) => Some(head.data.clone()),
        _ => None,
    });
    if found.iter().all(Option::is_none) {
        return Err(Problem::not_found("counter"));
    }
    if let Some(rest) = head.as_ref().map(counter::rest).transpose()?.flatten() {
        found.extend(services.table.batch_get(&rest).await?);
    }
    let values = found.iter().flatten().map(|entity| match entity {
        CounterItem::CounterShard(shard) => shard.counted,
        _ => 0,
    });
    let value = values.fold(0, u64::saturating_add);
    Ok(Response::ok(&CounterView { name: &name, value, shards: counter::shards(head.as_ref()) }))
}

/// POST counters/{name}/split: doubles the number of shards. Several concurrent requests each
/// double the number once. A counter with the maximum number of shards stays unchanged.
pub async fn split(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let name = name_of(request)?;
    let mut seen = services.table.get(&counter::head(&name)?).await?;
    let mut backoff = Backoff::new();
    loop {
        let Some(split) = counter::split(&name, seen.as_ref(), Reason::Asked, Instant::now())? else {
            return Ok(shards(&name, seen.as_ref()));
        };
        match services.table.update(&split).await? {
            Ok(head) => return Ok(shards(&name, Some(&head))),
            // Another request split the counter after this request read it.
            Err(refusal) => seen = refusal.stored()?,
        }
        backoff.after_conflict().await?;
    }
}

fn name_of(request: &Request<'_>) -> Result<CounterName, Problem> {
    let name: CounterName = request.path("name")?;
    if counter::is_reserved(&name) {
        return Err(Problem::new(Code::InvalidId, "This counter name is reserved."));
    }
    Ok(name)
}

fn shards(name: &CounterName, head: Option<&Stored<Counter>>) -> Response {
    Response::ok(&Split { name, shards: counter::shards(head.map(|head| &head.data)) })
}

/// The response to an addition. It has only the added amount, because only staff may see the sum.
#[derive(Serialize)]
struct Added<'a> {
    name: &'a CounterName,
    added: u32,
}

#[derive(Serialize)]
struct CounterView<'a> {
    name: &'a CounterName,
    value: u64,
    shards: u32,
}

#[derive(Serialize)]
struct Split<'a> {
    name: &'a CounterName,
    shards: u32,
}
