//! Measures a metric with points of one day, and a counter that is split into shards.

use key_schema::counter::{self, Reason};
use key_schema::id::{CounterName, MetricName, PointId};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::item::Stored;
use key_schema::metric::{self, MetricPoint};

use super::Bench;
use crate::data::{self, at};

fn point(name: &MetricName, number: u8) -> Stored<MetricPoint> {
    let when = at(500 + i64::from(number));
    let id = PointId::generate(when, [number; 10]);
    MetricPoint { name: name.clone(), at: when, id, value: "12.50".parse().unwrap() }.stored()
}

pub async fn measure(bench: &mut Bench) {
    metrics(bench).await;
    counters(bench).await;
}

async fn metrics(bench: &mut Bench) {
    let name = MetricName::new("till 3: seconds in the queue").unwrap();
    let points: Vec<_> = (1..=25).map(|number| point(&name, number)).collect();
    bench.batch_write("25 points", metric::store(&points).unwrap()).await;
    let (first, id) = (points[0].at, points[0].id.clone());
    bench.get("one point", metric::get(&name, first, &id).unwrap()).await;
    let day = |from| metric::of_name(&name, at(from), at(from + 600), at(600)).unwrap().remove(0).limit(20);
    bench.query("a page of 20 of one day", 20, day(0)).await;
    bench.query("a day without points", 0, day(-2 * 86_400)).await;
}

async fn counters(bench: &mut Bench) {
    let name = CounterName::new("product:1082185").unwrap();
    let mut record = data::record(98);
    (record.data.scope.key, record.data.scope.caller) = ("counter".to_owned(), String::new());
    record.data.answer = StoredResponse::Body { status: 200, body: "x".repeat(120) };
    let claim = idempotency::claim(&record, at(0)).unwrap();
    bench.transact("the first addition, without a key", counter::add(&name, 0, 1, None, at(500)).unwrap()).await;
    bench.transact("one addition with a key", counter::add(&name, 0, 1, Some(claim), at(501)).unwrap()).await;
    let split = counter::split(&name, None, Reason::Hot, at(502)).unwrap().unwrap();
    let head = bench.update("one shard", split).await;
    bench.get("2 shards", counter::head(&name).unwrap()).await;
    bench.table.transact(&counter::add(&name, 1, 1, None, at(503)).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.batch_get("head and first shard", counter::read(&name).unwrap()).await;
    bench.batch_get("the second of 2 shards", counter::rest(&head).unwrap().unwrap()).await;
}
