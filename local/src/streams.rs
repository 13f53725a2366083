use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use emulators::access::Access;
use emulators::table::EmbeddedTable;
use futures::future::{BoxFuture, FutureExt as _};
use runtime_api::{Functions, InvokeError};
use serde_json::Value as Json;
use stream_poller::{
    Destination, DestinationError, DiscardedBatch, FunctionError, Invoke, Mapping, MappingSettings, Poller,
    SettingsError, StartingPosition,
};
use template::{Bucket, StreamMapping, Template};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::backends::Backends;
use crate::mappings::{MappingRole, uuid};

/// Every function's timeout is shorter.
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(900);

/// Returns the mappings of the template. While `held` is true, they call no function.
pub fn mappings(
    template: &Template,
    functions: &Arc<Functions>,
    backends: &Arc<Backends>,
    access: &Arc<Access>,
    held: &watch::Receiver<bool>,
) -> Result<Vec<Mapping>, SettingsError> {
    let mapping = |stream: &StreamMapping| {
        let (functions, name) = (Arc::clone(functions), stream.function.clone());
        let function = Arc::new(Function { functions, name, held: held.clone() });
        let role = Arc::new(MappingRole::of_stream(stream, access));
        let destination = stream.on_failure.as_ref().and_then(|arn| {
            let bucket = template.buckets.iter().find(|bucket| bucket.arn == *arn)?.clone();
            let (backends, role) = (Arc::clone(backends), Arc::clone(&role));
            let kept: Arc<dyn Destination> = Arc::new(FailedRecords { backends, bucket, role });
            Some(kept)
        });
        Mapping::new(settings(stream), function, destination).map(|mapping| mapping.with_role(role))
    };
    template.streams.iter().map(mapping).collect()
}

/// Deletes stream records of the embedded table that every mapping has processed, filtered out or
/// given up. Each record in the table makes the table slower. The task ends with the poller.
pub fn trim(table: Arc<EmbeddedTable>, name: String, poller: &Poller) -> JoinHandle<()> {
    let mut consumed = poller.consumed();
    tokio::spawn(async move {
        while consumed.changed().await.is_ok() {
            let Some(position) = consumed.borrow_and_update().clone() else {
                continue;
            };
            let (table, name) = (Arc::clone(&table), name.clone());
            let trimmed = tokio::task::spawn_blocking(move || table.trim_stream(&name, position.as_str()));
            match trimmed.await {
                Ok(Err(error)) => tracing::warn!(%error, "the stream cannot be trimmed"),
                Ok(Ok(_)) => {}
                Err(_) => return, // The runtime is shutting down.
            }
        }
    })
}

fn settings(stream: &StreamMapping) -> MappingSettings {
    MappingSettings {
        function: stream.function.clone(),
        batch_size: usize::try_from(stream.batch_size).unwrap_or(usize::MAX),
        batching_window: stream.batching_window,
        parallelization_factor: usize::try_from(stream.parallelization_factor).unwrap_or(1),
        maximum_retry_attempts: stream.maximum_retries,
        maximum_record_age: stream.maximum_record_age,
        bisect_on_function_error: stream.bisect_on_error,
        report_batch_item_failures: stream.report_batch_item_failures,
        starting_position: match stream.starting_position {
            template::StartingPosition::TrimHorizon => StartingPosition::TrimHorizon,
            template::StartingPosition::Latest => StartingPosition::Latest,
        },
        filters: stream.filters.iter().map(Json::to_string).collect(),
    }
}

struct Function {
    functions: Arc<Functions>,
    name: String,
    held: watch::Receiver<bool>,
}

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        async move {
            // An error means that the system was dropped. Then the call fails.
            let _ = self.held.clone().wait_for(|held| !*held).await;
            let deadline = Instant::now() + INVOCATION_TIMEOUT;
            let answer = self.functions.invoke(&self.name, payload, deadline).await;
            answer.map_err(|error| match error {
                InvokeError::Function(error) => FunctionError::Failed(error.to_string()),
                // If the mapping bisects failed batches, the poller now halves the batch. A half
                // may fit.
                InvokeError::PayloadTooLarge(_) => FunctionError::Failed(error.to_string()),
                InvokeError::UnknownFunction(_)
                | InvokeError::Deadline
                | InvokeError::Throttled
                | InvokeError::Stopped => FunctionError::NotCalled(error.to_string()),
            })
        }
        .boxed()
    }
}

/// The destination of one mapping's failed records: a bucket. Objects have Lambda's names:
/// `aws/lambda/<mapping>/<shard>/<day>/<instant>-<id>`.
struct FailedRecords {
    backends: Arc<Backends>,
    bucket: Bucket,
    role: Arc<MappingRole>,
}

impl Destination for FailedRecords {
    fn discard(&self, batch: DiscardedBatch) -> BoxFuture<'_, Result<(), DestinationError>> {
        futures::future::ready(self.keep(&batch)).boxed()
    }
}

impl FailedRecords {
    fn keep(&self, batch: &DiscardedBatch) -> Result<(), DestinationError> {
        let id = uuid(fastrand::u128(..));
        let name = self.role.object_prefix() + &object_name(&batch.shard_id, batch.at.into(), &id);
        self.role.put(&self.bucket.arn, &name).map_err(|denied| DestinationError(denied.to_string()))?;
        let put = self.backends.objects.put(&self.bucket.name, &name, batch.to_json().to_string().into());
        put.map_err(|error| DestinationError(error.to_string()))
    }
}

fn object_name(shard: &str, at: OffsetDateTime, id: &str) -> String {
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!(
        "{shard}/{year:04}/{month:02}/{day:02}/\
         {year:04}-{month:02}-{day:02}T{hour:02}.{minute:02}.{second:02}-{id}"
    )
}

#[cfg(test)]
mod outage;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_discarded_batch_has_the_object_name_that_lambda_uses() {
        let at = OffsetDateTime::from_unix_timestamp(1_700_000_060).unwrap();
        assert_eq!(object_name("shard-1", at, "i"), "shard-1/2023/11/14/2023-11-14T22.14.20-i");
    }
}
