//! Tests of a list whose number of shards changes while it is read.

use std::collections::BTreeSet;

use fixture::TestTable;
use key_schema::customer::{self, Customer, Tier};
use key_schema::id::CustomerId;
use key_schema::item::Stored;
use key_schema::request::Query;
use key_schema::shard::{Layout, Shards};
use table::Table;

use crate::data::{self, at, customer_id};

const GROWING: Layout = Layout { from: Shards(2), to: Shards(8), write: Shards(8) };
const SHRINKING: Layout = Layout { from: Shards(8), to: Shards(2), write: Shards(2) };

fn member(number: u8, shards: Shards) -> Stored<Customer> {
    let mut customer = data::customer(number);
    customer.meta.created_at = at(i64::from(number) * 7 % 100);
    customer.data.list_shards = shards;
    customer
}

fn expected(count: u8) -> Vec<CustomerId> {
    let mut ids: Vec<_> = (0..count).map(|number| (i64::from(number) * 7 % 100, customer_id(number))).collect();
    ids.sort();
    ids.into_iter().map(|(_, id)| id).collect()
}

/// Reads a list in pages of seven.
async fn read(table: &Table, list: impl Fn() -> Query<customer::CustomerSummary>) -> Vec<CustomerId> {
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = table.query(&list().limit(7).after(after)).await.unwrap();
        seen.extend(page.items.into_iter().map(|listed| listed.id));
        after = page.next;
        if after.is_none() {
            return seen;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_each_item_once_while_items_move_between_the_shards() {
    let test = TestTable::create().await;
    for layout in [GROWING, SHRINKING] {
        let readers = async {
            let table = test.table();
            let mut reads = 0;
            loop {
                assert_eq!(read(&table, || customer::by_tier(Tier::Bronze, layout).unwrap()).await, expected(100));
                assert_eq!(read(&table, || customer::all(layout).unwrap()).await, expected(100));
                reads += 1;
                if reads > 1 && is_moved(&table, layout.to).await {
                    break;
                }
            }
        };
        test.put_all((0..100).map(|number| member(number, layout.from))).await;
        let mover = async {
            for number in order_of_moves() {
                test.put(&member(number, layout.to)).await;
            }
        };
        tokio::join!(readers, mover);
    }
}

/// Returns the numbers of the items in the sequence of their moves.
fn order_of_moves() -> impl DoubleEndedIterator<Item = u8> {
    (0..100_u16).map(|number| u8::try_from(number * 37 % 100).unwrap())
}

/// Returns whether the last item has moved.
async fn is_moved(table: &Table, to: Shards) -> bool {
    let last = customer_id(order_of_moves().next_back().unwrap());
    table.get(&customer::get(&last).unwrap()).await.unwrap().unwrap().list_shards == to
}

#[tokio::test]
async fn a_page_first_reads_the_shards_that_items_leave_and_then_the_other_shards() {
    let test = TestTable::create().await;
    let table = test.table();
    test.put_all((0..100).map(|number| member(number, Shards(if number % 2 == 0 { 2 } else { 8 })))).await;
    for layout in [GROWING, SHRINKING] {
        let list = customer::by_tier(Tier::Bronze, layout).unwrap();
        let (leaving, others) = list.steps();
        let shards = |steps: &[key_schema::key::PartitionKey]| -> BTreeSet<String> {
            steps.iter().map(|partition| partition.as_str().to_owned()).collect()
        };
        assert_eq!((shards(leaving).len(), shards(others).len()), if layout == GROWING { (2, 6) } else { (6, 2) });
        assert!(shards(leaving).is_disjoint(&shards(others)));
        assert_eq!(read(&table, || customer::by_tier(Tier::Bronze, layout).unwrap()).await, expected(100));
    }
    // With a stable layout all shards are read at once.
    assert!(customer::by_tier(Tier::Bronze, Layout::stable(Shards(8))).unwrap().steps().0.is_empty());
}
