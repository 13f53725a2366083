//! Queues and buckets.

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

/// An `AWS::S3::Bucket`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its name in the template.
    pub logical_id: String,
    /// Its name: what `!Ref` gives.
    pub name: String,
    /// Its ARN.
    pub arn: String,
    /// Which pages of other origins may use it. S3 goes by the first rule that fits.
    pub cors: Vec<BucketCors>,
}

/// A rule of a bucket's `CorsConfiguration`. An origin or a header may hold one `*`, which stands for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketCors {
    /// Whose pages may use the bucket.
    pub origins: Vec<String>,
    /// By which methods, in upper case.
    pub methods: Vec<String>,
    /// With which headers, in lower case.
    pub headers: Vec<String>,
    /// Which headers of an answer a page may read.
    pub exposed: Vec<String>,
    /// Seconds that a browser may remember this.
    pub max_age: Option<u32>,
}

/// The rules of a bucket's `CorsConfiguration`; none without one.
pub(crate) fn read_bucket_cors(properties: Option<&Section>) -> Result<Vec<BucketCors>, TemplateError> {
    let configuration = match properties {
        Some(properties) => properties.get("CorsConfiguration")?,
        None => None,
    };
    let Some(configuration) = configuration else { return Ok(Vec::new()) };
    configuration.only(&["CorsRules"])?;
    let rule = |rule: Section| {
        rule.only(&["AllowedHeaders", "AllowedMethods", "AllowedOrigins", "ExposedHeaders", "Id", "MaxAge"])?;
        // A parameter of type `CommaDelimitedList` stands for a list.
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
