//! Checks the fuzz targets (`fuzz/`): each is listed, has initial inputs, and runs in `.ci/run`.
//! `.ci/run fuzz` runs the targets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use fixture::reliability;
use flate2::read::GzDecoder;

use crate::techniques::root;

/// The maximum total size of the stored inputs of all targets.
const MAX_KEPT_BYTES: u64 = 1024 * 1024;
/// The packages that are only in `fuzz/Cargo.lock`.
const FUZZER: [&str; 4] = ["arbitrary", "fuzz", "jobserver", "libfuzzer-sys"];

/// A line of `targets.txt`.
struct Target {
    name: String,
    inputs: u64,
    longest: u64,
    holds: String,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn targets() -> Vec<Target> {
    let text = read("fuzz/targets.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let target = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, inputs, longest, holds] = cells[..] else { panic!("{line}") };
        Target {
            name: name.into(),
            inputs: inputs.parse().unwrap(),
            longest: longest.parse().unwrap(),
            holds: holds.into(),
        }
    };
    lines.map(target).collect()
}

/// Returns the files of a folder, or none if it does not exist.
fn files(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join("fuzz").join(folder)) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Returns the names of the entries of a folder, without their extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let name = |path: &PathBuf| path.file_name()?.to_str()?.split('.').next().map(str::to_owned);
    files(folder).iter().map(|path| name(path).unwrap()).collect()
}

/// Returns the size of each input in a target's archive. In a tar file, each file has a header
/// block with its size in octal digits, and then its content. An empty block ends the archive.
fn packed(target: &str) -> Vec<u64> {
    const BLOCK: usize = 512;
    let archive = std::fs::File::open(root().join(format!("fuzz/corpus/{target}.tar.gz"))).unwrap();
    let mut tar = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut tar).unwrap();
    let (mut sizes, mut at) = (Vec::new(), 0);
    while tar[at] != 0 {
        let size = std::str::from_utf8(&tar[at + 124..at + 135]).unwrap();
        sizes.push(u64::from_str_radix(size, 8).unwrap());
        at += BLOCK + usize::from_str_radix(size, 8).unwrap().next_multiple_of(BLOCK);
    }
    sizes
}

#[test]
fn every_fuzz_target_has_inputs_and_is_run_before_a_change_lands() {
    let targets = targets();
    let listed: BTreeSet<String> = targets.iter().map(|target| target.name.clone()).collect();
    assert_eq!(names("targets"), listed);
    assert_eq!(names("corpus"), listed);
    for folder in ["seeds", "dictionaries", "regressions"] {
        assert!(names(folder).is_subset(&listed), "{folder}: {:?}", names(folder));
    }
    let manifest = read("fuzz/Cargo.toml");
    let (mut rows, mut all_kept, mut bytes, mut made) = (String::new(), 0, 0, 0);
    for Target { name, inputs, longest, holds } in &targets {
        assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"targets/{name}.rs\"\n")), "{name}");
        let mut kept = packed(name);
        kept.extend(files(&format!("regressions/{name}")).iter().map(|path| path.metadata().unwrap().len()));
        assert!(kept.len() >= 10 && *inputs >= 1000, "{name}: {} stored inputs, {inputs} generated inputs", kept.len());
        assert!(kept.iter().all(|size| size <= longest), "{name}: an input is longer than {longest}");
        bytes += kept.iter().sum::<u64>();
        writeln!(rows, "| `{name}` | {} | {inputs} | {holds} |", kept.len()).unwrap();
        (all_kept, made) = (all_kept + kept.len(), made + inputs);
    }
    assert!(bytes < MAX_KEPT_BYTES, "the archives have {bytes} bytes");

    let run = read(".ci/run");
    let default = run.lines().find(|line| line.trim().starts_with("steps=(")).unwrap();
    assert!(default.contains(" fuzz "), "{default}");
    let step = run.split_once("\nstep_fuzz() {\n").unwrap().1.split("\n}\n").next().unwrap();
    assert_eq!(step.lines().last().unwrap().trim(), ".ci/fuzz", "the step does not run all targets");

    let section = format!(
        "{} targets, with {all_kept} stored inputs and {made} generated inputs.\n\n\
        | target | stored | generated | property of every input |\n| --- | --- | --- | --- |\n{}",
        targets.len(),
        rows.trim_end(),
    );
    reliability::section("fuzzing", &section);
}

/// Returns version, source and checksum of every package of a lock file, by name. A package may
/// have several versions.
fn locked(path: &str) -> BTreeMap<String, BTreeSet<[String; 3]>> {
    let lock = read(path);
    let mut packages: BTreeMap<String, BTreeSet<[String; 3]>> = BTreeMap::new();
    for package in lock.split("[[package]]\n").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        packages.entry(field("name")).or_default().insert([field("version"), field("source"), field("checksum")]);
    }
    packages
}

#[test]
fn fuzz_targets_are_built_with_the_deployed_dependencies() {
    let (ours, fuzzed) = (locked("Cargo.lock"), locked("fuzz/Cargo.lock"));
    assert!(fuzzed.len() > 100, "{}", fuzzed.len());
    for (name, versions) in &fuzzed {
        if FUZZER.contains(&name.as_str()) {
            assert!(!ours.contains_key(name), "{name} is deployed");
        } else {
            assert!(
                ours.get(name).is_some_and(|known| known.is_superset(versions)),
                "{name}: fuzz/Cargo.lock has {versions:?}, Cargo.lock has {:?}",
                ours.get(name)
            );
        }
    }
}
