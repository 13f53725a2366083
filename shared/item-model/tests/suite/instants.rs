//! Tests of instants: one spelling, and the years 0 to 9999.

use item_model::instant::{Instant, InstantError};
use proptest::prelude::*;

use crate::support::{at, deterministic, instant, text};

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn an_instant_is_read_back_from_its_text_of_24_characters(instant in instant()) {
        let text = instant.to_string();
        prop_assert_eq!(text.len(), 24);
        prop_assert_eq!(text.parse(), Ok(instant));
        let json = serde_json::to_value(instant).unwrap();
        prop_assert_eq!(serde_json::from_value::<Instant>(json).unwrap(), instant);
    }

    #[test]
    fn no_text_makes_the_parser_of_instants_panic(
        year in "[0-9]{4}", rest in "-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,12})?",
        zone in "(Z|z|[+-][0-2][0-9]:[0-6][0-9]|)",
        other in text(30),
    ) {
        if let Ok(instant) = format!("{year}{rest}{zone}").parse::<Instant>() {
            prop_assert_eq!(instant.to_string().parse(), Ok(instant));
        }
        prop_assert!(other.parse::<Instant>().is_err());
    }

    #[test]
    fn a_moved_instant_stays_within_the_years_0_to_9999(instant in instant(), millis: i64) {
        let moved = instant.plus_millis(millis);
        prop_assert!(Instant::MIN <= moved && moved <= Instant::MAX);
        prop_assert_eq!(moved.cmp(&instant), if moved == instant { std::cmp::Ordering::Equal } else { millis.cmp(&0) });
        prop_assert!(instant.plus_seconds(millis) >= Instant::MIN);
    }
}

#[test]
fn other_spellings_of_an_instant_are_read_and_digits_beyond_the_millisecond_are_cut_off() {
    for (spelling, expected) in [
        ("2017-01-01T11:53:26Z", "2017-01-01T11:53:26.000Z"),
        ("2017-01-01T12:53:26+01:00", "2017-01-01T11:53:26.000Z"),
        ("2016-12-31T23:53:26.5-12:00", "2017-01-01T11:53:26.500Z"),
        ("2017-01-01T11:53:26.123999999Z", "2017-01-01T11:53:26.123Z"),
        ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("2016-02-29T00:00:00Z", "2016-02-29T00:00:00.000Z"),
    ] {
        assert_eq!(at(spelling).to_string(), expected, "{spelling}");
    }
}

/// The last two texts are valid in RFC 3339, but in UTC they are outside the years 0 to 9999.
#[test]
fn an_invalid_instant_is_refused() {
    for wrong in [
        "",
        "2017-01-01",
        "2017-01-01T11:53:26",
        "2017-02-29T00:00:00Z",
        "2017-13-01T00:00:00Z",
        "2017-01-01T24:00:00Z",
        "1483271606",
        "10000-01-01T00:00:00Z",
        "-001-01-01T00:00:00Z",
        "2017-01-01T11:53:26Z ",
        "9999-12-31T23:59:59-01:00",
        "0000-01-01T00:00:00+00:01",
    ] {
        assert_eq!(wrong.parse::<Instant>(), Err(InstantError), "{wrong}");
    }
    assert_eq!(Instant::from_millis(Instant::MIN.as_millis() - 1), None);
    assert_eq!(Instant::from_millis(Instant::MAX.as_millis() + 1), None);
}

#[test]
fn the_year_and_day_of_an_instant_are_in_utc() {
    assert_eq!(
        (at("2017-01-01T00:30:00+01:00").year(), at("2017-01-01T00:30:00+01:00").day()),
        (2016, "2016-12-31".to_owned())
    );
    assert_eq!((Instant::EPOCH.plus_millis(-1).as_seconds(), Instant::EPOCH.plus_millis(999).as_seconds()), (-1, 0));
}
