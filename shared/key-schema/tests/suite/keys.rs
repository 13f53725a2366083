//! Tests of the longest keys, and of the code that splits a key.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use key_schema::change::IndexEntry as _;
use key_schema::cursor::{Cursors, MAX_CURSOR_BYTES, Scope};
use key_schema::index::INDEXES;
use key_schema::item::key_of;
use key_schema::key::{MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES};
use key_schema::product::CategoryIndexKey;

use crate::goldens::goldens;
use crate::support::{assert_same, at};
use crate::world::World;

/// Ids, names, paths and keys that the API accepts can also be stored. So no valid request fails
/// because of a key that is too long.
#[test]
fn the_longest_legal_ids_fit_every_key_of_every_entity() {
    for golden in goldens(&World::longest()) {
        let key = key_of(&golden.item).unwrap_or_else(|| panic!("{} has no key", golden.name));
        assert!(key.pk.as_str().len() <= MAX_PARTITION_KEY_BYTES && key.sk.as_str().len() <= MAX_SORT_KEY_BYTES);
    }
}

/// The test seals the longest legal sort keys with a cursor key of the longest legal name.
#[test]
fn the_longest_legal_sort_keys_fit_a_cursor_of_1024_characters() {
    let scope = Scope { list: "orders.by-status", parameters: &[], caller: "c1" };
    let now = at("2026-11-20T12:00:00.000Z");
    let cursors = Cursors::new(&format!("sixteen-bytes-id:{}", STANDARD.encode([1; 32]))).unwrap();
    let world = World::longest();
    let mut sort_keys = Vec::new();
    for golden in goldens(&world) {
        sort_keys.extend(key_of(&golden.item).map(|key| key.sk.into_string()));
        let text = |name: &str| {
            golden.item.get(name).map(|value| crate::support::json(value)["S"].as_str().unwrap().to_owned())
        };
        sort_keys.extend(INDEXES.iter().filter_map(|index| text(index.sort_attribute())));
    }
    // A sort key is longest when all its characters need escaping, as `#` does. A cursor contains
    // the names without escapes, so it is longest when no character needs escaping.
    for category in [&world.category, &world.unescaped_category] {
        sort_keys.push(
            CategoryIndexKey { category_path: category, id: &world.product }.index_key().unwrap().sort.into_string(),
        );
    }
    for sort_key in sort_keys {
        assert!(sort_key.len() <= MAX_SORT_KEY_BYTES);
        let sealed = cursors
            .seal(&scope, &sort_key, now)
            .unwrap_or_else(|error| panic!("{} bytes, {error}: {sort_key}", sort_key.len()));
        assert!(sealed.len() <= MAX_CURSOR_BYTES);
        assert_eq!(cursors.open(&scope, &sealed, now), Ok(sort_key));
    }
}

/// Technique F3 in `docs/patterns.md`: code reads attributes instead of keys, with few exceptions.
/// Five views read a part of their own index key, because the index does not project the attribute.
/// `ops verify` decides by the prefix of a key whether to hide a personal text. A cursor contains
/// the parts of a sort key. Two cursors continue from the instant in a sort key. CloudWatch names a
/// throttled partition by its key alone, and `ops hot` explains the partition by the prefix of its
/// key.
#[test]
fn only_the_listed_lines_of_code_split_a_key() {
    let named = BTreeSet::from([
        "category_path.rs: Self::new(encoding::split(text)?).ok()",
        "counter.rs: let parts = encoding::split(partition)?;",
        "stock.rs: let parts = encoding::split(partition)?;",
        "cursor.rs: let parts = encoding::split(sort_key).ok_or(CursorKeyError::Seal)?;",
        "expiration.rs: sort_key.split('#').next()?.parse().ok().map(Instant::day)",
        "key.rs: let kind = |text: &str| text.split('#').next().unwrap_or_default().to_owned();",
        "key.rs: match pk.split_once('#') {",
        "mod.rs: Some(AttributeValue::S(sort)) => sort.split('#').next().and_then(|count| count.parse().ok()),",
        "mod.rs: Some(AttributeValue::S(sort)) if further => sort.rsplit_once(DELIMITER).map(|(path, _)| \
        path.to_owned()),",
        "mod.rs: partition.split('#').next().unwrap_or(partition)",
        "residence.rs: Some(AttributeValue::S(key)) => split(key)?.into_iter().nth(position),",
        "sales.rs: sort_key.split('#').next().unwrap_or_default().parse()",
    ]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    for folder in [
        "shared/item-model/src",
        "shared/key-schema/src",
        "functions",
        "shared/http-api/src",
        "shared/table/src",
        "ops/src",
    ] {
        takes_apart(&root.join(folder), &mut found);
    }
    assert_same(&found.iter().map(String::as_str).collect(), &named);
}

fn takes_apart(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // The encoding and the tests may split keys.
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
