//! Tests of `GET /v1/search/orders`.

use http_api::sample::Call;
use key_schema::order::OrderNumber;
use search_index::OrderDocument;
use serde_json::json;

use crate::shop::{Shop, ids, order};

fn call(query: &[(&str, &str)]) -> Call {
    query.iter().fold(Call::new("GET /v1/search/orders"), |call, (name, value)| call.query(name, value))
}

#[tokio::test]
async fn staff_finds_orders_newest_first() {
    let shop =
        Shop::with(&[], &[order("o1", "c1", "paid", 1), order("o2", "c2", "paid", 2), order("o3", "c1", "pending", 3)])
            .await;
    for (query, expected) in [
        (&[][..], &["o3", "o2", "o1"][..]),
        (&[("q", "c1")], &["o3", "o1"]),
        (&[("q", "PAID")], &["o2", "o1"]),
        (&[("q", "r-o2")], &["o2"]),
        (&[("q", "o3")], &["o3"]),
        (&[("q", "nobody")], &[]),
    ] {
        assert_eq!(ids(&shop.send(call(query).staff("s1")).await), expected, "{query:?}");
    }
    let answer = shop.send(call(&[("q", "o2")]).staff("s1")).await;
    assert_eq!(
        answer.body,
        json!({
            "items": [{
                "id": "o2", "number": OrderNumber::of(&"o2".parse().unwrap()), "reference": "R-o2",
                "customer_id": "c2", "status": "paid",
                "total": {"amount": 2580, "currency": "USD"}, "placed_at": "2017-01-01T00:00:02.000Z", "line_count": 2,
                "version": 1, "next_statuses": ["picking", "cancelled"],
            }],
            "total": 1, "next_cursor": null,
        })
    );
}

#[tokio::test]
async fn a_found_order_shows_the_country_and_the_city_to_which_it_is_sent() {
    let (country, city) = (Some("CH".to_owned()), Some("Zürich".to_owned()));
    let sent = OrderDocument { destination_country: country, destination_city: city, ..order("o1", "c1", "paid", 1) };
    let shop = Shop::with(&[], &[sent]).await;
    let answer = shop.send(call(&[]).staff("s1")).await;
    assert_eq!(answer.body["items"][0]["destination"], json!({ "country": "CH", "city": "Zürich" }));
}
