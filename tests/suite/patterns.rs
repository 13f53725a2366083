//! Tests of the access patterns that the functions use, and the generator of their pages in
//! `docs/access-patterns`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use http_api::{Routes, SHARED_PATTERNS};
use key_schema::pattern::{Consistency, Pattern};
use key_schema::registry;
use serde_json::Value as Json;

use crate::support::{read, root};

/// A route or another user of the table.
pub struct User {
    pub package: &'static str,
    /// The key of a route, the name of a crate without routes, or a name in [`SHARED_PATTERNS`].
    pub name: &'static str,
    pub patterns: Vec<&'static Pattern>,
}

impl User {
    pub fn is_route(&self) -> bool {
        self.name.contains(' ')
    }
}

pub fn users() -> Vec<User> {
    let mut users: Vec<User> = [
        routes("customers", &customers::routes()),
        routes("catalog", &catalog::routes()),
        routes("orders", &orders::routes()),
        routes("wallet", &wallet::routes()),
        routes("community", &community::routes()),
        routes("organizations", &organizations::routes()),
        routes("documents", &documents::routes()),
        routes("insights", &insights::routes()),
        routes("support", &::support::routes()),
        routes("settings", &settings::routes()),
        routes("search", &search::routes()),
        routes("agents", &agents::routes()),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (package, patterns) in [
        ("notifier", notifier::PATTERNS),
        ("agents", agents::PATTERNS),
        ("cashier", cashier::PATTERNS),
        ("courier", courier::PATTERNS),
        ("fulfilment", fulfilment::PATTERNS),
        ("janitor", janitor::PATTERNS),
        ("splitter", splitter::PATTERNS),
        ("stream", stream::PATTERNS),
        ("ops", &ops::patterns()),
    ] {
        users.push(User { package, name: package, patterns: patterns.to_vec() });
    }
    let shared = |(name, pattern): &(&'static str, _)| User { package: "http-api", name, patterns: vec![*pattern] };
    users.extend(SHARED_PATTERNS.iter().map(shared));
    users
}

/// Returns the routes of a function with the patterns that its tests have recorded.
fn routes<S>(package: &'static str, routes: &Routes<S>) -> Vec<User> {
    static RECORDED: LazyLock<Json> =
        LazyLock::new(|| serde_json::from_str(&read(&root().join("docs/routes.json"))).unwrap());
    let of = |name: &str| -> Vec<&'static Pattern> {
        let line = RECORDED.as_array().unwrap().iter().find(|line| line["route"] == name);
        let ids = line.and_then(|line| line["patterns"].as_array()).into_iter().flatten();
        ids.map(|id| registry::all().find(|pattern| id == pattern.id).unwrap_or_else(|| panic!("{id}"))).collect()
    };
    routes.keys().map(|name| User { package, name, patterns: of(name) }).collect()
}

#[test]
fn every_registered_pattern_is_used_and_every_used_pattern_is_registered() {
    let used: BTreeSet<&str> = users().iter().flat_map(|user| &user.patterns).map(|pattern| pattern.id).collect();
    let known: BTreeSet<&str> = registry::all().map(|pattern| pattern.id).collect();
    let odd: Vec<_> = used.symmetric_difference(&known).collect();
    assert!(odd.is_empty(), "unused or unregistered: {odd:?}");
}

#[test]
fn a_user_declares_each_pattern_once_and_no_route_declares_a_system_pattern() {
    for user in users() {
        // A search reads only the search index.
        assert_eq!(
            user.patterns.is_empty(),
            user.package == "search",
            "{}: only a search declares no pattern",
            user.name
        );
        let distinct: BTreeSet<&str> = user.patterns.iter().map(|pattern| pattern.id).collect();
        assert_eq!(distinct.len(), user.patterns.len(), "{} declares a pattern twice", user.name);
        for pattern in user.patterns.iter().filter(|_| user.is_route()) {
            assert!(
                pattern.callers != "system",
                "{} is only for the system, but the route {} declares it",
                pattern.id,
                user.name
            );
        }
    }
}

const HEAD: &str = "\
A test generates this page: `UPDATE_DOCS=1 cargo test -p bodega-tests --test suite patterns`. [The
introduction](README.md) explains the columns.
";

#[test]
fn the_pages_of_access_patterns_are_fresh() {
    let users = users();
    for (area, lists) in registry::AREAS {
        let mut page = format!("# Access patterns: {area}\n\n{HEAD}");
        let mut group = "";
        for pattern in lists.iter().flat_map(|list| list.iter()) {
            let (name, _) = pattern.id.split_once('.').unwrap();
            if name != group {
                group = name;
                page += &format!("\n## {group}\n\n{COLUMNS}");
            }
            page += &row(pattern, &users);
        }
        let path = root().join(format!("docs/access-patterns/{area}.md"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == page, "{} is stale: UPDATE_DOCS=1 writes it", path.display());
    }
}

const COLUMNS: &str =
    "| Pattern | Purpose | Operation | Index | Key | Result or condition | Consistency | Caller | Used by |
|---|---|---|---|---|---|---|---|---|
";

fn row(pattern: &'static Pattern, users: &[User]) -> String {
    let consistency = match pattern.consistency {
        Consistency::Eventual => "eventual".to_owned(),
        Consistency::Strong(reason) => format!("**strong**: {reason}"),
        Consistency::Write => "–".to_owned(),
    };
    let users = users.iter().filter(|user| user.patterns.contains(&pattern));
    let cells = [
        code(pattern.id),
        pattern.purpose.to_owned(),
        format!("{:?}", pattern.operation),
        pattern.index.map_or("table".to_owned(), |index| index.name().to_owned()),
        code(pattern.key),
        pattern.detail.replace('|', "\\|").replace('<', "&lt;"),
        consistency,
        pattern.callers.to_owned(),
        users.map(|user| code(user.name)).collect::<Vec<_>>().join("<br>"),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}
