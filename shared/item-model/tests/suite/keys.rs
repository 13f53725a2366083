//! Tests of DynamoDB's limits for keys, of the rule for ids, and of shards.

use item_model::characters::is_blank;
use item_model::id::{IdError, MAX_ID_BYTES, time_ordered, time_ordered_floor};
use item_model::key::{KeyError, MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES, PartitionKey, SortKey};
use item_model::shard::Shards;
use proptest::prelude::*;
use unicode_normalization::is_nfc;

use crate::support::{deterministic, instant_since_epoch, text};

item_model::ids! { check_id:
    /// An id that can be a path segment.
    BookId
}

item_model::ids! { check:
    /// A name that a path contains only in an encoded form.
    Reference
}

#[test]
fn an_empty_key_is_refused() {
    assert_eq!(PartitionKey::new(""), Err(KeyError::Empty));
    assert_eq!(SortKey::new(""), Err(KeyError::Empty));
}

/// The prefix takes two bytes, and each escaped `#` takes three. Unescaped, all of these keys would
/// fit.
#[test]
fn a_limit_counts_the_bytes_after_encoding() {
    let hashes = |count: usize| "#".repeat(count);
    assert_eq!(PartitionKey::of("P", &[&hashes(682)]).unwrap().as_str().len(), 2048);
    assert_eq!(PartitionKey::of("P", &[&hashes(683)]), Err(KeyError::TooLong { bytes: 2051, limit: 2048 }));
    assert_eq!(SortKey::of("P", &[&hashes(340)]).unwrap().as_str().len(), 1022);
    assert_eq!(SortKey::of("P", &[&hashes(341)]), Err(KeyError::TooLong { bytes: 1025, limit: 1024 }));
}

#[test]
fn a_limit_counts_bytes_and_not_characters() {
    assert!(SortKey::new("é".repeat(512)).is_ok());
    assert_eq!(SortKey::new("é".repeat(513)), Err(KeyError::TooLong { bytes: 1026, limit: MAX_SORT_KEY_BYTES }));
    assert!(PartitionKey::new("😀".repeat(512)).is_ok());
    assert_eq!(
        PartitionKey::new("😀".repeat(513)),
        Err(KeyError::TooLong { bytes: 2052, limit: MAX_PARTITION_KEY_BYTES })
    );
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn an_id_has_1_to_128_bytes_and_only_characters_that_a_path_can_carry(
        candidate in text(40), filler in 0usize..130,
    ) {
        let candidate = candidate + &"x".repeat(filler);
        let plain = |c: char| c == ' ' || !is_blank(c);
        let named = (1..=MAX_ID_BYTES).contains(&candidate.len()) && candidate.chars().all(plain)
            && !candidate.starts_with(' ') && !candidate.ends_with(' ') && !candidate.contains("  ") && is_nfc(&candidate);
        let legal = named && !candidate.contains(['/', '?', '%', '\\']) && ![".", ".."].contains(&candidate.as_str());
        prop_assert_eq!(BookId::new(candidate.clone()).is_ok(), legal);
        prop_assert_eq!(Reference::new(candidate.clone()).is_ok(), named);
        let decoded: Result<BookId, _> = serde_json::from_value(candidate.into());
        prop_assert_eq!(decoded.is_ok(), legal);
    }

    #[test]
    fn time_ordered_ids_sort_by_their_millisecond_and_are_valid_ids(
        a in instant_since_epoch(), b in instant_since_epoch(), x: [u8; 10], y: [u8; 10],
    ) {
        let (first, second) = (time_ordered(a, x), time_ordered(b, y));
        if a != b {
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
        }
        prop_assert!(BookId::new(first).is_ok());
    }

    #[test]
    fn only_ids_made_at_or_after_an_instant_are_at_or_above_its_floor(
        made in instant_since_epoch(), floor in instant_since_epoch(), random: [u8; 10],
    ) {
        prop_assert_eq!(time_ordered(made, random) >= time_ordered_floor(floor), made >= floor);
    }

    #[test]
    fn the_shard_of_a_member_is_among_all_shards(member in text(20), shards in 0u32..50) {
        prop_assert!(Shards(shards).all().any(|shard| shard == Shards(shards).of(&member)));
    }
}

#[test]
fn an_id_error_names_the_broken_part_of_the_rule() {
    assert_eq!(BookId::new(""), Err(IdError::Empty));
    assert_eq!(BookId::new("é".repeat(65)), Err(IdError::TooLong));
    assert_eq!(BookId::new("a\u{85}b"), Err(IdError::ControlCharacter));
    for refused in ["/", "a/b", "a?b", "50%", "%23", r"a\b"] {
        assert_eq!(BookId::new(refused), Err(IdError::NotInPaths), "{refused}");
    }
    for refused in [" ", " a", "a "] {
        assert_eq!(BookId::new(refused), Err(IdError::SpaceAtEnd), "{refused}");
    }
    for refused in ["a\u{A0}b", "a\u{3000}", "a\u{200B}", "\u{FEFF}a", "a\u{2028}", "\u{2800}", "\u{3164}"] {
        assert_eq!(BookId::new(refused), Err(IdError::Invisible), "{}", refused.escape_unicode());
    }
    for refused in ["a  b", "日  本"] {
        assert_eq!(BookId::new(refused), Err(IdError::TwoSpaces), "{refused}");
    }
    // A joiner that joins no letters cannot be seen.
    for refused in [
        "日\u{200D}",
        "\u{200C}日",
        "te\u{200D}a",
        "日\u{200C}a",
        "a\u{200C}日",
        "日 \u{200D}本",
        "می\u{200C}\u{200D}خ",
    ] {
        assert_eq!(BookId::new(refused), Err(IdError::Invisible), "{}", refused.escape_unicode());
    }
    for legal in ["می\u{200C}خواهم", "क\u{94D}\u{200D}ष", "👩\u{200D}👧\u{200D}👦", "日 本"] {
        assert!(BookId::new(legal).is_ok(), "{legal}");
    }
    assert_eq!(BookId::new("e\u{301}"), Err(IdError::NotNfc));
    for refused in [".", ".."] {
        assert_eq!(BookId::new(refused), Err(IdError::Dots), "{refused}");
    }
    for legal in ["#", "$", "...", ".a", "a+b", "a@b|c", "_", "a b", "é", "日本語", "~", "😀", &"#".repeat(128)] {
        assert_eq!(BookId::new(legal).unwrap().as_str(), legal);
    }
}

/// The shard of an item must not change when a compiler or a library changes. The first three
/// hashes are the published test vectors of FNV-1a with 64 bits.
#[test]
fn the_shard_of_an_item_never_changes() {
    for (member, hash) in
        [("", 0xcbf2_9ce4_8422_2325_u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
    {
        for shards in [1, 4, 7, 16, 1_000_003, u32::MAX] {
            assert_eq!(u64::from(Shards(shards).of(member)), hash % u64::from(shards), "{member:?} of {shards}");
        }
    }
    let of_four = |member: &str| Shards(4).of(member);
    assert_eq!(
        ["2375", "1082185", "#", "日本語", "0196b2d8-7c00-7000-8000-000000000000"].map(of_four),
        [2, 2, 2, 3, 0]
    );
    assert_eq!(Shards(0).of("x"), 0, "a list has at least one shard");
}
