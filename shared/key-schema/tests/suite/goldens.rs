//! Tests of the golden items: the complete stored item of each entity.

use std::collections::{BTreeMap, BTreeSet};

use key_schema::entity::AnyEntity;
use key_schema::index::{GSI1, GSI2, GSI3, INDEXES};
use key_schema::item::{
    Entity, FromItem as _, Item, RESERVED, Stored, entity_name, index_entry_size, is_reserved, key_of,
};
use key_schema::key::Index;
use key_schema::leaderboard::Period;
use serde_dynamo::AttributeValue;

use crate::support::{assert_same, at, item_json, parse_item};
use crate::world::{self, World};

pub struct Golden {
    pub name: &'static str,
    pub entity: AnyEntity,
    pub item: Item,
    /// The entity's own attributes: no keys, and no attributes that every item has.
    own: BTreeSet<String>,
}

impl Golden {
    pub fn of<T: Entity>(name: &'static str, stored: Stored<T>, any: fn(Stored<T>) -> AnyEntity) -> Self {
        let own: Item = serde_dynamo::to_item(&stored.data).unwrap();
        let own = own.inner().keys().cloned().collect();
        Self { name, item: stored.to_item().unwrap(), own, entity: any(stored) }
    }

    pub fn is_in(&self, index: Index) -> bool {
        self.item.contains_key(index.partition_attribute())
    }
}

pub fn with<T>(mut stored: Stored<T>, change: impl FnOnce(&mut T)) -> Stored<T> {
    change(&mut stored.data);
    stored
}

pub fn goldens(world: &World) -> Vec<Golden> {
    AREAS.iter().flat_map(|(_, goldens)| goldens(world)).collect()
}

/// The golden items of an area of the schema.
type Area = (&'static str, fn(&World) -> Vec<Golden>);

const AREAS: [Area; 9] = [
    ("agents", world::agents::agents_goldens),
    ("catalogue", world::catalog::catalogue_goldens),
    ("community", world::others::community_goldens),
    ("content", world::catalog::content_goldens),
    ("customers", world::customers_goldens),
    ("operations", world::others::operations_goldens),
    ("orders", world::orders::orders_goldens),
    ("payments", world::orders::payments_goldens),
    ("webhooks", world::webhooks::webhooks_goldens),
];

/// Returns the golden item with this name, from [`World::plain`].
pub fn golden(name: &str) -> Golden {
    goldens(&World::plain())
        .into_iter()
        .find(|golden| golden.name == name)
        .unwrap_or_else(|| panic!("no golden item {name}"))
}

#[test]
fn each_entity_is_stored_as_its_golden_item() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (area, goldens) in AREAS {
            let items = goldens(&World::plain());
            let items: Vec<String> =
                items.iter().map(|golden| format!("{} {}", golden.name, item_json(&golden.item))).collect();
            insta::assert_snapshot!(area, items.join("\n\n"));
        }
    });
}

#[test]
fn every_entity_has_a_golden_item() {
    let shown: BTreeSet<String> =
        goldens(&World::plain()).iter().map(|golden| entity_name(&golden.item).unwrap().to_owned()).collect();
    let all: BTreeSet<String> = AnyEntity::NAMES.iter().map(ToString::to_string).collect();
    assert_same(&shown, &all);
}

#[test]
fn a_golden_item_decodes_to_its_entity() {
    for golden in goldens(&World::plain()) {
        let read = parse_item(&item_json(&golden.item));
        assert_eq!(read, golden.item, "{}", golden.name);
        assert_eq!(AnyEntity::from_item(read).unwrap(), golden.entity, "{}", golden.name);
    }
}

#[test]
fn no_two_entities_share_a_key() {
    let mut seen = BTreeSet::new();
    for golden in goldens(&World::plain()).iter().filter(|golden| !golden.name.contains('-')) {
        let key = key_of(&golden.item).unwrap();
        assert!(seen.insert(key.clone()), "{} has the key of another item: {key:?}", golden.name);
    }
}

#[test]
fn no_field_of_an_entity_shadows_an_attribute_of_the_schema() {
    for golden in goldens(&World::plain()) {
        let shadowed: Vec<&String> = golden.own.iter().filter(|name| is_reserved(name)).collect();
        assert!(shadowed.is_empty(), "{} shadows {shadowed:?}", golden.name);
    }
    let attributes = INDEXES.iter().flat_map(|index| [index.partition_attribute(), index.sort_attribute()]);
    for reserved in RESERVED.into_iter().chain(attributes) {
        let refused = std::panic::catch_unwind(|| key_schema::item::assert_not_reserved(&["name", reserved])).is_err();
        assert!(refused, "{reserved} is not reserved");
    }
    key_schema::item::assert_not_reserved(&["names", "Version", "PK2", "TTL"]);
}

#[test]
fn an_item_outside_a_sparse_index_has_no_key_in_it() {
    let in_indexes = |name: &str| INDEXES.into_iter().filter(|index| golden(name).is_in(*index)).collect::<Vec<_>>();
    assert_eq!((in_indexes("Product"), in_indexes("Product-retired")), (vec![GSI2], vec![]));
    assert_eq!((in_indexes("Order"), in_indexes("Order-placing")), (vec![GSI2], vec![GSI1]));
    assert_eq!(in_indexes("Order-returning"), [GSI1, GSI2]);
    assert_eq!((in_indexes("Order-own"), in_indexes("Order-lapsed")), (vec![GSI2, GSI3], vec![GSI2]));
    assert_eq!((in_indexes("Order-retired"), in_indexes("CustomerOrder-retired")), (vec![], vec![]));
    assert_eq!((in_indexes("Sale"), in_indexes("Sale-reversed")), (vec![GSI1, GSI3], vec![]));
    assert_eq!((in_indexes("Rank"), in_indexes("Rank-zero")), (vec![GSI2], vec![]));
    assert_eq!(in_indexes("Customer"), [GSI2, GSI3]);
    assert_eq!(in_indexes("Customer-nowhere"), [GSI2]);
    assert_eq!((in_indexes("Question"), in_indexes("Question-answered")), (vec![GSI2], vec![]));
    assert_eq!((in_indexes("CustomerOrder"), in_indexes("CustomerOrder-shipped")), (vec![], vec![GSI3]));
}

#[test]
fn an_index_key_is_stored_whole_or_not_at_all() {
    for golden in goldens(&World::plain()) {
        for index in INDEXES {
            let half = golden.is_in(index) != golden.item.contains_key(index.sort_attribute());
            assert!(!half, "{} has only a part of the key of {}", golden.name, index.name());
            assert_eq!(index_entry_size(&golden.item, index).is_some(), golden.is_in(index));
        }
    }
}

/// Technique F10 in `docs/patterns.md`: a key `STATUS#paid` without a shard would send the writes
/// of all paid orders to one partition. The test makes the golden items of 64 [`World`]s, which
/// differ only in their ids. So the items of one kind must be in several partitions of each index.
/// The exception is a category tree. Its nodes share a partition, so that a page of a subtree is
/// one Query.
#[test]
fn no_index_partition_is_named_by_a_low_cardinality_value_alone() {
    let mut partitions: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for number in 0..64 {
        for golden in goldens(&World::numbered(number)) {
            for index in INDEXES.into_iter().filter(|index| golden.is_in(*index)) {
                let AttributeValue::S(partition) = &golden.item[index.partition_attribute()] else {
                    panic!("not a string")
                };
                partitions.entry((golden.name, index.name())).or_default().insert(partition.clone());
            }
        }
    }
    let few: Vec<_> = partitions.iter().filter(|(_, partitions)| partitions.len() < 4).collect();
    let trees = [("CategoryNode", GSI2.name()), ("CategoryNode-moving", GSI2.name())];
    assert_eq!(few.iter().map(|(list, _)| **list).collect::<Vec<_>>(), trees, "{few:?}");
}

#[test]
fn only_items_that_expire_have_a_time_to_live_and_it_is_in_seconds() {
    for golden in goldens(&World::plain()) {
        let expected = match &golden.entity {
            // Tokens of the sign-in can be valid for 31 days after the expiry.
            AnyEntity::Session(session) => Some(session.expires_at.plus_seconds(31 * 24 * 60 * 60)),
            AnyEntity::Revocation(revocation) => Some(revocation.expires_at),
            AnyEntity::Cart(cart) => Some(cart.expires_at),
            AnyEntity::GuestCart(cart) => Some(cart.expires_at),
            AnyEntity::CheckoutSession(session) => Some(session.expires_at),
            AnyEntity::IdempotencyRecord(record) => Some(record.expires_at),
            AnyEntity::Order(order) => order.expires_at,
            AnyEntity::CustomerOrder(copy) => copy.expires_at,
            AnyEntity::OrderAddresses(addresses) => addresses.expires_at,
            AnyEntity::OpenOrders(open) => Some(open.expires_at),
            AnyEntity::Mark(mark) => Some(mark.expires_at),
            AnyEntity::Mail(mail) => Some(mail.expires_at),
            AnyEntity::Invitation(invitation) => Some(invitation.expires_at),
            // The list expires a week after the last of its invitations.
            AnyEntity::Invitations(roster) => {
                roster.open.values().map(|open| open.expires_at.plus_seconds(7 * 24 * 60 * 60)).max()
            }
            AnyEntity::MailDay(day) => Some(day.expires_at),
            AnyEntity::QuotaDay(day) => Some(day.expires_at),
            AnyEntity::ProviderEvent(event) => Some(event.expires_at),
            AnyEntity::WebhookDelivery(delivery) => Some(delivery.expires_at),
            AnyEntity::EmailVerification(request) => Some(request.expires_at),
            // The days of a week expire 35 days after its end. The week expires 455 days after its
            // Monday.
            AnyEntity::Tally(tally) if tally.period != Period::All => Some(at("2017-03-13T00:00:00.000Z")),
            AnyEntity::Rank(_) => Some(at("2018-04-30T00:00:00.000Z")),
            AnyEntity::MetricPoint(point) => Some(point.at.plus_seconds(30 * 24 * 60 * 60)),
            _ => None,
        };
        let expected = expected.map(|at| AttributeValue::N((at.as_millis() / 1000).to_string()));
        assert_eq!(golden.item.get("ttl"), expected.as_ref(), "{}", golden.name);
    }
}
