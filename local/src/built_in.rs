//! Holds the files that are compiled into the program, so that a downloaded program runs without
//! its source.

use std::io;
use std::path::PathBuf;

pub(crate) const TEMPLATE: &str = include_str!("../../template.yaml");
pub(crate) const OPENAPI: &str = include_str!("../../openapi.yaml");

/// The files of the sample data that `--demo` loads: name and content.
const SAMPLE: [(&str, &str); 3] = [
    ("products.csv", include_str!("../demo/products.csv")),
    ("households.csv", include_str!("../demo/households.csv")),
    ("baskets.ndjson", include_str!("../demo/baskets.ndjson")),
];

/// The sample data, written to a temporary folder. The import reads the files there. Dropping this
/// value removes the folder.
#[derive(Debug)]
pub(crate) struct Sample {
    folder: PathBuf,
}

impl Sample {
    pub(crate) fn write() -> io::Result<Self> {
        let name = format!("bodega-demo-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder)?;
        let sample = Self { folder };
        for (name, text) in SAMPLE {
            std::fs::write(sample.file(name), text)?;
        }
        Ok(sample)
    }

    pub(crate) fn products(&self) -> PathBuf {
        self.file("products.csv")
    }

    pub(crate) fn households(&self) -> PathBuf {
        self.file("households.csv")
    }

    pub(crate) fn baskets(&self) -> PathBuf {
        self.file("baskets.ndjson")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        // If this fails, the small folder remains until the operating system removes its temporary
        // files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
