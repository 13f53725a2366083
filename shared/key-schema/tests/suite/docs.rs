//! The generator of `docs/access-patterns/README.md`. It reads the golden items. The tests of the whole
//! system generate the other pages of that folder, because only the Lambda functions know the routes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use key_schema::index::INDEXES;
use key_schema::item::{Item, entity_name};
use key_schema::key::Index;
use key_schema::registry::AREAS;
use serde_dynamo::AttributeValue;

use crate::goldens::{Golden, goldens};
use crate::projections::readers;
use crate::templates::template;
use crate::world::World;

/// Compares a generated document with the document in `docs/`. If `UPDATE_DOCS` is set, writes the
/// document first.
pub fn keep_fresh(name: &str, text: &str) {
    let path = path(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/{name} is stale: UPDATE_DOCS=1 cargo test -p bodega-key-schema rewrites it");
}

#[test]
fn the_entities_and_indexes_of_the_access_patterns_are_fresh() {
    let goldens = goldens(&World::plain());
    let sections = [introduction(), entities(&goldens), indexes(&goldens)];
    keep_fresh("access-patterns/README.md", &(sections.join("\n\n") + "\n"));
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn introduction() -> String {
    let areas: Vec<String> = AREAS.iter().map(|(area, _)| format!("[{area}]({area}.md)")).collect();
    format!(
        "# Access patterns

The pages of this folder list every request that Bodega makes to its table, by area: {}. Tests generate them: the \
patterns with `UPDATE_DOCS=1 cargo test -p bodega-tests --test suite patterns`, and this page with `UPDATE_DOCS=1 \
cargo test -p bodega-key-schema`. Only constructors of `shared/key-schema` can make a request, and each constructor \
names its pattern.

In keys, `<name>` stands for the value of an attribute. The delimiter `#` joins the parts. Inside a part every byte up \
to `%` (0x25) is written as `%HH`. \
So a key can contain any id, and keys sort in the order of the values. Numbers have 20 digits. Instants are UTC with \
milliseconds. \
`<shard>` is the FNV-1a hash of the id, modulo the number of the list's shards. A range *under* `p#` reaches from `p#` \
to `p$`, because `$` directly follows `#` in byte order. \
The callers of a pattern are `any` (everybody), `owner` (the owner and staff), `signed in` (every caller with a \
token), `staff`, and `system` (Bodega itself). \
A condition applies to the items of the key column. *Unchanged* means unchanged since Bodega read the item.",
        areas.join(", ")
    )
}

fn entities(goldens: &[Golden]) -> String {
    let head = "## Entities

Each row is an entity, with the keys of a stored example. Every item also has `entity`, `version`, `rev`, `born`, \
`created_at` and `updated_at`. \
Items that expire have `ttl` in seconds. `req` has the id of the request that wrote the item; BatchWriteItem stores no \
`req`. An item has an index key in *italics* only while it qualifies for the index. \
A retired product, a reversed sale and the copy of an unshipped order have no such key. An order in status `placing` \
has only the key that begins with `UNFINISHED`.

| Entity | PK | SK | In indexes | Own attributes | Expires |\n|---|---|---|---|---|---|";
    let mut kinds: BTreeMap<&str, Vec<&Golden>> = BTreeMap::new();
    for golden in goldens {
        kinds.entry(entity_name(&golden.item).unwrap()).or_default().push(golden);
    }
    let rows: Vec<String> = kinds.iter().map(|(name, variants)| entity(name, variants)).collect();
    format!("{head}\n{}", rows.join("\n"))
}

fn entity(name: &str, variants: &[&Golden]) -> String {
    let first = &variants[0].item;
    let places: Vec<String> = INDEXES.iter().filter_map(|index| place(*index, variants)).collect();
    let mut own: Vec<&String> = variants
        .iter()
        .flat_map(|golden| golden.item.keys())
        .filter(|name| !key_schema::item::is_reserved(name))
        .collect();
    own.sort();
    own.dedup();
    let cells = [
        code(name),
        key(first, "PK"),
        key(first, "SK"),
        if places.is_empty() { "–".into() } else { places.join("<br>") },
        own.iter().map(|name| code(name)).collect::<Vec<_>>().join(" "),
        if first.contains_key("ttl") { "yes".into() } else { "–".into() },
    ];
    format!("| {} |", cells.join(" | "))
}

/// Returns an entity's key in an index, in italics if one of its golden items is not in the index.
fn place(index: Index, variants: &[&Golden]) -> Option<String> {
    let shown = variants.iter().find(|golden| golden.is_in(index))?;
    let text = format!(
        "{}: {}, {}",
        index.name(),
        key(&shown.item, index.partition_attribute()),
        key(&shown.item, index.sort_attribute())
    );
    Some(if variants.iter().all(|golden| golden.is_in(index)) { text } else { format!("*{text}*") })
}

fn indexes(goldens: &[Golden]) -> String {
    let section = |index: &Index| {
        let mut users: Vec<&str> = goldens
            .iter()
            .filter(|golden| golden.is_in(*index))
            .map(|golden| entity_name(&golden.item).unwrap())
            .collect();
        users.dedup();
        let users: Vec<String> = users.into_iter().map(code).collect();
        let rows: Vec<String> = readers(*index)
            .into_iter()
            .map(|(attribute, patterns)| {
                format!("| {} | {} |", code(attribute), patterns.into_iter().map(code).collect::<Vec<_>>().join(" "))
            })
            .collect();
        format!(
            "### {}\n\nHolds {}. Projection INCLUDE, {} attributes: {}\n\n| Attribute | Shown by |\n|---|---|\n{}",
            index.name(),
            users.join(", "),
            index.projected().len(),
            index.projection_reason(),
            rows.join("\n")
        )
    };
    let sections: Vec<String> = INDEXES.iter().map(section).collect();
    format!(
        "## Indexes\n\n\
        DynamoDB allows at most 20 projected attributes per index. It cannot add an attribute \
        to an existing index.\n\n{}",
        sections.join("\n\n")
    )
}

fn key(item: &Item, attribute: &str) -> String {
    let AttributeValue::S(key) = &item[attribute] else { panic!("{attribute} is not a string") };
    code(&template(item, key))
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}
