//! Tests of metrics and counters: the keys of points, the range of a query, and the growth of a
//! counter.

use key_schema::counter::{self, MAX_SHARDS, Reason};
use key_schema::id::{MetricName, PointId};
use key_schema::instant::Instant;
use key_schema::item::key_of;
use key_schema::metric::{self, Decimal, MAX_DAYS, MetricPoint};
use key_schema::month::Month;
use proptest::prelude::*;

use crate::support::{at, deterministic, text};
use crate::world::World;

const NOW: &str = "2017-03-01T12:00:00.000Z";

fn name() -> MetricName {
    MetricName::new("m").unwrap()
}

/// Returns whether the queries of a range find a point with this id and instant, or [`None`] for an
/// invalid id.
fn is_found(id: &str, when: Instant, from: Instant, to: Instant) -> Option<bool> {
    let id = PointId::new(id).ok()?;
    let point = MetricPoint { name: name(), at: when, id, value: "1".parse().unwrap() }.stored();
    let key = key_of(&point.to_item().unwrap()).unwrap();
    let days = metric::of_name(&name(), from, to, at(NOW)).unwrap();
    assert!(days.len() <= MAX_DAYS, "{} days", days.len());
    let found = days.iter().filter(|day| {
        day.partitions().contains(&key.pk) && day.bounds().is_some_and(|range| range.contains(key.sk.as_str()))
    });
    let found = found.count();
    assert!(found <= 1, "the point is in {found} days");
    Some(found == 1)
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn a_point_within_the_range_is_found_until_it_is_30_days_old(
        when in -3_000_000_000_i64..400_000, from in -3_000_000_000_i64..400_000, to in -3_000_000_000_i64..400_000,
        id in text(9),
    ) {
        let now = at(NOW);
        let (when, from, to) = (now.plus_millis(when), now.plus_millis(from), now.plus_millis(to));
        let is_alive = when > now.plus_seconds(-30 * 86_400) && when <= now.plus_seconds(300);
        prop_assert_eq!(metric::check_time(when, now).is_ok(), is_alive);
        if let Some(found) = is_found(&id, when, from, to) {
            prop_assert_eq!(found, is_alive && from <= when && when <= to);
        }
    }
}

#[test]
fn a_query_covers_exactly_the_points_that_have_not_expired() {
    let days = metric::of_name(&name(), Instant::MIN, Instant::MAX, at("2017-03-01T23:58:00.000Z")).unwrap();
    assert_eq!(days.len(), MAX_DAYS);
    let first = days.first().unwrap().bounds().unwrap();
    assert!(!first.contains("2017-01-30T23:58:00.000Z#a") && first.contains("2017-01-30T23:58:00.001Z#a"));
    assert!(metric::of_name(&name(), at(NOW), at("2017-02-28T00:00:00Z"), at(NOW)).unwrap().is_empty());
}

#[test]
fn the_table_of_a_month_has_the_points_of_that_month_in_utc() {
    for (when, table, begins, ends) in [
        ("2017-01-01T00:00:00.000Z", "shop-metrics-2017-01", "2017-01-01T00:00:00.000Z", "2017-01-31T23:59:59.999Z"),
        ("2016-12-31T23:59:59.999Z", "shop-metrics-2016-12", "2016-12-01T00:00:00.000Z", "2016-12-31T23:59:59.999Z"),
        ("2016-03-01T00:30:00+01:00", "shop-metrics-2016-02", "2016-02-01T00:00:00.000Z", "2016-02-29T23:59:59.999Z"),
    ] {
        let month = Month::of(at(when));
        assert_eq!(month.table("shop"), table);
        assert_eq!((month.begins(), month.ends()), (at(begins), at(ends)));
        assert_eq!(month.plus(1).plus(-1), month);
        assert_eq!(month.plus(1).begins(), month.ends().plus_millis(1));
    }
}

#[test]
fn the_visible_points_are_in_at_most_three_months() {
    let visible = |now| Month::visible(at(now)).map(|month| month.to_string()).collect::<Vec<_>>();
    assert_eq!(visible("2017-03-01T12:00:00Z"), ["2017-01", "2017-02", "2017-03"]);
    assert_eq!(visible("2017-01-31T23:00:00Z"), ["2017-01"]);
    assert_eq!(visible("2017-01-31T23:56:00Z"), ["2017-01", "2017-02"]);
}

#[test]
fn a_number_keeps_its_digits_and_has_at_most_38() {
    let digits = "9".repeat(38);
    let fraction = format!("-0.{}", "1".repeat(37));
    for good in ["0", "-0", "1.50", "-12", "1e3", "1E+125", "2.5e-130", &digits, &fraction] {
        assert_eq!(good.parse::<Decimal>().unwrap().as_str(), good);
    }
    let (long, longer) = (format!("{digits}0"), format!("{fraction}0"));
    for bad in [
        "", "-", "+1", "01", ".5", "5.", "1e", "1e1234", "0x1", "1_0", " 1", "1 ", "NaN", "١", "--1", "1.2.3", &long,
        &longer,
    ] {
        assert!(bad.parse::<Decimal>().is_err(), "{bad}");
    }
}

#[test]
fn a_counter_doubles_its_shards_from_one_to_the_maximum() {
    let (world, now) = (World::plain(), at(NOW));
    let name = &world.counter;
    assert_eq!(counter::shards(None), 1);
    assert!(counter::split(name, None, Reason::Hot, now).unwrap().is_some());
    let mut head = world.counter_head();
    head.data.shards = MAX_SHARDS;
    for reason in [Reason::Hot, Reason::Asked, Reason::Throttled(now)] {
        assert!(counter::split(name, Some(&head), reason, now).unwrap().is_none());
    }
    // A reader reads the first shard separately, so `rest` has all other shards.
    let rest = counter::rest(&head).unwrap().unwrap();
    assert_eq!(rest.keys().len() + 1, usize::try_from(MAX_SHARDS).unwrap());
    head.data.shards = 1;
    assert!(counter::rest(&head).unwrap().is_none());
}
