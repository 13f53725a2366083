//! Orders are retired, archived and restored.

use key_schema::archive::{self, RestoreError};
use key_schema::entity::AnyEntity;
use key_schema::expression::Step;
use key_schema::item::{Entity as _, FromItem as _, Stored};
use key_schema::key::Key;
use key_schema::order::{self, OrderStatus, OrderStatusEvent, Part, Retirement};
use key_schema::request::{MAX_TRANSACTION_ACTIONS, Write, render};
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

/// An order of so many lines and two steps.
fn parts(world: &World, lines: u64) -> (Vec<Stored<order::OrderLine>>, Vec<Stored<OrderStatusEvent>>) {
    let line = |number| {
        let mut line = world.order_line();
        line.data.line = number;
        line
    };
    let mut delivered = world.status_event();
    delivered.data.status = OrderStatus::Delivered;
    ((1..=lines).map(line).collect(), vec![world.status_event(), delivered])
}

#[test]
fn everything_of_a_retired_order_gets_the_same_time_to_live_and_the_head_leads() {
    let world = World::plain();
    let order = world.order(OrderStatus::Delivered);
    let (lines, history) = parts(&world, 161);
    let expires_at = world.expiry();
    let all = order::retire(Retirement { order: &order, lines: &lines, history: &history, expires_at, at: at(NOW) });
    let all = all.unwrap();
    assert_eq!(all.len(), 2);
    let labels: Vec<Part> = all.iter().flat_map(|one| one.actions()).map(|(label, _)| *label).collect();
    assert_eq!(labels[..4], [Part::Order, Part::Copy, Part::History, Part::History]);
    assert_eq!(labels[4..], (1..=161).map(Part::Line).collect::<Vec<_>>());
    let mut keys: Vec<Key> = Vec::new();
    for transaction in &all {
        assert!(transaction.actions().len() <= MAX_TRANSACTION_ACTIONS);
        for (_, guarded) in transaction.actions() {
            let Write::Update { key, steps } = &guarded.write else { panic!("not an update") };
            keys.push(key.clone());
            let ttl = AttributeValue::N(expires_at.as_seconds().to_string());
            assert!(steps.contains(&Step::Set("ttl", ttl)));
            assert!(steps.contains(&Step::Set("expires_at", AttributeValue::S(expires_at.to_string()))));
            assert!(steps.contains(&Step::Add("rev", 1)));
        }
    }
    let mut expected = vec![order.key().unwrap(), world.customer_order(true).key().unwrap()];
    expected.extend(history.iter().map(|event| event.key().unwrap()));
    expected.extend(lines.iter().map(|line| line.key().unwrap()));
    assert_eq!(keys, expected);
    let condition = all[0].actions()[0].1.condition.as_ref().unwrap();
    assert_eq!(render(condition).text, "(#0 = :0 AND (#1 = :1 OR #1 = :2 OR #1 = :3))");
}

#[test]
fn a_retirement_that_broke_off_goes_on_with_what_is_left_and_its_own_time() {
    let world = World::plain();
    let (mut lines, history) = parts(&world, 3);
    lines[0].data.expires_at = Some(world.expiry());
    let late = world.expiry().plus_seconds(86_400);
    let order = world.retired_order();
    let left =
        order::retire(Retirement { order: &order, lines: &lines, history: &history, expires_at: late, at: at(NOW) });
    let left = left.unwrap();
    let labels: Vec<Part> = left.iter().flat_map(|one| one.actions()).map(|(label, _)| *label).collect();
    assert_eq!(labels, [Part::History, Part::History, Part::Line(2), Part::Line(3)]);
    let Write::Update { steps, .. } = &left[0].actions()[0].1.write else { panic!("not an update") };
    assert!(steps.contains(&Step::Set("ttl", AttributeValue::N(world.expiry().as_seconds().to_string()))));

    for line in &mut lines {
        line.data.expires_at = Some(world.expiry());
    }
    let done = Retirement { order: &order, lines: &lines, history: &[], expires_at: late, at: at(NOW) };
    assert!(order::retire(done).unwrap().is_empty());
}

#[test]
fn what_is_restored_lives_on_beyond_the_rev_that_its_removal_took() {
    let world = World::plain();
    let (now, until) = (at(NOW), at("2019-01-02T12:00:00.000Z"));
    let mut kinds = Vec::new();
    let mut line = world.order_line();
    line.data.expires_at = Some(world.expiry());
    let mut event = world.status_event();
    event.data.expires_at = Some(world.expiry());
    for archived in [
        world.session().to_item().unwrap(),
        world.cart().to_item().unwrap(),
        world.retired_order().to_item().unwrap(),
        world.retired_customer_order().to_item().unwrap(),
        line.to_item().unwrap(),
        event.to_item().unwrap(),
    ] {
        let restored = archive::restored(archived.clone(), now, until).unwrap();
        let item = restored.to_item().unwrap();
        let number = |item: &key_schema::item::Item, name: &str| match &item[name] {
            AttributeValue::N(number) => number.parse::<u64>().unwrap(),
            other => panic!("{other:?}"),
        };
        // The removal is known by the item's rev and one more.
        assert_eq!(number(&item, "rev"), number(&archived, "rev") + 2);
        assert_eq!(number(&item, "version"), number(&archived, "version") + 1);
        assert_eq!(item["updated_at"], AttributeValue::S(now.to_string()));
        for same in ["PK", "SK", "born", "created_at", "entity"] {
            assert_eq!(item[same], archived[same]);
        }
        match restored.name() {
            "Session" | "Cart" => assert_eq!(number(&item, "ttl"), until.as_seconds().cast_unsigned()),
            _ => assert!(item.get("ttl").is_none() && item.get("expires_at").is_none()),
        }
        kinds.push(restored.name());
    }
    assert_eq!(kinds, ["Session", "Cart", "Order", "CustomerOrder", "OrderLine", "OrderStatusEvent"]);
    let order = archive::restored(world.retired_order().to_item().unwrap(), now, until).unwrap();
    assert!(order.to_item().unwrap().contains_key("GSI2PK"), "a restored order is in the lists again");
}

#[test]
fn only_what_expires_and_is_archived_can_be_restored() {
    for golden in goldens(&World::plain()) {
        let archived = ["Session", "Cart", "Order", "CustomerOrder", "OrderLine", "OrderStatusEvent"];
        let restored = archive::restored(golden.item.clone(), at(NOW), at(NOW));
        if archived.contains(&golden.entity.name()) {
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
