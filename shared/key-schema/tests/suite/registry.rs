//! Tests of the registry of access patterns, and of the sort order in a customer's partition.

use std::collections::BTreeSet;

use key_schema::encoding::{NewestFirst, join};
use key_schema::index::{GSI2, INDEXES};
use key_schema::item::{entity_name, key_of};
use key_schema::key::Index;
use key_schema::pattern::{Consistency, Operation};
use key_schema::registry;

use crate::goldens::goldens;
use crate::support::at;
use crate::world::World;

#[test]
fn every_pattern_has_a_unique_id_with_an_area_and_an_action() {
    let mut seen = BTreeSet::new();
    for pattern in registry::all() {
        let word = |word: &str| {
            !word.is_empty()
                && word.split('-').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase()))
        };
        assert!(matches!(pattern.id.split_once('.'), Some((area, what)) if word(area) && word(what)), "{}", pattern.id);
        assert!(seen.insert(pattern.id), "{} is registered twice", pattern.id);
    }
}

#[test]
fn every_pattern_names_its_purpose_and_its_callers() {
    for pattern in registry::all() {
        assert!(![pattern.purpose, pattern.key, pattern.detail].contains(&""), "{}", pattern.id);
        assert!(
            ["any", "owner", "signed in", "staff", "system"].contains(&pattern.callers),
            "{}: {}",
            pattern.id,
            pattern.callers
        );
    }
}

#[test]
fn every_read_has_a_consistency_and_every_strong_read_has_a_reason() {
    for pattern in registry::all() {
        let reads = matches!(
            pattern.operation,
            Operation::GetItem | Operation::BatchGetItem | Operation::Query | Operation::ShardedQuery
        );
        assert_eq!(reads, pattern.consistency != Consistency::Write, "{}", pattern.id);
        if let Consistency::Strong(reason) = pattern.consistency {
            assert!(!reason.is_empty(), "{}", pattern.id);
            assert_eq!(pattern.index, None, "{}: DynamoDB has no strong read of an index", pattern.id);
        }
        assert!(
            pattern
                .operation
                .actions()
                .iter()
                .all(|action| action.starts_with("dynamodb:") && *action != "dynamodb:Scan")
        );
    }
}

#[test]
fn every_index_is_used_and_every_index_that_is_used_is_known() {
    let used: BTreeSet<Index> = registry::all().filter_map(|pattern| pattern.index).collect();
    assert_eq!(used, INDEXES.into_iter().collect());
    for pattern in registry::all() {
        if let Some(index) = pattern.index {
            assert!(
                matches!(pattern.operation, Operation::Query | Operation::ShardedQuery),
                "{}: an index can only be queried",
                pattern.id
            );
            assert!(pattern.key.starts_with(index.partition_attribute()), "{}", pattern.id);
        }
    }
}

/// Pattern R6 in `docs/patterns.md`: one index lists orders by status, customers by tier and
/// products by category.
#[test]
fn three_kinds_of_entity_share_the_index_of_sharded_lists() {
    let world = World::plain();
    let kinds: BTreeSet<String> = goldens(&world)
        .iter()
        .filter(|golden| golden.is_in(GSI2))
        .map(|golden| entity_name(&golden.item).unwrap().to_owned())
        .collect();
    assert!(["Customer", "Order", "Product"].iter().all(|kind| kinds.contains(*kind)), "{kinds:?}");
    let sharded: Vec<&str> = registry::all()
        .filter(|pattern| pattern.operation == Operation::ShardedQuery && pattern.index == Some(GSI2))
        .map(|pattern| pattern.id)
        .collect();
    assert_eq!(
        sharded,
        [
            "customers.by-tier",
            "customers.all",
            "categories.products",
            "category-moves.products",
            "leaderboards.top",
            "orders.by-status",
            "questions.open"
        ]
    );
}

/// A backward read from the profile returns the newest orders, and a forward read returns the
/// newest questions. An item between the orders and the questions would be part of every overview.
#[test]
fn no_other_item_sorts_between_the_orders_and_the_questions_of_a_customer() {
    for golden in goldens(&World::plain()) {
        let key = key_of(&golden.item).unwrap();
        if !key.pk.as_str().starts_with("CUSTOMER#") {
            continue;
        }
        let between = ("ORDER#"..="QUESTION$").contains(&key.sk.as_str());
        let known = match entity_name(&golden.item).unwrap() {
            "CustomerOrder" => key.sk.as_str().starts_with("ORDER#"),
            "Customer" => key.sk.as_str() == "PROFILE",
            "CustomerQuestion" => key.sk.as_str().starts_with("QUESTION#"),
            _ => false,
        };
        assert_eq!(between, known, "{} has the sort key {}", golden.name, key.sk);
    }
}

#[test]
fn the_items_of_a_customers_partition_sort_in_the_designed_order() {
    let question = |text| join("QUESTION", &[&NewestFirst(at(text)), &"q"]);
    let order = [
        join("FOLLOWS", &[&"\u{10FFFF}"]),
        join("LIKE", &[&"\u{10FFFF}"]),
        join("ORDER", &[&"01"]),
        join("ORDER", &[&"\u{10FFFF}"]),
        "PROFILE".to_owned(),
        question("9999-12-31T23:59:59.999Z"),
        question("2017-01-01T00:00:00.000Z"),
        question("0000-01-01T00:00:00.000Z"),
        "QUESTION$".to_owned(),
    ];
    assert!(order.is_sorted(), "{order:#?}");
}
