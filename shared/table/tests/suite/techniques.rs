//! Generates `docs/patterns.md`: every technique of single-table design that Bodega uses, with its
//! patterns and entities, the tests that fail without it, and its cost.
//!
//! The techniques and their numbers come from five articles on DynamoDB. The test fails if a row
//! names a pattern, an entity or a test that does not exist. Routes and costs come from
//! `docs/access-patterns` and `docs/cost.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use key_schema::entity::AnyEntity;
use key_schema::registry::AREAS;

mod capture;
mod foundations;
mod further;
mod relations;
mod scale;
mod writes;

/// The chapters: letter, title, number of techniques, and the implemented techniques.
const CHAPTERS: [(&str, &str, u32, &[Technique]); 6] = [
    ("F", "Foundations", 11, foundations::TECHNIQUES),
    ("R", "Entities, relationships and indexes", 23, relations::TECHNIQUES),
    ("W", "Writes under rules", 18, writes::TECHNIQUES),
    ("T", "Time, scale and cost", 11, scale::TECHNIQUES),
    ("S", "Change data capture", 9, capture::TECHNIQUES),
    ("X", "Further lists and texts", 11, further::TECHNIQUES),
];

/// The techniques that are not yet implemented.
const OPEN: &[(&str, &str)] = &[("X7", "The stock of one product in several shards")];

/// A technique and its implementation.
struct Technique {
    id: &'static str,
    /// The technique and its implementation in Bodega.
    what: &'static str,
    /// The entities that use it. Empty if all entities use it.
    entities: &'static [&'static str],
    /// The access patterns that use it. Empty if it does not concern requests.
    patterns: &'static [&'static str],
    /// Names of tests that fail without it.
    tests: &'static [&'static str],
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every test of the repository by name, with its file.
fn tests() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> =
        ["examples", "shared", "functions", "local", "ops", "bench", "tests"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                let text = std::fs::read_to_string(&path).unwrap();
                found.extend(tests_in(&text).into_iter().map(|name| (name, file.clone())));
            }
        }
    }
    found
}

/// Returns the names of the functions with `#[test]` or `#[tokio::test]`. Other attributes may
/// follow this attribute. Ignored tests are left out.
pub fn tests_in(text: &str) -> Vec<String> {
    let (mut names, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line.starts_with("#[ignore") {
            is_test = false;
        } else if is_test && !line.starts_with('#') && !line.starts_with("//") {
            let name = line.split_once("fn ").and_then(|(_, rest)| rest.split('(').next());
            names.extend(name.map(str::to_owned));
            is_test = false;
        }
    }
    names
}

/// Returns the first measurement of each pattern: requests, read units, write units.
fn costs() -> BTreeMap<String, [String; 3]> {
    let pinned = std::fs::read_to_string(root().join("docs/cost.md")).unwrap();
    let mut costs = BTreeMap::new();
    for line in pinned.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (id, figures) = (cells[1].trim_matches('`'), [cells[3], cells[4], cells[5]]);
        costs.entry(id.to_owned()).or_insert(figures.map(str::to_owned));
    }
    costs
}

/// Returns the routes and functions that use each pattern.
fn users() -> BTreeMap<String, BTreeSet<String>> {
    let page = |(area, _): &(&str, _)| {
        std::fs::read_to_string(root().join(format!("docs/access-patterns/{area}.md"))).unwrap()
    };
    let pages: Vec<String> = AREAS.iter().map(page).collect();
    let row = |line: &str| {
        let (id, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (_, users) = rest.strip_suffix(" |")?.rsplit_once(" | ")?;
        Some((id.to_owned(), users.split("<br>").map(|user| user.trim_matches('`').to_owned()).collect()))
    };
    pages.iter().flat_map(|page| page.lines()).filter_map(row).collect()
}

fn cost_of(id: &str, costs: &BTreeMap<String, [String; 3]>) -> String {
    let [requests, read, write] = costs.get(id).unwrap_or_else(|| panic!("{id} has no cost"));
    let many = if requests == "1" { String::new() } else { format!("{requests} requests, ") };
    match (read.as_str(), write.as_str()) {
        (read, "0") => format!("{many}{read} RCU"),
        ("0", write) => format!("{many}{write} WCU"),
        (read, write) => format!("{many}{read} RCU, {write} WCU"),
    }
}

#[test]
fn every_technique_has_a_row_with_a_test_or_is_listed_as_open() {
    let ids: BTreeSet<String> = CHAPTERS
        .iter()
        .flat_map(|(letter, _, last, _)| (1..=*last).map(move |number| format!("{letter}{number}")))
        .collect();
    let techniques = || CHAPTERS.iter().flat_map(|(_, _, _, techniques)| techniques.iter());
    let rows: BTreeSet<String> = techniques().map(|technique| technique.id.to_owned()).collect();
    let open: BTreeSet<String> = OPEN.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(rows.len(), techniques().count(), "a technique has two rows");
    assert!(rows.is_disjoint(&open), "a technique is open and has a row");
    assert_eq!(rows.union(&open).cloned().collect::<BTreeSet<_>>(), ids);
    let tests = tests();
    for technique in techniques() {
        assert!(!technique.tests.is_empty(), "{} has no test", technique.id);
        for name in technique.tests {
            assert!(tests.contains_key(*name), "{}: there is no test {name}", technique.id);
        }
        for name in technique.entities {
            assert!(AnyEntity::NAMES.contains(name), "{}: there is no entity {name}", technique.id);
        }
    }
}

#[test]
fn the_page_of_techniques_is_fresh() {
    let (tests, costs, users) = (tests(), costs(), users());
    let mut text = "# Techniques\n\n\
        `UPDATE_DOCS=1 cargo test -p bodega-table` generates this page. Without the variable, the test\n\
        compares the page. Each row is a DynamoDB design technique of Bodega, with its entities, its access\n\
        patterns and the measured cost of one use ([cost.md](cost.md)). The row also has the routes that use\n\
        these patterns, and tests that fail without the technique.\n"
        .to_owned();
    for (letter, title, _, techniques) in CHAPTERS {
        writeln!(
            text,
            "\n## {title}\n\n\
            | # | technique | entities | access patterns and cost | routes and functions | tests |\n\
            |---|---|---|---|---|---|"
        )
        .unwrap();
        for technique in techniques {
            let patterns = technique.patterns.iter().map(|id| format!("`{id}` {}", cost_of(id, &costs)));
            let routes: BTreeSet<&String> = technique.patterns.iter().flat_map(|id| &users[*id]).collect();
            let tests = technique.tests.iter().map(|name| format!("[{}](../{})", name.replace('_', " "), tests[*name]));
            let cells = [
                technique.entities.join(", "),
                patterns.collect::<Vec<_>>().join("<br>"),
                routes.into_iter().map(|route| format!("`{route}`")).collect::<Vec<_>>().join("<br>"),
                tests.collect::<Vec<_>>().join("<br>"),
            ];
            let cells = cells.map(|cell| if cell.is_empty() { "–".to_owned() } else { cell });
            writeln!(text, "| {} | {} | {} |", technique.id, technique.what, cells.join(" | ")).unwrap();
        }
        for (id, what) in OPEN.iter().filter(|(id, _)| id.starts_with(letter)) {
            writeln!(text, "| {id} | {what} | – | – | – | not yet |").unwrap();
        }
    }
    let path = root().join("docs/patterns.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/patterns.md is stale: UPDATE_DOCS=1 cargo test -p bodega-table rewrites it");
}
