//! Limits a process to a share of a core, as Lambda limits a function in proportion to its memory.

use std::fs;
use std::path::PathBuf;

/// The memory size in MB with which a function gets one whole core.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
pub(super) const CORE_MB: u32 = 1_769;
const PERIOD_MICROS: u32 = 20_000;
/// The folders of control groups, version 1 and version 2.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];

/// A control group. Dropping the value removes the group.
pub(super) struct Share {
    folder: PathBuf,
}

impl Share {
    /// Creates a group, or returns `None` if this process lacks the permission.
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

    pub fn hold(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // If this fails, an empty group remains until the machine restarts.
        let _ = fs::remove_dir(&self.folder);
    }
}
