//! Tests the crates' manifests: `cargo lambda deploy` sets the same values as `template.yaml`, and
//! targets without a test program contain no tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use ::template::Function;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::support::{read, root, template};

/// The `[package.metadata]` of a function's crate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    lambda: Lambda,
    stack: Stack,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lambda {
    deploy: Deploy,
}

/// The settings of `cargo lambda deploy`. cargo-lambda ignores unknown keys, so this type must
/// reject a misspelled key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deploy {
    memory: u32,
    timeout: u64,
    tracing: String,
    merge_env: bool,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stack {
    function: String,
    environment: BTreeSet<String>,
}

/// Returns the workspace's packages as cargo describes them.
fn packages() -> Vec<Json> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut workspace: Json = serde_json::from_slice(&output.stdout).unwrap();
    let Json::Array(packages) = workspace["packages"].take() else { panic!("cargo names no packages") };
    packages
}

/// Returns, by folder, the metadata that cargo-lambda reads from every function's crate.
fn manifests() -> BTreeMap<String, Metadata> {
    let packages = packages();
    let packages = packages.iter();
    let functions = packages.filter(|package| package["manifest_path"].as_str().unwrap().contains("/functions/"));
    let read = |package: &Json| {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let metadata = serde_json::from_value(package["metadata"].clone());
        (name.clone(), metadata.unwrap_or_else(|error| panic!("functions/{name}/Cargo.toml: {error}")))
    };
    functions.map(read).collect()
}

/// Two functions can share one crate.
#[test]
fn a_manifest_has_the_memory_the_timeout_and_the_tracing_of_its_functions() {
    let manifests = manifests();
    let functions = template().functions;
    let crates: BTreeSet<&str> = functions.iter().map(Function::crate_name).collect();
    assert_eq!(manifests.keys().map(String::as_str).collect::<BTreeSet<_>>(), crates);
    for function in functions {
        let deploy = &manifests[function.crate_name()].lambda.deploy;
        assert_eq!(
            (deploy.memory, deploy.timeout, Some(deploy.tracing.as_str())),
            (
                function.memory_mb,
                function.timeout.as_secs(),
                function.tracing.as_deref().map(str::to_ascii_lowercase).as_deref()
            ),
            "{}",
            function.logical_id
        );
    }
}

#[test]
fn a_manifest_sets_the_variables_with_fixed_values_and_names_the_others() {
    for (name, Metadata { lambda: Lambda { deploy }, stack }) in manifests() {
        let template = template();
        let function = template.function(&stack.function).unwrap_or_else(|| panic!("{name}: {}", stack.function));
        assert_eq!(function.crate_name(), name);
        let (literal, other): (BTreeMap<_, _>, BTreeMap<_, _>) =
            function.environment.clone().into_iter().partition(|(variable, _)| function.literals.contains(variable));
        assert_eq!(deploy.env, literal, "{name}");
        assert_eq!(stack.environment, other.into_keys().collect(), "{name}");
        // Without this setting, a deployment removes the variables that it does not set.
        assert!(deploy.merge_env, "{name}");
    }
}

/// If the manifest set a variable that only one function has, a deployment would also set it for
/// the other function.
#[test]
fn a_crate_of_several_functions_sets_only_their_common_variables() {
    let manifests = manifests();
    for function in template().functions {
        for (variable, value) in &manifests[function.crate_name()].lambda.deploy.env {
            assert_eq!(function.environment.get(variable), Some(value), "{}: {variable}", function.logical_id);
        }
    }
}

/// A target with `test = false` has no test program, so its tests would never run. The setting
/// saves the build of an empty test program, which would take as long as the build of any other
/// test program.
#[test]
fn a_target_with_test_false_contains_no_tests() {
    let mut silent = 0;
    for package in packages() {
        for target in package["targets"].as_array().unwrap() {
            let is_own = target["kind"].as_array().unwrap().iter().any(|kind| kind == "lib" || kind == "bin");
            if !is_own || target["test"] == true {
                continue;
            }
            silent += 1;
            let source = Path::new(target["src_path"].as_str().unwrap());
            // The code of a program is one file. The code of a library is a folder.
            let files =
                if source.ends_with("main.rs") { vec![source.to_owned()] } else { sources(source.parent().unwrap()) };
            for file in files {
                assert!(
                    !TESTS.iter().any(|mark| read(&file).contains(mark)),
                    "{}: no target runs these tests",
                    file.display()
                );
            }
        }
    }
    assert!(silent > 20, "{silent}");
}

const TESTS: [&str; 3] = ["#[test]", "#[tokio::test", "proptest! {"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.flatten().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
