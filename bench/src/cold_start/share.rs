//! A share of a core, as a function has it by its memory, given out in slices.

use std::fs;
use std::path::PathBuf;

/// The memory that has a whole core. <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
pub(super) const CORE_MB: u32 = 1_769;
const PERIOD_MICROS: u32 = 20_000;
/// The control groups' first and second version.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];

/// A control group, gone with the value.
pub(super) struct Share {
    folder: PathBuf,
}

impl Share {
    /// None where this process may not make one.
    pub fn create(memory_mb: u32) -> Option<Self> {
        HIERARCHIES.iter().find_map(|hierarchy| {
            let folder = PathBuf::from(hierarchy).join(format!("bodega-bench-{}-{memory_mb}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let share = Self { folder };
            share.limit(memory_mb).map(|()| share)
        })
    }

    fn limit(&self, memory_mb: u32) -> Option<()> {
        let quota = PERIOD_MICROS * memory_mb / CORE_MB;
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
