//! What the fuzz targets share: functions that can be called without a cloud, and what must hold of whatever they ask and answer.
//!
//! A target is one file of `targets/`: it reads an input, which may be anything, and says what holds of it. How often each is run is in `targets.txt`; how they are run, in
//! `README.md`.

pub mod answer;
pub mod apps;
pub mod engine;
pub mod file;
pub mod sinks;
pub mod table;

/// The one list of targets, with the inputs that a check of a change tries.
pub const TARGETS: &str = include_str!("../targets.txt");

/// The key that seals cursors here.
pub const CURSOR_KEYS: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
