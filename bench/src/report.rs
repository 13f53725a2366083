//! The output of the measurements: Markdown tables, JSON files, and the sections of
//! docs/performance.md. Each measurement rewrites its own section.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use key_schema::instant::Instant;
use serde::Serialize;

use crate::BenchError;

const PATH: &str = "docs/performance.md";
/// The number of names that the output shows for one kind of difference.
const NAMED: usize = 5;

/// The options of every measurement in docs/performance.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table into docs/performance.md.
    #[arg(long)]
    write: bool,
}

impl Output {
    /// Prints the text. Writes the figures and the section of the page, if the options request it.
    pub fn publish(&self, section: &str, text: &str, figures: &impl Serialize) -> Result<(), BenchError> {
        print!("{text}");
        write_json(self.json.as_deref(), figures)?;
        if self.write {
            rewrite(PATH, section, &format!("{}\n\n{}", conditions(), text.trim_end()))?;
        }
        Ok(())
    }
}

/// Replaces a section of a page. `page` is its path in the repository.
pub(crate) fn rewrite(page: &str, section: &str, text: &str) -> Result<(), BenchError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let missing = || wrong!("{page} has no section {section}");
    let text = replaced(&std::fs::read_to_string(&path)?, section, text).ok_or_else(missing)?;
    Ok(std::fs::write(&path, text)?)
}

pub(crate) fn write_json(path: Option<&Path>, figures: &impl Serialize) -> Result<(), BenchError> {
    match path {
        Some(path) => Ok(std::fs::write(path, serde_json::to_string_pretty(figures)? + "\n")?),
        None => Ok(()),
    }
}

/// A table in Markdown. A heading or row is one text, with ` | ` between its cells.
pub(crate) struct Table(String);

impl Table {
    pub fn new(heading: &str) -> Self {
        Self(format!("| {heading} |\n|{}\n", "---|".repeat(heading.split(" | ").count())))
    }

    pub fn row(&mut self, cells: impl fmt::Display) {
        self.0 += &format!("| {cells} |\n");
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The differences, one text for each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences(Vec<String>);

impl Differences {
    pub(crate) fn add(&mut self, what: &str, names: impl IntoIterator<Item = String>) {
        let names: Vec<String> = names.into_iter().collect();
        if !names.is_empty() {
            let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            self.0.push(format!("{what}: {} ({})", names.len(), shown.join(", ")));
        }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("equal");
        }
        self.0.iter().try_for_each(|difference| write!(f, "\n  DIFFERENT: {difference}"))
    }
}

/// Returns the quantile at `thousandths`: 990 is the 99th percentile. The result is one of the
/// durations, without interpolation.
pub(crate) fn quantile(durations: &[Duration], thousandths: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * thousandths).div_ceil(1_000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Formats a figure, or a dash if it was not measured.
pub(crate) fn or_dash(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.digits$}"))
}

fn replaced(old: &str, section: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- end of {section} -->\n"));
    let (before, rest) = old.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{text}\n{end}{after}"))
}

/// Returns the day, the machine, the compiler and the command.
pub(crate) fn conditions() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let rustc = Command::new("rustc").arg("--version").output().ok();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent).and_then(Path::file_name);
    let is_local = folder.is_some_and(|folder| folder == "local");
    let profile = if is_local { "--profile local" } else { "--release" };
    format!(
        "{}, {cores} cores of {}, {rustc}: `cargo run {profile} -p bodega-bench -- {command}`.",
        Instant::now().day(),
        model.unwrap_or("an unknown processor")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_measured_durations() {
        let of = |millis: std::ops::RangeInclusive<u64>| millis.rev().map(Duration::from_millis).collect::<Vec<_>>();
        let at = |thousandths| quantile(&of(1..=100), thousandths).as_millis();
        assert_eq!((at(500), at(900), at(990), at(1_000)), (50, 90, 99, 100));
        assert_eq!(quantile(&of(7..=7), 500).as_millis(), 7);
        assert_eq!(quantile(&of(1..=3), 990).as_millis(), 3);
        assert_eq!(quantile(&[], 500), Duration::ZERO);
    }

    #[test]
    fn a_table_has_as_many_columns_as_its_heading() {
        let mut table = Table::new("route | p50 ms");
        table.row(format_args!("`GET /` | {:.1}", 1.25));
        assert_eq!(table.to_string(), "| route | p50 ms |\n|---|---|\n| `GET /` | 1.2 |\n");
    }

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let old = "# A\n<!-- x -->\nold\n<!-- end of x -->\nrest\n";
        assert_eq!(replaced(old, "x", "new").unwrap(), "# A\n<!-- x -->\nnew\n<!-- end of x -->\nrest\n");
        assert!(replaced(old, "y", "new").is_none());
    }
}
