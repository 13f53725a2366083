//! Tests of DynamoDB's limits for keys, and of the rule for ids.

use std::collections::BTreeSet;
use std::path::Path;

use key_schema::counter::counter_of;
use key_schema::encoding::encode;
use key_schema::id::{CustomerId, IdError, MAX_ID_BYTES, OrderId, OrderReference, time_ordered, time_ordered_floor};
use key_schema::item::key_of;
use key_schema::key::{KeyError, MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES, PartitionKey, SortKey};
use key_schema::shard::Shards;
use proptest::prelude::*;

use crate::goldens::goldens;
use crate::support::{assert_same, deterministic, instant_since_epoch, text};
use crate::world::World;

#[test]
fn an_empty_key_is_refused() {
    assert_eq!(PartitionKey::new(""), Err(KeyError::Empty));
    assert_eq!(SortKey::new(""), Err(KeyError::Empty));
}

/// The prefix takes two bytes, and each escaped `#` takes three. Unescaped, all of these keys would
/// fit.
#[test]
fn limits_count_the_bytes_after_encoding() {
    let hashes = |count: usize| "#".repeat(count);
    assert_eq!(PartitionKey::of("P", &[&hashes(682)]).unwrap().as_str().len(), 2048);
    assert_eq!(PartitionKey::of("P", &[&hashes(683)]), Err(KeyError::TooLong { bytes: 2051, limit: 2048 }));
    assert_eq!(SortKey::of("P", &[&hashes(340)]).unwrap().as_str().len(), 1022);
    assert_eq!(SortKey::of("P", &[&hashes(341)]), Err(KeyError::TooLong { bytes: 1025, limit: 1024 }));
}

#[test]
fn limits_count_bytes_and_not_characters() {
    assert!(SortKey::new("é".repeat(512)).is_ok());
    assert_eq!(SortKey::new("é".repeat(513)), Err(KeyError::TooLong { bytes: 1026, limit: MAX_SORT_KEY_BYTES }));
    assert!(PartitionKey::new("😀".repeat(512)).is_ok());
    assert_eq!(
        PartitionKey::new("😀".repeat(513)),
        Err(KeyError::TooLong { bytes: 2052, limit: MAX_PARTITION_KEY_BYTES })
    );
}

/// Ids, names, paths and keys that pass the checks at the edge can also be stored. So no legal
/// request fails with a key that is too long.
#[test]
fn the_longest_legal_ids_fit_every_key_of_every_entity() {
    for golden in goldens(&World::longest()) {
        let key = key_of(&golden.item).unwrap_or_else(|| panic!("{} has no key", golden.name));
        assert!(key.pk.as_str().len() <= MAX_PARTITION_KEY_BYTES && key.sk.as_str().len() <= MAX_SORT_KEY_BYTES);
    }
}

proptest! {
    #![proptest_config(deterministic())]

    #[test]
    fn an_id_has_1_to_128_bytes_and_only_characters_that_a_path_can_carry(
        candidate in text(40), filler in 0usize..130,
    ) {
        let candidate = candidate + &"x".repeat(filler);
        let stored = (1..=MAX_ID_BYTES).contains(&candidate.len()) && !candidate.chars().any(char::is_control);
        let legal = stored && !candidate.contains(['/', '?', '%', '\\']) && ![".", ".."].contains(&candidate.as_str());
        prop_assert_eq!(CustomerId::new(candidate.clone()).is_ok(), legal);
        prop_assert_eq!(OrderReference::new(candidate.clone()).is_ok(), stored);
        let decoded: Result<CustomerId, _> = serde_json::from_value(candidate.into());
        prop_assert_eq!(decoded.is_ok(), stored);
    }

    #[test]
    fn time_ordered_ids_sort_by_their_millisecond_and_keep_to_the_rule(
        a in instant_since_epoch(), b in instant_since_epoch(), x: [u8; 10], y: [u8; 10],
    ) {
        let (first, second) = (time_ordered(a, x), time_ordered(b, y));
        if a != b {
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
        }
        prop_assert!(OrderId::new(first).is_ok());
    }

    #[test]
    fn an_id_is_at_or_above_the_floor_of_every_instant_up_to_its_creation(
        made in instant_since_epoch(), floor in instant_since_epoch(), random: [u8; 10],
    ) {
        prop_assert_eq!(time_ordered(made, random) >= time_ordered_floor(floor), made >= floor);
    }

    #[test]
    fn a_shard_is_one_of_the_list(member in text(20), shards in 0u32..50) {
        prop_assert!(Shards(shards).all().any(|shard| shard == Shards(shards).of(&member)));
    }
}

#[test]
fn the_id_rule_says_which_part_was_broken() {
    assert_eq!(CustomerId::new(""), Err(IdError::Empty));
    assert_eq!(CustomerId::new("é".repeat(65)), Err(IdError::TooLong));
    assert_eq!(CustomerId::new("a\u{85}b"), Err(IdError::ControlCharacter));
    for refused in ["/", "a/b", "a?b", "50%", "%23", r"a\b"] {
        assert_eq!(CustomerId::new(refused), Err(IdError::NotInPaths), "{refused}");
    }
    for refused in [".", ".."] {
        assert_eq!(CustomerId::new(refused), Err(IdError::Dots), "{refused}");
    }
    for legal in ["#", "$", "...", ".a", "a+b", "a@b|c", "_", " ", "日本語", "~", "😀", &"#".repeat(128)] {
        assert_eq!(CustomerId::new(legal).unwrap().as_str(), legal);
    }
}

#[test]
fn an_id_that_an_earlier_version_took_stays_readable() {
    for old in ["a/b", "a?b", "50%", r"a\b", ".", ".."] {
        let id = CustomerId::stored(old).unwrap();
        assert_eq!(serde_json::from_value::<CustomerId>(old.into()).unwrap(), id);
        let shard = format!("COUNTER#{}#00000000000000000003", encode(old));
        assert_eq!(counter_of(&shard).unwrap().as_str(), old);
    }
}

/// The shard of an item must never change with a compiler or a library. The first three hashes are
/// the published test vectors of FNV-1a with 64 bits.
#[test]
fn shards_are_where_they_have_always_been() {
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
    assert_eq!(Shards(0).of("x"), 0, "a list has one shard at least");
}

/// Technique F3 in `docs/patterns.md`. Three views read a part of their own index key, because the
/// index does not carry the attribute. Two cursors continue from the instant in a sort key, and
/// CloudWatch names a throttled partition by its key alone.
#[test]
fn a_key_is_taken_apart_in_the_named_places_only() {
    let named = BTreeSet::from([
        "counter.rs: let parts = encoding::split(partition)?;",
        "cursor.rs: let parts = encoding::split(sort_key).ok_or(CursorKeyError::Seal)?;",
        "expiration.rs: sort_key.split('#').next()?.parse().ok().map(Instant::day)",
        "mod.rs: Some(AttributeValue::S(sort)) if further => sort.rsplit_once(DELIMITER).map(|(path, _)| \
        path.to_owned()),",
        "residence.rs: Some(AttributeValue::S(key)) => split(key)?.into_iter().nth(position),",
        "sales.rs: sort_key.split('#').next().unwrap_or_default().parse()",
    ]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    for folder in ["shared/key-schema/src", "functions", "shared/http-api/src", "shared/table/src", "ops/src"] {
        takes_apart(&root.join(folder), &mut found);
    }
    assert_same(&found.iter().map(String::as_str).collect(), &named);
}

/// Collects the lines that split a key.
fn takes_apart(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // The encoding itself takes keys apart, and tests look into them.
        if path.is_dir() && name != "tests" {
            takes_apart(&path, found);
        } else if name.ends_with(".rs") && name != "encoding.rs" {
            let source = std::fs::read_to_string(&path).unwrap();
            let cuts = [
                "split('#')",
                "split_once('#')",
                "rsplit_once(DELIMITER)",
                "split_once(DELIMITER)",
                "split(DELIMITER)",
            ];
            let whole = |line: &&str| ["encoding::split(", " split(key)"].iter().any(|call| line.contains(call));
            let lines = source.lines().filter(|line| cuts.iter().any(|cut| line.contains(cut)) || whole(line));
            found.extend(lines.map(|line| format!("{name}: {}", line.trim())));
        }
    }
}
