use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Number of bytes that AWS counts for an entry's time, in any format.
const TIME_BYTES: usize = 14;
/// Name of the bus that every account has.
const DEFAULT_BUS: &str = "default";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Id that the bus assigns. An event that is sent again gets a new id.
    pub event_id: String,
    /// The publisher's time, or the time of the call if the publisher sent none. RFC 3339, in whole
    /// seconds.
    pub time: String,
    pub source: String,
    pub detail_type: String,
    /// The event itself, a JSON object.
    pub detail: Value,
    /// ARNs of the affected resources.
    pub resources: Vec<String>,
    pub bus: String,
    /// The trace that the publisher sent. The targets do not receive it.
    #[serde(default)]
    pub trace_header: Option<String>,
}

impl Published {
    pub(super) fn of_service(source: &str, detail_type: &str, detail: Value) -> Self {
        let now = OffsetDateTime::now_utc();
        Self {
            event_id: event_id(),
            time: now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default(),
            source: source.to_owned(),
            detail_type: detail_type.to_owned(),
            detail,
            resources: Vec::new(),
            bus: DEFAULT_BUS.to_owned(),
            trace_header: None,
        }
    }

    /// Returns the event in the form that patterns match and targets receive.
    #[must_use]
    pub fn envelope(&self) -> Value {
        json!({
            "version": "0",
            "id": self.event_id,
            "detail-type": self.detail_type,
            "source": self.source,
            "account": "000000000000",
            "time": self.time,
            "region": "us-east-1",
            "resources": self.resources,
            "detail": self.detail,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Entry {
    time: Option<f64>,
    source: Option<String>,
    #[serde(default)]
    resources: Vec<String>,
    detail_type: Option<String>,
    detail: Option<String>,
    event_bus_name: Option<String>,
    trace_header: Option<String>,
}

/// The reason why an entry is rejected. Other entries of its request may be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refusal {
    fn argument(parameter: &str, reason: &str) -> Self {
        let message = format!("Parameter {parameter} is not valid. Reason: {reason}.");
        Self { code: "InvalidArgument", message }
    }

    pub(super) fn internal() -> Self {
        Self { code: "InternalException", message: "An internal error occurred".to_owned() }
    }

    pub(super) fn throttled() -> Self {
        Self { code: "ThrottlingException", message: "Rate exceeded".to_owned() }
    }
}

impl Entry {
    /// Returns the size as AWS counts it ("Calculating PutEvents event entry size").
    pub(super) fn size(&self) -> usize {
        let texts = [&self.source, &self.detail_type, &self.detail].into_iter().flatten();
        let texts = texts.chain(&self.resources).map(String::len).sum::<usize>();
        texts + self.time.map_or(0, |_| TIME_BYTES)
    }

    pub(super) fn event(self, buses: &[String]) -> Result<Published, Refusal> {
        let required = |value: Option<String>, name: &str| {
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| Refusal::argument(name, &format!("{name} is a required argument")))
        };
        let source = required(self.source, "Source")?;
        let detail_type = required(self.detail_type, "DetailType")?;
        let detail = required(self.detail, "Detail")?;
        if source.starts_with("aws.") {
            let message = "Not authorized for the source.".to_owned();
            return Err(Refusal { code: "NotAuthorizedForSourceException", message });
        }
        if detail_type.chars().count() > 128 {
            return Err(Refusal::argument("DetailType", "DetailType must be at most 128 characters long"));
        }
        let malformed = || Refusal { code: "MalformedDetail", message: "Detail is malformed.".to_owned() };
        let detail = serde_json::from_str(&detail).ok().filter(Value::is_object).ok_or_else(malformed)?;
        let name = self.event_bus_name.unwrap_or_else(|| DEFAULT_BUS.to_owned());
        // A bus may also be named by its ARN.
        let name = name.rsplit_once(":event-bus/").map_or(name.as_str(), |(_, name)| name);
        let Some(bus) = buses.iter().find(|bus| *bus == name) else {
            let message = format!("Event bus {name} does not exist.");
            return Err(Refusal { code: "ResourceNotFoundException", message });
        };
        let time = self.time.map_or_else(|| Some(OffsetDateTime::now_utc()), instant);
        let time = time.and_then(|time| time.replace_nanosecond(0).ok()?.format(&Rfc3339).ok());
        let time = time.ok_or_else(|| Refusal::argument("Time", "Time is out of range"))?;
        let (event_id, bus) = (event_id(), bus.clone());
        let (resources, trace_header) = (self.resources, self.trace_header);
        Ok(Published { event_id, time, source, detail_type, detail, resources, bus, trace_header })
    }
}

/// Converts seconds since 1970. The fraction is dropped.
fn instant(seconds: f64) -> Option<OffsetDateTime> {
    let whole = format!("{:.0}", seconds.floor()).parse().ok()?;
    OffsetDateTime::from_unix_timestamp(whole).ok()
}

fn event_id() -> String {
    let bits = (fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| hex.get(part).unwrap_or_default().to_owned()).join("-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(json: Value) -> Entry {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_size_of_an_entry_is_counted_in_bytes_as_aws_does() {
        let counted = entry(json!({
            "Time": 1_785_000_000.5, "Source": "bodega", "DetailType": "É", "Detail": "{}", "Resources": ["a", "bc"],
            "EventBusName": "not counted",
        }));
        assert_eq!(counted.size(), 14 + 6 + 2 + 2 + 3);
    }

    #[test]
    fn an_event_id_looks_like_a_uuid() {
        let id = event_id();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(id.as_bytes().get(14), Some(&b'4'), "{id}");
        assert!(matches!(id.as_bytes().get(19), Some(b'8' | b'9' | b'a' | b'b')), "{id}");
    }

    #[test]
    fn times_before_1970_and_after_2100_are_converted_and_impossible_times_are_rejected() {
        assert_eq!(instant(-1.5).map(OffsetDateTime::unix_timestamp), Some(-2));
        assert_eq!(instant(4_200_000_000.9).map(OffsetDateTime::unix_timestamp), Some(4_200_000_000));
        assert_eq!(instant(1e300), None);
        assert_eq!(instant(f64::NAN), None);
    }
}
