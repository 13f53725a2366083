//! Tests that an order with more lines than fit in one transaction is retired completely, however
//! often the command is stopped.

use std::process::Command;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::seed;
use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::order::addresses::{Guest, OrderAddresses};
use key_schema::order::{self, CustomerOrder, Order, OrderLine, OrderStatus, PlacedOrder, addresses};
use key_schema::text::Email;
use ops::orders::{RetireOptions, Retired, retire};
use table::Table;

use crate::shop::Shop;
use crate::things::{order, with_meta};

const LINES: u64 = 250;

pub async fn large(shop: &Shop, id: &str) -> Stored<Order> {
    let mut head = order(id, OrderStatus::Delivered, 5);
    head.data.line_count = LINES;
    let addresses = seed::order_addresses(id, head.customer_id.as_str());
    head.data.destination = addresses.shipping_address.as_ref().map(addresses::Destination::from);
    shop.put(&with_meta(addresses, 1)).await;
    shop.put(&head).await;
    for line in 1..=LINES {
        let data = seed::line(&head.id, line, "p1".parse().unwrap());
        let data = OrderLine { unit_price: head.total, total: head.total, ..data };
        shop.put(&with_meta(data, 1)).await;
    }
    shop.put(&with_meta(order::history(&head, OrderStatus::Delivered, head.placed_at, "c1", None), 1)).await;
    shop.put(&with_meta(CustomerOrder::of(&head), 5)).await;
    head
}

async fn read(table: &Table, id: &str) -> PlacedOrder {
    let items = table.query(&order::read_for_update(&id.parse().unwrap()).unwrap()).await.unwrap().items;
    PlacedOrder::of(items).unwrap()
}

/// Runs only the first `after` transactions of a retirement, like an interrupted run.
async fn broken_off(table: &Table, id: &str, expires_at: Instant, after: usize) {
    let transactions = order::retire(&read(table, id).await, expires_at, Instant::now()).unwrap();
    assert!(transactions.len() > after);
    for transaction in transactions.iter().take(after) {
        table.transact(transaction).await.unwrap().unwrap();
    }
}

/// Returns whether the head has a time to live, and whether it is still in the list by status.
async fn ends(shop: &Shop, head: &Stored<Order>) -> (bool, bool) {
    let key = head.key().unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let get = shop.table.client().get_item().table_name(shop.table.name()).consistent_read(true);
    let item =
        get.key("PK", text(key.pk.as_str())).key("SK", text(key.sk.as_str())).send().await.unwrap().item.unwrap();
    (item.contains_key("ttl"), item.contains_key("GSI2PK"))
}

async fn run(table: &Table, before: Instant) -> Retired {
    let options = RetireOptions { before, grace: Duration::from_secs(86_400), rate: None, dry_run: false };
    retire(table, &options).await.unwrap()
}

#[tokio::test]
async fn a_large_order_whose_retirement_was_stopped_anywhere_is_found_again_and_retired_whole() {
    for after in 0..3 {
        let shop = Shop::open().await;
        let table = shop.table.table();
        let head = large(&shop, "o1").await;
        // In the last round the customer is erased, so the order has no addresses.
        let is_erased = after == 2;
        if is_erased {
            let addresses = table.get(&addresses::get(&head).unwrap()).await.unwrap().unwrap();
            table.batch_write(&addresses::erase([&addresses.data]).unwrap()).await.unwrap();
        }
        // The stopped run changes the head after this instant.
        let before = Instant::now();
        let expires_at = before.plus_seconds(3_600);
        broken_off(&table, "o1", expires_at, after).await;
        assert_eq!(
            ends(&shop, &head).await,
            (false, true),
            "after {after} writes, the order is in its list and has no time to live"
        );

        let retired = run(&table, before).await;
        assert_eq!((retired.orders, retired.concurrent, retired.failed.len()), (1, 0, 0), "after {after}: {retired}");
        assert_eq!(ends(&shop, &head).await, (true, false));
        let PlacedOrder { head, lines, history, .. } = read(&table, "o1").await;
        let date = head.expires_at.unwrap();
        assert!(after == 0 || date == expires_at, "a second run keeps the first date");
        assert_eq!(lines.len() as u64, LINES);
        assert!(lines.iter().all(|line| line.expires_at == Some(date)));
        assert!(history.iter().all(|event| event.expires_at == Some(date)));
        let addresses = table.get(&addresses::get(&head).unwrap()).await.unwrap();
        let expected = (!is_erased).then_some(Some(date));
        assert_eq!(addresses.map(|addresses| addresses.expires_at), expected);
        let copies = table.query(&order::of_customer(&head.customer_id, None, None).unwrap()).await.unwrap().items;
        assert_eq!(copies[0].expires_at, Some(date));

        assert_eq!(run(&table, Instant::now()).await, Retired::default(), "a second run retires nothing");
    }
}

/// A guest's order without an address has an item with the guest's name.
#[tokio::test]
async fn the_name_of_a_guest_expires_with_the_order() {
    let shop = Shop::open().await;
    let table = shop.table.table();
    let email: Email = "gil@example.com".parse().unwrap();
    let mut head = order("o1", OrderStatus::Delivered, 5);
    head.data.customer_id = CustomerId::guest(&email);
    let guest = Some(Guest { email, name: "Gil".to_owned() });
    let addresses = seed::order_addresses("o1", head.customer_id.as_str());
    shop.put(&with_meta(OrderAddresses { shipping_address: None, guest, ..addresses }, 1)).await;
    shop.put(&head).await;
    shop.put(&with_meta(seed::line(&head.id, 1, "p1".parse().unwrap()), 1)).await;
    shop.put(&with_meta(order::history(&head, OrderStatus::Delivered, head.placed_at, "c1", None), 1)).await;
    shop.put(&with_meta(CustomerOrder::of(&head), 5)).await;

    assert_eq!(run(&table, Instant::now()).await.orders, 1);
    let head = read(&table, "o1").await.head;
    let addresses = table.get(&addresses::get(&head).unwrap()).await.unwrap().unwrap();
    assert!(addresses.expires_at.is_some() && addresses.expires_at == head.expires_at, "{addresses:?}");
}

#[tokio::test]
async fn a_large_order_cannot_change_its_status_during_its_retirement_and_a_changed_order_is_not_retired() {
    let shop = Shop::open().await;
    let table = shop.table.table();
    large(&shop, "o1").await;
    let order = read(&table, "o1").await;
    let transactions = order::retire(&order, Instant::MAX, Instant::now()).unwrap();
    let returned = || {
        let step = order::Step::new(&order.head, &[], OrderStatus::Returned, Instant::now(), "staff");
        order::transition(step).unwrap()
    };
    table.transact(&transactions[0]).await.unwrap().unwrap();
    assert!(table.transact(&returned()).await.unwrap().is_err());

    large(&shop, "o1").await;
    table.transact(&returned()).await.unwrap().unwrap();
    for transaction in &transactions {
        assert!(table.transact(transaction).await.unwrap().is_err());
    }
    let PlacedOrder { head, lines, .. } = read(&table, "o1").await;
    assert_eq!((head.status, head.expires_at), (OrderStatus::Returned, None));
    assert!(
        lines.iter().all(|line| line.expires_at.is_none()),
        "the lines of an order that is not retired do not expire"
    );
}

#[test]
fn orders_are_not_retired_while_the_stream_may_have_their_records() {
    let retire = |days: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.args(["orders", "retire", "--grace", "0", "--dry-run", "--older-than", days]).env_clear();
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for days in ["0", "30"] {
        let (status, said) = retire(days);
        assert_eq!(status, Some(2));
        assert!(said.contains("at least 31 days"), "{said}");
    }
    // The command accepts the age, and then fails because the environment is empty.
    let (_, said) = retire("31");
    assert!(said.contains("TABLE_NAME"), "{said}");
}
