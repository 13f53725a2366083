//! Derives a profile from the access log of the API's stage.
//!
//! template.yaml defines the format: a JSON object in each line, with `route`, `status` and
//! `latency_ms`. An export may put a time before the object. The command ignores this time, so the
//! caller says how many hours the file covers.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

use serde::Deserialize;

use super::profile::{Detail, Profile, Traffic};
use crate::error::OpsError;

/// The maximum size of a line in bytes. API Gateway writes shorter lines.
const MAX_LINE: u64 = 64 * 1024;
/// The maximum number of different routes. The template has fewer routes.
const MAX_ROUTES: usize = 1_000;
/// API Gateway's mark of an absent value.
const ABSENT: &str = "-";

#[derive(Debug, Deserialize)]
struct Line {
    route: String,
    #[serde(default)]
    latency_ms: String,
}

#[derive(Debug, Default)]
struct Count {
    requests: u64,
    /// The number of requests that have a latency. `milliseconds` is the sum of these latencies.
    timed: u64,
    milliseconds: u64,
}

/// Counts the requests of each route in a log, and sets the requests of the profile. The counts are
/// scaled from the hours of the log to a month. The mean latency becomes the duration of an
/// invocation, although the latency is a few milliseconds longer.
pub(crate) fn read(mut log: impl BufRead, covers_hours: u64, profile: &mut Profile) -> Result<(), OpsError> {
    let mut counts = BTreeMap::<String, Count>::new();
    let mut text = Vec::new();
    for number in 1_u64.. {
        text.clear();
        let length = log.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut text);
        let length = length.map_err(|error| OpsError::Usage(format!("the access log: {error}")))?;
        if length == 0 {
            break;
        }
        let wrong = |what: &str| OpsError::Usage(format!("the access log, line {number}: {what}"));
        if text.len() as u64 > MAX_LINE {
            return Err(wrong("the line is too long"));
        }
        let Some(json) = text.iter().position(|byte| *byte == b'{').and_then(|begin| text.get(begin..)) else {
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return Err(wrong("the line has no JSON object"));
        };
        let line: Line = serde_json::from_slice(json).map_err(|error| wrong(&error.to_string()))?;
        if !counts.contains_key(&line.route) && counts.len() == MAX_ROUTES {
            return Err(wrong("too many different routes"));
        }
        let count = counts.entry(line.route).or_default();
        count.requests += 1;
        if let Ok(milliseconds) = line.latency_ms.parse::<u64>() {
            count.timed += 1;
            count.milliseconds = count.milliseconds.saturating_add(milliseconds);
        }
    }
    for (route, count) in counts {
        let hours = u128::from(profile.hours_per_month);
        let covered = u128::from(covers_hours);
        let requests = (u128::from(count.requests) * hours + covered / 2) / covered;
        let requests = u64::try_from(requests).unwrap_or(u64::MAX);
        if route == ABSENT || route == "$default" {
            profile.unmatched = profile.unmatched.saturating_add(requests);
            continue;
        }
        let duration = count.milliseconds.checked_div(count.timed).map(|mean| mean.max(1));
        let detail = Detail { per_month: Some(requests), duration_ms: duration, ..Detail::default() };
        profile.routes.insert(route, Traffic::Detailed(detail));
    }
    profile.check()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn counted(log: &str, hours: u64) -> Result<Profile, OpsError> {
        let mut profile = Profile::idle()?;
        read(log.as_bytes(), hours, &mut profile)?;
        Ok(profile)
    }

    #[test]
    fn requests_are_counted_by_route_and_scaled_to_a_month() {
        let line = |route: &str, latency: &str| {
            format!(r#"{{"request_id":"a=","route":"{route}","status":"200","latency_ms":"{latency}","error":"-"}}"#)
        };
        let get = "GET /v1/products/{id}";
        let log = format!("{}\n\n2026-11-25T10:00:00.000Z {}\n{}\n", line(get, "30"), line(get, "11"), line("-", "-"));
        let profile = counted(&log, 73).unwrap();
        let detail = profile.routes.get(get).unwrap().detail();
        assert_eq!((detail.per_month, detail.duration_ms, profile.unmatched), (Some(20), Some(20), 10));
    }

    #[test]
    fn the_refusal_of_an_access_log_names_the_invalid_part() {
        for (log, part) in [
            ("{\"route\":\"-\"}\nnothing\n", "line 2"),
            ("{\"route\":7}\n", "line 1"),
            ("{\"route\":\"GET /v1/nothing\"}\n", "GET /v1/nothing"),
            (&"x".repeat(70_000), "too long"),
        ] {
            let error = counted(log, 1).unwrap_err();
            assert!(matches!(&error, OpsError::Usage(text) if text.contains(part)), "{error}");
        }
    }
}
