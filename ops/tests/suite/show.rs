//! Tests that `ops order show` finds an order in every state.

use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::item::Entity as _;
use key_schema::order::staged::{Unfinished, Work};
use key_schema::order::{CustomerOrder, NumberClaim, Order, OrderNumber, OrderStatus, ReferenceClaim};
use ops::orders::show::{JanitorStep, ShownOrders, show};

use crate::shop::Shop;
use crate::things::{order, with_meta};

async fn shown(shop: &Shop, text: &str, customer: Option<&str>) -> ShownOrders {
    let customer: Option<CustomerId> = customer.map(|id| id.parse().unwrap());
    show(&shop.items, text, customer.as_ref()).await.unwrap()
}

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

#[tokio::test]
async fn an_order_that_is_being_placed_is_found_by_its_id_its_number_its_reference_and_its_customer() {
    let shop = Shop::open().await;
    let since = at("2026-11-20T12:00:00.000Z");
    let mut placing = order("o1", OrderStatus::Placing, 2);
    placing.data = Order {
        reference: Some("A-17".parse().unwrap()),
        by_customer: true,
        line_count: 120,
        unfinished: Some(Unfinished { since, work: Work::Placing { key: None, lines: 49 } }),
        ..placing.data
    };
    shop.put(&placing).await;
    shop.put(&with_meta(ReferenceClaim::of(&placing).unwrap(), 1)).await;
    // Another customer's order that the janitor lists too.
    let mut other = placing.clone();
    (other.data.id, other.data.customer_id) = ("o2".parse().unwrap(), "c2".parse().unwrap());
    shop.put(&other).await;

    shop.put(&with_meta(NumberClaim::of(&placing.id), 1)).await;
    let number = OrderNumber::of(&placing.id).to_string();

    let ways = [("o1", None), ("A-17", Some("c1")), ("c1", None), (&number, None)];
    for (text, customer) in ways {
        let shown = shown(&shop, text, customer).await;
        let [order] = &shown.orders[..] else { panic!("{text}: {shown}") };
        assert_eq!(order.janitor, JanitorStep::Undo { since, reserved_lines: 49 });
        assert!(shown.to_string().contains(&format!("o1  {number}  placing  customer c1")), "{shown}");
        assert!(shown.to_string().contains("returns the stock of 49 lines"), "{shown}");
    }
    assert!(shown(&shop, "A-17", None).await.orders.is_empty(), "the reference belongs to the customer");
}

#[tokio::test]
async fn the_order_shows_what_the_janitor_will_do_in_each_state() {
    let shop = Shop::open().await;
    let (since, lapses_at) = (at("2026-11-20T12:00:00.000Z"), at("2026-11-20T13:00:00.000Z"));
    let returning = Some(Unfinished { since, work: Work::Returning(99) });
    let cases = [
        (OrderStatus::Cancelled, returning, None, JanitorStep::ReturnStock { since, returned_lines: 99 }),
        (OrderStatus::Pending, None, Some(lapses_at), JanitorStep::Cancel { at: lapses_at }),
        (OrderStatus::Paid, None, Some(lapses_at), JanitorStep::Nothing),
        (OrderStatus::Delivered, None, None, JanitorStep::Nothing),
    ];
    for (status, unfinished, lapses_at, step) in cases {
        let mut head = order("o1", status, 5);
        head.data = Order { unfinished, lapses_at, ..head.data };
        shop.put(&head).await;
        let shown = shown(&shop, "o1", None).await;
        assert_eq!(shown.orders[0].janitor, step, "{status:?}");
        assert!(shown.to_string().starts_with(&format!("o1  3FA2-M8E2  {}", status.as_str())), "{shown}");
    }
}

#[tokio::test]
async fn an_order_with_an_unreadable_or_missing_head_is_shown() {
    let shop = Shop::open().await;
    let head = order("o1", OrderStatus::Paid, 5);
    shop.put_broken(&head, "total").await;
    let line = fixture::seed::line(&head.id, 1, "p1".parse().unwrap());
    shop.put(&with_meta(line, 1)).await;
    let unreadable = shown(&shop, "o1", None).await;
    assert_eq!((unreadable.orders[0].lines.len(), unreadable.orders[0].unreadable.len()), (1, 1), "{unreadable}");
    assert!(unreadable.to_string().contains("UNREADABLE: ORDER: malformed Order"), "{unreadable}");
    shop.table.delete(&head.data.key().unwrap()).await;
    let missing = shown(&shop, "o1", None).await;
    assert!(missing.to_string().starts_with("o1  HEAD MISSING"), "{missing}");
    shop.put(&with_meta(CustomerOrder::of(&order("o3", OrderStatus::Paid, 1)), 1)).await;
    assert!(shown(&shop, "o4", None).await.to_string().starts_with("NOT FOUND"));
}
