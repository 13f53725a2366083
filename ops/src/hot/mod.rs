//! `ops hot`: shows the keys that DynamoDB throttled, their access patterns, and advice.
//!
//! Contributor Insights counts throttled requests by key, in one rule of CloudWatch for partition
//! keys and in another rule for whole keys. The table and each index have their own rules. The
//! command reads the reports of all rules, or a recorded report, and finds the access patterns of
//! the keys.

mod advice;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::PathBuf;

use aws::CloudWatch;
use clap::Args;
use key_schema::index::INDEXES;
use key_schema::instant::Instant;
use key_schema::key::{Key, PartitionKey, SortKey, shown};
use key_schema::registry;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use advice::{ADVICE, advice};

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;

const TABLE: &str = "table";
/// The prefixes of the names of rules: for throttled partition keys, and for throttled whole keys.
const RULES: [&str; 2] = ["DynamoDBContributorInsights-PKT-", "DynamoDBContributorInsights-SKT-"];
const MINUTE: i64 = 60;
/// The maximum number of patterns of a key in the text. The JSON has all.
const SHOWN: usize = 5;
/// The maximum number of contributors of a report (API reference, `GetInsightRuleReport`).
const CONTRIBUTORS: u32 = 100;

const EXAMPLES: &str = "Examples:
  ops hot
  ops hot --minutes 180 --json
  aws cloudwatch get-insight-rule-report --rule-name <rule> --start-time <time> --end-time <time> --period 60 > report.json
  ops hot --report report.json --place GSI2

Exit status 1 means that keys were throttled.";

/// Show the throttled keys of the table and its indexes, with advice.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct HotArgs {
    /// The number of minutes to report, up to now.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=1_440))]
    minutes: u16,
    /// Read the recorded output of `aws cloudwatch get-insight-rule-report` from this file, and
    /// send no request.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The table or the index that the recorded report is about.
    #[arg(long, value_name = "NAME", default_value = TABLE, value_parser = place, requires = "report")]
    place: String,
}

fn place(name: &str) -> Result<String, String> {
    let known = || [TABLE].into_iter().chain(INDEXES.map(|index| index.name()));
    if known().any(|place| place == name) {
        return Ok(name.to_owned());
    }
    Err(format!("must be one of {}{}", known().collect::<Vec<_>>().join(", "), template::near::hint(name, known())))
}

pub(crate) async fn run(args: HotArgs) -> Result<Outcome, OpsError> {
    let hot = match &args.report {
        Some(path) => {
            let usage = |error: String| OpsError::Usage(format!("{}: {error}", path.display()));
            let text = fs::read(path).map_err(|error| usage(error.to_string()))?;
            let report: InsightReport = serde_json::from_slice(&text).map_err(|error| usage(error.to_string()))?;
            Hot::new([(args.place, report)])
        }
        None => {
            let end = Instant::now().as_seconds();
            let start = end.div_euclid(MINUTE) * MINUTE - i64::from(args.minutes) * MINUTE;
            Hot::new(fetch(&Items::from_env().await?, &CloudWatch::from_env()?, (start, end)).await?)
        }
    };
    Ok(Outcome::new(&hot, hot.keys.is_empty()))
}

/// Reads the reports of the table and its indexes.
///
/// # Errors
/// [`OpsError`], also when Contributor Insights is off.
pub async fn fetch(
    items: &Items,
    cloudwatch: &CloudWatch,
    (start, end): (i64, i64),
) -> Result<Vec<(String, InsightReport)>, OpsError> {
    let mut reports = Vec::new();
    for index in [None].into_iter().chain(INDEXES.map(|index| Some(index.name()))) {
        let rules = items.insight_rules(index).await?;
        let of_throttles = rules.into_iter().filter(|rule| RULES.iter().any(|prefix| rule.starts_with(prefix)));
        for rule in of_throttles {
            let request = json!({
                "RuleName": rule,
                "StartTime": start,
                "EndTime": end,
                "Period": MINUTE,
                "MaxContributorCount": CONTRIBUTORS,
            });
            let report = cloudwatch.read("GetInsightRuleReport", &request).await?;
            reports.push((index.unwrap_or(TABLE).to_owned(), report));
        }
    }
    if reports.is_empty() {
        return Err(OpsError::Failed("Contributor Insights is off, so CloudWatch counts no throttled keys".to_owned()));
    }
    Ok(reports)
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct InsightReport {
    #[serde(default)]
    contributors: Vec<Contributor>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contributor {
    keys: Vec<String>,
    approximate_aggregate_value: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HotKey {
    /// The approximate number of throttled requests.
    pub throttled: u64,
    pub place: String,
    /// The partition key, or the whole key, as [`shown`] returns it.
    pub key: String,
    pub patterns: Vec<&'static str>,
    pub help: &'static str,
}

/// The throttled keys, the most throttled first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hot {
    pub keys: Vec<HotKey>,
}

impl Hot {
    #[must_use]
    pub fn new(reports: impl IntoIterator<Item = (String, InsightReport)>) -> Self {
        let mut counts: BTreeMap<(String, Vec<String>), u64> = BTreeMap::new();
        for (place, report) in reports {
            for Contributor { keys, approximate_aggregate_value } in report.contributors {
                *counts.entry((place.clone(), keys)).or_default() += count(approximate_aggregate_value);
            }
        }
        let hot = |((place, keys), throttled): ((String, Vec<String>), u64)| {
            let partition = keys.first().map(String::as_str).unwrap_or_default();
            let sort = keys.get(1).map(String::as_str);
            let (patterns, help) = (patterns(&place, partition), advice(partition));
            HotKey { throttled, place, key: readable(partition, sort), patterns, help }
        };
        let mut keys: Vec<HotKey> = counts.into_iter().filter(|(_, count)| *count > 0).map(hot).collect();
        // A report of an index may name the keys of the table. The key is listed only for the places
        // where it is a key, if there is one.
        let used: BTreeSet<String> =
            keys.iter().filter(|key| !key.patterns.is_empty()).map(|key| key.key.clone()).collect();
        keys.retain(|key| !key.patterns.is_empty() || !used.contains(&key.key));
        keys.sort_by(|a, b| b.throttled.cmp(&a.throttled).then_with(|| a.cmp(b)));
        Self { keys }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn count(value: f64) -> u64 {
    value.round() as u64
}

fn readable(partition: &str, sort: Option<&str>) -> String {
    // A `Key` must have a sort key, so `-` replaces a missing one. The returned text leaves the `-`
    // out.
    let key = PartitionKey::new(partition).and_then(|pk| Ok(Key { pk, sk: SortKey::new(sort.unwrap_or("-"))? }));
    let shown = key.map_or_else(|_| "unreadable".to_owned(), |key| shown(&key));
    if sort.is_some() { shown } else { shown.trim_end_matches(" -").to_owned() }
}

/// Returns the kind of a partition: the prefix of its key.
fn kind(partition: &str) -> &str {
    partition.split('#').next().unwrap_or(partition)
}

/// Returns the ids of the patterns whose partition key has the prefix of this partition.
fn patterns(place: &str, partition: &str) -> Vec<&'static str> {
    let attribute = if place == TABLE { "PK".to_owned() } else { format!("{place}PK") };
    let uses = |key: &str| {
        key.split([',', ';', ' ']).collect::<Vec<_>>().windows(3).any(|words| {
            let [name, is, value] = words else { return false };
            *name == attribute && *is == "=" && kind(value) == kind(partition)
        })
    };
    let matches = registry::all().filter(|pattern| pattern.index.map_or(TABLE, |index| index.name()) == place);
    matches.filter(|pattern| uses(pattern.key)).map(|pattern| pattern.id).collect()
}

impl fmt::Display for Hot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for HotKey { throttled, place, key, patterns, help } in &self.keys {
            writeln!(f, "{throttled:>9} throttled  {place}  {key}")?;
            let (shown, others) = patterns.split_at(patterns.len().min(SHOWN));
            let others = if others.is_empty() { String::new() } else { format!(" and {} others", others.len()) };
            writeln!(
                f,
                "           used by {}{others}",
                if shown.is_empty() { "no pattern".to_owned() } else { shown.join(", ") }
            )?;
            writeln!(f, "           {help}")?;
        }
        match self.keys.len() {
            0 => writeln!(f, "no key was throttled"),
            count => writeln!(f, "{count} keys were throttled"),
        }
    }
}
