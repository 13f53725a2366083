//! Tests of the short numbers of orders, which people read out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef as Context;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::types::AttributeValue::{self, S as Text};
use aws_sdk_dynamodb::types::Put;
use fixture::{Harness, TestTable, with_writer};
use http_api::Services;
use http_api::sample::{Answered, Call};
use key_schema::order::{self, OrderNumber};
use orders::App;
use serde_json::{Value, json};
use table::Table;

use crate::shop::{Shop, moved, order, staff_order};

type Item = HashMap<String, AttributeValue>;

fn numbered(number: &str) -> Call {
    Call::new("GET /v1/orders").query("number", number).staff("sam")
}

fn ids(answer: &Answered) -> Vec<&str> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().iter().map(|order| order["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn staff_find_an_order_by_its_number_however_it_is_written() {
    let shop = Shop::open().await;
    shop.product("tea", 10).await;
    let placed = shop.send(order(&[("tea", 1)], "k1")).await.body;
    shop.send(order(&[("tea", 1)], "k2")).await;
    let (id, number) = (placed["id"].as_str().unwrap(), placed["number"].as_str().unwrap());
    assert_eq!(number, OrderNumber::of(&id.parse().unwrap()).to_string());
    let (bare, spaced) = (number.replace('-', ""), number.replace('-', " "));
    for spelled in [number, &bare, &spaced, &number.to_lowercase()] {
        let found = shop.send(numbered(spelled)).await;
        assert_eq!(ids(&found), [id], "{spelled}");
        let shown = &found.body["items"][0];
        assert_eq!(
            (&shown["number"], &shown["version"], &found.body["next_cursor"]),
            (&json!(number), &json!(1), &Value::Null)
        );
        assert_eq!(shown["next_statuses"], json!(["paid", "cancelled"]));
    }
    let other = OrderNumber::of(&"other".parse().unwrap()).to_string();
    assert!(ids(&shop.send(numbered(&other)).await).is_empty());
    let mut latest = placed.clone();
    for to in ["paid", "picking", "shipped"] {
        latest = shop.send(moved(&latest, to)).await.body;
    }
    for path in ["GET /v1/customers/{id}/orders", "GET /v1/customers/{id}/shipments"] {
        let list = shop.send(Call::new(path).path("id", "ann").customer("ann")).await;
        let shown = list.body["items"].as_array().unwrap().iter().find(|order| order["id"] == id);
        assert_eq!(shown.unwrap()["number"], number, "{path}");
    }
}

#[tokio::test]
async fn a_number_with_a_wrong_character_is_refused_and_so_is_a_list_of_a_number_and_a_status() {
    let shop = Shop::open().await;
    let number = OrderNumber::of(&"other".parse().unwrap()).to_string();
    let wrong = format!("{}{}", &number[..8], if number.ends_with('2') { '3' } else { '2' });
    for call in [
        numbered(&wrong),
        numbered("1234"),
        numbered(&number).query("status", "pending"),
        Call::new("GET /v1/orders").staff("sam"),
    ] {
        assert_eq!(shop.send(call).await.code(), Some("invalid_parameter"));
    }
}

/// Just before the first new order is written, another order gets its number.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_number_is_taken_gets_another_id_and_number() {
    let app = |test: &TestTable| {
        let (client, table, taken) = (test.client(), test.name().to_owned(), AtomicBool::new(false));
        let claim = move |context: &Context<'_>| {
            let actions = context.input().downcast_ref::<TransactWriteItemsInput>()?.transact_items();
            let named = |item: &&Item| matches!(item.get("entity"), Some(Text(name)) if name == "NumberClaim");
            let mut claim = actions.iter().filter_map(|action| action.put()).map(Put::item).find(named)?.clone();
            claim.insert("order_id".to_owned(), Text("other".to_owned()));
            (!taken.swap(true, Ordering::Relaxed)).then_some(claim)
        };
        let name = table.clone();
        let rival = with_writer(&test.client(), move |context| {
            let put = client.put_item().table_name(&name);
            let claim = claim(context);
            async move {
                if claim.is_some() {
                    put.set_item(claim).send().await.unwrap();
                }
            }
        });
        App::new(Services { table: Table::new(rival, table), ..test.services() })
    };
    let shop = Harness::start(orders::routes(), app).await;
    shop.sign_up("ann").await;
    shop.sell(fixture::seed::product("tea", fixture::seed::usd(100)), 10).await;
    let placed = shop.send(staff_order(&[("tea", 1)], "k1", &json!({}))).await;
    assert_eq!(placed.status, 201, "{}", placed.body);
    let claims = shop.items("NUMBER#").await;
    assert_eq!(claims.len(), 2, "{claims:?}");
    let number: OrderNumber = placed.body["number"].as_str().unwrap().parse().unwrap();
    let claim = shop.own().get(&order::numbered(number).unwrap()).await.unwrap().unwrap();
    assert_eq!(claim.order_id.as_str(), placed.body["id"]);
    assert_eq!((shop.items("ORDER#").await.len(), shop.items("REFERENCE#").await.len()), (3, 0));
}
