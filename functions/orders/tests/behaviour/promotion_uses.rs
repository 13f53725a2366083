//! Tests of a promotion's count of uses. An order adds a use, concurrent orders stay within the
//! limit, and a cancellation gives the use back.

use futures::future::join_all;
use http_api::sample::Call;
use key_schema::id::PromotionId;
use key_schema::instant::Instant;
use key_schema::order::{self, OrderStatus};
use key_schema::promotion::PromotionItem;
use key_schema::promotion::{self, Promotion, PromotionUses};
use serde_json::{Value, json};
use workflows::staging;

use crate::promotions::{ann, discounts, named, shop, ten};
use crate::shop::{Shop, checkout, moved, staff_order, stored};

impl Shop {
    /// Returns the uses of a promotion by all customers and by ann.
    pub async fn uses(&self, id: &str) -> (u64, u64) {
        let id: PromotionId = id.parse().unwrap();
        let read = self.own().batch_get(&promotion::read([], [&id], &ann()).unwrap()).await.unwrap();
        let uses = |item: &Option<PromotionItem>| match item {
            Some(PromotionItem::PromotionUses(all)) => all.uses,
            Some(PromotionItem::CustomerUses(own)) => own.uses,
            _ => 0,
        };
        (uses(&read[0]), uses(&read[1]))
    }
}

fn quote_of(customer: &str) -> Call {
    Call::new("POST /v1/customers/{id}/cart/quote").path("id", customer).customer(customer)
}

fn checkout_of(customer: &str) -> Call {
    Call::new("POST /v1/customers/{id}/cart/checkout").path("id", customer).customer(customer)
}

fn limited() -> Promotion {
    Promotion { limit_total: Some(2), limit_per_customer: Some(1), ..ten() }
}

#[tokio::test]
async fn a_use_is_counted_with_the_order_and_given_back_when_it_is_cancelled() {
    let shop = shop().await;
    shop.promote(limited()).await;
    let placed = shop.buy_with(&["TEN"]).await.body;
    assert_eq!(shop.uses("ten").await, (1, 1));
    shop.fill_cart(&[("tea", 1)]).await;
    let refused = shop.with_codes(&["TEN"]).await;
    assert_eq!((refused.status, refused.code()), (409, Some("promotion_used_up")), "{}", refused.body);
    assert_eq!(shop.send(moved(&placed, "cancelled")).await.status, 200);
    assert_eq!(shop.uses("ten").await, (0, 0));
    let again = shop.buy_with(&["TEN"]).await;
    assert_eq!((again.status, shop.uses("ten").await), (201, (1, 1)));
}

#[tokio::test]
async fn a_use_is_given_back_when_the_order_lapses_but_not_when_it_is_returned() {
    let shop = shop().await;
    shop.promote(limited()).await;
    let placed = shop.buy_with(&["TEN"]).await.body;
    let id = placed["id"].as_str().unwrap().parse().unwrap();
    staging::lapse(shop.own(), &id, Instant::now().plus_seconds(3_700)).await.unwrap();
    assert_eq!(shop.head(&placed).await.status, OrderStatus::Cancelled);
    assert_eq!(shop.uses("ten").await, (0, 0));

    shop.fill_cart(&[("tea", 1)]).await;
    let mut order = shop.buy_with(&["TEN"]).await.body;
    for to in ["paid", "picking", "shipped", "delivered", "returned"] {
        order = shop.send(moved(&order, to)).await.body;
    }
    assert_eq!(order["status"], "returned", "{order}");
    assert_eq!(shop.uses("ten").await, (1, 1));
}

#[tokio::test]
async fn the_last_uses_of_a_promotion_go_to_as_many_of_many_customers() {
    let shop = shop().await;
    shop.promote(Promotion { limit_total: Some(3), ..ten() }).await;
    let customers: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
    let mut quotes = Vec::new();
    for customer in &customers {
        shop.sign_up(customer).await;
        shop.put(&stored(fixture::seed::cart(customer, &[("cake", 1)], 3_600))).await;
        let quoted = shop.send(quote_of(customer).json(&json!({ "codes": ["TEN"] }))).await;
        assert_eq!(quoted.status, 200, "{}", quoted.body);
        quotes.push(quoted.body["id"].clone());
    }
    let buy =
        |(customer, quote): (&String, &Value)| shop.send(checkout_of(customer).json(&json!({ "quote_id": quote })));
    let answers = join_all(customers.iter().zip(&quotes).map(buy)).await;
    let placed = answers.iter().filter(|answer| answer.status == 201).count();
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!((refused.code(), refused.pointers()), (Some("promotion_used_up"), vec!["/quote_id"]));
    }
    assert_eq!((placed, shop.uses("ten").await.0, shop.stock("cake").await), (3, 3, 7));
}

#[tokio::test]
async fn a_large_order_counts_its_use_once_and_gives_it_back_when_it_is_refused() {
    let shop = Shop::open().await;
    shop.promote(limited()).await;
    let ids: Vec<String> = (0..60).map(|number| format!("p{number}")).collect();
    for id in &ids {
        shop.product(id, 1).await;
    }
    let lines: Vec<_> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    shop.replace_cart(&lines).await;
    let quoted = shop.with_codes(&["TEN"]).await.body;
    assert_eq!(shop.send(staff_order(&[("p59", 1)], "k", &json!({}))).await.status, 201);
    let refused = shop.check_out(&json!({ "quote_id": quoted["id"] })).await;
    assert_eq!(refused.code(), Some("insufficient_stock"), "{}", refused.body);
    assert_eq!(shop.uses("ten").await, (0, 0));
    shop.replace_cart(&lines[..59]).await;
    let placed = shop.buy_with(&["TEN"]).await;
    assert_eq!((placed.status, shop.uses("ten").await), (201, (1, 1)), "{}", placed.body);
    assert_eq!(shop.send(moved(&placed.body, "cancelled")).await.status, 200);
    assert_eq!((shop.uses("ten").await, shop.stock("p0").await), ((0, 0), 1));
}

/// The promotion and the item with its count of uses both contain the limit. An order reads the
/// promotion's limit, and its transaction requires the same limit in the other item.
#[tokio::test]
async fn a_limit_that_staff_change_during_a_checkout_leads_to_another_attempt() {
    let shop = shop().await;
    let coded = shop.promote(Promotion { limit_total: Some(2), ..ten() }).await;
    let quote = shop.with_codes(&["TEN"]).await.body;
    shop.put(&stored(PromotionUses { promotion_id: coded.id.clone(), limit: Some(3), uses: 2 })).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("promotion_used_up")), "{}", refused.body);
    shop.put(&stored(PromotionUses { promotion_id: coded.id.clone(), limit: None, uses: 1 })).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("conflict")), "{}", refused.body);
    assert!(shop.has_cart().await);
}

#[tokio::test]
async fn an_automatic_promotion_with_a_limit_ends_with_its_last_use() {
    let shop = shop().await;
    shop.promote(Promotion { limit_total: Some(1), ..named("first", None) }).await;
    let first = shop.with_codes(&[]).await.body;
    shop.sign_up("bob").await;
    shop.put(&stored(fixture::seed::cart("bob", &[("cake", 1)], 3_600))).await;
    let quoted = shop.send(quote_of("bob").json(&json!({}))).await.body;
    let bought = shop.send(checkout_of("bob").json(&json!({ "quote_id": quoted["id"] }))).await;
    assert_eq!(bought.status, 201, "{}", bought.body);
    let refused = shop.check_out(&json!({ "quote_id": first["id"] })).await;
    assert_eq!((refused.code(), refused.pointers()), (Some("quote_changed"), vec!["/discounts"]), "{}", refused.body);
    assert_eq!(discounts(&shop.with_codes(&[]).await.body), []);
    let refused = shop.check_out(&json!({})).await;
    assert_eq!(refused.code(), Some("quote_required"), "{}", refused.body);
}

#[tokio::test]
async fn a_repeated_checkout_returns_the_first_order_although_its_code_is_used_up() {
    let shop = shop().await;
    shop.promote(limited()).await;
    let quote = shop.with_codes(&["TEN"]).await.body;
    let attempt = || checkout().header("idempotency-key", "k").json(&json!({ "quote_id": quote["id"] }));
    let first = shop.send(attempt()).await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = shop.send(attempt()).await;
    assert_eq!((again.status, &again.body["id"]), (201, &first.body["id"]));
    assert_eq!(shop.uses("ten").await, (1, 1));
    let stored = shop.own().get(&order::head(&first.body["id"].as_str().unwrap().parse().unwrap()).unwrap()).await;
    assert_eq!(stored.unwrap().unwrap().promotions().len(), 1);
}
