//! Tests of two lists whose number of shards changes: the orders of a status, and the notes of a
//! day.

use fixture::seed;
use http_api::sample::Call;
use key_schema::id::Born;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::lists;
use key_schema::order::{self, Order, OrderStatus};
use key_schema::settings::{self, Known};
use key_schema::shard::{Layout, Shards};
use serde_json::{Value, json};

use crate::shop::{Shop, moved, staff_order};

const READERS: Layout = Layout { from: Shards(4), to: Shards(8), write: Shards(4) };
const WRITERS: Layout = Layout { write: Shards(8), ..READERS };

/// Sets the layout of both lists, as `ops shards` does.
async fn arrange(shop: &Shop, layout: Layout) {
    let stored = shop.own().get(&settings::read(0).unwrap()).await.unwrap();
    let known = stored.map(Known::from).unwrap_or_default();
    let lists = known.lists.clone().with(&order::BY_STATUS, layout).with(&order::daily_log::OF_DAY, layout);
    shop.transact(&settings::arrange(&known, &lists, &Born::new("b").unwrap(), Instant::now()).unwrap()).await;
}

fn placed(number: usize) -> Stored<Order> {
    let at: Instant = "2026-11-20T10:00:00Z".parse().unwrap();
    let order = fixture::records::order(&format!("o{number}"), OrderStatus::Paid, 1, 1);
    let placed_at = at.plus_seconds(i64::try_from(number % 11).unwrap());
    Stored { data: Order { placed_at, ..order.data }, ..order }
}

fn paid() -> Call {
    Call::new("GET /v1/orders").query("status", "paid").staff("sam")
}

fn ids(items: &Value) -> Vec<String> {
    items.as_array().unwrap().iter().map(|order| order["id"].as_str().unwrap().to_owned()).collect()
}

/// Moves an order to the shard that it has in a list with this number of shards.
async fn move_to(shop: &Shop, number: usize, shards: Shards) {
    let mut head = placed(number);
    head.data.list_shards = shards;
    shop.put(&head).await;
}

#[tokio::test]
async fn cursors_stay_valid_and_pages_show_each_order_once_while_the_shards_change() {
    let shop = Shop::open().await;
    for number in 0..60 {
        shop.put(&placed(number)).await;
    }
    let mut expected: Vec<_> = (0..60).map(|number| (placed(number).placed_at, format!("o{number}"))).collect();
    expected.sort();
    let expected: Vec<_> = expected.into_iter().rev().map(|(_, id)| id).collect();
    // Each step reads one page, with the cursor of the previous step's page.
    let (mut seen, mut cursor, mut next) = (Vec::new(), None::<String>, 0);
    let steps = [lists::unchanged(), READERS, WRITERS, WRITERS, WRITERS, Layout::stable(Shards(8))];
    for (step, layout) in steps.into_iter().enumerate() {
        if layout != lists::unchanged() {
            arrange(&shop, layout).await;
        }
        // The cached settings are still those of the previous step.
        let stale = paid().query("limit", "5");
        let stale = shop.ok(cursor.iter().fold(stale, |call, cursor| call.query("cursor", cursor))).await;
        shop.wait(31);
        if layout == WRITERS {
            for _ in 0..20 {
                move_to(&shop, next, Shards(8)).await;
                next += 1;
            }
        }
        let limit = if step == 5 { "100" } else { "7" };
        let call = paid().query("limit", limit);
        let page = shop.ok(cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await.body;
        let shown = ids(&page["items"]);
        assert_eq!(ids(&stale.body["items"]), shown[..shown.len().min(5)], "step {step}");
        seen.extend(shown);
        cursor = page["next_cursor"].as_str().map(str::to_owned);
    }
    assert_eq!((seen, cursor, next), (expected, None, 60));
}

#[tokio::test]
async fn new_orders_and_notes_get_the_current_number_of_shards_and_a_changed_order_keeps_its_number() {
    let shop = Shop::open().await;
    shop.product("tea", 100).await;
    let today = seed::today().await.day();
    for (notes, (layout, number)) in (1..).zip([(READERS, 4), (WRITERS, 8), (Layout::stable(Shards(8)), 8)]) {
        arrange(&shop, layout).await;
        shop.wait(31);
        let placed = shop.ok(staff_order(&[("tea", 1)], &format!("key {notes}"), &json!({}))).await.body;
        assert_eq!(shop.head(&placed).await.list_shards, Shards(number));
        let note = Call::new("POST /v1/orders/{id}/log").path("id", placed["id"].as_str().unwrap()).staff("sam");
        shop.ok(note.json(&json!({"text": "called"}))).await;
        let day = Call::new("GET /v1/log").query("day", &today).staff("sam");
        // The list also shows the notes that were written with another number of shards.
        assert_eq!(shop.ok(day).await.body["items"].as_array().unwrap().len(), notes);
        // A status change keeps the order's number of shards, even if the list has a new number.
        arrange(&shop, Layout { from: Shards(number), to: Shards(16), write: Shards(16) }).await;
        shop.wait(31);
        shop.ok(moved(&placed, "paid")).await;
        let head = shop.head(&placed).await;
        assert_eq!((head.status, head.list_shards), (OrderStatus::Paid, Shards(number)));
        let key = format!("STATUS#paid#{:020}", Shards(number).of(head.id.as_str()));
        let stored = shop.items(&format!("ORDER#{}", head.id)).await;
        let keys: Vec<_> = stored.iter().filter_map(|item| item.get("GSI2PK")).collect();
        assert_eq!(format!("{keys:?}"), format!("[S({key:?})]"));
    }
}
