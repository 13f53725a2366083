use std::time::Duration;

use event_pattern::{Dialect, Pattern};
use serde_json::Value as Json;

use crate::section::Section;
use crate::{Template, TemplateError};

/// A Lambda event source mapping from the table's stream to a function, with Lambda's defaults for
/// settings that the template omits.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamMapping {
    pub logical_id: String,
    pub function: String,
    pub stream: String,
    pub starting_position: StartingPosition,
    pub batch_size: u32,
    pub batching_window: Duration,
    /// Maximum concurrent invocations for one shard. Records of one item stay in order.
    pub parallelization_factor: u32,
    /// Whether a failed batch is halved before its retry.
    pub bisect_on_error: bool,
    /// Age at which a record is given up. `None` means no limit.
    pub maximum_record_age: Option<Duration>,
    /// Maximum number of retries of a failed batch. `None` means that Lambda retries until the
    /// records expire.
    pub maximum_retries: Option<u32>,
    /// Whether the function's response may name the record from which Lambda retries.
    pub report_batch_item_failures: bool,
    /// Filter patterns. A record that matches at least one of them is delivered. Without patterns,
    /// every record is delivered.
    pub filters: Vec<Json>,
    /// ARN of the bucket for given-up records.
    pub on_failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingPosition {
    /// At the oldest record that the stream still has.
    TrimHorizon,
    /// At the first record that is written after the creation of the mapping.
    Latest,
}

/// A Lambda event source mapping from a queue to a function, with Lambda's defaults for settings
/// that the template omits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMapping {
    pub logical_id: String,
    pub function: String,
    pub queue: String,
    pub batch_size: u32,
    pub batching_window: Duration,
    /// Whether the function's response may name the failed messages.
    pub report_batch_item_failures: bool,
    pub maximum_concurrency: Option<u32>,
}

struct Ends {
    id: String,
    function: String,
    source: String,
}

/// Reads an `AWS::Lambda::EventSourceMapping` and adds it to `template`, which must already contain
/// the functions, queues and buckets. `stream` is the ARN of the table's stream.
pub(crate) fn read(id: &str, settings: &Section, stream: &str, template: &mut Template) -> Result<(), TemplateError> {
    let name = settings.require("FunctionName")?;
    let arn = name.text()?;
    let Some(function) = template.functions.iter().find(|function| function.arn == arn) else {
        return Err(name.error(format!("{arn} is no function of this template")));
    };
    let place = settings.require("EventSourceArn")?;
    let source = place.text()?;
    let ends = Ends { id: id.to_owned(), function: function.logical_id.clone(), source };
    if ends.source == stream {
        let mapping = read_stream(ends, settings, template)?;
        template.streams.push(mapping);
    } else if template.queues.iter().any(|queue| queue.arn == ends.source) {
        template.queue_mappings.push(read_queue(ends, settings)?);
    } else {
        return Err(place.error(format!("{} is neither a queue nor the table's stream", ends.source)));
    }
    Ok(())
}

/// Reads a stream mapping. The limits are those of the `CreateEventSourceMapping` call.
fn read_stream(ends: Ends, settings: &Section, template: &Template) -> Result<StreamMapping, TemplateError> {
    settings.only(&[
        "FunctionName",
        "EventSourceArn",
        "StartingPosition",
        "BatchSize",
        "MaximumBatchingWindowInSeconds",
        "ParallelizationFactor",
        "BisectBatchOnFunctionError",
        "MaximumRecordAgeInSeconds",
        "MaximumRetryAttempts",
        "FunctionResponseTypes",
        "FilterCriteria",
        "DestinationConfig",
        // `MetricsConfig` makes Lambda send metrics, which the local system does not emulate.
        "MetricsConfig",
    ])?;
    let position = settings.require("StartingPosition")?;
    let starting_position = match position.text()?.as_str() {
        "TRIM_HORIZON" => StartingPosition::TrimHorizon,
        "LATEST" => StartingPosition::Latest,
        other => return Err(position.error(format!("{other} is no starting position for a table's stream"))),
    };
    let number = |key: &str, range, default: i64| match settings.get(key)? {
        Some(section) => section.number::<i64>(range),
        None => Ok(default),
    };
    let age = number("MaximumRecordAgeInSeconds", -1..=604_800, -1)?;
    let retries = number("MaximumRetryAttempts", -1..=10_000, -1)?;
    let window = number("MaximumBatchingWindowInSeconds", 0..=300, 0)?;
    let bisect = settings.get("BisectBatchOnFunctionError")?;
    Ok(StreamMapping {
        logical_id: ends.id,
        function: ends.function,
        stream: ends.source,
        starting_position,
        batch_size: narrow(number("BatchSize", 1..=10_000, 100)?),
        batching_window: Duration::from_secs(window.unsigned_abs()),
        parallelization_factor: narrow(number("ParallelizationFactor", 1..=10, 1)?),
        bisect_on_error: bisect.map(|flag| flag.flag()).transpose()?.unwrap_or(false),
        maximum_record_age: u64::try_from(age).ok().map(Duration::from_secs),
        maximum_retries: u32::try_from(retries).ok(),
        report_batch_item_failures: read_response_types(settings)?,
        filters: read_filters(settings)?,
        on_failure: read_destination(settings, template)?,
    })
}

/// Converts a number that is known to fit, because its range was checked.
fn narrow(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn read_filters(settings: &Section) -> Result<Vec<Json>, TemplateError> {
    let Some(criteria) = settings.get("FilterCriteria")? else {
        return Ok(Vec::new());
    };
    let mut filters = Vec::new();
    for filter in criteria.require("Filters")?.items()? {
        let pattern = filter.require("Pattern")?;
        let json = match serde_json::from_str::<Json>(&pattern.text()?) {
            Ok(json) if json.is_object() => json,
            Ok(_) => return Err(pattern.error("a pattern must be a JSON object")),
            Err(error) => return Err(pattern.error(format!("the pattern is not JSON: {error}"))),
        };
        Pattern::new(&json, Dialect::Lambda)
            .map_err(|error| pattern.error(format!("invalid filter pattern: {error}")))?;
        filters.push(json);
    }
    Ok(filters)
}

/// Returns whether the function's responses may name failed records or messages.
fn read_response_types(settings: &Section) -> Result<bool, TemplateError> {
    let Some(types) = settings.get("FunctionResponseTypes")? else {
        return Ok(false);
    };
    let types = types.items()?;
    match types.iter().find_map(|kind| match kind.text() {
        Ok(name) if name == "ReportBatchItemFailures" => None,
        Ok(_) => Some(kind.error("only ReportBatchItemFailures is known")),
        Err(error) => Some(error),
    }) {
        Some(error) => Err(error),
        None => Ok(!types.is_empty()),
    }
}

/// Reads a queue mapping. The limits are those of the `CreateEventSourceMapping` call.
fn read_queue(ends: Ends, settings: &Section) -> Result<QueueMapping, TemplateError> {
    settings.only(&[
        "FunctionName",
        "EventSourceArn",
        "BatchSize",
        "MaximumBatchingWindowInSeconds",
        "FunctionResponseTypes",
        "ScalingConfig",
    ])?;
    let window = match settings.get("MaximumBatchingWindowInSeconds")? {
        Some(window) => window.number::<u64>(0..=300)?,
        None => 0,
    };
    let batch_size = match settings.get("BatchSize")? {
        Some(size) => {
            let number = size.number::<u32>(1..=10_000)?;
            if number > 10 && window == 0 {
                return Err(size.error("a batch of more than 10 needs a MaximumBatchingWindowInSeconds"));
            }
            number
        }
        None => 10,
    };
    let maximum_concurrency = match settings.get("ScalingConfig")? {
        Some(scaling) => {
            scaling.only(&["MaximumConcurrency"])?;
            Some(scaling.require("MaximumConcurrency")?.number::<u32>(2..=1000)?)
        }
        None => None,
    };
    Ok(QueueMapping {
        logical_id: ends.id,
        function: ends.function,
        queue: ends.source,
        batch_size,
        batching_window: Duration::from_secs(window),
        report_batch_item_failures: read_response_types(settings)?,
        maximum_concurrency,
    })
}

/// Of Lambda's destinations, only a bucket stores the records themselves.
fn read_destination(settings: &Section, template: &Template) -> Result<Option<String>, TemplateError> {
    let Some(config) = settings.get("DestinationConfig")? else {
        return Ok(None);
    };
    config.only(&["OnFailure"])?;
    let target = config.require("OnFailure")?;
    target.only(&["Destination"])?;
    let destination = target.require("Destination")?;
    let arn = destination.text()?;
    match template.buckets.iter().any(|bucket| bucket.arn == arn) {
        true => Ok(Some(arn)),
        false => Err(destination.error(format!("{arn} is no bucket of this template"))),
    }
}
