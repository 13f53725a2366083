//! The log line of a request. It has the values that operators need first, and the metrics of the
//! route. A second line counts a throttled request.

use std::time::Duration;

use serde::Serialize;
use telemetry::emf::{Line, Unit};

use crate::problem::Code;
use crate::routes::Served;
use crate::trail::StaffWrite;

/// The cost of one access pattern during a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatternCost {
    /// The pattern's id in the registry.
    pub pattern: &'static str,
    pub requests: u32,
    /// Consumed read capacity units.
    pub read_units: f64,
    /// Consumed write capacity units.
    pub write_units: f64,
}

/// A function's state that measures how much of the table's capacity the function consumes.
pub trait Measured {
    /// Returns the consumption since the previous call. A function serves one request at a time, so
    /// this is the consumption of one request.
    fn take(&self) -> Vec<PatternCost> {
        Vec::new()
    }
}

/// Builds the line of one request.
///
/// It contains no body, query value or path parameter, and no data of the caller. The line of
/// a write by staff also names the staff member and the target ([`StaffWrite`]).
pub(crate) fn line(
    served: &Served,
    took: Duration,
    costs: &[PatternCost],
    runtime_id: &str,
    trace: Option<&str>,
) -> Line {
    let status = served.reply.status;
    // `Iterator::sum` of no numbers returns -0.0.
    let sum = |units: fn(&PatternCost) -> f64| costs.iter().map(units).fold(0.0, |sum, units| sum + units);
    let millis = took.as_micros() as f64 / 1000.0;
    let line = Line::new()
        .dimension("Route", served.route)
        .metric("Latency", Unit::Milliseconds, millis)
        .metric("ReadCapacity", Unit::Count, sum(|cost| cost.read_units))
        .metric("WriteCapacity", Unit::Count, sum(|cost| cost.write_units))
        .metric("Faults", Unit::Count, if status.is_server_error() { 1.0 } else { 0.0 })
        .property("request_id", served.request_id.as_str())
        .property("lambda_request_id", runtime_id)
        .property("route", served.route)
        .property("status", status.as_u16())
        .property("code", served.code.map(Code::name))
        .property("duration_ms", millis)
        .property("patterns", serde_json::to_value(costs).unwrap_or_default())
        .trace(trace);
    let Some(StaffWrite { actor, target }) = &served.act else { return line };
    let line = line.property("actor", actor.as_str()).property("target", target.clone());
    match StaffWrite::created(&served.reply) {
        Some(location) => line.property("created", location),
        None => line,
    }
}

/// Builds the line that counts a request with the code [`Code::Throttled`]. One customer can cause
/// such requests, by conflicts on the customer's own items. So the alarm of failed requests
/// subtracts them.
pub(crate) fn throttled(served: &Served) -> Option<Line> {
    let line = || Line::default().dimension("Stage", telemetry::stage()).metric("Throttled", Unit::Count, 1.0);
    (served.code == Some(Code::Throttled)).then(line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::time::SystemTime;

    use serde_json::{Value, json};

    use super::*;
    use crate::sample::Call;
    use crate::{Problem, Routes};

    #[tokio::test]
    async fn only_a_throttled_request_counts_as_throttled() {
        for (code, expected) in [(Code::Throttled, Some(json!(1.0))), (Code::Unavailable, None), (Code::Internal, None)]
        {
            let routes = Routes::new()
                .on("GET /v1/settings", |code: &Code, _| Box::pin(async { Err(Problem::new(*code, "No.")) }));
            let event = Call::new("GET /v1/settings").event().to_string();
            let served = routes.serve(&code, Some(&event), "lambda-1", Duration::from_secs(1)).await;
            let line = throttled(&served).map(|line| line.to_json(SystemTime::UNIX_EPOCH));
            let line: Option<Value> = line.map(|line| serde_json::from_str(&line).unwrap());
            assert_eq!(line.map(|line| line["Throttled"].clone()), expected, "{code:?}");
        }
    }

    #[tokio::test]
    async fn the_log_line_of_a_request_has_its_metrics_and_no_data_of_the_caller() {
        let routes =
            Routes::new().on("GET /v1/customers/{id}", |(), _| Box::pin(async { Err(Problem::not_found("customer")) }));
        let call =
            Call::new("GET /v1/customers/{id}").path("id", "ann").customer("ann").query("email", "ann@example.com");
        let event = call.header("authorization", "Bearer secret").body("ann's body").event().to_string();
        let served = routes.serve(&(), Some(&event), "lambda-1", Duration::from_secs(1)).await;
        let costs = [
            PatternCost { pattern: "customer.get", requests: 1, read_units: 0.5, write_units: 0.0 },
            PatternCost { pattern: "customer.touch", requests: 2, read_units: 0.0, write_units: 3.0 },
        ];
        let line = line(&served, Duration::from_micros(1500), &costs, "lambda-1", Some("Root=1-abc;Sampled=1"));
        let text = line.to_json(SystemTime::UNIX_EPOCH);
        for private in ["ann", "secret", "body"] {
            assert!(!text.contains(private), "{text}");
        }
        let line: Value = serde_json::from_str(&text).unwrap();
        for (name, value) in [
            ("Route", json!("GET /v1/customers/{id}")),
            ("Latency", json!(1.5)),
            ("ReadCapacity", json!(0.5)),
            ("WriteCapacity", json!(3.0)),
            ("Faults", json!(0.0)),
            ("request_id", json!("sample-request")),
            ("lambda_request_id", json!("lambda-1")),
            ("xray_trace_id", json!("1-abc")),
            ("status", json!(404)),
            ("code", json!("not_found")),
            ("duration_ms", json!(1.5)),
        ] {
            assert_eq!(line[name], value, "{name}");
        }
        assert_eq!(
            line["patterns"][1],
            json!({"pattern": "customer.touch", "requests": 2, "read_units": 0.0, "write_units": 3.0})
        );
    }
}
