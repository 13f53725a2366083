//! A configuration for deterministic property tests, and generators of hostile texts and instants.
//! The tests of `key-schema` use this file too.

use item_model::instant::Instant;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// Returns a configuration with the same cases in every run, so that only a code change can cause a
/// failure.
pub fn deterministic() -> Config {
    Config { cases: 512, rng_seed: RngSeed::Fixed(0x00B0_DE6A), failure_persistence: None, ..Config::default() }
}

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

/// Characters that the encodings treat specially, their neighbors, and some characters of every
/// UTF-8 length.
const SPECIAL: &[char] = &[
    '\0',
    '\t',
    '\u{1f}',
    ' ',
    '!',
    '"',
    '#',
    '$',
    '%',
    '&',
    '\'',
    '(',
    '+',
    '-',
    '/',
    '0',
    '2',
    '9',
    'A',
    'F',
    'Z',
    '_',
    'a',
    'f',
    'z',
    '~',
    '\u{7f}',
    '\u{80}',
    'ß',
    'é',
    'ʼ',
    'ﬁ',
    '中',
    '\u{ffff}',
    '😀',
    '\u{10FFFF}',
];

/// Generates any text. Special characters are far more frequent than others.
pub fn text(max_chars: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![4 => proptest::sample::select(SPECIAL), 1 => any::<char>()];
    proptest::collection::vec(character, 0..=max_chars).prop_map(|chars| chars.into_iter().collect())
}

/// Generates any instant. Many of them are within milliseconds of 1970, or of one whole second.
pub fn instant() -> impl Strategy<Value = Instant> {
    let range = Instant::MIN.as_millis()..=Instant::MAX.as_millis();
    prop_oneof![range, -3i64..=3, 1_483_271_605_998i64..=1_483_271_606_003]
        .prop_map(|millis| Instant::from_millis(millis).unwrap())
}

/// Generates any instant from 1970 on, the range of time-ordered ids.
pub fn instant_since_epoch() -> impl Strategy<Value = Instant> {
    instant().prop_map(|at| Instant::from_millis(at.as_millis().abs().min(Instant::MAX.as_millis())).unwrap())
}
