//! Manages the folders for crash plans and clock errors. `/_local/faults` writes into the folders,
//! and the functions' processes read from them.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use telemetry::crash::{self, FOLDER_VARIABLE, Plan, PlanError};

/// The private folder that contains a folder for each function. It is created when the first plan
/// or clock error is written.
#[derive(Debug)]
pub(crate) struct CrashPoints {
    folder: PathBuf,
    is_made: Mutex<bool>,
}

impl CrashPoints {
    pub(crate) fn new() -> Self {
        let name = format!("bodega-crash-points-{}-{:016x}", std::process::id(), fastrand::u64(..));
        Self { folder: std::env::temp_dir().join(name), is_made: Mutex::new(false) }
    }

    /// Returns the environment variable through which a function's processes find their plans.
    pub(crate) fn variable(&self, function: &str) -> (String, String) {
        (FOLDER_VARIABLE.to_owned(), self.folder.join(function).to_string_lossy().into_owned())
    }

    pub(crate) fn arm(&self, function: &str, point: &str, plan: &Plan) -> Result<(), PlanError> {
        self.make()?;
        crash::arm(&self.folder.join(function), point, plan)
    }

    /// Fails if another user has created a folder of this name.
    fn make(&self) -> io::Result<()> {
        let mut is_made = self.is_made.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_made {
            let mut builder = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&self.folder)?;
            *is_made = true;
        }
        Ok(())
    }

    pub(crate) fn armed(&self, function: &str) -> Vec<(&'static str, Plan)> {
        crash::armed(&self.folder.join(function))
    }

    /// Disarms all crash points of a function, and resets its clock.
    pub(crate) fn disarm(&self, function: &str) -> io::Result<()> {
        crash::disarm(&self.folder.join(function))?;
        self.step_clock(function, 0)
    }

    /// Sets the clock of a function's processes forward or back by `seconds`.
    pub(crate) fn step_clock(&self, function: &str, seconds: i64) -> io::Result<()> {
        if seconds != 0 {
            self.make()?;
        }
        crash::step_clock(&self.folder.join(function), seconds)
    }

    /// This is not an implementation of `Drop`, because an open connection may keep the value alive
    /// after the system has ended.
    pub(crate) fn remove(&self) {
        // A remaining folder is small, and the operating system removes temporary files later.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
