use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use key_schema::change::Change;
use key_schema::customer::{self, Customer, CustomerAction, CustomerChanges as _, Tier};
use key_schema::id::{CustomerId, MetricName, PointId};
use key_schema::item::Stored;
use key_schema::lists;
use key_schema::metric::{self, MetricPoint};
use key_schema::order::{self, PlacedOrder};
use key_schema::request::MAX_TRANSACTION_ACTIONS;
use key_schema::{category, product};
use table::TableError;
use telemetry::correlation;

use crate::data::{self, at, customer_id, product_id};

fn fault(kind: FaultKind, rate: f64, count: Option<u32>) -> Fault {
    Fault { kind, rate, count, seed: 7 }
}

async fn with_customers(count: u8) -> TestTable {
    let test = TestTable::create().await;
    let table = test.table();
    for number in 1..=count {
        table.transact(&customer::create(&data::customer(number)).unwrap()).await.unwrap().unwrap();
    }
    test
}

#[tokio::test]
async fn a_sharded_list_comes_in_order_page_by_page_without_a_gap_or_a_repetition() {
    let test = TestTable::create().await;
    let table = test.table();
    for number in 1..=30 {
        let mut customer = data::customer(number);
        // The order of the creation times differs from the order of the ids, so a list that is
        // sorted by id fails the test.
        customer.meta.created_at = at(i64::from(number) * 7 % 31);
        table.transact(&customer::create(&customer).unwrap()).await.unwrap().unwrap();
    }
    for limit in [1, 7, 30, 100] {
        let (mut after, mut seen) = (None, Vec::new());
        for _ in 0..40 {
            let _ = table.meter().take();
            let page = table
                .query(&customer::by_tier(Tier::Bronze, lists::unchanged()).unwrap().limit(limit).after(after))
                .await
                .unwrap();
            assert!(page.items.len() <= limit);
            let [measured] = table.meter().take()[..] else { panic!("one pattern") };
            let shards = lists::FIRST.0;
            assert!((shards..=2 * shards).contains(&measured.requests), "{} of {shards} shards", measured.requests);
            seen.extend(page.items.into_iter().map(|listed| listed.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut expected: Vec<_> =
            (1..=30_u8).map(|number| (i64::from(number) * 7 % 31, customer_id(number))).collect();
        expected.sort();
        assert_eq!(seen, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), "pages of {limit}");
    }
}

/// Creates points of one day: for each element of `shards`, one point in that shard. Each point has
/// its own instant.
fn points(name: &MetricName, shards: impl IntoIterator<Item = u32>) -> Vec<Stored<MetricPoint>> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut point = |(position, shard): (usize, u32)| {
        let at = at(i64::try_from(position).unwrap());
        loop {
            let id = PointId::generate(at, std::array::from_fn(|_| random.u8(..)));
            if metric::SHARDS.of(id.as_str()) == shard {
                return MetricPoint { name: name.clone(), at, id, value: "12.50".parse().unwrap() }.stored();
            }
        }
    };
    shards.into_iter().enumerate().map(&mut point).collect()
}

#[tokio::test]
async fn a_page_reads_equal_shares_from_all_shards_and_then_more_only_from_those_that_may_have_more() {
    let test = TestTable::create().await;
    let table = test.table();
    let mut random = fastrand::Rng::with_seed(8);
    let mut even: Vec<u32> = (0..240).map(|position| position % 4).collect();
    random.shuffle(&mut even);
    let runs = (0..4).flat_map(|shard| vec![shard; 60]).collect();
    // Each case has the expected requests and items of the first page of 100.
    for (name, shards, requests, items) in
        [("even", even, 4, 4 * 39), ("runs", runs, 6, 4 * 39 + 2 * 21), ("one", vec![2; 240], 5, 101)]
    {
        let name = MetricName::new(name).unwrap();
        let points = points(&name, shards);
        assert_eq!(table.batch_write(&metric::store(&points).unwrap()).await.unwrap(), []);
        for limit in [100, 33, 1] {
            let (mut after, mut seen) = (None, Vec::new());
            loop {
                let _ = table.meter().take();
                let day = metric::of_name(&name, at(0), at(239), at(239)).unwrap().remove(0);
                let page = table.query(&day.limit(limit).after(after.clone())).await.unwrap();
                let [measured] = table.meter().take()[..] else { panic!("one pattern") };
                assert!((4..=8).contains(&measured.requests), "{name}: {} requests", measured.requests);
                if limit == 100 && after.is_none() {
                    assert_eq!((measured.requests, measured.items), (requests, items), "{name}");
                }
                seen.extend(page.items.into_iter().map(|point| point.data.id));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let expected: Vec<_> = points.iter().map(|point| point.data.id.clone()).collect();
            assert_eq!(seen, expected, "{name}: pages of {limit}");
        }
    }
}

#[tokio::test]
async fn a_batch_of_reads_keeps_its_order_despite_several_requests_and_unprocessed_keys() {
    let test = with_customers(10).await;
    let table = test.table();
    test.faults().add(fault(FaultKind::Partial, 0.7, Some(8))).unwrap();
    let absent = CustomerId::new("nobody").unwrap();
    let ids: Vec<CustomerId> =
        (0..250)
            .map(|position| {
                if position % 25 == 24 { absent.clone() } else { customer_id(u8::try_from(position % 10).unwrap() + 1) }
            })
            .collect();
    let found = table.batch_get(&customer::hydrate(&ids).unwrap()).await.unwrap();
    let found: Vec<Option<CustomerId>> =
        found.into_iter().map(|customer| customer.map(|customer| customer.data.id)).collect();
    let expected: Vec<Option<CustomerId>> = ids.into_iter().map(|id| (id != absent).then_some(id)).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_batch_of_writes_loses_nothing_when_the_table_leaves_parts_unprocessed() {
    let test = TestTable::create().await;
    let table = test.table();
    test.faults().add(fault(FaultKind::Partial, 1.0, Some(10))).unwrap();
    test.faults().add(fault(FaultKind::Throttle, 0.3, Some(1))).unwrap();
    let nodes: Vec<_> = (0..120)
        .map(|number| {
            let path = product::CategoryPath::new(vec!["TOP".to_owned(), format!("child {number:03}")]).unwrap();
            Stored::new(category::CategoryNode::new(path), data::born(1), at(0))
        })
        .collect();
    let left = table.batch_write(&category::add(&nodes).unwrap()).await.unwrap();
    assert_eq!(left, []);
    test.faults().clear();
    let top = product::CategoryPath::new(vec!["TOP".to_owned()]).unwrap();
    let mut found = Vec::new();
    let mut after = None;
    while found.len() < 120 {
        let page = table.query(&category::children(Some(&top)).unwrap().after(after)).await.unwrap();
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let paths: BTreeSet<_> = found.into_iter().map(|node| node.data.path).collect();
    assert_eq!(paths, nodes.into_iter().map(|node| node.data.path).collect());
}

#[tokio::test]
async fn a_cancelled_transaction_names_every_refused_action_with_its_existing_item() {
    let test = with_customers(2).await;
    let table = test.table();
    let mut third = data::customer(3);
    third.data.email = "CUSTOMER-001@Example.com".parse().unwrap();
    third.data.username = "Customer-002".parse().unwrap();
    let refusals = table.transact(&customer::create(&third).unwrap()).await.unwrap().unwrap_err();
    assert_eq!(
        refusals.iter().map(|refusal| refusal.action).collect::<Vec<_>>(),
        [CustomerAction::Email, CustomerAction::Username]
    );
    for (refusal, owner) in refusals.iter().zip([customer_id(1), customer_id(2)]) {
        let item = refusal.item.as_ref().expect("the refusal returns the stored claim");
        assert_eq!(item.get("customer_id"), Some(&serde_dynamo::AttributeValue::S(owner.to_string())));
    }
    assert_eq!(table.get(&customer::get(&customer_id(3)).unwrap()).await.unwrap(), None, "nothing was written");
}

#[tokio::test]
async fn a_refused_write_returns_the_stored_item() {
    let test = with_customers(1).await;
    let mut stale = data::customer(1);
    stale.meta.version = 7;
    let refused = test.table().update(&customer::update(&stale, Change::visible(at(1))).unwrap()).await;
    let stored = refused.unwrap().unwrap_err().stored::<Stored<Customer>>().unwrap().unwrap();
    assert_eq!(stored.meta.version, 1);
}

#[tokio::test]
async fn a_transaction_that_conflicts_with_another_is_retried() {
    let test = TestTable::create().await;
    test.faults().add(fault(FaultKind::Conflict, 1.0, Some(5))).unwrap();
    test.table().transact(&customer::create(&data::customer(1)).unwrap()).await.unwrap().unwrap();
    assert_eq!(test.faults().counts().iter().map(|count| count.fired).sum::<u64>(), 5);
}

#[tokio::test]
async fn a_throttled_table_is_distinguished_from_a_broken_one() {
    let test = with_customers(1).await;
    let table = test.table();
    for (kind, throttled) in [(FaultKind::Throttle, true), (FaultKind::Error, false), (FaultKind::Reset, false)] {
        test.faults().clear();
        test.faults().add(fault(kind, 1.0, None)).unwrap();
        let error = table.get(&customer::get(&customer_id(1)).unwrap()).await.unwrap_err();
        assert_eq!(matches!(error, TableError::Throttled), throttled, "{kind:?}: {error}");
        assert_eq!(matches!(error, TableError::Unavailable(_)), !throttled, "{kind:?}: {error}");
    }
}

#[tokio::test]
async fn a_transaction_over_the_limit_is_refused_before_it_is_sent() {
    let test = TestTable::create().await;
    let table = test.table();
    let (head, lines) = data::order(1, 60);
    let place = order::place(&PlacedOrder::new(head, lines, "c"), &[]).unwrap();
    assert!(place.actions().len() > MAX_TRANSACTION_ACTIONS);
    let refused = table.transact(&place).await;
    assert!(matches!(refused, Err(TableError::TooManyActions(_))), "{refused:?}");
    assert_eq!(table.meter().take(), []);
}

/// After a lost response the outcome of a write is unknown. A single write is not sent again: if
/// the first attempt took effect, DynamoDB could refuse the second attempt. A transaction is sent
/// again, because DynamoDB recognizes its token.
#[tokio::test]
async fn after_a_lost_response_a_transaction_is_sent_again_and_a_single_write_is_not() {
    let lose_one = fault(FaultKind::Timeout, 1.0, Some(1));
    let single = async {
        let test = with_customers(1).await;
        let table = test.table();
        test.faults().add(lose_one.clone()).unwrap();
        let change = Change::<Customer>::visible(at(1)).name(&"Augusta".to_owned()).unwrap();
        let answer = table.update(&customer::update(&data::customer(1), change).unwrap()).await;
        assert!(matches!(answer, Err(TableError::Unavailable(_))), "{answer:?}");
        let now = table.get(&customer::read_for_update(&customer_id(1)).unwrap()).await.unwrap().unwrap();
        assert_eq!((now.meta.version, now.data.name.as_str()), (2, "Augusta"), "the write was executed once");
    };
    let transaction = async {
        let test = TestTable::create().await;
        let table = test.table();
        test.faults().add(lose_one.clone()).unwrap();
        table.transact(&product::create(&data::product(1), 10, &[]).unwrap()).await.unwrap().unwrap();
        assert_eq!(test.faults().counts()[0].fired, 1);
        assert_eq!(table.get(&product::stock(&product_id(1)).unwrap()).await.unwrap().unwrap().available, 10);
    };
    tokio::join!(single, transaction);
}

#[tokio::test]
async fn a_write_stores_the_id_of_its_request_and_a_write_without_a_request_removes_the_stored_id() {
    let test = TestTable::create().await;
    let table = test.table();
    let id = async |customer: &CustomerId| {
        let key = [("PK", format!("CUSTOMER#{customer}")), ("SK", "PROFILE".to_owned())];
        let get = key.into_iter().fold(test.client().get_item().table_name(test.name()), |get, (name, value)| {
            get.key(name, AttributeValue::S(value))
        });
        let item = get.consistent_read(true).send().await.unwrap().item.unwrap();
        item.get("req").map(|id| id.as_s().unwrap().clone())
    };
    let rename = |version: u64| {
        let change = Change::<Customer>::visible(at(60)).name(&format!("Ann {version}")).unwrap();
        let mut read = data::customer(1);
        read.meta.version = version;
        customer::update(&read, change).unwrap()
    };
    let one = data::customer(1);
    correlation::caused_by(Some("request-1"), table.transact(&customer::create(&one).unwrap())).await.unwrap().unwrap();
    assert_eq!(id(&customer_id(1)).await.as_deref(), Some("request-1"));
    let read = correlation::caused_by(Some("request-2"), table.update(&rename(1))).await.unwrap().unwrap();
    assert_eq!((read.data.name.as_str(), read.meta.version), ("Ann 1", 2));
    assert_eq!(id(&customer_id(1)).await.as_deref(), Some("request-2"));
    table.update(&rename(2)).await.unwrap().unwrap();
    assert_eq!(id(&customer_id(1)).await, None);
    // Work without a request writes no request id. A batch never writes a request id, because its
    // items must be the same for every request.
    table.transact(&customer::create(&data::customer(2)).unwrap()).await.unwrap().unwrap();
    assert_eq!(id(&customer_id(2)).await, None);
    let path = product::CategoryPath::new(vec!["TOP".to_owned()]).unwrap();
    let nodes = [Stored::new(category::CategoryNode::new(path), data::born(1), at(0))];
    correlation::caused_by(Some("request-3"), table.batch_write(&category::add(&nodes).unwrap())).await.unwrap();
    let items = test.client().scan().table_name(test.name()).send().await.unwrap().items.unwrap_or_default();
    let caused: Vec<_> = items.iter().filter_map(|item| item.get("req")?.as_s().ok()).collect();
    // Only the claims of the first customer still have a request id, because no later request has
    // written the claims.
    assert_eq!(caused, ["request-1", "request-1"]);
}

#[tokio::test]
async fn a_list_for_clients_leaves_out_unreadable_items_and_a_list_that_decides_fails() {
    let test = with_customers(3).await;
    let broken = customer::get(&customer_id(2)).unwrap().key().clone();
    test.set(broken.pk.as_str(), broken.sk.as_str(), "id", AttributeValue::N("1".to_owned())).await;
    let query = customer::by_tier(Tier::Bronze, lists::unchanged()).unwrap().limit(2);
    let table = test.table();
    assert!(matches!(table.query(&query.clone().limit(3)).await, Err(TableError::Decode(_))));
    let (mut after, mut seen, mut left_out) = (None, Vec::new(), 0);
    for _ in 0..3 {
        let page = table.query_readable(&query.clone().after(after)).await.unwrap();
        left_out += page.left_out();
        seen.extend(page.items.into_iter().map(|listed| listed.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    seen.sort();
    assert_eq!((seen, left_out), (vec![customer_id(1), customer_id(3)], 1));
}
