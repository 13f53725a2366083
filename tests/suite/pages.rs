use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::{read, root};

/// Folders without pages of the repository.
const SKIPPED: [&str; 3] = ["target", "node_modules", ".git"];

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
