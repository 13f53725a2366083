use std::time::Duration;

use serde_json::Value as Json;

use crate::TemplateError;
use crate::section::Section;

/// A function's event of type `Schedule`: an EventBridge rule that invokes the function at a fixed
/// rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub function: String,
    /// Name of the event in the function's `Events`.
    pub event: String,
    /// Interval between two invocations.
    pub every: Duration,
    pub enabled: bool,
    /// The function's input. `None` means EventBridge's scheduled event.
    pub input: Option<Json>,
}

impl Schedule {
    /// Returns the name of the rule that SAM creates for the schedule.
    #[must_use]
    pub fn rule(&self) -> String {
        format!("{}{}", self.function, self.event)
    }
}

/// Units of EventBridge's rate expressions: singular, plural and seconds.
const UNITS: [(&str, &str, u64); 3] = [("minute", "minutes", 60), ("hour", "hours", 60 * 60), ("day", "days", 86_400)];
/// Maximum number of units. A higher number is probably a mistake.
const MOST: u64 = 10_000;

pub(crate) fn read(function: &str, event: &str, settings: &Section) -> Result<Schedule, TemplateError> {
    // A rule's retries and dead-letter queue are not supported, so they are rejected instead of
    // ignored.
    settings.only(&["Schedule", "Name", "Description", "Enabled", "State", "Input"])?;
    let expression = settings.require("Schedule")?;
    let enabled = match (settings.get("Enabled")?, settings.get("State")?) {
        (Some(_), Some(state)) => return Err(state.error("must have Enabled or State, not both")),
        (Some(enabled), None) => enabled.flag()?,
        (None, Some(state)) => match state.text()?.as_str() {
            "ENABLED" => true,
            "DISABLED" => false,
            other => return Err(state.error(format!("must be ENABLED or DISABLED, not {other}"))),
        },
        (None, None) => true,
    };
    let input = match settings.get("Input")? {
        Some(input) => {
            let json = serde_json::from_str(&input.text()?);
            Some(json.map_err(|error| input.error(format!("the input is not JSON: {error}")))?)
        }
        None => None,
    };
    let text = expression.text()?;
    let every = rate(&text).map_err(|message| expression.error(message))?;
    Ok(Schedule { function: function.to_owned(), event: event.to_owned(), every, enabled, input })
}

/// Parses `rate(<n> <unit>)`. As in EventBridge, 1 needs the singular of the unit, and other
/// numbers need the plural.
fn rate(text: &str) -> Result<Duration, String> {
    if text.starts_with("cron(") {
        return Err(format!(
            "{text}: cron expressions are not supported; write rate(<n> <unit>) with minutes, hours or days"
        ));
    }
    let wrong = || format!("must be rate(<n> <unit>) with minutes, hours or days, not {text}");
    let inner = text.strip_prefix("rate(").and_then(|rest| rest.strip_suffix(')')).ok_or_else(wrong)?;
    let (number, unit) = inner.split_once(' ').ok_or_else(wrong)?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|number| digits && (1..=MOST).contains(number)).ok_or_else(wrong)?;
    let fits = |(one, many, _): &&(&str, &str, u64)| unit == if number == 1 { *one } else { *many };
    let (_, _, seconds) = UNITS.iter().find(fits).ok_or_else(wrong)?;
    Ok(Duration::from_secs(number * seconds))
}
