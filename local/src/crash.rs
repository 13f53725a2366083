//! The folders by which `/_local/faults` tells the functions' processes where to crash, and that their clocks are wrong.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use telemetry::crash::{self, FOLDER_VARIABLE, Plan, PlanError};

/// A private folder, made for the first plan.
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

    /// What the processes of a function find their plans by.
    pub(crate) fn variable(&self, function: &str) -> (String, String) {
        (FOLDER_VARIABLE.to_owned(), self.folder.join(function).to_string_lossy().into_owned())
    }

    pub(crate) fn arm(&self, function: &str, point: &str, plan: &Plan) -> Result<(), PlanError> {
        self.make()?;
        crash::arm(&self.folder.join(function), point, plan)
    }

    /// Fails when somebody else has such a folder already.
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

    /// Disarms all points of a function, and sets its clock right.
    pub(crate) fn disarm(&self, function: &str) -> io::Result<()> {
        crash::disarm(&self.folder.join(function))?;
        self.step_clock(function, 0)
    }

    /// Makes the clock of a function wrong.
    pub(crate) fn step_clock(&self, function: &str, seconds: i64) -> io::Result<()> {
        if seconds != 0 {
            self.make()?;
        }
        crash::step_clock(&self.folder.join(function), seconds)
    }

    /// Removes the folder, if there is one. A connection that lingers may keep this value for longer than the system lives.
    pub(crate) fn remove(&self) {
        // What is left behind is small and in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
