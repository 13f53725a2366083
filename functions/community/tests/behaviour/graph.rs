//! Tests of the graph: every kind of edge from a node, and customers by place.

use key_schema::customer::{self, Customer};
use key_schema::id::{CustomerId, OrderId, ProductId};
use key_schema::item::Stored;
use key_schema::money::{Currency, Money};
use key_schema::residence;
use key_schema::review::{self, Review};
use key_schema::sales::Sale;
use serde_json::json;

use crate::town::{Town, at, born, each, edges, profile, residents};

fn sale(order: &str, line: u64, product: &str, second: i64, customer: &str, reversed: bool) -> Stored<Sale> {
    let sale = Sale {
        order_id: OrderId::new(order).unwrap(),
        line,
        product_id: ProductId::new(product).unwrap(),
        placed_at: at(second),
        quantity: 1,
        total: Money::new(100, Currency::USD),
        store_id: None,
        customer_id: CustomerId::new(customer).unwrap(),
        reversed,
        ranked_at: None,
    };
    Stored::new(sale, born(), at(99))
}

#[tokio::test]
async fn each_kind_of_edge_leads_to_its_targets_and_costs_one_request() {
    let town = Town::open(&["a", "b"], &["p", "q"]).await;
    town.put_all([profile("a", Some(("CH", "Zürich/1")))]).await;
    town.follow("a", "b").await;
    town.like("a", "p").await;
    let reviewed = Review {
        product_id: ProductId::new("q").unwrap(),
        customer_id: CustomerId::new("a").unwrap(),
        rating: 4,
        display_name: None,
        title: "T".to_owned(),
        text: "T".to_owned(),
    };
    town.own().transact(&review::create(&Stored::new(reviewed, born(), at(5))).unwrap()).await.unwrap().unwrap();
    town.put_all([sale("o#1", 1, "p", 7, "a", false)]).await;
    for (kind, wanted) in [
        ("follows", json!({ "kind": "follows", "target": "b" })),
        ("likes", json!({ "kind": "likes", "target": "p" })),
        ("reviewed", json!({ "kind": "reviewed", "target": "q", "at": at(5).to_string(), "rating": 4 })),
        ("bought", json!({ "kind": "bought", "target": "p", "at": at(7).to_string(), "order_id": "o#1" })),
        (
            "lives-in",
            json!({
                "kind": "lives-in", "target": "CH~Z_C3_BCrich_2F1", "at": null,
                "place": { "country": "CH", "city": "Zürich/1" },
            }),
        ),
    ] {
        let _ = town.app.table.meter().take();
        let answer = town.ok(edges("a", kind)).await.body;
        let cost = town.app.table.meter().take();
        assert_eq!(cost.iter().map(|cost| cost.requests).sum::<u32>(), 1, "{kind}");
        let items = answer["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{kind}: {answer}");
        let mut found = items[0].clone();
        if wanted.get("at").is_none() {
            assert!(found["at"].is_string());
            found.as_object_mut().unwrap().remove("at");
        }
        assert_eq!(found, wanted);
        for nobody in ["b", "nobody", "a#"] {
            assert_eq!(town.ok(edges(nobody, kind)).await.body["items"], json!([]), "{kind} of {nobody}");
        }
    }
}

#[tokio::test]
async fn purchases_are_listed_newest_first_without_returned_orders() {
    let town = Town::open(&[], &[]).await;
    town.put_all([
        sale("o1", 1, "p", 1, "a", false),
        sale("o2", 1, "p", 5, "a", false),
        sale("o2", 2, "q", 5, "a", false),
        sale("o3", 1, "r", 3, "a", true),
        sale("o4", 1, "s", 4, "b", false),
    ])
    .await;
    for limit in [1, 2, 100] {
        let found = town.list(&edges("a", "bought"), limit).await;
        assert_eq!(each(&found, "target"), ["q", "p", "p"]);
        assert_eq!(each(&found, "order_id"), ["o2", "o2", "o1"]);
    }
}

#[tokio::test]
async fn a_customer_who_moves_is_listed_only_in_the_new_place() {
    let town = Town::open(&[], &[]).await;
    let mut ann = profile("ann", Some(("DE", "Ulm")));
    town.own().transact(&customer::create(&ann).unwrap()).await.unwrap().unwrap();
    let listed = async |path: &str| each(&town.list(&residents(path), 10).await, "id");
    assert_eq!((listed("DE").await, listed("DE~Ulm").await), (vec!["ann".to_owned()], vec!["ann".to_owned()]));
    let moves = [
        (Some(("DE", "Köln")), ["DE", "DE~K_C3_B6ln"].as_slice()),
        (Some(("FR", "Köln")), &["FR", "FR~K_C3_B6ln"]),
        (None, &[]),
        (Some(("DE", "Ulm")), &["DE", "DE~Ulm"]),
    ];
    for (version, (place, found)) in (1..).zip(moves) {
        let place = profile("x", place).data.place;
        let change = key_schema::change::Change::<Customer>::visible(at(version));
        let change = residence::settle(change, &ann.id, place.as_ref()).unwrap();
        let update = customer::update(&ann, change).unwrap();
        ann = town.own().update(&update).await.unwrap().unwrap();
        assert_eq!(ann.place, place);
        for path in ["DE", "DE~Ulm", "DE~K_C3_B6ln", "FR", "FR~K_C3_B6ln"] {
            assert_eq!(listed(path).await.len(), usize::from(found.contains(&path)), "{path}");
        }
    }
    town.delete_profile("ann").await;
    assert!(listed("DE").await.is_empty());
}

#[tokio::test]
async fn a_place_is_a_country_or_a_city_of_a_country() {
    let town = Town::open(&[], &[]).await;
    for bad in ["", "a~b~c", "~a", "a~", "a~~b", "_41", "_2f", "a b", "Ä", "_00", &"x".repeat(129)] {
        let answer = town.send(residents(bad)).await;
        assert_eq!((answer.status, answer.code()), (422, Some("invalid_id")), "{bad:?}");
    }
    assert_eq!(town.ok(residents("US~unknown")).await.body, json!({ "items": [], "next_cursor": null }));
}
