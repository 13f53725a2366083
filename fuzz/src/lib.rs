//! The fuzz targets: the module of a target has a function `check` that reads an arbitrary input and
//! asserts properties of the result. The targets share `answer` and `file`.
//!
//! `tests/suite/fuzzing.rs` includes this file and runs the targets in the tests. The programs of
//! `targets/` run them under libFuzzer (`README.md`).

pub mod answer;
pub mod body;
pub mod cursor;
pub mod event;
pub mod file;
pub mod import;
pub mod items;
pub mod keys;
pub mod records;
pub mod search;
pub mod template;

/// The key that seals cursors in the targets.
pub const CURSOR_KEYS: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
