//! Tests of ranges and pages: no range misses an item or reads too many items, and no page repeats
//! or loses an item.

use std::collections::BTreeSet;

use key_schema::category::{self, CategoryBelow, CategoryNode};
use key_schema::change::{Change, IndexEntry as _};
use key_schema::customer::{self, Customer, Location};
use key_schema::encoding::{NewestFirst, encode, join};
use key_schema::expression::Step;
use key_schema::id::{Born, CustomerId, OrderId, ProductId, QuestionId};
use key_schema::index::GSI2;
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, FromItem as _, Stored};
use key_schema::lists;
use key_schema::order::{self, OrderStatus};
use key_schema::payment::PaymentMethod;
use key_schema::product::{self, CategoryIndexKey, CategoryPath};
use key_schema::request::{Query, Range};
use key_schema::residence;
use key_schema::review::recent::Month;
use key_schema::{follow, graph, like, question, review, sales, session};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_dynamo::AttributeValue;

use crate::categories::path;
use crate::support::{at, deterministic, instant, instant_since_epoch, text};
use crate::world::World;

/// Generates parts of keys that differ little and sort close to the bounds.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        select(&["a", "a#", "a$", "a%", "a&", "aa", "a#b", "b", "", "é", "~", "\u{10FFFF}"][..])
            .prop_map(str::to_owned),
        text(2)
    ]
}

fn key(prefix: &str, parts: &[String]) -> String {
    join(prefix, &parts.iter().map(|part| part as _).collect::<Vec<_>>())
}

fn covers<T>(query: &Query<T>, sort_key: &str) -> bool {
    query.bounds().is_some_and(|range| range.contains(sort_key))
}

fn customer() -> CustomerId {
    CustomerId::new("c1").unwrap()
}

fn product() -> ProductId {
    ProductId::new("p1").unwrap()
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn the_range_under_a_prefix_has_exactly_the_keys_with_more_parts(
        prefix in vec(part(), 0..3), keys in vec((select(&["P", "PA", "P-", "O"][..]), vec(part(), 0..4)), 1..30),
    ) {
        let range = Range::under(&key("P", &prefix));
        for (kind, parts) in keys {
            let expected = kind == "P" && parts.len() > prefix.len() && parts.starts_with(&prefix);
            prop_assert_eq!(range.contains(&key(kind, &parts)), expected, "{} {:?}", kind, parts);
        }
    }

    #[test]
    fn a_list_between_two_instants_has_the_items_at_both_instants_and_all_between(
        from in instant(), to in instant(), entries in vec((instant(), text(3)), 1..20), open: (bool, bool),
    ) {
        let (from, to) = (open.0.then_some(from), open.1.then_some(to));
        let by_status = order::by_status(OrderStatus::Paid, from, to, lists::unchanged()).unwrap();
        let shipments = order::shipments(&customer(), from).unwrap();
        for (when, id) in entries.into_iter().chain([from, to].into_iter().flatten().map(|bound| (bound, "#".into()))) {
            let sort_key = join(&when.to_string(), &[&id]);
            let (after, before) = (from.is_none_or(|from| from <= when), to.is_none_or(|to| when <= to));
            prop_assert_eq!(covers(&by_status, &sort_key), after && before);
            prop_assert_eq!(covers(&shipments, &sort_key), after);
        }
    }

    #[test]
    fn a_list_of_sales_between_two_instants_has_the_sales_at_both_instants(
        from in instant(), to in instant(), when in instant(), id in text(3),
    ) {
        let sales = sales::of_product(&product(), 2017, from, to).unwrap();
        for when in [when, from, to] {
            prop_assert_eq!(covers(&sales, &join(&when.to_string(), &[&id])), from <= when && when <= to);
        }
    }

    #[test]
    fn a_session_is_active_until_the_millisecond_in_which_it_ends(now in instant(), ends in instant(), id in text(3)) {
        let active = session::active(&customer(), now).unwrap();
        for ends in [ends, now, now.plus_millis(1)] {
            // After `Instant::MAX` there is no later instant to test.
            if ends < Instant::MAX {
                prop_assert_eq!(covers(&active, &join(&ends.to_string(), &[&id])), ends > now);
            }
        }
    }

    #[test]
    fn orders_of_a_customer_are_found_by_the_instant_in_their_id(
        from in instant_since_epoch(), to in instant_since_epoch(), made in instant_since_epoch(), random: [u8; 10],
        open: (bool, bool),
    ) {
        let (from, to) = (open.0.then_some(from), open.1.then_some(to));
        let orders = order::of_customer(&customer(), from, to).unwrap();
        for made in [Some(made), from, to].into_iter().flatten().filter(|made| *made < Instant::MAX) {
            let expected = from.is_none_or(|from| from <= made) && to.is_none_or(|to| made <= to);
            prop_assert_eq!(covers(&orders, &join("ORDER", &[&OrderId::generate(made, random)])), expected);
        }
        for other in ["PROFILE".to_owned(), join("LIKE", &[&"p"]), join("QUESTION", &[&NewestFirst(made), &"q"])] {
            prop_assert!(!covers(&orders, &other));
        }
    }

    #[test]
    fn the_overview_reads_only_the_profile_and_orders_of_the_customer(id in text(6), when in instant()) {
        let overview = customer::overview(&customer()).unwrap();
        prop_assert!(covers(&overview, "PROFILE") && covers(&overview, &join("ORDER", &[&id])));
        for other in [join("FOLLOWS", &[&id]), join("LIKE", &[&id]), join("QUESTION", &[&NewestFirst(when), &id])] {
            prop_assert!(!covers(&overview, &other), "{}", other);
        }
    }

    #[test]
    fn the_support_page_reads_only_the_profile_and_questions_of_the_customer(id in text(6), when in instant()) {
        let support = question::support(&customer()).unwrap();
        let asked = join("QUESTION", &[&NewestFirst(when), &id]);
        prop_assert!(covers(&support, "PROFILE") && covers(&support, &asked));
        let questions = question::of_customer(&customer()).unwrap();
        prop_assert!(covers(&questions, &asked) && !covers(&questions, "PROFILE"));
        for other in [join("FOLLOWS", &[&id]), join("LIKE", &[&id]), join("ORDER", &[&id])] {
            prop_assert!(!covers(&support, &other) && !covers(&questions, &other), "{}", other);
        }
    }

    #[test]
    fn a_question_is_read_together_with_its_answers(id in text(6)) {
        let whole = question::get(&QuestionId::new("q1").unwrap()).unwrap();
        prop_assert!(covers(&whole, "QUESTION") && covers(&whole, &join("ANSWER", &[&id])));
    }

    #[test]
    fn the_months_before_a_month_are_all_earlier_months(one in instant(), other in instant()) {
        let (one, other) = (Month::of(one), Month::of(other));
        let before = review::recent::months_before(&one).unwrap();
        let found = covers(&before, other.as_str()) && before.page_end() != Some(other.as_str());
        prop_assert_eq!(found, other.as_str() < one.as_str());
        // After a page that ends with the month's last review, the query finds no more reviews in
        // that month.
        let rest = review::recent::of_month(&one).unwrap().after(Some(one.as_str().to_owned()));
        let first = join(&format!("{}-01T00:00:00.000Z", one.as_str()), &[&"p", &"c"]);
        prop_assert!(!covers(&rest, &first));
    }

    #[test]
    fn a_product_page_reads_neither_content_nor_reviews(id in text(6)) {
        let page = product::page(&product()).unwrap();
        prop_assert!(["PRODUCT", "PRODUCT#SALES", "PRODUCT#STATS"].iter().all(|part| covers(&page, part)));
        prop_assert!(!covers(&page, "CONTENT") && !covers(&page, &join("REVIEW", &[&id])));
        prop_assert!(!covers(&page, &join("LIKES", &[&7_u32])));
    }

    #[test]
    fn the_count_of_likes_reads_only_its_parts(id in text(6), part in any::<u32>()) {
        let count = like::of_product(&product()).unwrap();
        prop_assert!(covers(&count, &join("LIKES", &[&part])));
        let others = [join("OBJECT", &[&id]), join("IN", &[&id]), join("REVIEW", &[&id])];
        for other in others.iter().map(String::as_str).chain(["CONTENT", "MEDIA", "PRODUCT", "PRODUCT#CATEGORIES"]) {
            prop_assert!(!covers(&count, other), "{}", other);
        }
    }

    #[test]
    fn the_edges_of_a_customer_are_exactly_the_follows_and_likes(id in text(6), when in instant()) {
        let (own, following, likes) = (
            graph::own(&customer()).unwrap(),
            follow::following(&customer()).unwrap(),
            like::of_customer(&customer()).unwrap(),
        );
        let (follows, like) = (join("FOLLOWS", &[&id]), join("LIKE", &[&id]));
        prop_assert!(covers(&own, &follows) && covers(&own, &like));
        prop_assert!(covers(&following, &follows) && !covers(&following, &like));
        prop_assert!(covers(&likes, &like) && !covers(&likes, &follows));
        for other in [join("ORDER", &[&id]), "PROFILE".to_owned(), join("QUESTION", &[&NewestFirst(when), &id])] {
            prop_assert!(!covers(&own, &other), "{}", other);
        }
    }

    #[test]
    fn a_place_lists_its_residents_and_no_neighbours(
        country in part(), city in proptest::option::of(part()), lives: (bool, u8), id in part(), elsewhere in part(),
    ) {
        let names = [Some(country.clone()), city.clone()].into_iter().flatten().collect::<Vec<_>>();
        let asked = product::segment::encode(&names).parse();
        let (Ok(asked), Ok(id)) = (asked, CustomerId::new(id)) else { return Ok(()) };
        let home = if lives.0 { country.clone() } else { elsewhere.clone() };
        let town = if lives.1 % 2 == 0 { city.clone().unwrap_or_default() } else { elsewhere };
        let place = Location { country: home.clone(), city: town.clone() };
        let change = residence::settle(Change::<Customer>::visible(Instant::EPOCH), &id, Some(&place)).unwrap();
        let set = |name: &str| change.clone().into_steps().into_iter().find_map(|step| match step {
            Step::Set(known, AttributeValue::S(text)) if known == name => Some(text),
            _ => None,
        }).unwrap();
        let query = residence::of_location(&asked).unwrap();
        let partition = set("GSI3PK");
        let found = query.partitions().iter().any(|known| known.as_str() == partition);
        let found = found && covers(&query, &set("GSI3SK"));
        prop_assert_eq!(found, home == country && city.is_none_or(|city| city == town));
    }

    #[test]
    fn a_category_lists_the_products_of_its_subtree_and_no_neighbours(
        asked in vec(part(), 1..3), stands in vec(part(), 1..4), id in part(),
    ) {
        let (Ok(asked), Ok(stands)) = (CategoryPath::new(asked), CategoryPath::new(stands)) else { return Ok(()) };
        let Ok(id) = ProductId::new(id) else { return Ok(()) };
        let index_key = CategoryIndexKey { category_path: &stands, id: &id }.index_key().unwrap();
        let query = product::in_category(&asked).unwrap();
        let found = query.partitions().contains(&index_key.partition) && covers(&query, index_key.sort.as_str());
        prop_assert_eq!(found, stands.names().starts_with(asked.names()));
    }

    #[test]
    fn only_the_children_of_a_category_are_listed(asked in vec(part(), 1..3), stands in vec(part(), 1..4)) {
        let (Ok(asked), Ok(stands)) = (CategoryPath::new(asked), CategoryPath::new(stands)) else { return Ok(()) };
        let known = category::known([&stands]).unwrap();
        let (query, node) = (category::children(Some(&asked)).unwrap(), &known.keys()[0]);
        let found = query.partitions() == [node.pk.clone()] && covers(&query, node.sk.as_str());
        prop_assert_eq!(found, stands.parent() == Some(asked.clone()));
        prop_assert!(!covers(&query, "ABOUT"));
        let top = category::children(None).unwrap();
        let found = top.partitions() == [node.pk.clone()] && covers(&top, node.sk.as_str());
        prop_assert_eq!(found, stands.parent().is_none());
    }

    #[test]
    fn a_subtree_lists_each_category_before_its_own_subtree(
        asked in vec(part(), 1..3), stands in vec(vec(part(), 1..5), 1..20),
    ) {
        let Ok(asked) = CategoryPath::new(asked) else { return Ok(()) };
        let query = category::subtree(&asked).unwrap();
        let stands: BTreeSet<CategoryPath> = stands.into_iter().filter_map(|names| CategoryPath::new(names).ok()).collect();
        let mut listed = Vec::new();
        for stands in &stands {
            let node = Stored::new(CategoryNode::new(stands.clone()), Born::new("born").unwrap(), Instant::EPOCH);
            let item = node.to_item().unwrap();
            let text = |name: &str| match item.get(name) {
                Some(AttributeValue::S(text)) => text.clone(),
                other => panic!("{name}: {other:?}"),
            };
            let sort = text(GSI2.sort_attribute());
            let is_there = query.partitions()[0].as_str() == text(GSI2.partition_attribute()) && covers(&query, &sort);
            prop_assert_eq!(is_there, *stands != asked && stands.is_within(&asked), "{}", stands);
            prop_assert_eq!(&CategoryBelow::from_item(item).unwrap().path, stands);
            listed.extend(is_there.then_some((sort, stands)));
        }
        // In the order of the keys, a category is directly followed by its whole subtree.
        listed.sort();
        for (n, (_, above)) in listed.iter().enumerate() {
            let below = listed.iter().filter(|(_, other)| other.is_within(above)).count();
            prop_assert!(listed[n..n + below].iter().all(|(_, other)| other.is_within(above)));
        }
    }

    #[test]
    fn after_the_end_of_a_page_exactly_the_unread_keys_remain(
        end in sort_key(), keys in vec(sort_key(), 1..20), from in instant(), to in instant(),
    ) {
        for list in lists(from, to) {
            let Some(range) = list.bounds(None) else { continue };
            for key in keys.iter().filter(|key| **key != end) {
                let behind = if list.descending { *key < end } else { *key > end };
                let left = list.bounds(Some(end.clone())).is_some_and(|bounds| bounds.contains(key));
                prop_assert_eq!(left, range.contains(key) && behind, "{} behind {} in {}", key, end, list.name);
            }
        }
    }

    #[test]
    fn pages_of_any_size_over_any_shards_give_every_item_once_and_in_order(
        keys in btree_set(sort_key(), 0..40), size in 1usize..6, shards in 1usize..5, from in instant(),
        to in instant(),
    ) {
        for list in lists(from, to) {
            let is_listed = |key: &&String| list.bounds(None).is_some_and(|range| range.contains(key));
            let mut expected: Vec<&String> = keys.iter().filter(is_listed).collect();
            if list.descending {
                expected.reverse();
            }
            let pages = list.read(&keys, shards, size);
            prop_assert!(pages.iter().rev().skip(1).all(|page| page.len() == size), "{} has a short page", list.name);
            prop_assert_eq!(pages.iter().flatten().collect::<Vec<_>>(), expected, "{}", list.name);
        }
    }
}

/// Generates sort keys in the forms of the lists below.
fn sort_key() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        select(&["CHILD", "CHILDREN", "ORDER", "PROFILE", "QUESTION"][..]).prop_map(str::to_owned),
        instant().prop_map(|instant| instant.to_string()),
        // The sort key of a place's resident starts with the city.
        part().prop_map(|city| encode(&city)),
    ];
    (kind, part()).prop_map(|(kind, id)| join(&kind, &[&id]))
}

struct List {
    name: &'static str,
    descending: bool,
    ask: Box<dyn Fn(Option<String>) -> Option<Range>>,
}

impl List {
    fn of<T: 'static>(name: &'static str, make: impl Fn() -> Query<T> + 'static) -> Self {
        Self { name, descending: make().is_descending(), ask: Box::new(move |after| make().after(after).bounds()) }
    }

    fn bounds(&self, after: Option<String>) -> Option<Range> {
        (self.ask)(after)
    }

    /// Reads pages as the executor does. For each page, this function queries every shard from the
    /// last item of the previous page, drops that item, and merges the results.
    fn read(&self, keys: &BTreeSet<String>, shards: usize, size: usize) -> Vec<Vec<String>> {
        let (mut pages, mut end) = (Vec::new(), None::<String>);
        loop {
            let Some(bounds) = self.bounds(end.clone()) else { return pages };
            let mut found = Vec::new();
            for shard in 0..shards {
                let mut items: Vec<&String> =
                    keys.iter().enumerate().filter(|(at, _)| at % shards == shard).map(|(_, key)| key).collect();
                if self.descending {
                    items.reverse();
                }
                let new = items.into_iter().filter(|key| bounds.contains(key) && Some(*key) != end.as_ref());
                found.extend(new.take(size + 1).cloned());
            }
            found.sort();
            if self.descending {
                found.reverse();
            }
            let more = found.len() > size;
            found.truncate(size);
            end = found.last().cloned();
            pages.push(found);
            if !more {
                return pages;
            }
        }
    }
}

/// Returns lists in both directions, with and without bounds. The bounds may be reversed.
fn lists(from: Instant, to: Instant) -> Vec<List> {
    vec![
        List::of("all, forward", || order::log(&OrderId::new("o1").unwrap()).unwrap()),
        List::of("all, backward", || review::newest(&product()).unwrap()),
        List::of("under a prefix, forward", || category::children(Some(&path(&["A"]))).unwrap()),
        List::of("between two kinds, backward", || customer::overview(&customer()).unwrap()),
        List::of("between two instants, backward", move || {
            order::by_status(OrderStatus::Paid, Some(from), Some(to), lists::unchanged()).unwrap()
        }),
        List::of("from an instant, forward", move || session::active(&customer(), from).unwrap()),
    ]
}

#[test]
fn a_range_that_ends_before_it_begins_sends_no_query() {
    let (early, late) = (at("2017-01-01T00:00:00Z"), at("2018-01-01T00:00:00Z"));
    assert_eq!(
        order::by_status(OrderStatus::Paid, Some(late), Some(early), lists::unchanged()).unwrap().bounds(),
        None
    );
    assert_eq!(order::of_customer(&customer(), Some(late), Some(early)).unwrap().bounds(), None);
    assert_eq!(sales::of_product(&product(), 2017, late, early).unwrap().bounds(), None);
    assert!(
        order::by_status(OrderStatus::Paid, Some(early), Some(early), lists::unchanged()).unwrap().bounds().is_some()
    );
}

#[test]
fn neither_the_lines_nor_the_history_of_an_order_contain_its_payments() {
    let world = World::plain();
    let payment = world.order_payment(PaymentMethod::Wallet).key().unwrap();
    let id = &world.order;
    assert!(covers(&order::get(id).unwrap(), payment.sk.as_str()));
    for part in [order::parts::with_lines(id).unwrap(), order::parts::with_history(id).unwrap()] {
        assert!(!covers(&part, payment.sk.as_str()), "{}", payment.sk.as_str());
    }
}
