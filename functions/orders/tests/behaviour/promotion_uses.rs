//! Tests of a promotion's count of uses. An order adds a use, concurrent orders stay within the
//! limit, and a cancellation gives the use back.

use futures::future::join_all;
use http_api::sample::{Answered, Call};
use key_schema::id::PromotionId;
use key_schema::instant::Instant;
use key_schema::order::{self, OrderStatus};
use key_schema::promotion::PromotionItem;
use key_schema::promotion::{self, Leases, Promotion, PromotionUses, USE_SHARDS};
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

impl Shop {
    /// Returns the uses by all customers, without those that shards have left.
    async fn used(&self) -> u64 {
        let read = promotion::leases(&ten().id, USE_SHARDS.all()).unwrap();
        Leases::of(self.own().batch_get(&read).await.unwrap().into_iter().flatten()).unwrap().used()
    }

    /// Counts so many uses of earlier orders.
    pub async fn count_uses(&self, id: &str, uses: u64) {
        let seen = promotion::leases(&id.parse().unwrap(), []).unwrap();
        let mut head = Leases::of(self.own().batch_get(&seen).await.unwrap().into_iter().flatten()).unwrap().head;
        head.data.uses += uses;
        self.put(&head).await;
    }

    async fn count_uses_back(&self, id: &str, uses: u64) {
        let seen = promotion::leases(&id.parse().unwrap(), []).unwrap();
        let mut head = Leases::of(self.own().batch_get(&seen).await.unwrap().into_iter().flatten()).unwrap().head;
        head.data.uses -= uses;
        self.put(&head).await;
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

/// Signs up so many customers, each with a cart, and returns their names.
async fn customers(shop: &Shop, count: u64) -> Vec<String> {
    let customers: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
    for customer in &customers {
        shop.sign_up(customer).await;
        shop.put(&stored(fixture::seed::cart(customer, &[("cake", 1)], 3_600))).await;
    }
    customers
}

/// Each customer gets a quote with the code, and then all of them order at the same time.
async fn rush(shop: &Shop, customers: &[String]) -> Vec<Answered> {
    let mut quotes = Vec::new();
    for customer in customers {
        let quoted = shop.send(quote_of(customer).json(&json!({ "codes": ["TEN"] }))).await;
        assert_eq!(quoted.status, 200, "{}", quoted.body);
        quotes.push(quoted.body["id"].clone());
    }
    let buy =
        |(customer, quote): (&String, &Value)| shop.send(checkout_of(customer).json(&json!({ "quote_id": quote })));
    join_all(customers.iter().zip(&quotes).map(buy)).await
}

/// A promotion with a high limit counts its uses in shards, which lease them.
#[tokio::test]
async fn the_last_uses_of_a_promotion_go_to_as_many_of_many_customers() {
    for limit in [3, 2_000] {
        let shop = shop().await;
        shop.set_stock("cake", 100).await;
        shop.promote(Promotion { limit_total: Some(limit), ..ten() }).await;
        shop.count_uses("ten", limit - 3).await;
        let customers = customers(&shop, 9).await;
        let answers = rush(&shop, &customers[..8]).await;
        let placed: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!((refused.code(), refused.pointers()), (Some("promotion_used_up"), vec!["/quote_id"]));
        }
        assert_eq!((placed.len(), shop.used().await, shop.stock("cake").await), (3, limit, 97), "{limit}");
        let codes = json!({ "codes": ["TEN"] });
        let refused = shop.send(quote_of("c8").json(&codes)).await;
        assert_eq!(refused.code(), Some("promotion_used_up"), "{limit} {}", refused.body);
        // A cancelled order gives its use back, and another order takes it.
        assert_eq!(shop.send(moved(&placed[0].body, "cancelled")).await.status, 200);
        assert_eq!(shop.used().await, limit - 1);
        assert_eq!(rush(&shop, &customers[8..]).await[0].status, 201);
        assert_eq!(shop.used().await, limit);
    }
}

#[tokio::test]
async fn uses_that_shards_leased_stay_usable_when_staff_change_the_limit() {
    let shop = shop().await;
    shop.set_stock("cake", 100).await;
    let mut promotion = shop.promote(Promotion { limit_total: Some(100_000), ..ten() }).await;
    let customers = customers(&shop, 12).await;
    for (limit, buyers, placed) in
        [(100_000, 0..4, 4), (1_000, 4..6, 2), (7, 6..8, 1), (100_000, 8..9, 1), (9, 9..12, 1)]
    {
        let wanted = Promotion { limit_total: Some(limit), ..promotion.data.clone() };
        shop.transact(&promotion::change(&promotion, &wanted, Instant::now()).unwrap()).await;
        (promotion.data, promotion.meta.version) = (wanted, promotion.meta.version + 1);
        let before = shop.used().await;
        let answers = rush(&shop, &customers[buyers]).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), placed, "{limit}");
        assert_eq!(shop.used().await, before + placed as u64, "{limit}");
    }
}

#[tokio::test]
async fn the_last_uses_of_one_shard_are_for_orders_of_every_shard() {
    let shop = shop().await;
    shop.set_stock("cake", 100).await;
    shop.promote(Promotion { limit_total: Some(1_000), ..ten() }).await;
    shop.count_uses("ten", 996).await;
    let read = promotion::leases(&ten().id, [7]).unwrap();
    let seen = Leases::of(shop.own().batch_get(&read).await.unwrap().into_iter().flatten()).unwrap();
    shop.transact(&promotion::lease(&seen, 7, 4, Instant::now()).unwrap()).await;
    let customers = customers(&shop, 6).await;
    for (number, customer) in customers.iter().enumerate().take(4) {
        assert_eq!(rush(&shop, std::slice::from_ref(customer)).await[0].status, 201, "{number}");
    }
    let refused = shop.send(quote_of(&customers[4]).json(&json!({ "codes": ["TEN"] }))).await;
    assert_eq!((refused.code(), shop.used().await), (Some("promotion_used_up"), 1_000), "{}", refused.body);
}

/// The shards still have uses that they leased when the promotion had the same limit before.
#[tokio::test]
async fn uses_of_an_earlier_limit_are_not_taken_when_staff_set_the_same_limit_again() {
    let shop = shop().await;
    shop.set_stock("cake", 100).await;
    let mut promotion = shop.promote(Promotion { limit_total: Some(1_000), ..ten() }).await;
    shop.count_uses("ten", 900).await;
    for shard in USE_SHARDS.all() {
        let read = promotion::leases(&ten().id, [shard]).unwrap();
        let seen = Leases::of(shop.own().batch_get(&read).await.unwrap().into_iter().flatten()).unwrap();
        shop.transact(&promotion::lease(&seen, shard, 1, Instant::now()).unwrap()).await;
    }
    assert_eq!(shop.used().await, 900);
    for (limit, uses) in [(1_100, 100), (1_000, 0)] {
        shop.count_uses("ten", uses).await;
        let wanted = Promotion { limit_total: Some(limit), ..promotion.data.clone() };
        shop.transact(&promotion::change(&promotion, &wanted, Instant::now()).unwrap()).await;
        (promotion.data, promotion.meta.version) = (wanted, promotion.meta.version + 1);
    }
    // 1,000 orders have used it, so nobody gets a use that a shard has left.
    let customers = customers(&shop, 5).await;
    let refused = shop.send(quote_of("c0").json(&json!({ "codes": ["TEN"] }))).await;
    assert_eq!((refused.code(), shop.used().await), (Some("promotion_used_up"), 1_000), "{}", refused.body);
    // The uses went back, so later quotes read only the head.
    let read = promotion::leases(&ten().id, USE_SHARDS.all()).unwrap();
    for is_leased in [true, false] {
        let seen = Leases::of(shop.own().batch_get(&read).await.unwrap().into_iter().flatten()).unwrap();
        assert!(seen.shards.iter().all(|shard| shard.unused == 0) && seen.head.leased == is_leased, "{:?}", seen.head);
        shop.send(quote_of("c0").json(&json!({ "codes": ["TEN"] }))).await;
    }
    // Below the limit the uses come back, all in one transaction.
    shop.count_uses_back("ten", 3).await;
    let answers = rush(&shop, &customers).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 3);
    assert_eq!(shop.used().await, 1_000);
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
    let uses = |limit, uses| stored(PromotionUses { limit, uses, ..PromotionUses::of(&coded).data });
    shop.put(&uses(Some(3), 2)).await;
    let refused = shop.check_out(&json!({ "quote_id": quote["id"] })).await;
    assert_eq!((refused.status, refused.code()), (409, Some("promotion_used_up")), "{}", refused.body);
    shop.put(&uses(None, 1)).await;
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
