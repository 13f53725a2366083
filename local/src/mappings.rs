//! Checks whether a function's role allows Lambda to read the stream or queue of its event source
//! mapping.

use std::sync::Arc;

use emulators::access::{Access, Denied};
use event_bus::QueueCall;
use stream_poller::StreamCall;
use template::{QueueMapping, StreamMapping};

use crate::system::StartError;

const DESCRIBE_STREAM: &str = "dynamodb:DescribeStream";
const GET_SHARD_ITERATOR: &str = "dynamodb:GetShardIterator";
const GET_RECORDS: &str = "dynamodb:GetRecords";
const LIST_STREAMS: &str = "dynamodb:ListStreams";
const RECEIVE_MESSAGE: &str = "sqs:ReceiveMessage";
const DELETE_MESSAGE: &str = "sqs:DeleteMessage";
const GET_QUEUE_ATTRIBUTES: &str = "sqs:GetQueueAttributes";
const PUT_OBJECT: &str = "s3:PutObject";
const LIST_BUCKET: &str = "s3:ListBucket";

/// The role of a function. With this role, Lambda reads the stream or queue of the function's event
/// source mapping.
pub(crate) struct MappingRole {
    access: Arc<Access>,
    /// Logical id of the mapping in the template.
    mapping: String,
    function: String,
    /// ARN of the stream or queue.
    source: String,
    needs: Vec<Need>,
}

struct Need {
    action: &'static str,
    resource: String,
    /// Whether Lambda uses the permission when it creates the mapping. Otherwise Lambda uses it
    /// while the mapping runs.
    at_creation: bool,
}

impl MappingRole {
    /// Returns the role of a stream mapping. The permissions are from Lambda's developer guide:
    /// "Processing Amazon DynamoDB records", and "Retain discarded records" for the bucket.
    pub(crate) fn of_stream(mapping: &StreamMapping, access: &Arc<Access>) -> Self {
        let source = mapping.stream.clone();
        let table = source.split("/stream/").next().unwrap_or_default();
        let list = need(LIST_STREAMS, format!("{table}/stream/*"), true);
        let read = [DESCRIBE_STREAM, GET_SHARD_ITERATOR, GET_RECORDS].map(|action| need(action, source.clone(), false));
        let keep = mapping.on_failure.iter().flat_map(|bucket| {
            // The names of all objects that the mapping writes begin with this prefix.
            let object = object_arn(bucket, &object_prefix(&mapping.function));
            [need(LIST_BUCKET, bucket.clone(), true), need(PUT_OBJECT, object, false)]
        });
        let needs = [list].into_iter().chain(read).chain(keep).collect();
        Self::new(access, &mapping.logical_id, &mapping.function, source, needs)
    }

    /// Returns the role of a queue mapping. The permissions are from Lambda's developer guide,
    /// "Using Lambda with Amazon SQS".
    pub(crate) fn of_queue(mapping: &QueueMapping, access: &Arc<Access>) -> Self {
        let queue = &mapping.queue;
        let needs = vec![
            need(GET_QUEUE_ATTRIBUTES, queue.clone(), true),
            need(RECEIVE_MESSAGE, queue.clone(), false),
            need(DELETE_MESSAGE, queue.clone(), false),
        ];
        Self::new(access, &mapping.logical_id, &mapping.function, queue.clone(), needs)
    }

    fn new(access: &Arc<Access>, mapping: &str, function: &str, source: String, needs: Vec<Need>) -> Self {
        let (mapping, function) = (mapping.to_owned(), function.to_owned());
        Self { access: Arc::clone(access), mapping, function, source, needs }
    }

    /// Lambda rejects a role that lacks a permission for the mapping.
    pub(crate) fn create(&self) -> Result<(), StartError> {
        for need in &self.needs {
            let allowed = match need.at_creation {
                true => self.access.check_call(&self.function, need.action, &need.resource),
                false => self.access.may(&self.function, need.action, &need.resource),
            };
            allowed.map_err(|denied| {
                let (mapping, denied) = (self.mapping.clone(), Box::new(denied));
                StartError::Role { mapping, denied }
            })?;
        }
        Ok(())
    }

    /// Returns the prefix of all object names that the mapping writes.
    pub(crate) fn object_prefix(&self) -> String {
        object_prefix(&self.function)
    }

    pub(crate) fn put(&self, bucket: &str, object: &str) -> Result<(), Denied> {
        self.access.check_call(&self.function, PUT_OBJECT, &object_arn(bucket, object))
    }
}

impl stream_poller::Role for MappingRole {
    fn check(&self, call: StreamCall) -> Result<(), String> {
        let action = match call {
            StreamCall::DescribeStream => DESCRIBE_STREAM,
            StreamCall::GetShardIterator => GET_SHARD_ITERATOR,
            StreamCall::GetRecords => GET_RECORDS,
        };
        self.access.check_call(&self.function, action, &self.source).map_err(|denied| denied.to_string())
    }
}

impl event_bus::Role for MappingRole {
    fn check(&self, call: QueueCall) -> Result<(), String> {
        let action = match call {
            QueueCall::ReceiveMessage => RECEIVE_MESSAGE,
            QueueCall::DeleteMessage => DELETE_MESSAGE,
        };
        self.access.check_call(&self.function, action, &self.source).map_err(|denied| denied.to_string())
    }
}

fn need(action: &'static str, resource: String, at_creation: bool) -> Need {
    Need { action, resource, at_creation }
}

fn object_arn(bucket: &str, object: &str) -> String {
    format!("{bucket}/{object}")
}

/// Returns the prefix of the names that Lambda gives to the objects of discarded batches.
fn object_prefix(function: &str) -> String {
    format!("aws/lambda/{}/", mapping_id(function))
}

/// Returns the id of a function's mapping, which is the same at every start.
fn mapping_id(function: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, function.as_bytes());
    let bytes = digest.as_ref().iter().take(16);
    uuid(bytes.fold(0, |number, byte| (number << 8) | u128::from(*byte)))
}

/// Formats a UUID of version 4, as Lambda does.
pub(crate) fn uuid(bits: u128) -> String {
    let hex = format!("{:032x}", (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| hex.get(part).unwrap_or_default().to_owned()).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_ids_are_constant_and_distinct() {
        let id = mapping_id("StreamEvents");
        assert_eq!(id, mapping_id("StreamEvents"));
        assert_ne!(id, mapping_id("StreamSearch"));
        assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
    }
}
