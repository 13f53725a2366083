use std::time::Duration;

use crate::TemplateError;
use crate::section::Section;

/// An `AWS::SQS::Queue`, with SQS's defaults for settings that the template omits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub logical_id: String,
    pub arn: String,
    /// How long a received message is hidden from other receivers.
    pub visibility_timeout: Duration,
    pub retention: Duration,
    /// The dead-letter queue for messages that were received too often.
    pub redrive: Option<Redrive>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    pub arn: String,
    /// Number of receptions after which a message moves to the dead-letter queue.
    pub maximum_receive_count: u32,
}

/// An `AWS::S3::Bucket`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub logical_id: String,
    /// Physical name, as `!Ref` returns it.
    pub name: String,
    pub arn: String,
    /// CORS rules of the bucket. S3 applies the first rule that matches.
    pub cors: Vec<BucketCors>,
}

/// An origin or a header may contain one `*`, which matches any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketCors {
    /// Origins whose pages may use the bucket.
    pub origins: Vec<String>,
    /// Allowed methods, in upper case.
    pub methods: Vec<String>,
    /// Allowed headers, in lower case.
    pub headers: Vec<String>,
    /// Response headers that a page may read.
    pub exposed: Vec<String>,
    /// Seconds for which a browser may cache this rule.
    pub max_age: Option<u32>,
}

/// Returns the rules of a bucket's `CorsConfiguration`. The list is empty if the bucket has no
/// `CorsConfiguration`.
pub(crate) fn read_bucket_cors(properties: Option<&Section>) -> Result<Vec<BucketCors>, TemplateError> {
    let configuration = match properties {
        Some(properties) => properties.get("CorsConfiguration")?,
        None => None,
    };
    let Some(configuration) = configuration else { return Ok(Vec::new()) };
    configuration.only(&["CorsRules"])?;
    let rule = |rule: Section| {
        rule.only(&["AllowedHeaders", "AllowedMethods", "AllowedOrigins", "ExposedHeaders", "Id", "MaxAge"])?;
        // The text of a parameter of type `CommaDelimitedList` is a list separated by commas.
        let list = |key: &str| -> Result<Vec<String>, TemplateError> {
            let Some(section) = rule.get(key)? else { return Ok(Vec::new()) };
            let texts = section.texts()?;
            Ok(texts.iter().flat_map(|text| text.split(',')).map(|text| text.trim().to_owned()).collect())
        };
        rule.require("AllowedOrigins")?;
        rule.require("AllowedMethods")?;
        let max_age = rule.get("MaxAge")?.map(|seconds| seconds.number::<u32>(0..=u32::MAX)).transpose()?;
        Ok(BucketCors {
            origins: list("AllowedOrigins")?,
            methods: list("AllowedMethods")?,
            headers: list("AllowedHeaders")?.iter().map(|name| name.to_ascii_lowercase()).collect(),
            exposed: list("ExposedHeaders")?,
            max_age,
        })
    };
    configuration.require("CorsRules")?.items()?.into_iter().map(rule).collect()
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
    // `FifoQueue` is not in this list, because the local system does not emulate FIFO queues.
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
