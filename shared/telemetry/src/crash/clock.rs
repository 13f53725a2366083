//! A clock error for tests: a function's processes read it from a file next to the plans of the
//! crash points.

use std::io;
use std::path::{Path, PathBuf};

use super::FOLDER_VARIABLE;

/// Sets the clock of the processes with this `folder` in [`FOLDER_VARIABLE`] forward by `seconds`,
/// or back if `seconds` is negative. With 0 the clock is right again.
pub fn step_clock(folder: &Path, seconds: i64) -> io::Result<()> {
    let file = file(folder);
    if seconds == 0 {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    std::fs::create_dir_all(folder)?;
    // A rename is atomic. Without it, a reader could see a half-written number.
    let draft = file.with_extension("draft");
    std::fs::write(&draft, seconds.to_string())?;
    std::fs::rename(draft, file)
}

/// Returns the clock error of this process in seconds.
#[must_use]
pub fn clock_step() -> i64 {
    std::env::var_os(FOLDER_VARIABLE).map_or(0, |folder| read(Path::new(&folder)))
}

/// Returns the clock error of the processes with this folder.
fn read(folder: &Path) -> i64 {
    std::fs::read_to_string(file(folder)).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn file(folder: &Path) -> PathBuf {
    folder.join("clock")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_clock_error_lasts_until_it_is_set_to_zero() {
        let folder = std::env::temp_dir().join(format!("clock-steps-{}", std::process::id()));
        assert_eq!(read(&folder), 0);
        for seconds in [3_600, -86_400] {
            step_clock(&folder, seconds).unwrap();
            assert_eq!(read(&folder), seconds);
        }
        step_clock(&folder, 0).unwrap();
        step_clock(&folder, 0).unwrap();
        assert_eq!(read(&folder), 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
