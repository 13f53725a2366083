//! `ops doctor`: compares settings of the deployed table with the settings that the functions need.
//!
//! The functions do not check these settings when they start. A check would cost each start a call,
//! and a consumer would stop with the service that it calls.

use std::fmt;

use clap::Args;
use serde::Serialize;
use table::Table;

use crate::error::OpsError;
use crate::items::Items;
use crate::outcome::Outcome;

/// The sinks of the stream's consumers use the old image for events, audit entries and removals.
const STREAM_VIEW: &str = "NEW_AND_OLD_IMAGES";

/// Compare settings of the table with the settings that the functions need.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  ops doctor\n  ops doctor --json\n\nThe command changes nothing.")]
pub struct DoctorArgs {}

/// A setting, its value and the value that the functions need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub setting: &'static str,
    pub found: String,
    pub needed: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    pub checks: Vec<Check>,
}

impl Diagnosis {
    pub async fn of(table: &Table) -> Result<Self, OpsError> {
        let found = table.stream_view().await?.unwrap_or_else(|| "no stream".to_owned());
        Ok(Self { checks: vec![Check { setting: "StreamViewType", found, needed: STREAM_VIEW }] })
    }

    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.checks.iter().all(|check| check.found == check.needed)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Check { setting, found, needed } in &self.checks {
            if found == needed {
                writeln!(f, "{setting}: {found}")?;
            } else {
                writeln!(f, "{setting}: {found}, must be {needed}: deploy template.yaml")?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn run(DoctorArgs {}: DoctorArgs) -> Result<Outcome, OpsError> {
    let diagnosis = Diagnosis::of(&Items::from_env().await?.table()).await?;
    Ok(Outcome::new(&diagnosis, diagnosis.is_clean()))
}
