//! Plants damage in the queue of picking jobs.

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::TestTable;
use key_schema::instant::Instant;
use key_schema::order::{self, OrderStatus, PlacedOrder, Step};
use key_schema::picking::WaitingJob;
use ops::verify::Kind::{Behind, Bounds, Link, Orphan};

use super::damage::Damage::{Delete, Set};
use super::damage::{each, entry, finds, put};
use super::world::{self, PAID, PENDING, PICKED};

#[tokio::test]
async fn a_picking_job_that_its_order_does_not_need_is_reported_and_removed() {
    let jobs = |jobs: &[&str]| AttributeValue::Ss(jobs.iter().map(|job| (*job).to_owned()).collect());
    each([
        ("PICKING WAITING#", Delete, &[(Behind, "ORDER#0159f8e6-ea80-7111-9111-000000000004 ORDER")] as &[_], false),
        ("PICKING STATIONS", Delete, &[(Behind, "ORDER#0159f8e6-ea80-7111-9111-000000000003 ORDER")], false),
        ("PICKING STATIONS", Set("jobs", jobs(&[PICKED[0], PAID])), &[(Link, "PICKING STATIONS")], true),
        ("PICKING STATIONS", Set("jobs", jobs(&[PICKED[0], "gone"])), &[(Link, "PICKING STATIONS")], true),
    ])
    .await;
    let job = WaitingJob { order_id: PAID.parse().unwrap() };
    put(job, &[(Orphan, "PICKING WAITING#0159f8e6-ea80-7111-9111-000000000002")], true).await;
    // A paid order was cancelled, and the message about the cancellation was lost.
    let table = TestTable::create().await;
    world::fill(&table).await;
    for (id, expected) in [
        (PICKED[1], (Orphan, "PICKING WAITING#0159f8e6-ea80-7111-9111-000000000004")),
        (PICKED[0], (Link, "PICKING STATIONS")),
    ] {
        leave(&table, id).await;
        finds(&table, id, &[expected], true).await;
    }
}

/// A transaction takes 100 actions, so the repair needs several transactions. The order that is to
/// be picked keeps its station, and the open order stays in the list.
#[tokio::test]
async fn stale_entries_that_do_not_fit_in_one_transaction_are_removed_in_steps() {
    let gone = |number: usize| format!("gone-{number}");
    let jobs = (0..250).map(gone).chain([PICKED[0].to_owned()]).collect();
    let entries = (0..250).map(gone).chain([PENDING.to_owned()]).map(|id| (id, entry())).collect();
    each([
        (
            "PICKING STATIONS",
            Set("jobs", AttributeValue::Ss(jobs)),
            &[(Bounds, "PICKING STATIONS"), (Link, "PICKING STATIONS")] as &[_],
            true,
        ),
        ("CUSTOMER#ann OPEN", Set("entries", AttributeValue::M(entries)), &[(Link, "CUSTOMER#ann OPEN")], true),
    ])
    .await;
}

/// Cancels a paid order.
async fn leave(table: &TestTable, id: &str) {
    let items = table.own().query(&order::read_for_update(&id.parse().unwrap()).unwrap()).await.unwrap().items;
    let PlacedOrder { head, lines, .. } = PlacedOrder::of(items).unwrap();
    let step = Step::new(&head, &lines, OrderStatus::Cancelled, Instant::now(), "s");
    table.transact(&order::transition(step).unwrap()).await;
    world::derived(table).await;
}
