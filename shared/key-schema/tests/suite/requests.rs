//! Tests of each rendered request against a snapshot and against the rules of DynamoDB.

use std::collections::BTreeSet;
use std::path::Path;

use key_schema::cart;
use key_schema::expression::{Condition, Placeholders, Step, number, render_update};
use key_schema::idempotency::{self, StoredResponse};
use key_schema::index::INDEXES;
use key_schema::item::Stored;
use key_schema::order::staged::{Claims, UNDONE_AT_ONCE};
use key_schema::order::{self, Order, OrderAction, OrderStatus, PlacedOrder};
use key_schema::promotion::MAX_APPLIED;
use key_schema::registry;
use key_schema::request::{Guarded, TooManyActions, Write};
use serde_dynamo::AttributeValue;

use crate::exercises::exercises;
use crate::support::{assert_same, at};
use crate::world::World;

#[test]
fn each_request_is_rendered_as_recorded() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let text = exercises().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n");
    settings.bind(|| insta::assert_snapshot!("requests", text));
}

/// A pattern without a constructor has no request, so its cost cannot be measured.
#[test]
fn every_pattern_is_produced_by_a_constructor() {
    let produced: BTreeSet<&str> = exercises().iter().map(|shown| shown.pattern.id).collect();
    let registered: BTreeSet<&str> = registry::all().map(|pattern| pattern.id).collect();
    assert_same(&produced, &registered);
}

/// Finds the constructors in the sources. Otherwise no test would notice that a new constructor of
/// an existing pattern is never rendered.
#[test]
fn every_constructor_is_exercised() {
    let exercised: BTreeSet<String> = exercises().iter().map(|shown| shown.constructor.to_owned()).collect();
    let mut written = BTreeSet::new();
    for sources in ["src", "../item-model/src"] {
        constructors(&Path::new(env!("CARGO_MANIFEST_DIR")).join(sources), None, &mut written);
    }
    assert_same(&exercised, &written);
}

fn constructors(folder: &Path, module: Option<&str>, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            // The label of a constructor names the module in the folder of its area, and no
            // submodule.
            let is_area = folder.ends_with("src");
            constructors(&path, module.or((!is_area).then_some(stem)), found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for function in source.split("\npub fn ").skip(1) {
            let (signature, _) = function.split_once('{').unwrap();
            let name = signature.split(['(', '<']).next().unwrap();
            let makes = |request: &&str| signature.contains(&format!("-> Result<{request}"));
            if [
                "Get<",
                "BatchGet<",
                "Query<",
                "Single<",
                "Transaction<",
                "Vec<Transaction<",
                "Option<Transaction<",
                "Option<Single<",
                "Option<BatchGet<",
                "Vec<Query<",
                "(Transaction<",
                "BatchWrite,",
            ]
            .iter()
            .any(makes)
            {
                found.insert(format!("{}::{name}", module.unwrap_or(stem)));
            }
        }
    }
}

#[test]
fn a_request_agrees_with_its_pattern() {
    for shown in exercises() {
        assert_eq!(shown.operation, shown.pattern.operation, "{}", shown.pattern.id);
    }
}

/// The registry's key conditions are prose. At least their type prefixes must match the keys.
#[test]
fn a_pattern_names_the_prefix_of_every_key_that_its_requests_use() {
    for shown in exercises() {
        let keys = shown.keys.iter().map(|key| key.pk.as_str());
        for partition in keys.chain(shown.partitions.iter().map(|partition| partition.as_str())) {
            let prefix = partition.split('#').next().unwrap();
            assert!(shown.pattern.key.contains(prefix), "{} lacks {prefix}", shown.pattern.id);
        }
    }
}

/// DynamoDB refuses an undefined placeholder, and a defined placeholder that no expression uses.
#[test]
fn every_placeholder_is_defined_once_and_used() {
    for shown in exercises() {
        for rendered in shown.writes.iter().map(Guarded::render) {
            let text = format!("{} {}", rendered.update.unwrap_or_default(), rendered.condition.unwrap_or_default());
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '#' && c != ':');
            let used: BTreeSet<&str> = words.filter(|word| word.starts_with(['#', ':'])).collect();
            let defined: Vec<&str> = rendered
                .names
                .iter()
                .map(|(name, _)| name)
                .chain(rendered.values.iter().map(|(name, _)| name))
                .map(String::as_str)
                .collect();
            assert_eq!(used, defined.iter().copied().collect(), "{}", shown.constructor);
            assert_eq!(used.len(), defined.len(), "{}", shown.constructor);
        }
    }
}

fn updates() -> Vec<(&'static str, Vec<Step>)> {
    let steps =
        |guarded: &Guarded| if let Write::Update { steps, .. } = &guarded.write { Some(steps.clone()) } else { None };
    exercises()
        .iter()
        .flat_map(|shown| shown.writes.iter().filter_map(steps).map(|steps| (shown.constructor, steps)))
        .collect()
}

/// DynamoDB refuses two document paths that overlap.
#[test]
fn no_update_changes_an_attribute_twice() {
    fn attribute(step: &Step) -> &str {
        match step {
            Step::Set(name, _) | Step::SetIfMissing(name, _) | Step::SetEntry(name, ..) => name,
            Step::Remove(name) | Step::RemoveEntry(name, _) | Step::Add(name, _) => name,
            Step::Include(name, _) | Step::Exclude(name, _) => name,
            Step::AddNamed(name, _) => name,
        }
    }
    for (constructor, steps) in updates() {
        let distinct: BTreeSet<&str> = steps.iter().map(attribute).collect();
        assert_eq!(distinct.len(), steps.len(), "{constructor}: {steps:?}");
    }
}

/// A copy or search document with an older `rev` is out of date, so every update must increase
/// `rev`. A visible change also increases the ETag and sets `updated_at`.
#[test]
fn every_update_increases_rev_and_a_visible_update_also_increases_the_version() {
    for (constructor, steps) in updates() {
        assert!(steps.contains(&Step::Add("rev", 1)), "{constructor}");
        let dated = steps.iter().any(|step| matches!(step, Step::Set("updated_at", _)));
        assert_eq!(steps.contains(&Step::Add("version", 1)), dated, "{constructor}");
    }
}

#[test]
fn an_update_writes_both_halves_of_an_index_key_or_neither() {
    for (constructor, steps) in updates() {
        for index in INDEXES {
            let sets = |name: &str| steps.iter().any(|step| matches!(step, Step::Set(known, _) if *known == name));
            let removes = |name: &str| steps.iter().any(|step| matches!(step, Step::Remove(known) if *known == name));
            let (partition, sort) = (index.partition_attribute(), index.sort_attribute());
            assert_eq!((sets(partition), removes(partition)), (sets(sort), removes(sort)), "{constructor}");
        }
    }
}

/// DynamoDB refuses a transaction with two actions on one item.
#[test]
fn no_request_names_an_item_twice() {
    for shown in exercises() {
        let distinct: BTreeSet<_> = shown.keys.iter().collect();
        assert_eq!(distinct.len(), shown.keys.len(), "{}", shown.constructor);
    }
}

#[test]
fn an_order_of_47_lines_fits_one_transaction_and_one_of_45_lines_with_everything_that_it_may_have() {
    let (world, now) = (World::plain(), at("2017-02-05T12:00:00.000Z"));
    let mut order = world.order(OrderStatus::Pending);
    let record = world.idempotency_record(StoredResponse::Order(world.order.clone()));
    let all = [
        (OrderAction::Idempotency, idempotency::claim(&record, now).unwrap()),
        (OrderAction::Open, order::open::enter(&order, world.open_order(), None).unwrap()),
        (OrderAction::Cart, cart::check_out(&world.cart()).unwrap()),
    ];
    let placed = |order: &Stored<Order>, lines, addresses| {
        let lines = vec![world.order_line(); lines];
        PlacedOrder { addresses, ..PlacedOrder::new(order.clone(), lines, "c1") }
    };
    // Head, number, copy, history and customer are 5 actions, and each line takes 2.
    let whole = |lines| order::place(&placed(&order, lines, Some(world.order_addresses())), &all).unwrap();
    assert_eq!((whole(47).actions().len(), whole(47).check_size()), (5 + 5 + 94, Err(TooManyActions(104))));
    assert_eq!((whole(45).actions().len(), whole(45).check_size()), (100, Ok(())));
    order.data.reference = None;
    let bare = |lines| order::place(&placed(&order, lines, None), &[]).unwrap();
    assert_eq!((bare(47).actions().len(), bare(47).check_size()), (99, Ok(())));
    assert_eq!(bare(48).check_size(), Err(TooManyActions(101)));
}

#[test]
fn the_last_step_of_an_undo_fits_one_transaction_with_everything_that_an_order_may_hold() {
    let world = World::plain();
    let mut order = world.order_with_promotions();
    order.data.status = OrderStatus::Placing;
    order.data.unfinished = world.order(OrderStatus::Placing).data.unfinished;
    let promotions = &mut order.data.charges.as_mut().unwrap().promotions;
    promotions.resize(MAX_APPLIED, promotions[0].clone());
    for promotion in promotions {
        (promotion.counted, promotion.counted_per_customer) = (true, true);
    }
    let claims = Claims { number: true, reference: true, idempotency: true, open: true };
    let lines = vec![world.order_line(); UNDONE_AT_ONCE];
    let undo = order::staged::undo_last(&order, &lines, claims, at("2017-02-05T12:00:00.000Z")).unwrap();
    assert_eq!((undo.actions().len(), undo.check_size()), (99, Ok(())));
}

#[test]
fn members_of_sets_are_added_removed_and_tested() {
    let mut with = Placeholders::default();
    let steps = [
        Step::Include("jobs", "a".into()),
        Step::Exclude("others", "b".into()),
        Step::Set("at", number(1)),
        Step::Add("rev", 1),
    ];
    assert_eq!(render_update(&steps, &mut with), "SET #2 = :2 ADD #0 :0, #3 :3 DELETE #1 :1");
    let (names, values) = with.finish();
    assert_eq!(names[..2], [("#0".to_owned(), "jobs".to_owned()), ("#1".to_owned(), "others".to_owned())]);
    let set = |member: &str| AttributeValue::Ss(vec![member.to_owned()]);
    assert_eq!(values[..2], [(":0".to_owned(), set("a")), (":1".to_owned(), set("b"))]);
    let room = Condition::FewerEntries("jobs", 3).or(Condition::Contains("jobs", AttributeValue::S("a".into())));
    assert_eq!(key_schema::request::render(&room).text, "(size(#0) < :0 OR contains(#0, :1))");
}

#[test]
fn a_value_that_an_attribute_must_not_have_is_compared_through_placeholders() {
    let mut with = Placeholders::default();
    let condition = Condition::Exists.and(Condition::IsNot("status", AttributeValue::S("placing".into())));
    assert_eq!(condition.render(&mut with), "(attribute_exists(#0) AND #1 <> :0)");
    let (names, values) = with.finish();
    assert_eq!(names[1], ("#1".to_owned(), "status".to_owned()));
    assert_eq!(values, [(":0".to_owned(), AttributeValue::S("placing".into()))]);
}

#[test]
fn conditions_nest_as_they_are_written() {
    let text = |condition: &Condition| key_schema::request::render(condition).text;
    let (a, b, c) = (Condition::Exists, Condition::Has("b"), Condition::Lacks("c"));
    assert_eq!(
        text(&a.clone().and(b.clone()).and(c.clone())),
        "(attribute_exists(#0) AND attribute_exists(#1) AND attribute_not_exists(#2))"
    );
    assert_eq!(
        text(&a.clone().or(b.clone()).and(c.clone())),
        "((attribute_exists(#0) OR attribute_exists(#1)) AND attribute_not_exists(#2))"
    );
    assert_eq!(text(&c.or(a.and(b))), "(attribute_not_exists(#0) OR (attribute_exists(#1) AND attribute_exists(#2)))");
}
