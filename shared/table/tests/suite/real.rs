//! Checks technique F11 in `docs/patterns.md`: the tests also run on Amazon's DynamoDB Local.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fixture::TestTable;

use crate::techniques::root;

/// The test targets that use no table.
const WITHOUT_A_TABLE: [&str; 8] =
    ["connector", "endurance", "media", "model", "objects", "poller", "requests", "stock"];

#[test]
fn the_tests_run_on_dynamodb_local_before_a_change_lands() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let steps = script.lines().find(|line| line.trim_start().starts_with("steps=(")).unwrap();
    assert!(steps.split([' ', '(', ')']).any(|step| step == "real"), "{steps}");
    let step = script.split_once("step_real() {").unwrap().1.split_once("\n}\n").unwrap().0;
    assert!(step.contains("AWS_ENDPOINT_URL_DYNAMODB=\"$(.ci/dynamodb-local start)\""), "{step}");
    assert!(step.contains("export AWS_ENDPOINT_URL_DYNAMODB "), "{step}");
    let mut words = step.split_whitespace();
    let mut run = BTreeSet::new();
    while let Some(word) = words.next() {
        if word == "--test" {
            run.extend(words.next());
        }
    }
    for folder in ["functions", "shared", "ops", "tests", "examples"] {
        for target in targets(folder) {
            assert!(
                run.contains(target.as_str()) || WITHOUT_A_TABLE.contains(&target.as_str()),
                "the tests `{target}` in {folder} do not run on DynamoDB Local"
            );
        }
    }
}

/// A filter that matches no test would go unnoticed.
#[test]
fn every_module_that_runs_on_dynamodb_local_has_tests() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let modules = script.split_once("modules=(").unwrap().1.split_once(')').unwrap().0;
    let folders = ["functions", "shared", "local", "ops", "tests"].map(|folder| root().join(folder));
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| rust_files(folder)).collect();
    for filter in modules.split_whitespace() {
        let has_tests = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).unwrap();
            match filter.strip_suffix("::") {
                None => text.contains(&format!("fn {filter}")),
                Some(module) => {
                    let path = file.with_extension("");
                    path.components().any(|part| part.as_os_str() == module) && text.contains("test]\n")
                }
            }
        };
        assert!(files.iter().any(has_tests), "{filter} selects no test");
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Returns the names of the test targets that have a `main.rs`, in a folder's packages.
fn targets(folder: &str) -> BTreeSet<String> {
    let names = |path: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let mut packages = names(&root().join(folder));
    packages.push(root().join(folder));
    let targets = packages.iter().flat_map(|package| names(&package.join("tests")));
    let targets = targets.filter(|target| target.join("main.rs").exists());
    targets.map(|target| target.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The next test runs this test in a child process with a changed environment.
#[tokio::test]
async fn a_table_can_be_created() {
    TestTable::create().await;
}

#[test]
fn the_table_of_a_test_is_in_the_dynamodb_that_the_environment_names() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "real::a_table_can_be_created"])
        .env("AWS_ENDPOINT_URL_DYNAMODB", &url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let accepted = std::thread::spawn(move || {
        let (mut connection, _) = server.accept().unwrap();
        let mut request = [0; 1024];
        let length = connection.read(&mut request).unwrap();
        let _ = connection.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let ended = child.wait().unwrap();
    assert!(!ended.success(), "the tests passed without DynamoDB Local");
    assert!(accepted.join().unwrap().contains("DynamoDB_20120810.CreateTable"));
}
