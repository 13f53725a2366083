//! Counters: the number of occurrences of an event, such as a view of a product.
//!
//! Every caller may add without a token, because viewers of a product may be anonymous. Two limits
//! reduce abuse: the gateway's rate limit, and the maximum amount per request. A request creates at
//! most three items of a few hundred bytes: a shard, the head after a split, and the record of the
//! Idempotency-Key. Only staff see a sum.

use http_api::contract::rules::{Described, Integer, Named, described, integer, named};
use http_api::contract::{Body, Schema, route};
use http_api::{Code, Once, Problem, Request, Response, Services};
use key_schema::counter::CounterItem;
use key_schema::counter::{self, Counter, MAX_ADD, MAX_SHARDS, Reason};
use key_schema::id::CounterName;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use serde::Serialize;
use table::{Attempt, Backoff};

/// The number of cancelled attempts of one request after which the function splits the counter.
const HOT_AFTER: u32 = 3;

const AMOUNT: Integer<u32> = integer(1..=MAX_ADD);
const SUM: Described = described(r#"{"type": "integer", "format": "int64", "minimum": 0}"#);
const SHARD_COUNT: Named<Integer<u32>> = named(
    "ShardCount",
    "The number of items that share the counter's additions, a power of two.",
    integer(1..=MAX_SHARDS),
);

#[derive(Body)]
pub struct CounterAddition {
    #[field(rule = AMOUNT, default = 1_u32, example = 5)]
    add: u32,
}

/// Add to a counter
///
/// Adds 1, or the number in `add`. The first addition creates the counter. With an
/// `Idempotency-Key`, a repeated request adds nothing. Without a key, a client cannot know whether
/// a request without a response was counted. The route ignores tokens, and all callers share one
/// set of keys. So choose a key that nobody can guess, such as a UUID.
#[route(POST "/v1/counters/{name}", id = "addToCounter", who = any, task = "measurements", path(name: CounterName),
    parameters(OptionalIdempotencyKey), body = CounterAddition,
    answers(200 = Added<'_> "The added amount" [IdempotencyReplayed]))]
pub async fn add(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let name = name_of(request)?;
    let once = Once::of_anybody(request)?;
    let CounterAddition { add: amount } = request.body()?;
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
            Attempt::Cancelled { failure, .. } => {
                cancelled += 1;
                if cancelled % HOT_AFTER == 0 {
                    cool(services, &name, head.as_ref(), at).await?;
                }
                if !backoff.wait().await {
                    return Err(failure.into());
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

/// Read a counter
///
/// Returns the sum of all additions whose response came before this request. Concurrent additions
/// may be included.
#[route(GET "/v1/counters/{name}", id = "readCounter", who = staff, task = "measurements", path(name: CounterName),
    answers(200 = CounterView<'_> "The counter"),
    refuses(not_found = "nothing was ever added to the counter"))]
pub async fn read(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let name = name_of(request)?;
    // A counter that was never split takes one request. Otherwise a second request reads the further
    // shards, whose number is in the head. If every read requested all 64 shards, reading a small
    // counter would cost 30 times as much.
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

/// Double the shards of a counter
///
/// Prepares a counter for many concurrent additions. If additions conflict, the shop does the same
/// automatically. At the maximum of 64 shards nothing changes. The number of shards never
/// decreases.
#[route(POST "/v1/counters/{name}/split", id = "splitCounter", who = staff, task = "measurements",
    path(name: CounterName), answers(200 = Split<'_> "The number of shards"))]
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

// Only staff may see the sum.
#[derive(Serialize, Schema)]
#[schema(name = "AddedToCounter")]
struct Added<'a> {
    name: &'a CounterName,
    #[field(rule = AMOUNT, example = 5)]
    added: u32,
}

#[derive(Serialize, Schema)]
struct CounterView<'a> {
    name: &'a CounterName,
    #[field(rule = SUM, example = 4812)]
    value: u64,
    #[field(rule = SHARD_COUNT, example = 4)]
    shards: u32,
}

#[derive(Serialize, Schema)]
#[schema(name = "CounterShards")]
struct Split<'a> {
    name: &'a CounterName,
    #[field(rule = SHARD_COUNT, example = 4)]
    shards: u32,
}
