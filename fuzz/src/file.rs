use std::path::{Path, PathBuf};

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
