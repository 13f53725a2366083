//! Maintenance mode: while the shop's settings enable it, clients can read data but not change it.
//!
//! # Guarantee
//! The public setting `maintenance` takes effect in every function within
//! [`SETTINGS_MAX_AGE`](crate::SETTINGS_MAX_AGE). A write that was checked before that time may
//! still complete later. Only functions with routes obey the setting. The stream's consumers and
//! the janitor continue their work.
//!
//! # Cost
//! An environment reads the settings before a write, at most once every 30 seconds.
//!
//! # Failure
//! If the settings cannot be read, a write fails with the error of the table. The write needs the
//! same table anyway.

use key_schema::settings::Known;
use serde::Deserialize;

use crate::problem::{Code, Problem};

pub const NAME: &str = "maintenance";
/// The valid values of `retry_after_seconds`.
pub const RETRY_AFTER_SECONDS: std::ops::RangeInclusive<u64> = 1..=86_400;
/// The value of Retry-After without `retry_after_seconds`.
const DEFAULT_RETRY_AFTER_SECONDS: u64 = 60;

/// Refuses a write while the shop is in maintenance.
///
/// # Errors
/// 503 `maintenance` with Retry-After.
pub(crate) fn refuse(known: &Known) -> Result<(), Problem> {
    match retry_after(known) {
        None => Ok(()),
        Some(seconds) => {
            let detail = "The shop is in maintenance and can only be read. Try again after Retry-After.";
            Err(Problem::new(Code::Maintenance, detail).retry_after(i64::try_from(seconds).unwrap_or(i64::MAX)))
        }
    }
}

/// Returns after how many seconds a client may retry, or `None` if the shop is not in maintenance.
fn retry_after(known: &Known) -> Option<u64> {
    #[derive(Deserialize)]
    struct Values {
        maintenance: Option<Maintenance>,
    }
    /// A newer version of the functions may store other forms of the seconds.
    #[derive(Deserialize)]
    struct Maintenance {
        on: bool,
        #[serde(default)]
        retry_after_seconds: serde_json::Value,
    }
    let Values { maintenance } = serde_json::from_str(&known.values).ok()?;
    let Maintenance { on, retry_after_seconds } = maintenance?;
    on.then(|| retry_after_seconds.as_u64().unwrap_or(DEFAULT_RETRY_AFTER_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_on_true_means_maintenance() {
        let after = |values: &str| retry_after(&Known { values: values.to_owned(), ..Known::default() });
        assert_eq!(after(r#"{"maintenance":{"on":true,"retry_after_seconds":300}}"#), Some(300));
        assert_eq!(after(r#"{"a":1,"maintenance":{"on":true}}"#), Some(60));
        for off in [
            "{}",
            r#"{"maintenance":null}"#,
            r#"{"maintenance":{"on":false,"retry_after_seconds":300}}"#,
            r#"{"a":{"maintenance":{"on":true}}}"#,
        ] {
            assert_eq!(after(off), None, "{off}");
        }
    }
}
