//! Tests of the pages for readers: their links, their sizes, the indexes that list them, and the
//! diagram of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::{read, root};

/// Folders without pages of the repository.
const SKIPPED: [&str; 3] = ["target", "node_modules", ".git"];
/// The maximum size of a page about one topic, in bytes.
const MAX_DESIGN_BYTES: usize = 10_000;
/// The maximum size of `ARCHITECTURE.md`, in bytes.
const MAX_MAP_BYTES: usize = 15_000;
/// The maximum size of the runbook, in bytes.
const MAX_RUNBOOK_BYTES: usize = 25_000;

/// Returns the pages below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_skipped = path.file_name().is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped));
        if path.is_dir() && !is_skipped {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns a page without its code blocks.
fn prose(page: &Path) -> String {
    let (mut prose, mut in_code) = (String::new(), false);
    for line in read(page).lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn anchors(page: &Path) -> BTreeSet<String> {
    static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(page).lines().filter(|line| line.starts_with('#')) {
        let heading = LINK.replace_all(line.trim_start_matches('#').trim(), "$1").to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// Returns the targets of a page's links to other places of the repository.
fn links(page: &Path) -> Vec<String> {
    static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`[^`\n]*`").unwrap());
    static TARGET: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\]\(\s*([^)\s]+)\)").unwrap());
    let prose = prose(page);
    // Brackets in code are not links. But the text of a link may be code, so a word replaces the
    // code.
    let prose = CODE.replace_all(&prose, "code");
    let targets = TARGET.captures_iter(&prose).map(|found| found[1].to_owned());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// Resolves `..` in a path without following symbolic links.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut resolved, part| {
        match part {
            Component::ParentDir => _ = resolved.pop(),
            part => resolved.push(part),
        }
        resolved
    })
}

/// Returns the path and the anchor of a link's target.
fn target(page: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    let place = if path.is_empty() { page.to_owned() } else { resolved(&page.parent().unwrap().join(path)) };
    (place, anchor)
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_every_anchor_to_a_heading() {
    let root = root().canonicalize().unwrap();
    let (mut broken, mut count) = (Vec::new(), 0);
    for page in pages(&root) {
        for link in links(&page) {
            count += 1;
            let (place, anchor) = target(&page, &link);
            let is_page = place.extension().is_some_and(|extension| extension == "md");
            let is_there = place.exists() && place.starts_with(&root);
            if !is_there || is_page && anchor.is_some_and(|anchor| !anchors(&place).contains(&anchor)) {
                broken.push(format!("{}: {link}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(count > 500, "only {count} links were found");
}

#[test]
fn architecture_md_the_runbook_and_the_design_pages_stay_within_their_size_limits() {
    let mut limits = vec![(root().join("ARCHITECTURE.md"), MAX_MAP_BYTES)];
    limits.push((root().join("docs/operations/runbook.md"), MAX_RUNBOOK_BYTES));
    limits.extend(pages(&root().join("docs/design")).into_iter().map(|page| (page, MAX_DESIGN_BYTES)));
    for (page, limit) in limits {
        let size = read(&page).len();
        assert!(size <= limit, "{} has {size} bytes, more than {limit}: split it", page.display());
    }
}

#[test]
fn every_page_is_in_the_index_of_its_folder() {
    let docs = root().join("docs").canonicalize().unwrap();
    for (index, folder) in [("README.md", "."), ("README.md", "operations"), ("design/README.md", "design")] {
        let index = docs.join(index);
        let linked: BTreeSet<PathBuf> = links(&index).iter().map(|link| target(&index, link).0).collect();
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let path = resolved(&entry.unwrap().path());
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            assert!(
                !is_page || path == index || linked.contains(&path),
                "{} lacks {}",
                index.display(),
                path.display()
            );
        }
    }
}

/// Returns the crates of the workspace on which a crate depends, by the names of their folders.
fn dependencies(manifest: &Path, crates: &BTreeSet<String>) -> BTreeSet<String> {
    let text = read(manifest);
    let (_, section) = text.split_once("\n[dependencies]\n").unwrap_or_default();
    let section = section.split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| crates.contains(*name)).map(str::to_owned).collect()
}

/// Returns the arrows of the diagram of the crates.
fn arrows(crates: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let (_, section) = page.split_once("\n## The crates\n").expect("the section exists");
    let diagram = section.split("```mermaid").nth(1).and_then(|text| text.split("```").next()).unwrap();
    let label = Regex::new(r#"^(\w+)\["?([^"\]]+)"?\]$"#).unwrap();
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in diagram.lines().map(str::trim) {
        if let Some(found) = label.captures(line) {
            let (id, label) = (found.get(1).unwrap().as_str(), found.get(2).unwrap().as_str());
            names.insert(id, label.replace("<br>", " ").split(", ").map(|name| name.trim().to_owned()).collect());
        } else if let Some((from, to)) = line.split_once("-->") {
            let all = |side: &str| -> Vec<String> {
                let named = |id| names.get(id).cloned().unwrap_or_else(|| vec![str::to_owned(id)]);
                side.split('&').map(str::trim).flat_map(named).collect()
            };
            for from in all(from) {
                arrows.entry(from).or_default().extend(all(to));
            }
        } else if crates.contains(line) {
            arrows.entry(line.to_owned()).or_default();
        }
    }
    arrows
}

#[test]
fn the_diagram_of_the_crates_shows_what_their_manifests_say() {
    let manifests: BTreeMap<String, PathBuf> = ["functions", "shared"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path.join("Cargo.toml")))
        .collect();
    let crates: BTreeSet<String> = manifests.keys().cloned().collect();
    let arrows = arrows(&crates);
    for (name, manifest) in &manifests {
        let depends = dependencies(manifest, &crates);
        let shown = arrows.get(name).cloned().unwrap_or_default();
        let is_shown = arrows.contains_key(name) || arrows.values().any(|to| to.contains(name));
        assert!(is_shown, "the diagram lacks {name}");
        let wrong: Vec<_> = shown.difference(&depends).collect();
        assert!(wrong.is_empty(), "{name} does not depend on {wrong:?}");
        // The diagram leaves out these dependencies of the functions. The text next to the diagram
        // mentions them.
        let is_said = |to: &str| {
            manifest.starts_with(root().join("functions")) && ["key-schema", "table", "telemetry"].contains(&to)
        };
        let missing: Vec<_> = depends.difference(&shown).filter(|to| !is_said(to)).collect();
        assert!(missing.is_empty(), "{name} depends on {missing:?}, and the diagram does not show it");
    }
}

/// Resource types and properties that the template must not have, with the decision against them.
const DECIDED_AGAINST: [(&str, &[&str]); 4] = [
    ("## Global tables", &["AWS::DynamoDB::GlobalTable", "MultiRegionConsistency"]),
    ("## DynamoDB Accelerator (DAX)", &["AWS::DAX::"]),
    ("## Redis and other caches", &["AWS::ElastiCache::", "AWS::MemoryDB::"]),
    ("## Local secondary indexes", &["LocalSecondaryIndexes"]),
];

#[test]
fn each_decision_has_a_reason_and_an_alternative_and_the_template_agrees() {
    let page = read(&root().join("docs/design/decisions.md"));
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    for section in &sections {
        for part in ["- **Why.** ", "- **Choose otherwise** "] {
            assert!(section.contains(part), "no {part:?} in {section}");
        }
    }
    for text in ["## Event sourcing", "## Several shops in one table"] {
        assert!(page.contains(text), "no section {text:?}");
    }
    let template = read(&root().join("template.yaml"));
    for (title, resources) in DECIDED_AGAINST {
        assert!(page.contains(title), "no section {title:?}");
        for resource in resources {
            assert!(!template.contains(resource), "the template has {resource}, against the decision {title:?}");
        }
    }
    let indexes = template.matches("- IndexName: ").count();
    assert!(indexes == 3 && page.contains("three global secondary indexes"), "{indexes} indexes");
}
