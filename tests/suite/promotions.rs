use futures::future::join_all;
use serde_json::json;

use crate::support::client::{Answer, Call};
use crate::support::shop::{all, customer_call, path, products, stock};
use crate::support::with_own_system;

const CLIENTS: usize = 200;
const USES: usize = 50;

#[test]
fn of_200_clients_with_a_quote_exactly_50_use_the_last_50_uses_of_a_coupon() {
    with_own_system(async |system| {
        products(system, &["tea"], 1_000).await;
        let coupon = json!({
            "id": "spring", "name": "Spring", "code": "SPRING", "kind": "amount",
            "value": { "amount": 29, "currency": "USD" }, "limit_total": USES, "limit_per_customer": 1,
        });
        Call::new("POST", "/v1/promotions").staff().json(&coupon).send(system).await.expect(201);
        let ids: Vec<String> = (0..CLIENTS).map(|number| format!("client-{number}")).collect();
        all(system, ids.iter().map(|id| customer_call(id)))
            .await
            .into_iter()
            .for_each(|answer| drop(answer.expect(201)));
        let cart = |id: &str, rest: &[&str]| path(&[&["customers", id, "cart"], rest].concat());
        let fill =
            |id: &String| Call::new("PUT", &cart(id, &["items", "tea"])).customer(id).json(&json!({ "quantity": 1 }));
        all(system, ids.iter().map(fill)).await.into_iter().for_each(|answer| drop(answer.expect(200)));
        let quote =
            |id: &String| Call::new("POST", &cart(id, &["quote"])).customer(id).json(&json!({ "codes": ["spring"] }));
        let quotes = all(system, ids.iter().map(quote)).await;
        let checkout = |(id, quote): (&String, Answer)| {
            let body = json!({ "quote_id": quote.expect(200).body["id"] });
            let call = Call::new("POST", &cart(id, &["checkout"])).customer(id).json(&body);
            call.header("idempotency-key", "once").settled(system)
        };
        let answers = join_all(ids.iter().zip(quotes).map(checkout)).await;
        let placed: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
        let refused = answers.iter().filter(|answer| (answer.status, answer.code()) == (409, "promotion_used_up"));
        assert_eq!((placed.len(), refused.count()), (USES, CLIENTS - USES));
        let paid = json!({ "amount": 100, "currency": "USD" });
        assert!(placed.iter().all(|answer| answer.body["total"] == paid));
        assert_eq!(stock(system, "tea").await, 950);
        let promotion = Call::new("GET", "/v1/promotions/spring").staff().send(system).await.expect(200).body;
        assert_eq!(promotion["uses"], USES);
    });
}
