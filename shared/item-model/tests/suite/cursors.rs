//! Tests of cursors: a cursor opens only for the list, parameters and caller for which it was
//! sealed.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use item_model::cursor::{CursorInvalid, CursorKeyError, Cursors, LIFETIME_SECONDS, MAX_CURSOR_BYTES, Scope};
use item_model::encoding::join;
use item_model::instant::Instant;
use item_model::key::MAX_SORT_KEY_BYTES;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{at, deterministic, text};

const PARAMETERS: &[(&str, &str)] = &[("status", "paid"), ("from", "")];
const SCOPE: Scope<'_> = Scope { list: "orders.by-status", parameters: PARAMETERS, caller: "c1" };
const SORT_KEY: &str = "2017-01-01T11:53:26.000Z#a%23b";

fn key(name: &str, byte: u8) -> String {
    format!("{name}:{}", STANDARD.encode([byte; 32]))
}

fn cursors(keys: &[String]) -> Cursors {
    Cursors::new(&keys.join(",")).unwrap()
}

fn now() -> Instant {
    at("2026-11-20T12:00:00.000Z")
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn a_cursor_opens_to_the_sort_key_that_was_sealed(
        parts in vec(text(20), 0..5), list in text(8), caller in text(8),
    ) {
        // The test removes NUL, because ids and names have no control characters.
        let parts: Vec<String> = parts.into_iter().map(|part| part.replace('\0', "")).collect();
        let sort_key = join("", &parts.iter().map(|part| part as _).collect::<Vec<_>>());
        let (cursors, scope) = (cursors(&[key("k", 1)]), Scope { list: &list, parameters: &[], caller: &caller });
        let sealed = cursors.seal(&scope, &sort_key, now()).unwrap();
        prop_assert_eq!(cursors.open(&scope, &sealed, now()), Ok(sort_key));
    }

    #[test]
    fn text_that_was_not_sealed_never_opens_and_causes_no_panic(cursor in "[A-Za-z0-9_-]{0,120}", other in text(60)) {
        let cursors = cursors(&[key("k", 1)]);
        prop_assert_eq!(cursors.open(&SCOPE, &cursor, now()), Err(CursorInvalid));
        prop_assert_eq!(cursors.open(&SCOPE, &other, now()), Err(CursorInvalid));
    }
}

#[test]
fn a_cursor_with_a_flipped_bit_or_a_changed_length_is_invalid() {
    let cursors = cursors(&[key("k", 1), key("j", 2)]);
    let sealed = cursors.seal(&SCOPE, SORT_KEY, now()).unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
    let open = |bytes: &[u8]| cursors.open(&SCOPE, &URL_SAFE_NO_PAD.encode(bytes), now());
    assert_eq!(open(&bytes), Ok(SORT_KEY.to_owned()));
    for bit in 0..bytes.len() * 8 {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(&altered), Err(CursorInvalid), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert_eq!(open(&bytes[..end]), Err(CursorInvalid), "cut to {end} bytes");
    }
    for end in 0..sealed.len() {
        assert_eq!(cursors.open(&SCOPE, &sealed[..end], now()), Err(CursorInvalid), "cut to {end} characters");
    }
    for other in [format!("{sealed}A"), format!("{sealed}="), format!(" {sealed}"), "A".repeat(MAX_CURSOR_BYTES + 1)] {
        assert_eq!(cursors.open(&SCOPE, &other, now()), Err(CursorInvalid), "{other}");
    }
}

#[test]
fn a_cursor_opens_only_for_its_list_its_parameters_and_its_caller() {
    let cursors = cursors(&[key("k", 1)]);
    let sealed = cursors.seal(&SCOPE, SORT_KEY, now()).unwrap();
    let borrowed = [
        Scope { list: "orders.of-customer", ..SCOPE },
        Scope { caller: "c2", ..SCOPE },
        Scope { caller: "", ..SCOPE },
        Scope { parameters: &[], ..SCOPE },
        Scope { parameters: &[("status", "paid")], ..SCOPE },
        Scope { parameters: &[("status", "pending"), ("from", "")], ..SCOPE },
        Scope { parameters: &[("from", ""), ("status", "paid")], ..SCOPE },
        // These are the same characters, split at another position.
        Scope { parameters: &[("statusp", "aid"), ("from", "")], ..SCOPE },
        Scope { list: "orders.by-statusc", caller: "1", ..SCOPE },
    ];
    for scope in borrowed {
        assert_eq!(cursors.open(&scope, &sealed, now()), Err(CursorInvalid), "{scope:?}");
    }
}

#[test]
fn a_cursor_expires_exactly_at_the_end_of_its_lifetime() {
    let cursors = cursors(&[key("k", 1)]);
    let sealed = cursors.seal(&SCOPE, SORT_KEY, now()).unwrap();
    let end = now().plus_seconds(LIFETIME_SECONDS);
    assert_eq!(cursors.open(&SCOPE, &sealed, end.plus_millis(-1)), Ok(SORT_KEY.to_owned()));
    assert_eq!(cursors.open(&SCOPE, &sealed, end), Err(CursorInvalid));
}

#[test]
fn the_first_key_seals_and_an_old_key_opens_until_it_is_removed() {
    let (old, new) = (cursors(&[key("old", 1)]), cursors(&[key("new", 2), key("old", 1)]));
    let before = old.seal(&SCOPE, SORT_KEY, now()).unwrap();
    let after = new.seal(&SCOPE, SORT_KEY, now()).unwrap();
    assert_eq!(new.open(&SCOPE, &before, now()), Ok(SORT_KEY.to_owned()));
    assert_eq!(new.open(&SCOPE, &after, now()), Ok(SORT_KEY.to_owned()));
    assert_eq!(old.open(&SCOPE, &after, now()), Err(CursorInvalid), "the new key is not among the old");
    assert_eq!(
        cursors(&[key("old", 3)]).open(&SCOPE, &before, now()),
        Err(CursorInvalid),
        "another key with the same name"
    );
    assert_eq!(cursors(&[key("new", 2)]).open(&SCOPE, &before, now()), Err(CursorInvalid), "the old key was removed");
}

#[test]
fn two_cursors_of_the_same_sort_key_differ() {
    let cursors = cursors(&[key("k", 1)]);
    assert_ne!(cursors.seal(&SCOPE, SORT_KEY, now()), cursors.seal(&SCOPE, SORT_KEY, now()), "a nonce was used twice");
}

#[test]
fn only_sort_keys_that_the_encoder_can_write_are_sealed() {
    let cursors = cursors(&[key("k", 1)]);
    let huge = "x".repeat(MAX_SORT_KEY_BYTES);
    for foreign in ["a b", "a%", "a%2f", "a$", "a%00b", huge.as_str()] {
        assert_eq!(cursors.seal(&SCOPE, foreign, now()), Err(CursorKeyError::Seal), "{foreign}");
    }
}

#[test]
fn unusable_keys_are_refused_and_no_key_is_ever_printed() {
    let short = format!("k:{}", STANDARD.encode([1; 31]));
    let long_name = key("seventeen-bytes-1", 1);
    for (keys, error) in [
        ("", CursorKeyError::Malformed),
        ("k", CursorKeyError::Malformed),
        ("k:***", CursorKeyError::Malformed),
        (":AAAA", CursorKeyError::Malformed),
        (&long_name, CursorKeyError::Malformed),
        (&short, CursorKeyError::Length),
    ] {
        assert_eq!(Cursors::new(keys).unwrap_err(), error, "{keys}");
    }
    let printed = format!("{:?}", cursors(&[key("k", 65)]));
    assert_eq!(printed, r#"Cursors { keys: ["k"], .. }"#);
}

#[test]
fn the_longest_cursor_has_as_many_bytes_as_the_api_accepts() {
    let cursors = cursors(&[key("k", 1)]);
    let sealed = (1..MAX_CURSOR_BYTES).map_while(|length| cursors.seal(&SCOPE, &"a".repeat(length), now()).ok());
    assert_eq!(sealed.map(|cursor| cursor.len()).max(), Some(MAX_CURSOR_BYTES));
}
