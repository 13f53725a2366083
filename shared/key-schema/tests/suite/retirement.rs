//! Tests of orders that are retired, archived and restored.

use key_schema::archive::{self, RestoreError};
use key_schema::entity::AnyEntity;
use key_schema::expression::Step;
use key_schema::item::{Entity as _, FromItem as _};
use key_schema::key::Key;
use key_schema::order::{self, OrderAction, OrderStatus, PlacedOrder};
use key_schema::payment::{OperationKind, OperationState, PaymentMethod};
use key_schema::request::{Guarded, MAX_TRANSACTION_ACTIONS, Transaction, Write, render};
use serde_dynamo::AttributeValue;

use crate::goldens::goldens;
use crate::support::at;
use crate::world::World;

const NOW: &str = "2019-01-01T12:00:00.000Z";

#[test]
fn an_order_is_closed_when_it_is_delivered_cancelled_or_returned() {
    let closed: Vec<OrderStatus> = OrderStatus::VISIBLE.into_iter().filter(|status| status.is_closed()).collect();
    assert_eq!(closed, [OrderStatus::Delivered, OrderStatus::Cancelled, OrderStatus::Returned]);
    assert!(!OrderStatus::Placing.is_closed());
}

/// Makes an order with this many lines and two steps.
fn order(world: &World, lines: u64) -> PlacedOrder {
    let line = |number| {
        let mut line = world.order_line();
        line.data.line = number;
        line
    };
    let mut delivered = world.status_event();
    delivered.data.status = OrderStatus::Delivered;
    PlacedOrder {
        head: world.order(OrderStatus::Delivered),
        lines: (1..=lines).map(line).collect(),
        history: vec![world.status_event(), delivered],
        payments: Vec::new(),
        operations: Vec::new(),
        addresses: None,
        uses: Vec::new(),
    }
}

fn labels(transactions: &[Transaction<OrderAction>]) -> Vec<Vec<OrderAction>> {
    transactions.iter().map(|one| one.actions().iter().map(|(label, _)| *label).collect()).collect()
}

fn condition(guarded: &Guarded) -> String {
    render(guarded.condition.as_ref().unwrap()).text
}

const AS_READ: &str = "#0 = :0 AND (#1 = :1 OR #1 = :2 OR #1 = :3) AND attribute_not_exists(#2)";

#[test]
fn an_order_that_fits_one_transaction_is_retired_in_one_transaction() {
    let world = World::plain();
    for (count, transactions) in [(1, 1), (96, 1), (97, 2)] {
        let all = order::retire(&order(&world, count), world.expiry(), at(NOW)).unwrap();
        assert_eq!(all.len(), transactions, "{count} lines");
        let last = all.last().unwrap().actions();
        assert_eq!((last[0].0, last[1].0), (OrderAction::Order, OrderAction::Copy));
        if transactions == 1 {
            assert_eq!(condition(&last[0].1), format!("({AS_READ} AND attribute_exists(#3))"));
        }
    }
}

#[test]
fn all_items_of_a_retired_order_get_one_time_to_live_and_the_head_gets_it_last() {
    let world = World::plain();
    let mut order = order(&world, 260);
    order.payments.push(world.order_payment(PaymentMethod::Wallet));
    order.operations.push(world.operation(OperationKind::Refund, OperationState::Done));
    let expires_at = world.expiry();
    let all = order::retire(&order, expires_at, at(NOW)).unwrap();
    let [first, second, last] = &all[..] else { panic!("{} transactions", all.len()) };
    let labels: Vec<OrderAction> = labels(&all).concat();
    let first_parts = [OrderAction::Order, OrderAction::History, OrderAction::History, OrderAction::Payment];
    assert_eq!(labels[..4], first_parts);
    assert_eq!(labels.iter().filter(|label| **label == OrderAction::Order).count(), 3, "each transaction has the head");

    let (ttl, date) = (AttributeValue::N(expires_at.as_seconds().to_string()), expires_at.to_string());
    let date = Step::Set("expires_at", AttributeValue::S(date));
    let steps = |guarded: &Guarded| match &guarded.write {
        Write::Update { steps, .. } => steps.clone(),
        other => panic!("{other:?}"),
    };
    let head = &first.actions()[0].1;
    assert!(steps(head).contains(&date) && steps(head).contains(&Step::Add("version", 1)));
    assert!(
        !steps(head).iter().any(|step| matches!(step, Step::Set("ttl", _) | Step::Remove(_))),
        "the head must stay in its list and not expire yet"
    );
    assert_eq!(condition(head), format!("({AS_READ})"));
    let head = &second.actions()[0].1;
    assert!(matches!(head.write, Write::Check { .. }));
    assert_eq!(condition(head), "#0 = :0");
    let head = &last.actions()[0].1;
    assert!(steps(head).contains(&Step::Remove("GSI2PK")) && steps(head).contains(&Step::Remove("GSI2SK")));
    assert_eq!(condition(head), "(#0 = :0 AND attribute_exists(#1))");

    let mut keys: Vec<Key> = Vec::new();
    for transaction in &all {
        assert!(transaction.actions().len() <= MAX_TRANSACTION_ACTIONS);
        let beside = usize::from(!std::ptr::eq(transaction, last));
        for (_, guarded) in &transaction.actions()[beside..] {
            let Write::Update { key, .. } = &guarded.write else { panic!("not an update") };
            keys.push(key.clone());
            let steps = steps(guarded);
            assert!(steps.contains(&Step::Set("ttl", ttl.clone())) && steps.contains(&date));
            assert!(steps.contains(&Step::Add("rev", 1)));
        }
    }
    let PlacedOrder { head, lines, history, .. } = &order;
    let mut expected = vec![head.key().unwrap(), world.customer_order(true).key().unwrap()];
    expected.extend(history.iter().map(|event| event.key().unwrap()));
    expected.extend(lines.iter().map(|line| line.key().unwrap()));
    expected.push(world.order_payment(PaymentMethod::Wallet).key().unwrap());
    expected.push(world.operation(OperationKind::Refund, OperationState::Done).key().unwrap());
    keys.sort_unstable();
    expected.sort_unstable();
    assert_eq!(keys, expected);
}

#[test]
fn an_interrupted_retirement_continues_with_the_remaining_items_and_the_stored_expiry() {
    let world = World::plain();
    let mut order = order(&world, 3);
    order.lines[0].data.expires_at = Some(world.expiry());
    let late = world.expiry().plus_seconds(86_400);
    order.head = world.retired_order();
    let left = order::retire(&order, late, at(NOW)).unwrap();
    let expected = [
        OrderAction::Order,
        OrderAction::Copy,
        OrderAction::History,
        OrderAction::History,
        OrderAction::Line(2),
        OrderAction::Line(3),
    ];
    assert_eq!(labels(&left), [expected]);
    for (_, guarded) in left[0].actions() {
        let Write::Update { steps, .. } = &guarded.write else { panic!("not an update") };
        assert!(steps.contains(&Step::Set("ttl", AttributeValue::N(world.expiry().as_seconds().to_string()))));
    }
    // The condition fails once the head has left its list, because the retirement is complete then.
    assert_eq!(condition(&left[0].actions()[0].1), "(#0 = :0 AND attribute_exists(#1))");
}

const ARCHIVED: [&str; 8] =
    ["Session", "Cart", "Order", "CustomerOrder", "OrderLine", "OrderStatusEvent", "Payment", "PaymentOperation"];

#[test]
fn a_restored_item_has_a_higher_rev_than_its_removal() {
    let world = World::plain();
    let (now, until) = (at(NOW), at("2019-01-02T12:00:00.000Z"));
    let mut kinds = Vec::new();
    let mut line = world.order_line();
    line.data.expires_at = Some(world.expiry());
    let mut event = world.status_event();
    event.data.expires_at = Some(world.expiry());
    let mut payment = world.order_payment(PaymentMethod::Wallet);
    payment.data.expires_at = Some(world.expiry());
    let mut operation = world.operation(OperationKind::Refund, OperationState::Done);
    operation.data.expires_at = Some(world.expiry());
    for archived in [
        world.session().to_item().unwrap(),
        world.cart().to_item().unwrap(),
        world.retired_order().to_item().unwrap(),
        world.retired_customer_order().to_item().unwrap(),
        line.to_item().unwrap(),
        event.to_item().unwrap(),
        payment.to_item().unwrap(),
        operation.to_item().unwrap(),
    ] {
        let restored = archive::restored(archived.clone(), now, until).unwrap();
        let item = restored.to_item().unwrap();
        let number = |item: &key_schema::item::Item, name: &str| match &item[name] {
            AttributeValue::N(number) => number.parse::<u64>().unwrap(),
            other => panic!("{other:?}"),
        };
        // The removal has the item's `rev` plus one, so the restored item needs a higher `rev`.
        assert_eq!(number(&item, "rev"), number(&archived, "rev") + 2);
        assert_eq!(number(&item, "version"), number(&archived, "version") + 1);
        assert_eq!(item["updated_at"], AttributeValue::S(now.to_string()));
        for same in ["PK", "SK", "born", "created_at", "entity"] {
            assert_eq!(item[same], archived[same]);
        }
        match restored.name() {
            "Session" | "Cart" => assert_eq!(item["expires_at"], AttributeValue::S(until.to_string())),
            _ => assert!(item.get("ttl").is_none() && item.get("expires_at").is_none()),
        }
        kinds.push(restored.name());
    }
    assert_eq!(kinds, ARCHIVED);
    let order = archive::restored(world.retired_order().to_item().unwrap(), now, until).unwrap();
    assert!(order.to_item().unwrap().contains_key("GSI2PK"), "a restored order is in the lists again");
}

#[test]
fn only_items_that_expire_and_are_archived_can_be_restored() {
    for golden in goldens(&World::plain()) {
        let restored = archive::restored(golden.item.clone(), at(NOW), at(NOW));
        if ARCHIVED.contains(&golden.entity.name()) {
            assert!(restored.is_ok(), "{}", golden.name);
        } else {
            assert!(matches!(restored, Err(RestoreError::NotArchived)), "{}", golden.name);
        }
    }
    let mut foreign = World::plain().session().to_item().unwrap();
    foreign.inner_mut().insert("entity".into(), AttributeValue::S("Unicorn".into()));
    assert!(AnyEntity::from_item(foreign.clone()).is_err());
    assert!(matches!(archive::restored(foreign, at(NOW), at(NOW)), Err(RestoreError::Decode(_))));
}
