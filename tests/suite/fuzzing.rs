//! Runs the fuzz targets (`fuzz/`) over their stored inputs, and over inputs that are generated
//! from these. libFuzzer runs the same targets for longer, by `.ci/fuzz` and every night.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fastrand::Rng;
use flate2::read::GzDecoder;

use crate::support::{read, root};

#[allow(clippy::type_complexity)]
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

use fuzz::{Check, TARGETS};

/// The number of generated inputs of each target. `BODEGA_FUZZ_INPUTS` takes precedence.
const GENERATED: u64 = 4_000;
/// For each input, the target `search` builds and reads a dozen large queries.
const GENERATED_SEARCHES: u64 = 150;
/// The maximum length of a generated input, in bytes.
const MAX_BYTES: usize = 4_096;
/// The packages that are only in `fuzz/Cargo.lock`.
const FUZZER: [&str; 4] = ["arbitrary", "fuzz", "jobserver", "libfuzzer-sys"];

/// `BODEGA_FUZZ` selects one target.
#[test]
fn every_parser_withstands_its_stored_inputs_and_generated_ones() {
    let only = std::env::var("BODEGA_FUZZ").ok();
    let selected = TARGETS.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name));
    let threads: Vec<_> =
        selected.map(|&(name, check)| std::thread::spawn(move || holds_for_every_input(name, check))).collect();
    assert!(!threads.is_empty(), "{only:?} is no target");
    for thread in threads {
        thread.join().unwrap();
    }
}

fn holds_for_every_input(target: &str, check: Check) {
    let stored = stored(target);
    assert!(stored.len() >= 10, "{target} has {} stored inputs", stored.len());
    for input in &stored {
        holds(target, check, input);
    }
    let words = words(target);
    let number = |name, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let mut rng = Rng::with_seed(number("BODEGA_SEED", 1));
    let inputs = if target == "search" { GENERATED_SEARCHES } else { GENERATED };
    for _ in 0..number("BODEGA_FUZZ_INPUTS", inputs) {
        holds(target, check, &generated(&mut rng, &stored, &words));
    }
}

/// Checks one input. If it breaks the target, the test prints it in the form of a Rust byte string.
fn holds(target: &str, check: Check, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
        eprintln!("this input breaks {target}: b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

/// Makes a few random changes to a stored input.
fn generated(rng: &mut Rng, stored: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
    let mut input = stored[rng.usize(..stored.len())].clone();
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(..=input.len());
        let end = (at + rng.usize(..16)).min(input.len());
        match rng.u8(..7) {
            0 if at < input.len() => input[at] ^= 1 << rng.u8(..8),
            1 if at < input.len() => input[at] = *rng.choice(b"\0 \"#%,-0123456789:[\\]\n{}\x7f\xc3\xff").unwrap(),
            2 => input.insert(at, rng.u8(..)),
            3 => _ = input.drain(at..end),
            4 => {
                let copied = input[at..end].to_vec();
                let to = rng.usize(..=input.len());
                input.splice(to..to, copied);
            }
            5 if !words.is_empty() => {
                let word = &words[rng.usize(..words.len())];
                input.splice(at..end, word.iter().copied());
            }
            _ => {
                let other = &stored[rng.usize(..stored.len())];
                input.truncate(at);
                input.extend_from_slice(&other[rng.usize(..=other.len())..]);
            }
        }
        input.truncate(MAX_BYTES);
    }
    input
}

/// Returns the inputs of a target's archive, and those that once broke the target.
fn stored(target: &str) -> Vec<Vec<u8>> {
    let archive = std::fs::File::open(root().join(format!("fuzz/corpus/{target}.tar.gz"))).unwrap();
    let mut tar = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut tar).unwrap();
    let mut inputs = unpacked(&tar);
    if let Ok(broken) = std::fs::read_dir(root().join("fuzz/regressions").join(target)) {
        inputs.extend(broken.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()));
    }
    inputs
}

/// Each file has a header block with its size in octal digits, and then its content. An empty block
/// ends the archive.
fn unpacked(tar: &[u8]) -> Vec<Vec<u8>> {
    const BLOCK: usize = 512;
    let (mut files, mut at) = (Vec::new(), 0);
    while tar[at] != 0 {
        let size = usize::from_str_radix(std::str::from_utf8(&tar[at + 124..at + 135]).unwrap(), 8).unwrap();
        files.push(tar[at + BLOCK..at + BLOCK + size].to_vec());
        at += BLOCK + size.next_multiple_of(BLOCK);
    }
    files
}

/// Returns the groups of the dictionary, each with its targets and its words. A line has a word in
/// quotes.
fn groups() -> Vec<(Vec<String>, Vec<String>)> {
    let text = read(&root().join("fuzz/dictionary.txt"));
    let groups = text.split("# targets: ").skip(1).map(|group| {
        let (targets, words) = group.split_once('\n').unwrap();
        let words = words.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
        (targets.split(' ').map(str::to_owned).collect(), words.map(str::to_owned).collect())
    });
    groups.collect()
}

fn words(target: &str) -> Vec<Vec<u8>> {
    let chosen = groups().into_iter().filter(|(targets, _)| targets.iter().any(|name| name == target));
    let words = chosen.flat_map(|(_, words)| words);
    words.map(|word| word.replace("\\\"", "\"").replace("\\\\", "\\").into_bytes()).collect()
}

/// Returns the names of the entries of a folder of `fuzz`, without their extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("fuzz").join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.split('.').next().unwrap().to_owned()).collect()
}

#[test]
fn every_target_has_stored_inputs() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("corpus"), targets);
    for folder in ["seeds", "regressions"] {
        assert!(names(folder).is_subset(&targets), "{folder}: {:?}", names(folder));
    }
    for (names, words) in groups() {
        assert!(names.iter().all(|name| targets.contains(name)) && !words.is_empty(), "{names:?}");
    }
}

/// A package may have several versions.
fn locked(path: &str) -> BTreeMap<String, BTreeSet<[String; 3]>> {
    let lock = read(&root().join(path));
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
