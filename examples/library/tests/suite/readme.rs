//! Tests of the README: its session, and its table of access patterns.

use std::collections::BTreeSet;
use std::path::Path;

use item_model::pattern::Pattern;
use library::schema::patterns;

use crate::{TestLibrary, now, session};

/// Compares a section of the README with `text`, or writes it when `UPDATE_DOCS` is set.
fn compare(section: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- /{section} -->\n"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (old, after) = rest.split_once(&end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{text}{end}{after}")).unwrap();
    } else {
        assert_eq!(old, text, "README.md is stale: UPDATE_DOCS=1 cargo test -p bodega-library rewrites it");
    }
}

#[tokio::test]
async fn the_readme_lists_every_pattern_and_shows_a_session_that_uses_all_of_them() {
    let row = |pattern: &&Pattern| {
        let index = pattern.index.map_or("", |index| index.name());
        format!("| `{}` | {:?} {index} | `{}` |\n", pattern.id, pattern.operation, pattern.key).replace("  |", " |")
    };
    let rows: String = patterns().iter().map(row).collect();
    let library = TestLibrary::open().await;
    let lines = session::session(&library, now()).await.unwrap();
    compare("patterns", &format!("| pattern | request | keys |\n| --- | --- | --- |\n{rows}"));
    compare("session", &format!("```\n{}\n```\n", lines.join("\n")));
    let measured: BTreeSet<&str> = library.table().meter().take().iter().map(|measured| measured.pattern.id).collect();
    assert_eq!(measured, patterns().iter().map(|pattern| pattern.id).collect(), "patterns that the session used");
}
