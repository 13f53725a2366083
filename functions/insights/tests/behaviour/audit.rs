//! Tests of GET /v1/audit/expirations.

use fixture::TestTable;
use http_api::sample::{Answered, Call};
use key_schema::expiration::{self, Expiration, RemovedBy};
use key_schema::instant::Instant;
use serde_json::{Value, json};

struct Shop {
    test: TestTable,
}

impl Shop {
    async fn open() -> Self {
        Self { test: TestTable::create().await }
    }

    async fn send(&self, call: Call) -> Answered {
        call.send(&insights::routes(), &self.test.services()).await
    }

    /// Records the removal of the item with this hash.
    async fn removed(&self, item: &str, at: Instant) {
        let entry = Expiration {
            kind: "Session".into(),
            item: item.into(),
            removed_at: at,
            sequence_number: "100".into(),
            removed_by: RemovedBy::Ttl,
            archive: Some(format!("expired/{item}.json")),
        };
        let record = expiration::record(&entry.stored().unwrap()).unwrap();
        self.test.table().write(&record).await.unwrap().unwrap();
    }
}

fn list(query: &[(&str, &str)]) -> Call {
    query.iter().fold(Call::new("GET /v1/audit/expirations"), |call, (name, value)| call.query(name, value))
}

fn items(answer: &Answered) -> Vec<&str> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().iter().map(|entry| entry["item"].as_str().unwrap()).collect()
}

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

#[tokio::test]
async fn staff_lists_the_removals_of_a_day_newest_first() {
    let shop = Shop::open().await;
    shop.removed("h1", at("2026-11-20T00:00:00.000Z")).await;
    shop.removed("h2", at("2026-11-20T23:59:59.000Z")).await;
    shop.removed("h3", at("2026-11-21T00:00:00.000Z")).await;
    let answer = shop.send(list(&[("day", "2026-11-20")]).staff("s1")).await;
    assert_eq!(items(&answer), ["h2", "h1"]);
    assert_eq!(
        answer.body["items"][0],
        json!({
            "entity": "Session", "item": "h2", "removed_at": "2026-11-20T23:59:59.000Z", "removed_by": "ttl",
            "sequence_number": "100",
            "archive": "expired/h2.json",
        })
    );
    assert_eq!(items(&shop.send(list(&[("day", "2026-11-22")]).staff("s1")).await), [""; 0]);
}

#[tokio::test]
async fn the_day_is_today_when_it_is_left_out() {
    let shop = Shop::open().await;
    // Midnight may pass during the test.
    let before = Instant::now();
    shop.removed("before", before).await;
    let answer = shop.send(list(&[]).staff("s1")).await;
    if before.day() == Instant::now().day() {
        assert_eq!(items(&answer), ["before"]);
    }
}

#[tokio::test]
async fn the_pages_of_a_day_list_every_removal_once() {
    let shop = Shop::open().await;
    for number in 0..7 {
        shop.removed(&format!("h{number}"), at("2026-11-20T10:00:00.000Z").plus_seconds(number / 2)).await;
    }
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("day", "2026-11-20"), ("limit", "3")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = shop.send(list(&query).staff("s1")).await;
        found.extend(items(&answer).into_iter().map(str::to_owned));
        match &answer.body["next_cursor"] {
            Value::String(next) => cursor = Some(next.clone()),
            _ => break,
        }
    }
    assert_eq!(found, ["h6", "h5", "h4", "h3", "h2", "h1", "h0"]);
}
