//! Tests of a customer's addresses.

use http_api::sample::{Answered, Call};
use key_schema::customer::MAX_ADDRESSES;
use serde_json::{Value, json};

use crate::shop::{Shop, if_match};

async fn put(shop: &Shop, name: &str, body: &Value) -> Answered {
    let call =
        Call::new("PUT /v1/customers/{id}/addresses/{name}").path("id", "ann").path("name", name).customer("ann");
    shop.send(call.json(body)).await
}

async fn remove(shop: &Shop, name: &str) -> Answered {
    let call = Call::new("DELETE /v1/customers/{id}/addresses/{name}").path("id", "ann").path("name", name);
    shop.send(call.customer("ann")).await
}

fn address(line1: &str) -> Value {
    json!({
        "name": "Ann", "line1": line1, "city": "Ulm", "region": "BW", "postal_code": "89073", "country": "DE",
    })
}

#[tokio::test]
async fn an_address_is_set_replaced_and_removed_without_touching_the_others() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let bare = json!({ "name": "Ann", "line1": "2 Lane", "city": "Bonn", "postal_code": "53113", "country": "DE" });
    let first = put(&shop, "home", &address("1 Road")).await;
    assert_eq!(
        (first.status, first.version(), &first.body["addresses"]),
        (200, Some(2), &json!({ "home": address("1 Road") }))
    );
    let second = put(&shop, "work", &bare).await;
    assert_eq!(second.body["addresses"], json!({ "home": address("1 Road"), "work": bare }));
    let third = put(&shop, "home", &address("3 Way")).await;
    assert_eq!(third.body["addresses"], json!({ "home": address("3 Way"), "work": bare }));
    assert_eq!(shop.read("ann").await.body, third.body);

    assert_eq!(remove(&shop, "home").await.status, 204);
    let left = shop.read("ann").await;
    assert_eq!((left.version(), &left.body["addresses"]), (Some(5), &json!({ "work": bare })));
    let again = remove(&shop, "home").await;
    assert_eq!(again.status, 204, "the deletion can be repeated");
    assert_eq!(shop.read("ann").await.version(), Some(5));
}

#[tokio::test]
async fn if_match_is_optional_and_a_stale_version_is_refused() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let route = |method| match method {
        "PUT" => Call::new("PUT /v1/customers/{id}/addresses/{name}").json(&address("1 Road")),
        _ => Call::new("DELETE /v1/customers/{id}/addresses/{name}"),
    };
    let send = async |method, name: &str, version| {
        let call = if_match(route(method).path("id", "ann").path("name", name).customer("ann"), version);
        let answer = shop.send(call).await;
        (answer.status, answer.code().map(str::to_owned))
    };
    let stale = (412, Some("version_mismatch".to_owned()));
    assert_eq!(send("PUT", "home", 1).await, (200, None));
    assert_eq!(send("PUT", "home", 1).await, stale);
    assert_eq!(send("PUT", "work", 3).await, stale);
    assert_eq!(send("DELETE", "home", 1).await, stale);
    assert_eq!(shop.read("ann").await.version(), Some(2));
    assert_eq!(send("DELETE", "home", 2).await, (204, None));
    // The address no longer exists. A stale version is still refused, and a deletion with the
    // newest version succeeds.
    assert_eq!(send("DELETE", "home", 2).await, stale);
    assert_eq!(send("DELETE", "home", 3).await, (204, None));
}

#[tokio::test]
async fn an_address_may_have_every_name_that_a_path_can_carry() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let names = ["a.b", "a#b", "addresses", "version", "50$ [0]", "ferienhaus am meer", "家"];
    for name in names {
        assert_eq!(put(&shop, name, &address(name)).await.status, 200, "{name}");
    }
    let stored = shop.read("ann").await.body["addresses"].clone();
    assert_eq!(stored.as_object().unwrap().len(), names.len());
    for name in names {
        assert_eq!(stored[name], address(name));
        assert_eq!(remove(&shop, name).await.status, 204, "{name}");
    }
    assert_eq!(shop.read("ann").await.body["addresses"], json!({}));
}

#[tokio::test]
async fn a_customer_has_a_limited_number_of_addresses() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    for n in 0..MAX_ADDRESSES {
        assert_eq!(put(&shop, &format!("a{n}"), &address("1 Road")).await.status, 200);
    }
    let more = put(&shop, "more", &address("1 Road")).await;
    assert_eq!((more.status, more.code()), (422, Some("invalid_body")));
    assert_eq!(put(&shop, "a0", &address("2 Road")).await.status, 200);
    assert_eq!(remove(&shop, "a1").await.status, 204);
    assert_eq!(put(&shop, "more", &address("1 Road")).await.status, 200);
}

#[tokio::test]
async fn two_addresses_set_at_once_are_both_stored() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let (home, work) = (address("1 Road"), address("2 Road"));
    let (a, b) = futures::future::join(put(&shop, "home", &home), put(&shop, "work", &work)).await;
    assert_eq!((a.status, b.status), (200, 200));
    assert_eq!(shop.read("ann").await.body["addresses"], json!({ "home": home, "work": work }));
}

#[tokio::test]
async fn the_addresses_of_a_missing_customer_cannot_be_changed() {
    let shop = Shop::open().await;
    assert_eq!(put(&shop, "home", &address("1 Road")).await.status, 404);
    assert_eq!(remove(&shop, "home").await.status, 404);
    assert_eq!(shop.read("ann").await.status, 404);
}

#[tokio::test]
async fn an_address_has_a_postal_code_where_its_country_has_one() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    let of = |country: &str, code: Value| json!({ "name": "Ann", "line1": "1 Road", "city": "City", "postal_code": code, "country": country });
    for (country, code) in [
        ("QA", Value::Null),
        ("HK", Value::Null),
        ("QA", json!("00000")),
        ("IE", Value::Null),
        ("IE", json!("A65 F4E2")),
        ("CH", json!("ch-8001")),
        ("GB", json!("EC1Y 8SY")),
    ] {
        let stored = put(&shop, "home", &of(country, code.clone())).await;
        assert_eq!(stored.status, 200, "{country} {code}: {}", stored.body);
    }
    for (country, code, detail) in [
        ("DE", Value::Null, "is required in this country"),
        ("DE", json!("8907"), "is not a postal code of this country"),
        ("IE", json!("A65"), "is not a postal code of this country"),
        ("GB", json!("none"), "is not a postal code of this country"),
    ] {
        let refused = put(&shop, "home", &of(country, code.clone())).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec!["/postal_code"]), "{country} {code}");
        assert_eq!(refused.body["errors"][0]["detail"], detail, "{country} {code}");
    }
    let unknown = put(&shop, "home", &of("Atlantis", json!("1"))).await;
    assert_eq!((unknown.status, unknown.pointers()), (422, vec!["/country"]));
    let nameless = put(&shop, "home", &json!({ "line1": "1 Road", "city": "Doha", "country": "QA" })).await;
    assert_eq!((nameless.status, nameless.pointers()), (422, vec!["/name"]));
}
