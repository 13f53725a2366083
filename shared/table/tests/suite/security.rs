//! Checks `SECURITY.md` and `README.md` against the repository: the tests that they name exist, and
//! dependencies are pinned.

use std::collections::BTreeSet;

use crate::techniques::{root, tests_in};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the cells of the table under a heading, row by row.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split_once(heading).unwrap().1.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Returns the tests that a table cell names. Fails if one of them does not exist.
fn named_tests(cell: &str) -> BTreeSet<String> {
    let links = cell.split("<br>").map(|link| {
        let (name, path) = link.trim_matches(['[', ')']).split_once("](").unwrap_or_else(|| panic!("{link}"));
        let name = name.replace(' ', "_");
        assert!(tests_in(&read(path)).contains(&name), "{path} has no test {name}");
        name
    });
    links.collect()
}

#[test]
fn every_guarantee_of_the_readme_has_tests_that_exist() {
    let guarantees = rows(&read("README.md"), "\n## What is guaranteed\n");
    assert!(guarantees.len() >= 20, "{}", guarantees.len());
    for row in &guarantees {
        let [guarantee, tests] = row.as_slice() else { panic!("{row:?}") };
        assert!(guarantee.ends_with('.') && !named_tests(tests).is_empty(), "{guarantee}");
    }
}

#[test]
fn every_threat_has_a_countermeasure_and_tests_that_exist() {
    let page = read("SECURITY.md");
    let threats = rows(&page, "## Threats and measures");
    assert!(threats.len() >= 15);
    for row in &threats {
        let [threat, measure, tests] = row.as_slice() else { panic!("{row:?}") };
        assert!(!threat.is_empty() && !measure.is_empty() && !named_tests(tests).is_empty(), "{row:?}");
    }
}

/// Returns every package of the lock file: its name, its source, and whether it has a checksum.
fn locked() -> Vec<(String, Option<String>, bool)> {
    let lock = read("Cargo.lock");
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]\n").skip(1);
    packages
        .map(|text| (field(text, "name").unwrap(), field(text, "source"), field(text, "checksum").is_some()))
        .collect()
}

#[test]
fn every_crate_is_from_crates_io_and_pinned_by_its_checksum() {
    let ours: BTreeSet<String> = ["functions", "shared", "local", "ops", "bench", "tests", "examples"]
        .into_iter()
        .flat_map(|folder| {
            let nested = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
            nested.chain([root().join(folder)]).collect::<Vec<_>>()
        })
        .filter_map(|folder| {
            // One of the folders is a workspace of its own. Its `Cargo.toml` has no package name,
            // so it is left out.
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
            Some(name.trim_matches('"').to_owned())
        })
        .collect();
    let mut foreign = 0;
    for (name, source, has_checksum) in locked() {
        match source.as_deref() {
            None => assert!(ours.contains(&name), "{name} is not in this repository and has no source"),
            Some("registry+https://github.com/rust-lang/crates.io-index") => {
                assert!(has_checksum, "{name} has no checksum");
                foreign += 1;
            }
            Some(other) => panic!("{name} comes from {other}"),
        }
    }
    assert!(foreign > 100, "{foreign}");
}

#[test]
fn the_pinned_compiler_has_the_version_that_the_manifest_requires() {
    let value = |file: &str, name: &str| {
        let text = read(file);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        line.unwrap_or_else(|| panic!("{file} has no {name}")).trim_matches('"').to_owned()
    };
    let (pinned, least) = (value("rust-toolchain.toml", "channel"), value("Cargo.toml", "rust-version"));
    assert!(
        pinned == least || pinned.starts_with(&format!("{least}.")),
        "{pinned} is pinned, but the manifest requires {least}"
    );
    assert_eq!(
        pinned.split('.').filter(|part| part.parse::<u32>().is_ok()).count(),
        3,
        "{pinned} is not a full version"
    );
}

/// Returns whether this is the name of a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    ["key", "secret", "password", "token"].iter().any(|word| name.trim_end_matches('s').ends_with(word))
}

/// A value in a function's environment is readable by everybody who may read its configuration.
/// The secrets without which a part of the system is off, and their variables.
const OPTIONAL: [&str; 2] = ["PaymentKeysSecret", "WebhookKeysSecret"];
const OPTIONAL_VARIABLES: [&str; 2] = ["PAYMENT_KEYS_SECRET", "WEBHOOK_KEYS_SECRET"];

#[test]
fn the_template_and_the_environments_contain_only_the_addresses_of_secrets() {
    let text = read("template.yaml");
    let parameters = text.split_once("\nParameters:\n").unwrap().1.split("\n\n").next().unwrap();
    let mut secrets = BTreeSet::new();
    for parameter in parameters.split("\n  ").filter(|line| !line.starts_with(' ')) {
        let name = parameter.trim().split(':').next().unwrap();
        if is_secret(name) {
            secrets.insert(name.to_owned());
        }
    }
    assert_eq!(
        secrets,
        BTreeSet::from(
            ["CursorKeysSecret", "EmailCodeKeysSecret", "PaymentKeysSecret", "WebhookKeysSecret"].map(str::to_owned)
        )
    );
    for name in &secrets {
        let body = text.split_once(&format!("\n  {name}:\n")).unwrap().1;
        let own: Vec<&str> = body.lines().take_while(|line| line.starts_with("    ")).map(str::trim).collect();
        assert!(
            own.iter().any(|line| line.starts_with("AllowedPattern: 'arn:[^:]+:secretsmanager:")
                || line.starts_with("AllowedPattern: '(arn:[^:]+:secretsmanager:")),
            "{name}"
        );
        // Without these secrets there are no card payments, and no webhooks.
        let default = own.iter().find(|line| line.starts_with("Default:"));
        assert!(
            default.is_none_or(|line| *line == "Default: ''" && OPTIONAL.contains(&name.as_str())),
            "{name} has a default"
        );
    }
    let mut given = 0;
    for function in fixture::template().functions {
        for (variable, value) in function.environment.iter().filter(|(variable, _)| is_secret(variable)) {
            let is_address = secrets.iter().any(|name| *value == format!("${{{name}}}"))
                || OPTIONAL_VARIABLES.contains(&variable.as_str()) && value.is_empty();
            assert!(is_address, "{}: {variable} is {value}", function.logical_id);
            given += 1;
        }
    }
    assert!(given > 0);
}

#[test]
fn dependencies_are_checked_before_a_change_lands() {
    let run = read(".ci/run");
    let default = run.lines().find(|line| line.trim().starts_with("steps=(")).unwrap();
    assert!(default.contains(" supply "), "{default}");
    let step = run.split_once("\nstep_supply() {\n").unwrap().1.split("\n}\n").next().unwrap();
    for needed in ["check -D warnings licenses bans sources", "check -D warnings advisories", ".ci/sbom"] {
        assert!(step.contains(needed), "{needed}");
    }
    // The file pins the version and the hash of the tool that checks the dependencies.
    let tools = read(".ci/supply-tools.txt");
    assert!(run.contains("--require-hashes") && tools.contains("==") && tools.contains("--hash=sha256:"), "{tools}");
    let rules = read("deny.toml");
    for needed in [
        "yanked = \"deny\"",
        "ignore = []",
        "unknown-registry = \"deny\"",
        "unknown-git = \"deny\"",
        "multiple-versions = \"deny\"",
    ] {
        assert!(rules.contains(needed), "{needed}");
    }
}
