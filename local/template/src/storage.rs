//! Queues and buckets, and the mapping of a queue to a function.

use std::time::Duration;

use crate::TemplateError;
use crate::section::Section;

/// An `AWS::SQS::Queue`, with SQS's defaults where the template is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name in the template.
    pub logical_id: String,
    /// Its ARN.
    pub arn: String,
    /// How long a message that was received is hidden from others.
    pub visibility_timeout: Duration,
    /// How long a message is kept.
    pub retention: Duration,
    /// Where messages go that are received too often.
    pub redrive: Option<Redrive>,
}

/// The end of a message that nobody could handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// ARN of the dead-letter queue.
    pub arn: String,
    /// Receptions after which a message goes there.
    pub maximum_receive_count: u32,
}

/// A Lambda event source mapping from a queue to a function, with Lambda's defaults where the template
/// is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMapping {
    /// Logical id of the function.
    pub function: String,
    /// Name of the event in the function's `Events`.
    pub event: String,
    /// ARN of the queue.
    pub queue: String,
    /// Most messages of one invocation.
    pub batch_size: u32,
    /// Longest wait for a batch to fill.
    pub batching_window: Duration,
    /// Whether the function's answer names the messages that failed.
    pub report_batch_item_failures: bool,
    /// Most invocations at once.
    pub maximum_concurrency: Option<u32>,
}

/// An `AWS::S3::Bucket`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its name in the template.
    pub logical_id: String,
    /// Its name: what `!Ref` gives.
    pub name: String,
    /// Its ARN.
    pub arn: String,
}

pub(crate) fn read_queue(id: &str, arn: String, properties: Option<&Section>) -> Result<Queue, TemplateError> {
    let mut queue = Queue {
        logical_id: id.to_owned(),
        arn,
        visibility_timeout: Duration::from_secs(30),
        retention: Duration::from_secs(345_600),
        redrive: None,
    };
    let Some(properties) = properties else { return Ok(queue) };
    // A queue in order (`FifoQueue`) is another service; nothing here behaves like it.
    properties.only(&[
        "KmsMasterKeyId",
        "MessageRetentionPeriod",
        "QueueName",
        "RedrivePolicy",
        "SqsManagedSseEnabled",
        "Tags",
        "VisibilityTimeout",
    ])?;
    if let Some(timeout) = properties.get("VisibilityTimeout")? {
        queue.visibility_timeout = Duration::from_secs(timeout.number::<u64>(0..=43_200)?);
    }
    if let Some(period) = properties.get("MessageRetentionPeriod")? {
        queue.retention = Duration::from_secs(period.number::<u64>(60..=1_209_600)?);
    }
    if let Some(policy) = properties.get("RedrivePolicy")? {
        policy.only(&["deadLetterTargetArn", "maxReceiveCount"])?;
        queue.redrive = Some(Redrive {
            arn: policy.require("deadLetterTargetArn")?.text()?,
            maximum_receive_count: policy.require("maxReceiveCount")?.number::<u32>(1..=1000)?,
        });
    }
    Ok(queue)
}

/// The limits are those of the `CreateEventSourceMapping` call.
pub(crate) fn read_mapping(function: &str, event: &str, settings: &Section) -> Result<QueueMapping, TemplateError> {
    settings.only(&[
        "Queue",
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
        function: function.to_owned(),
        event: event.to_owned(),
        queue: settings.require("Queue")?.text()?,
        batch_size,
        batching_window: Duration::from_secs(window),
        report_batch_item_failures: crate::events::read_response_types(settings)?,
        maximum_concurrency,
    })
}
