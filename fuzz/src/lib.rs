//! Code that the fuzz targets share.
//!
//! A target is one file of `targets/`. It reads an arbitrary input and asserts properties of the
//! result. `targets.txt` has the number of generated inputs of each target, and `README.md` says
//! how to run them.

pub mod answer;
pub mod file;

/// The key that seals cursors in the targets.
pub const CURSOR_KEYS: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
