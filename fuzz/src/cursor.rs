//! Cursors: a text that is no sealed cursor is refused. A sealed cursor is valid for its list, its
//! parameters and its caller, for a day.

use std::cell::RefCell;
use std::collections::HashSet;

use super::CURSOR_KEYS;
use key_schema::cursor::{Cursors, LIFETIME_SECONDS, MAX_CURSOR_BYTES, Scope};
use key_schema::encoding::encode;
use key_schema::instant::Instant;

/// A different key with the name of the key in `CURSOR_KEYS`, and that key with a different name.
const OTHER_KEYS: [&str; 2] =
    ["k1:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "k2:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="];

thread_local! {
    /// Every cursor of this run.
    static SEALED: RefCell<HashSet<String>> = RefCell::default();
    static CURSORS: Cursors = Cursors::new(CURSOR_KEYS).expect("keys");
    static OTHERS: [Cursors; 2] = OTHER_KEYS.map(|keys| Cursors::new(keys).expect("keys"));
}

pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let now = Instant::EPOCH.plus_seconds(1_795_176_000);
    let mut fields = text.split('\n');
    let mut next = || fields.next().unwrap_or_default();
    let (list, caller, name, value) = (next(), next(), next(), next());
    let scope = Scope { list, parameters: &[(name, value)], caller };
    CURSORS.with(|cursors| {
        // These texts must be refused, unless they are cursors of this run.
        for forged in text.split('\n').chain([&*text]) {
            // libFuzzer copies operands of comparisons into its inputs, so an input may contain an
            // earlier cursor.
            if SEALED.with_borrow(|sealed| sealed.contains(forged)) {
                continue;
            }
            assert!(cursors.open(&scope, forged, now).is_err(), "{forged:?}");
        }
        let _ = Cursors::new(&text);
        let parts: Vec<String> = std::iter::repeat_with(next).take_while(|part| !part.is_empty()).map(encode).collect();
        let sort_key = parts.join("#");
        let Ok(sealed) = cursors.seal(&scope, &sort_key, now) else {
            assert!(sort_key.len() > 600 || sort_key.contains("%00"), "{sort_key:?} is not sealed");
            return;
        };
        SEALED.with_borrow_mut(|all| all.insert(sealed.clone()));
        assert!(
            sealed.len() <= MAX_CURSOR_BYTES
                && sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
        assert_eq!(cursors.open(&scope, &sealed, now.plus_seconds(LIFETIME_SECONDS - 1)), Ok(sort_key));
        refuses(cursors, &scope, &sealed, now);
        // The input chooses the position and the new byte.
        let flipped = altered(&sealed, input);
        assert!(flipped == sealed || cursors.open(&scope, &flipped, now).is_err(), "{flipped} is accepted");
    });
}

/// Checks that a cursor is refused after its lifetime, in another scope, and with another key.
fn refuses(cursors: &Cursors, scope: &Scope<'_>, sealed: &str, now: Instant) {
    let Scope { list, parameters, caller } = *scope;
    let (name, value) = parameters[0];
    assert!(cursors.open(scope, sealed, now.plus_seconds(LIFETIME_SECONDS)).is_err(), "an expired cursor is accepted");
    let moved = value
        .char_indices()
        .nth(1)
        .map_or((String::new(), value), |(at, _)| (format!("{name}{}", &value[..at]), &value[at..]));
    let others: [(&str, &[(&str, &str)], &str); 6] = [
        (caller, &[(name, value)], list),
        (list, &[], caller),
        (list, &[(name, value), ("", "")], caller),
        (list, &[(value, name)], caller),
        (list, &[(&moved.0, moved.1)], caller),
        (list, &[("", name), (value, "")], caller),
    ];
    for (list, parameters, caller) in others {
        let other = Scope { list, parameters, caller };
        let same = (list, parameters, caller) == (scope.list, scope.parameters, scope.caller);
        assert!(same || cursors.open(&other, sealed, now).is_err(), "{other:?} for {scope:?}");
    }
    OTHERS.with(|others| assert!(others.iter().all(|other| other.open(scope, sealed, now).is_err())));
}

/// Returns the cursor with one byte replaced, or shortened.
fn altered(sealed: &str, input: &[u8]) -> String {
    let byte = |at: usize| usize::from(input.get(at).copied().unwrap_or_default());
    let place = (byte(0) * 256 + byte(1)) % sealed.len();
    let mut bytes = sealed.as_bytes().to_vec();
    match input.last() {
        Some(b'!') => bytes.truncate(place),
        Some(last) => bytes[place] = if last.is_ascii_alphanumeric() { *last } else { b'_' },
        None => {}
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
