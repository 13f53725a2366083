//! The fuzz targets: the module of a target has a function `check` that reads an arbitrary input and
//! asserts properties of the result. The targets share `answer` and [`Scratch`].
//!
//! `tests/suite/fuzzing.rs` includes this file and runs the targets in the tests. `main.rs` runs
//! them under libFuzzer (`README.md`).

pub mod answer;
pub mod body;
pub mod cursor;
pub mod event;
pub mod import;
pub mod items;
pub mod keys;
pub mod records;
pub mod search;
pub mod template;

use std::path::{Path, PathBuf};

/// Asserts a target's properties for one input.
pub type Check = fn(&[u8]);

pub const TARGETS: [(&str, Check); 9] = [
    ("body", body::check),
    ("cursor", cursor::check),
    ("event", event::check),
    ("import", import::check),
    ("items", items::check),
    ("keys", keys::check),
    ("records", records::check),
    ("search", search::check),
    ("template", template::check),
];

/// The key that seals cursors in the targets.
pub const CURSOR_KEYS: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// A file of this process. Dropping the value removes the file.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Chooses the path of a file for this target. It does not create the file.
    #[must_use]
    pub fn new(target: &str) -> Self {
        Self(std::env::temp_dir().join(format!("bodega-fuzz-{target}-{}", std::process::id())))
    }

    /// Writes these bytes to the file and returns its path.
    #[must_use]
    pub fn holding(&self, bytes: &[u8]) -> &Path {
        std::fs::write(&self.0, bytes).expect("a scratch file can be written");
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error is ignored, because the file may never have been written.
        let _ = std::fs::remove_file(&self.0);
    }
}
