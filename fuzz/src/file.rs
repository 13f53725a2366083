//! An input as a file, for what reads files.

use std::path::{Path, PathBuf};

/// A file of this process, which goes with it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A file for the target of this name.
    #[must_use]
    pub fn new(target: &str) -> Self {
        Self(std::env::temp_dir().join(format!("bodega-fuzz-{target}-{}", std::process::id())))
    }

    /// The file, holding these bytes.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn holding(&self, bytes: &[u8]) -> &Path {
        std::fs::write(&self.0, bytes).expect("a scratch file can be written");
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may never have been written.
        let _ = std::fs::remove_file(&self.0);
    }
}
