//! What the fuzz targets share.
//!
//! A target is one file of `targets/`: it reads an input, which may be anything, and says what holds of it. How often each is run is in `targets.txt`; how they are run, in
//! `README.md`.

pub mod answer;
pub mod file;

/// The key that seals cursors here.
pub const CURSOR_KEYS: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
