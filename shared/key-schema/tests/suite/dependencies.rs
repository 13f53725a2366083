//! The allowed dependencies of crates: functions → shared → key-schema → item-model. The last two
//! depend on neither the AWS SDK nor a runtime.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).arg("--offline").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_schema_depends_on_neither_the_aws_sdk_nor_a_runtime() {
    let tree = cargo(&[
        "tree",
        "--package",
        "bodega-key-schema",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"serde_dynamo"), "not a list of crates: {tree}");
    let forbidden = |name: &&&str| {
        name.starts_with("aws-")
            || name.starts_with("aws_")
            || ["tokio", "hyper", "lambda_runtime", "async-std"].contains(*name)
    };
    assert_eq!(names.iter().find(forbidden), None);
}

/// A package of the workspace. `depends_on` has only the workspace packages among the dependencies
/// of its manifest, including dependencies for tests and builds.
struct Package {
    folder: String,
    name: String,
    depends_on: Vec<String>,
}

fn packages() -> Vec<Package> {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap()).to_owned();
    let package = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        Package {
            folder: manifest.parent().unwrap().strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"),
            name: package["name"].as_str().unwrap().to_owned(),
            // Only a dependency with a path is a package of this workspace.
            depends_on: package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| dependency["path"].is_string())
                .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
                .collect(),
        }
    };
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

fn in_folder<'a>(packages: &'a [Package], folder: &str) -> Vec<&'a Package> {
    packages.iter().filter(|package| package.folder.starts_with(folder)).collect()
}

fn assert_apart(from: &[&Package], to: &[&Package]) {
    assert!(!from.is_empty() && !to.is_empty());
    for package in from {
        for other in to.iter().filter(|other| other.name != package.name) {
            assert!(!package.depends_on.contains(&other.name), "{} depends on {}", package.folder, other.folder);
        }
    }
}

#[test]
fn no_function_depends_on_another_function() {
    let packages = packages();
    let functions = in_folder(&packages, "functions/");
    assert_apart(&functions, &functions);
}

#[test]
fn no_shared_crate_depends_on_a_function() {
    let packages = packages();
    assert_apart(&in_folder(&packages, "shared/"), &in_folder(&packages, "functions/"));
}

#[test]
fn the_parts_of_the_local_system_depend_on_no_function() {
    let packages = packages();
    let parts = in_folder(&packages, "local/");
    let names: Vec<&str> = parts.iter().map(|part| part.folder.as_str()).collect();
    for part in ["local/emulators", "local/runtime-api", "local/stream-poller", "local/template"] {
        assert!(names.contains(&part), "{part} is missing");
    }
    assert_apart(&parts, &in_folder(&packages, "functions/"));
}

#[test]
fn the_schema_depends_on_no_workspace_crate_except_the_model_which_depends_on_none() {
    let packages = packages();
    let depends_on = |name: &str| &packages.iter().find(|package| package.name == name).unwrap().depends_on;
    assert_eq!(depends_on("bodega-key-schema"), &["bodega-item-model"]);
    assert!(depends_on("bodega-item-model").is_empty());
}

/// A crate that does not depend on `item-model` cannot construct a request. So only `key-schema`
/// builds requests of the Lambda functions, and only the executor (`table`) sends them. The
/// operators' commands also use the AWS SDK. The example `library` is another application with its
/// own table.
#[test]
fn only_schemas_and_the_executor_depend_on_the_model() {
    let packages = packages();
    let mut users: Vec<&str> = packages
        .iter()
        .filter(|package| package.depends_on.iter().any(|name| name == "bodega-item-model"))
        .map(|package| package.folder.as_str())
        .collect();
    users.sort_unstable();
    assert_eq!(users, ["examples/library", "shared/key-schema", "shared/table"]);
}

#[test]
fn the_example_library_needs_no_code_of_the_shop_even_for_its_tests() {
    let edges = ["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(&[["tree", "--package", "bodega-library"].as_slice(), &edges].concat());
    let needed: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(needed.contains("bodega-item-model") && needed.contains("bodega-table"), "not a list of crates: {tree}");
    let packages = packages();
    let shop = packages.iter().filter(|package| package.folder.starts_with("functions/"));
    let shop: Vec<&str> = shop
        .map(|package| package.name.as_str())
        .chain(["bodega-key-schema", "bodega-http-api", "bodega-local"])
        .collect();
    assert_eq!(shop.iter().find(|name| needed.contains(*name)), None);
}
