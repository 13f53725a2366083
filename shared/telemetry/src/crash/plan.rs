//! Decides whether an armed crash point crashes the process when the process passes it. Each point
//! has a plan. The plans are in a folder that the local system shares with a function's processes.
//!
//! A plan is a small file. Only the process that holds the file's lock may change it. So each pass
//! of any process counts once, and there are never more than `count` crashes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CRASH_POINTS;

/// The environment variable of a function's process that names the folder of its plans.
pub const FOLDER_VARIABLE: &str = "BODEGA_CRASH_POINTS";

/// The plan of a point: the limits of its crashes, and the numbers of passes and crashes so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The probability that a pass crashes the process, from 0 to 1.
    pub rate: f64,
    /// The maximum number of crashes, or `None` for no limit.
    pub count: Option<u32>,
    /// The random seed. The same seed selects the same passes.
    pub seed: u64,
    /// The number of passes since the point was armed.
    #[serde(default)]
    pub passes: u64,
    #[serde(default)]
    pub struck: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no point with this name.
    #[error("{name} is not a crash point. The crash points are: {known}", known = names())]
    Unknown {
        /// The given name.
        name: String,
    },
    /// The rate is not a number from 0 to 1.
    #[error("a rate is a number from 0 to 1")]
    Rate,
    #[error("the crash point cannot be armed: {0}")]
    Io(#[from] io::Error),
}

/// Arms a point for the processes with this `folder` in [`FOLDER_VARIABLE`]. Replaces an existing
/// plan.
pub fn arm(folder: &Path, name: &str, plan: &Plan) -> Result<(), PlanError> {
    if !CRASH_POINTS.iter().any(|(known, _)| *known == name) {
        return Err(PlanError::Unknown { name: name.to_owned() });
    }
    if !(0.0..=1.0).contains(&plan.rate) {
        return Err(PlanError::Rate);
    }
    std::fs::create_dir_all(folder)?;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path(folder, name))?;
    file.lock()?;
    write(&mut file, plan)?;
    Ok(())
}

/// Disarms every point of `folder`.
///
/// # Errors
/// When a plan cannot be removed. A missing folder is not an error.
pub fn disarm(folder: &Path) -> io::Result<()> {
    for (name, _) in CRASH_POINTS {
        match std::fs::remove_file(path(folder, name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the armed points of `folder` with their plans, by name.
#[must_use]
pub fn armed(folder: &Path) -> Vec<(&'static str, Plan)> {
    let read_plan = |&(name, _): &(&'static str, &str)| {
        let mut file = File::open(path(folder, name)).ok()?;
        file.lock_shared().ok()?;
        Some((name, read(&mut file).ok()?))
    };
    CRASH_POINTS.iter().filter_map(read_plan).collect()
}

/// Counts a pass of the point `name`. Returns whether this pass must crash the process. The result
/// is `false` if there is no readable plan.
pub(super) fn must_crash(folder: &Path, name: &str) -> bool {
    let pass = || -> io::Result<bool> {
        let mut file = OpenOptions::new().read(true).write(true).open(path(folder, name))?;
        file.lock()?;
        let mut plan = read(&mut file)?;
        let left = plan.count.is_none_or(|count| plan.struck < u64::from(count));
        let must_crash = left && draw(plan.seed, plan.passes) < plan.rate;
        plan.passes += 1;
        plan.struck += u64::from(must_crash);
        write(&mut file, &plan)?;
        Ok(must_crash)
    };
    pass().unwrap_or(false)
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

fn names() -> String {
    let names: Vec<&str> = CRASH_POINTS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

fn read(file: &mut File) -> io::Result<Plan> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn write(file: &mut File, plan: &Plan) -> io::Result<()> {
    let text = serde_json::to_vec(plan)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&text)
}

/// Returns a number in [0, 1) for a pass, from the finalizer of SplitMix64. The number depends only
/// on the seed and the number of the pass.
fn draw(seed: u64, pass: u64) -> f64 {
    let mut mixed = seed.wrapping_add(pass.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // A double represents 53 bits exactly.
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const POINT: &str = "stream.bus.published";

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("crash-points-{}-{name}", std::process::id())))
        }

        fn passes(&self, number: usize) -> Vec<bool> {
            (0..number).map(|_| must_crash(&self.0, POINT)).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn plan(rate: f64, count: Option<u32>, seed: u64) -> Plan {
        Plan { rate, count, seed, passes: 0, struck: 0 }
    }

    #[test]
    fn an_armed_point_crashes_as_often_as_requested() {
        let folder = Folder::new("count");
        assert_eq!(folder.passes(1), [false], "nothing is armed");
        arm(&folder.0, POINT, &plan(1.0, Some(2), 0)).unwrap();
        assert_eq!(folder.passes(4), [true, true, false, false]);
        assert_eq!(armed(&folder.0), [(POINT, Plan { passes: 4, struck: 2, ..plan(1.0, Some(2), 0) })]);
        assert!(!must_crash(&folder.0, "notifier.sent"), "another point");
        disarm(&folder.0).unwrap();
        assert_eq!((folder.passes(1), armed(&folder.0)), (vec![false], Vec::new()));
    }

    #[test]
    fn the_same_seed_selects_the_same_passes_and_another_seed_selects_others() {
        let folder = Folder::new("seed");
        let run = |seed| {
            arm(&folder.0, POINT, &plan(0.3, None, seed)).unwrap();
            folder.passes(200)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let struck = run(7).iter().filter(|hit| **hit).count();
        assert!((30..=90).contains(&struck), "{struck} of 200 at a rate of 0.3");
        arm(&folder.0, POINT, &plan(0.0, None, 7)).unwrap();
        assert!(!folder.passes(50).contains(&true));
    }

    #[test]
    fn concurrent_passes_never_crash_more_often_than_requested() {
        let folder = Folder::new("together");
        arm(&folder.0, POINT, &plan(1.0, Some(3), 0)).unwrap();
        let struck: usize = std::thread::scope(|scope| {
            let passes: Vec<_> = (0..8).map(|_| scope.spawn(|| folder.passes(5))).collect();
            passes.into_iter().map(|pass| pass.join().unwrap().into_iter().filter(|hit| *hit).count()).sum()
        });
        assert_eq!(struck, 3);
    }

    #[test]
    fn an_unknown_point_and_an_invalid_rate_are_refused() {
        let folder = Folder::new("refused");
        let unknown = arm(&folder.0, "../stream", &plan(1.0, None, 0)).unwrap_err().to_string();
        assert!(unknown.contains("is not a crash point") && unknown.contains(POINT), "{unknown}");
        assert!(matches!(arm(&folder.0, POINT, &plan(f64::NAN, None, 0)), Err(PlanError::Rate)));
        assert!(!folder.0.exists());
    }
}
