//! Tests of the periods, sums and samples of leaderboards.

use key_schema::expression::Condition;
use key_schema::id::{Born, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Meta, Stored};
use key_schema::leaderboard::{self, Board, DAYS_KEPT, Period, Rank, Tally, VIEW_SAMPLE, WEEK_KEPT};
use key_schema::order::{OrderLine, OrderStatus};
use key_schema::request::Write;
use key_schema::sales::{self, Derived, DerivedItem};
use proptest::prelude::*;

use crate::support::at;
use crate::world::World;

fn product() -> ProductId {
    ProductId::new("p1").unwrap()
}

fn meta(rev: u64, at: Instant) -> Meta {
    Meta { version: rev, rev, born: Born::counter(), created_at: at, updated_at: at }
}

#[test]
fn a_week_begins_on_monday_also_at_the_turn_of_a_year() {
    for (instant, monday, sunday) in [
        ("2026-11-25T14:33:27.250Z", "2026-11-23", "2026-11-29"),
        ("2026-11-23T00:00:00.000Z", "2026-11-23", "2026-11-29"),
        ("2026-11-29T23:59:59.999Z", "2026-11-23", "2026-11-29"),
        ("2027-01-01T12:00:00.000Z", "2026-12-28", "2027-01-03"),
        ("1969-12-31T23:59:59.999Z", "1969-12-29", "1970-01-04"),
    ] {
        let (first, last) = Period::week(at(instant)).days().unwrap();
        assert_eq!((first.day().as_str(), last.day().as_str()), (monday, sunday), "{instant}");
        assert_eq!(Period::day(at(instant)).to_string(), instant[..10]);
    }
}

#[test]
fn all_days_of_a_week_expire_together_and_before_their_week() {
    let monday = at("2026-11-23T00:00:00.000Z");
    let expiries: Vec<_> = (0..7).map(|day| Period::day(monday.plus_seconds(day * 86_400)).expires()).collect();
    assert_eq!(expiries, [Some(monday.plus_seconds((7 + DAYS_KEPT) * 86_400)); 7]);
    let week = Period::week(monday).expires().unwrap();
    assert_eq!(week, monday.plus_seconds(WEEK_KEPT * 86_400));
    assert!(Period::Week(monday).is_expired(week) && !Period::Week(monday).is_expired(week.plus_millis(-1)));
    assert!(!Period::All.is_expired(Instant::MAX));
}

#[test]
fn only_the_stored_form_of_a_period_is_parsed() {
    for text in ["ALL", "2026-11-25", "W2026-11-23"] {
        assert_eq!(Period::try_from(text.to_owned()).unwrap().to_string(), text);
    }
    for text in ["", "all", "W2026-11-25", "2026-11-31", "2026-1-1", "W", "2026-11-25T00:00:00Z"] {
        assert!(Period::try_from(text.to_owned()).is_err(), "{text}");
    }
}

proptest! {
    /// A board is read backward, so the text order of its keys must be the order of the counts.
    #[test]
    fn ranks_sort_by_their_counts(a in 1..i64::MAX, b in 1..i64::MAX) {
        let key = |count| {
            let rank = Rank { board: Board::Sales, product_id: product(), period: Period::All, count };
            rank.index_keys(&meta(1, at("2026-11-25T00:00:00.000Z"))).unwrap().remove(0)
        };
        let (first, second) = (key(a), key(b));
        prop_assert_eq!(first.sort.as_str().cmp(second.sort.as_str()), a.cmp(&b));
        prop_assert_eq!(first.partition, second.partition);
    }

    #[test]
    fn the_query_of_a_week_finds_exactly_the_tallies_of_its_days(days in -400..400_i64, part in any::<u32>()) {
        let wednesday = at("2026-11-25T00:00:00.000Z");
        let day = wednesday.plus_seconds(days * 86_400);
        let week = leaderboard::days(Board::Likes, &product(), wednesday).unwrap();
        let tally = Tally { board: Board::Likes, product_id: product(), period: Period::day(day), part, count: 1 };
        let key = tally.key().unwrap();
        prop_assert_eq!(key.pk.as_str(), week.partitions()[0].as_str());
        prop_assert_eq!(week.bounds().unwrap().contains(key.sk.as_str()), (-2..=4).contains(&days));
    }
}

#[test]
fn a_product_without_a_count_is_on_no_board() {
    for count in [-3, 0] {
        let rank = Rank { board: Board::Likes, product_id: product(), period: Period::All, count };
        assert_eq!(rank.index_keys(&meta(1, at("2026-11-25T00:00:00.000Z"))).unwrap(), []);
    }
}

#[test]
fn a_rank_has_the_sum_of_the_counts_and_the_sum_of_their_revs() {
    let (early, late) = (at("2026-11-24T10:00:00.000Z"), at("2026-11-25T10:00:00.000Z"));
    let (one, other) = (meta(3, late), meta(4, early));
    let period = Period::week(late);
    let rank = Rank::sum(Board::Likes, &product(), period, [(&one, 5), (&other, -2)]).unwrap();
    assert_eq!((rank.count, rank.meta.rev, rank.meta.version), (3, 7, 7));
    assert_eq!((rank.meta.created_at, rank.meta.updated_at), (early, late));
    let place = leaderboard::store_rank(&rank).unwrap();
    let older = Condition::count_below("rev", 7);
    assert_eq!(place.guarded().condition.as_ref(), Some(&older));
    assert_eq!(Rank::sum(Board::Likes, &product(), period, []), None);
}

#[test]
fn about_one_of_64_requests_counts_as_64_views() {
    let reads = 128_000_u64;
    let counted = (0..reads)
        .filter(|number| {
            // The gateway's ids end with an equals sign.
            let id = format!("{:016x}=", number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            leaderboard::view(&product(), &id, at("2026-11-25T10:00:00.000Z")).unwrap().is_some()
        })
        .count() as u64;
    let views = counted * u64::from(VIEW_SAMPLE.0);
    assert!(views.abs_diff(reads) <= 4 * leaderboard::standard_error(reads), "{views} instead of {reads}");
}

#[test]
fn the_standard_error_is_the_root_of_63_times_the_views() {
    assert_eq!([0, 63, 64, 6_300].map(leaderboard::standard_error), [0, 63, 64, 630]);
}

/// The consumer may process the stream record of a return long after the return.
#[test]
fn a_tally_that_has_expired_when_the_sales_are_derived_does_not_change() {
    let world = World::plain();
    let (mut row, returned) = (world.sale(false), world.order(OrderStatus::Returned));
    row.meta.rev -= 1;
    row.data.ranked_at = Some(returned.meta.updated_at);
    let seen: Derived = [DerivedItem::Sale(row)].into_iter().collect();
    let expires = Period::day(returned.meta.updated_at).expires().unwrap();
    let line = Stored { data: OrderLine { line: 7, ..world.order_line().data }, meta: world.order_line().meta };
    for (now, tallies) in [(expires.plus_millis(-1), 2), (expires, 1)] {
        let lines = std::slice::from_ref(&line);
        let place = world.sale_region(false).data;
        let [transaction] = &sales::apply(&returned, lines, &seen, place, now).unwrap()[..] else { panic!() };
        let changed = transaction.actions().iter().filter(|(_, guarded)| match &guarded.write {
            Write::Update { key, .. } => key.pk.as_str().starts_with("TALLY#"),
            _ => false,
        });
        assert_eq!(changed.count(), tallies, "{now}");
    }
}
