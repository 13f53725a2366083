//! Writes docs/performance.md: the latest measurements and their conditions. Each measurement
//! rewrites its own section.

use std::path::Path;
use std::process::Command;

use key_schema::instant::Instant;

use crate::BenchError;

const PATH: &str = "docs/performance.md";

/// Replaces a measurement's section, between two comments that name it.
///
/// # Errors
/// When the file has no such section or cannot be written.
pub(crate) fn write(section: &str, text: &str) -> Result<(), BenchError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH);
    let old = std::fs::read_to_string(&path)?;
    std::fs::write(&path, replaced(&old, section, &format!("{}\n\n{}", conditions(), text.trim_end()))?)?;
    Ok(())
}

/// Writes a file next to the page.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn save(name: &str, text: &str) -> Result<(), BenchError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH).with_file_name(name);
    Ok(std::fs::write(path, text)?)
}

fn replaced(old: &str, section: &str, text: &str) -> Result<String, BenchError> {
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- end of {section} -->\n"));
    let missing = || BenchError::Wrong(format!("{PATH} has no section {section}"));
    let (before, rest) = old.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}{text}\n{end}{after}"))
}

/// Returns the day, the machine, the compiler and the command.
fn conditions() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let rustc = Command::new("rustc").arg("--version").output().ok();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    format!(
        "{}, {cores} cores of {}, {rustc}: `cargo run --release -p bodega-bench -- {command}`.",
        Instant::now().day(),
        model.unwrap_or("an unknown processor")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::replaced;

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let old = "# A\n<!-- x -->\nold\n<!-- end of x -->\nrest\n";
        assert_eq!(replaced(old, "x", "new").unwrap(), "# A\n<!-- x -->\nnew\n<!-- end of x -->\nrest\n");
        assert!(replaced(old, "y", "new").is_err());
    }
}
