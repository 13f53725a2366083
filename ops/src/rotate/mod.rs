//! `ops rotate`: creates and deletes the tables of metrics, one table for each month.
//!
//! The command derives the names of the tables from the name of the main table and from the months.
//! It lists no tables, so it touches no table with another name. It also does not touch a table
//! that has the name of a month but other keys, an index or a stream.
//!
//! A function uses the table of a month as soon as the table exists, and otherwise the main table
//! ([`key_schema::month`]). The command creates a table at least [`CREATE_AHEAD_SECONDS`] before
//! its month begins, or never. So the points of a month are in one table.
//!
//! Each run reads the present state and does the missing steps. So an operator can repeat a run
//! that was stopped.

mod tables;

use std::fmt;

use clap::Args;
use key_schema::instant::Instant;
use key_schema::metric::LIFETIME_SECONDS;
use key_schema::month::{CREATE_AHEAD_SECONDS, Month};
use serde::Serialize;

use crate::error::OpsError;
use crate::outcome::Outcome;

use tables::Found;
pub use tables::MonthTables;

/// An empty table costs nothing. With two such tables, an operator has a month to repair a broken
/// schedule.
const AHEAD: i64 = 2;
/// The number of past months whose tables the command looks for.
const BACK: i64 = 24;
/// The time between the expiry of the last point of a month and the deletion of the table.
const MARGIN_SECONDS: i64 = 2 * 24 * 60 * 60;

const EXAMPLES: &str = "Examples:
  METRICS_TABLES=monthly ops rotate --dry-run
  METRICS_TABLES=monthly ops rotate --json
  METRICS_TABLES=one ops rotate      # after a return to one table: only removes tables

Run it once a day. Exit status 1 means that a table is missing or has another definition, or that a dry run found \
steps.";

/// Create the metrics tables of the next two months, and delete tables whose points have expired.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct RotateArgs {
    /// Print the steps, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct RotateOptions {
    /// Whether months have tables, as the parameter `MetricsTables` of the template says.
    pub is_monthly: bool,
    pub dry_run: bool,
    pub now: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    Create,
    TimeToLive,
    InfrequentAccess,
    Delete,
}

/// The state of a month after its steps. A dry run reports the state to which its steps would lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Present,
    /// The month needs a table and has none. The main table has its points.
    Missing,
    /// The month needs no table.
    Absent,
    /// A table with this name has another definition. The command does not touch it.
    Foreign,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MonthReport {
    /// The month, such as `2017-01`.
    pub month: String,
    pub table: String,
    pub state: State,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// The months with a table, a missing table or a step, oldest first.
    pub months: Vec<MonthReport>,
    pub dry_run: bool,
}

impl Rotated {
    /// Returns whether no table is missing or foreign, and no step is left.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_known = |month: &MonthReport| !matches!(month.state, State::Missing | State::Foreign);
        let is_done = |month: &MonthReport| !self.dry_run || month.steps.is_empty();
        self.months.iter().all(|month| is_known(month) && is_done(month))
    }
}

pub(crate) async fn run(args: RotateArgs) -> Result<Outcome, OpsError> {
    let is_monthly = match std::env::var("METRICS_TABLES").as_deref() {
        Ok("monthly") => true,
        Ok("one") => false,
        _ => {
            let hint = "set it to the value of the template's parameter MetricsTables";
            return Err(OpsError::Usage(format!("METRICS_TABLES must be one or monthly: {hint}")));
        }
    };
    let options = RotateOptions { is_monthly, dry_run: args.dry_run, now: Instant::now() };
    let rotated = rotate(&MonthTables::from_env().await?, options).await?;
    Ok(Outcome::new(&rotated, rotated.is_clean()))
}

/// Creates, changes and deletes the tables of months. The newest month comes first, so that no
/// failed deletion prevents the creation of a table.
///
/// # Errors
/// [`OpsError`]. A repeated run does the remaining steps.
pub async fn rotate(tables: &MonthTables, options: RotateOptions) -> Result<Rotated, OpsError> {
    let present = Month::of(options.now);
    let (mut months, mut has_older) = (Vec::new(), false);
    for month in (-BACK..=AHEAD).map(|offset| present.plus(offset)) {
        let table = month.table(tables.main());
        let found = tables.find(&table).await?;
        let (state, steps) = plan(month, found.as_ref(), has_older, options);
        has_older |= state == State::Present;
        if state != State::Absent || !steps.is_empty() {
            months.push(MonthReport { month: month.to_string(), table, state, steps });
        }
    }
    for MonthReport { table, steps, .. } in months.iter().rev().filter(|_| !options.dry_run) {
        for step in steps {
            match step {
                Step::Create => tables.create(table).await?,
                Step::TimeToLive => tables.expire_items(table).await?,
                Step::InfrequentAccess => tables.access_infrequently(table).await?,
                Step::Delete => tables.delete(table).await?,
            }
        }
    }
    Ok(Rotated { months, dry_run: options.dry_run })
}

/// Returns the state of a month after its steps, and the steps. `has_older` means that an older
/// month has a table.
fn plan(month: Month, found: Option<&Found>, has_older: bool, options: RotateOptions) -> (State, Vec<Step>) {
    let RotateOptions { is_monthly, now, .. } = options;
    let is_early = now.plus_seconds(CREATE_AHEAD_SECONDS) <= month.begins();
    let is_expired = now >= month.ends().plus_seconds(LIFETIME_SECONDS + MARGIN_SECONDS);
    match found {
        None if is_monthly && is_early => (State::Present, vec![Step::Create]),
        None if is_monthly && !is_expired && (has_older || now < month.begins()) => (State::Missing, Vec::new()),
        None => (State::Absent, Vec::new()),
        Some(found) if found.is_foreign => (State::Foreign, Vec::new()),
        // After a return to one table, functions write the points of coming months to the main
        // table. These points would be invisible if the tables existed after the next switch.
        Some(_) if is_expired || (!is_monthly && is_early) => (State::Absent, vec![Step::Delete]),
        Some(found) => {
            let expiry = (!found.expires_items).then_some(Step::TimeToLive);
            let class = (now > month.ends() && !found.is_infrequent).then_some(Step::InfrequentAccess);
            (State::Present, expiry.into_iter().chain(class).collect())
        }
    }
}

impl fmt::Display for Rotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for MonthReport { table, state, steps, .. } in &self.months {
            write!(f, "{table}  ")?;
            match (state, steps.as_slice()) {
                (State::Missing, _) => write!(f, "MISSING: the main table has the points of this month")?,
                (State::Foreign, _) => {
                    write!(f, "FOREIGN: it has another definition, and the command leaves it alone")?
                }
                (_, []) => write!(f, "unchanged")?,
                (_, steps) => {
                    let steps: Vec<&str> = steps.iter().map(|step| step.said(self.dry_run)).collect();
                    write!(f, "{}", steps.join(", "))?;
                }
            }
            writeln!(f)?;
        }
        if self.months.is_empty() { writeln!(f, "no month has a table") } else { Ok(()) }
    }
}

impl Step {
    const fn said(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Create, false) => "created",
            (Self::Create, true) => "would be created",
            (Self::TimeToLive, false) => "time to live turned on",
            (Self::TimeToLive, true) => "time to live would be turned on",
            (Self::InfrequentAccess, false) => "changed to infrequent access",
            (Self::InfrequentAccess, true) => "would be changed to infrequent access",
            (Self::Delete, false) => "deleted",
            (Self::Delete, true) => "would be deleted",
        }
    }
}
