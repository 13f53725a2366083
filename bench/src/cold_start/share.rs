//! A share of a core, as a function of 128 MB has it: 128 / 1,769 of one, given out in slices.

use std::fs;
use std::path::PathBuf;

/// Lambda gives a whole core at 1,769 MB.
const SHARE: f64 = 128.0 / 1_769.0;
const PERIOD_MICROS: u32 = 20_000;
/// The control groups' first and second version.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];

/// A control group, gone with the value.
pub(super) struct Share {
    folder: PathBuf,
}

impl Share {
    /// None where this process may not make one.
    pub fn create() -> Option<Self> {
        HIERARCHIES.iter().find_map(|hierarchy| {
            let folder = PathBuf::from(hierarchy).join(format!("bodega-bench-{}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let share = Self { folder };
            share.limit().map(|()| share)
        })
    }

    fn limit(&self) -> Option<()> {
        let quota = (f64::from(PERIOD_MICROS) * SHARE).round();
        let second = fs::write(self.folder.join("cpu.max"), format!("{quota} {PERIOD_MICROS}"));
        second
            .or_else(|_| {
                fs::write(self.folder.join("cpu.cfs_period_us"), PERIOD_MICROS.to_string())?;
                fs::write(self.folder.join("cpu.cfs_quota_us"), quota.to_string())
            })
            .ok()
    }

    /// From now on the process has no more than that.
    pub fn hold(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // What is left of it goes with the machine.
        let _ = fs::remove_dir(&self.folder);
    }
}
