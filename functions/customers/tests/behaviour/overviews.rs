//! Tests of the overview. One Query reads profile and newest orders, and a second Query reads
//! questions.

use fixture::seed;
use http_api::sample::{Answered, Call};
use key_schema::id::QuestionId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::order::OrderNumber;
use key_schema::question::{self, Question, QuestionStatus};
use serde_json::{Value, json};

use crate::shop::{Shop, ids, if_match};

async fn overview(shop: &Shop, id: &str) -> Answered {
    shop.send(Call::new("GET /v1/customers/{id}/overview").path("id", id).customer(id)).await
}

#[tokio::test]
async fn an_overview_leaves_out_an_unreadable_order_but_needs_the_profile() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    let ids_placed = [shop.order("ann", "p0", 1).await, shop.order("ann", "p0", 2).await];
    shop.spoil("CUSTOMER#ann", &format!("ORDER#{}", ids_placed[0]), "total").await;
    let answer = overview(&shop, "ann").await;
    assert_eq!((answer.status, answer.header("x-left-out")), (200, Some("1")), "{}", answer.body);
    assert_eq!(ids(&answer.body["orders"]), [ids_placed[1].as_str()]);
    shop.spoil("CUSTOMER#ann", "PROFILE", "addresses").await;
    assert_eq!(overview(&shop, "ann").await.status, 500);
}

#[tokio::test]
async fn the_overview_has_the_profile_and_the_newest_20_orders_and_costs_one_query() {
    let shop = Shop::open().await;
    let ann = shop.customer("ann").await;
    // The partition of `ann2` sorts next to that of `ann`.
    shop.customer("ann2").await;
    shop.product("p0").await;
    shop.order("ann2", "p0", 0).await;
    let mut placed: Vec<String> = Vec::new();
    for count in [0, 1, 20, 25] {
        while placed.len() < count {
            let minute = i64::try_from(placed.len()).unwrap() + 1;
            placed.push(shop.order("ann", "p0", minute).await);
        }
        let _ = shop.app.table.meter().take();
        let answer = overview(&shop, "ann").await;
        let measured: Vec<_> =
            shop.app.table.meter().take().iter().map(|measured| (measured.pattern.id, measured.requests)).collect();
        assert_eq!(measured, [("customers.overview", 1)]);
        assert_eq!((answer.status, &answer.body["customer"]), (200, &ann));
        let newest: Vec<&str> = placed.iter().rev().take(20).map(String::as_str).collect();
        assert_eq!(ids(&answer.body["orders"]), newest, "{count} orders");
    }
}

#[tokio::test]
async fn an_order_shows_its_summary() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    let id = shop.order("ann", "p0", 0).await;
    let expected = json!([{
        "id": id, "number": OrderNumber::of(&id.parse().unwrap()), "reference": null, "customer_id": "ann",
        "status": "pending",
        "total": { "amount": 100, "currency": "USD" },
        "placed_at": "2023-11-14T22:13:20.000Z", "line_count": 1,
    }]);
    assert_eq!(overview(&shop, "ann").await.body["orders"], expected);
}

#[tokio::test]
async fn orders_without_a_profile_have_no_overview() {
    let shop = Shop::open().await;
    shop.customer("ann").await;
    shop.product("p0").await;
    shop.order("ann", "p0", 0).await;
    let erase = Call::new("DELETE /v1/customers/{id}").path("id", "ann").customer("ann");
    assert_eq!(shop.send(if_match(erase, 1)).await.status, 204);
    let answer = overview(&shop, "ann").await;
    assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
}

/// Asks a question, `minute` minutes after a fixed instant, and returns its id.
async fn ask(shop: &Shop, customer: &str, minute: i64) -> String {
    let at = Instant::EPOCH.plus_seconds(1_700_000_000 + 60 * minute);
    let question = Question {
        id: QuestionId::generate(at, [7; 10]),
        customer_id: customer.parse().unwrap(),
        status: QuestionStatus::Open,
        answer_count: 0,
        title: "Ice".to_owned(),
        text: "Does it melt?".to_owned(),
    };
    let question = Stored::new(question, seed::born(), at);
    shop.transact(&question::ask(&question, None).unwrap()).await;
    question.id.to_string()
}

async fn with_questions(shop: &Shop, count: &str) -> Answered {
    let call = Call::new("GET /v1/customers/{id}/overview").path("id", "ann").query("questions", count).customer("ann");
    shop.send(call).await
}

#[tokio::test]
async fn an_overview_with_orders_and_questions_costs_two_queries() {
    let shop = Shop::open().await;
    let ann = shop.customer("ann").await;
    shop.customer("ann2").await;
    shop.product("p0").await;
    ask(&shop, "ann2", -1).await;
    let (mut orders, mut questions) = (Vec::new(), Vec::new());
    for minute in 0..25 {
        for (count, asked) in [("1", 1), ("5", 5), ("20", 20)] {
            let _ = shop.requests();
            let answer = with_questions(&shop, count).await;
            let requests: Vec<_> = shop.requests().into_iter().collect();
            assert_eq!(requests, [("customers.overview", 1), ("questions.of-customer", 1)]);
            assert_eq!((answer.status, &answer.body["customer"]), (200, &ann), "{}", answer.body);
            let newest = |ids: &[String], count: usize| ids.iter().rev().take(count).cloned().collect::<Vec<_>>();
            assert_eq!(ids(&answer.body["orders"]), newest(&orders, 20));
            assert_eq!(ids(&answer.body["questions"]), newest(&questions, asked));
        }
        orders.push(shop.order("ann", "p0", minute).await);
        questions.push(ask(&shop, "ann", minute).await);
    }
    assert_eq!(overview(&shop, "ann").await.body.get("questions"), None);
    let expected = json!({
        "id": questions[24], "customer_id": "ann", "subject": "Ice", "text": "Does it melt?", "status": "open",
        "answer_count": 0, "version": 1, "created_at": "2023-11-14T22:37:20.000Z",
        "updated_at": "2023-11-14T22:37:20.000Z",
    });
    assert_eq!(with_questions(&shop, "1").await.body["questions"], Value::from(vec![expected]));
}
