use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Control;
use super::super::answer::Problem;
use super::calls::{Reader, consumed, json_of};
use super::request::Change;

/// Maximum number of partitions in a response.
const MOST: usize = 50;
const LONGEST_SECONDS: u64 = 3600;
/// The errors of a request that the table or one of its indexes throttled.
const THROTTLED: [&str; 3] = ["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"];

#[derive(Debug, Deserialize)]
pub(in super::super) struct Parameters {
    #[serde(default = "default_seconds")]
    seconds: u64,
}

fn default_seconds() -> u64 {
    60
}

#[derive(Debug, Default)]
struct Load {
    reads: u64,
    writes: u64,
    read_units: f64,
    write_units: f64,
    throttled: u64,
}

/// Returns the partitions that the newest calls used most, busiest first.
///
/// The units of a call with several items are divided equally. The units of an index count only for
/// a query of the index, because a write does not tell the index's partitions.
pub(in super::super) async fn hot(
    State(control): State<Arc<Control>>,
    Query(Parameters { seconds }): Query<Parameters>,
) -> Result<Json<Value>, Problem> {
    if !(1..=LONGEST_SECONDS).contains(&seconds) {
        return Err(Problem::bad_request(format!("seconds must be a number from 1 to {LONGEST_SECONDS}")));
    }
    let reader = Reader::new(&control);
    let now = SystemTime::now();
    let mut loads = HashMap::<(String, Option<String>), Load>::new();
    for call in control.backends.proxy.calls().after(0) {
        if now.duration_since(call.at).is_ok_and(|age| age > Duration::from_secs(seconds)) {
            continue;
        }
        let (_, request) = reader.read(&call);
        let response = json_of(&call.response);
        let error = response.get("__type").and_then(Value::as_str).unwrap_or_default();
        let is_throttled = THROTTLED.iter().any(|name| error.ends_with(name));
        let units = consumed(&call, &request, &response);
        let units = units.iter().find(|units| units.is_on(request.index.as_deref()));
        let share = f64::from(u32::try_from(request.places.len()).unwrap_or(u32::MAX)).max(1.0);
        for place in &request.places {
            let load = loads.entry((place.partition.clone(), request.index.clone())).or_default();
            if place.change == Change::Read {
                load.reads += 1;
            } else {
                load.writes += 1;
            }
            load.throttled += u64::from(is_throttled);
            load.read_units += units.map_or(0.0, |units| units.read / share);
            load.write_units += units.map_or(0.0, |units| units.write / share);
        }
    }
    let mut loads: Vec<_> = loads.into_iter().collect();
    loads.sort_by(|((left_key, _), left), ((right_key, _), right)| {
        let work = |load: &Load| (load.throttled, load.reads + load.writes);
        work(right).cmp(&work(left)).then_with(|| left_key.cmp(right_key))
    });
    let item = |((key, index), load): ((String, Option<String>), Load)| {
        json!({
            "key": key, "index": index, "reads": load.reads, "writes": load.writes, "read_units": load.read_units,
            "write_units": load.write_units, "throttled": load.throttled,
        })
    };
    let items: Vec<Value> = loads.into_iter().take(MOST).map(item).collect();
    Ok(Json(json!({"items": items, "next_cursor": null})))
}
