//! Tests that every crash point in the code is registered, and that the page about crash points is
//! up to date.

use std::collections::BTreeSet;
use std::path::Path;

use telemetry::CRASH_POINTS;
use workflows::WORKFLOWS;
use workflows::engine::Bound;

use crate::support::root;

#[test]
fn every_crash_point_of_the_functions_is_registered_and_every_registered_one_is_in_the_code() {
    // A function passes the point itself, or the engine passes the point after a declared step.
    let call = regex::Regex::new(r#"\bcrash(?:_point\(\s*|\s+)"([^"]*)""#).unwrap();
    let mut called = BTreeSet::new();
    for folder in ["functions", "shared"] {
        sources(&root().join(folder), &mut |text| {
            called.extend(call.captures_iter(text).map(|found| found[1].to_owned()));
        });
    }
    let registered: BTreeSet<String> = CRASH_POINTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(called, registered);
    assert!(CRASH_POINTS.is_sorted(), "in the order of their names");
}

#[test]
fn every_crash_point_of_a_workflow_is_declared_once_and_passed() {
    let call = regex::Regex::new(r#"\bcrash_point\(\s*"([^"]*)""#).unwrap();
    let mut passed = BTreeSet::new();
    sources(&root().join("shared/workflows/src"), &mut |text| {
        passed.extend(call.captures_iter(text).map(|found| found[1].to_owned()));
    });
    let (mut declared, mut by_step) = (BTreeSet::new(), BTreeSet::new());
    for workflow in WORKFLOWS {
        let actions = || workflow.steps.iter().flat_map(|step| [Some(&step.run), step.undo.as_ref()]).flatten();
        by_step.extend(actions().filter_map(|action| action.crash));
        let points = actions().flat_map(|action| action.crash.iter().chain(action.within));
        for point in points.chain(workflow.begun) {
            assert!(declared.insert(*point), "{point} is declared twice");
            assert!(CRASH_POINTS.iter().any(|(name, _)| name == point), "{point} is not registered");
        }
    }
    // Outside a declared step, workflows pass only points that a table names, too.
    let undeclared: Vec<_> = passed.iter().filter(|point| !declared.contains(point.as_str())).collect();
    assert!(undeclared.is_empty(), "{undeclared:?}");
    let doubled: Vec<_> = passed.iter().filter(|point| by_step.contains(point.as_str())).collect();
    assert!(doubled.is_empty(), "{doubled:?} are passed by the engine");
}

#[test]
fn no_deployed_program_has_crash_points_or_an_adjustable_clock() {
    for folder in ["functions", "shared"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap().path();
            // `functions/` also contains the file `build.rs`.
            if entry.is_file() {
                continue;
            }
            let path = entry.join("Cargo.toml");
            let manifest = std::fs::read_to_string(&path).unwrap();
            let switches_on = ["\"crash-points\"", "\"clock-steps\""].iter().any(|feature| manifest.contains(feature));
            assert!(!switches_on, "{}", path.display());
        }
    }
}

/// Passes the text of every source file below `folder` to `show`.
fn sources(folder: &Path, show: &mut impl FnMut(&str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, show);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            show(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_page_about_crash_points_is_up_to_date() {
    let mut page = "\
# Crash points

A crash point is a place in a function's code where a crash matters. Only the local system can cause such a crash. \
Deployed functions
have no crash points. The tests generate this page: `UPDATE_DOCS=1 cargo test -p bodega-tests --test suite crash_points`.

```sh
curl -X POST localhost:3000/_local/faults -H 'content-type: application/json' \\
  -d '{\"target\":\"function:StreamEvents\",\"kind\":\"crash\",\"point\":\"stream.bus.published\",\"count\":1}'
```

The function's process aborts when it passes the point. It aborts at most `count` times. `rate` is the share of \
passes at which it
aborts, and `seed` selects them. Without `point`, the local system kills the process as soon as the process \
has received its event. `GET /_local/faults` shows how often
each fault has struck. `DELETE /_local/faults` disarms all faults.

| point | state at the point |
| --- | --- |
"
    .to_owned();
    for (name, meaning) in CRASH_POINTS {
        page.push_str(&format!("| `{name}` | {meaning} |\n"));
    }
    page.push_str(
        "
## Workflows

A workflow is work that takes several transactions. Its steps run from top to bottom, and its undos from bottom to top.
`begun` are the points after the writes that begin the workflow. `within` are the points after the effects within a step.
",
    );
    for workflow in WORKFLOWS {
        page.push_str(&format!("\n### {}\n\n{}\n\n", workflow.name, workflow.about.trim()));
        if !workflow.begun.is_empty() {
            page.push_str(&format!("begun: {}\n\n", points(workflow.begun)));
        }
        page.push_str("| step | at most | crash point | within | undo |\n| --- | --- | --- | --- | --- |\n");
        for step in workflow.steps {
            let undo = step.undo.as_ref().map_or("forward only".to_owned(), |undo| {
                format!("`{}`, at most {} {}", undo.name, bound(undo.at_most), points(undo.crash.as_slice()))
            });
            let (run, most) = (&step.run, bound(step.run.at_most));
            let (crash, within) = (points(run.crash.as_slice()), points(run.within));
            page.push_str(&format!("| {} | {most} | {crash} | {within} | {} |\n", step.name, undo.trim_end()));
        }
    }
    let path = root().join("docs/crash-points.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page, "{} is stale", path.display());
}

fn points(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Times(1) => "once".to_owned(),
        Bound::Times(most) => format!("{most} times"),
        Bound::Budget => "its budget".to_owned(),
        Bound::Deadline => "its deadline".to_owned(),
    }
}
