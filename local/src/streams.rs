//! The stream mappings of the template, fed to the functions by the poller.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use emulators::table::EmbeddedTable;
use futures::future::{BoxFuture, FutureExt as _};
use runtime_api::{Functions, InvokeError};
use serde_json::Value as Json;
use stream_poller::{
    Destination, DestinationError, DiscardedBatch, FunctionError, Invoke, Mapping, MappingSettings, Poller,
    SettingsError, StartingPosition,
};
use template::StreamMapping;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Batches that are kept; what is given up beyond is refused, and the poller counts it as lost.
const MAX_DISCARDED: usize = 1000;
/// Bound of one invocation with its wait for a free environment; the function's own timeout is less.
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(900);

/// The mappings, ready for a poller.
///
/// # Errors
/// [`SettingsError`] names a setting that AWS would refuse.
pub fn mappings(
    streams: &[StreamMapping],
    functions: &Arc<Functions>,
    discarded: &Arc<Discarded>,
) -> Result<Vec<Mapping>, SettingsError> {
    let mapping = |stream: &StreamMapping| {
        let function = Arc::new(Function { functions: Arc::clone(functions), name: stream.function.clone() });
        let destination = stream.on_failure.as_ref().map(|_| Arc::clone(discarded) as Arc<dyn Destination>);
        Mapping::new(settings(stream), function, destination)
    };
    streams.iter().map(mapping).collect()
}

/// Deletes from the embedded stream what every mapping has passed, for its cost grows with what lies
/// in it. Ends with the poller.
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
                Err(_) => return, // The runtime is going down.
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
}

impl Invoke for Function {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'_, Result<Bytes, FunctionError>> {
        async move {
            let deadline = Instant::now() + INVOCATION_TIMEOUT;
            let answer = self.functions.invoke(&self.name, payload, deadline).await;
            answer.map_err(|error| match error {
                InvokeError::Function(error) => FunctionError::Failed(error.to_string()),
                // A smaller batch may fit, so this is an attempt, which bisection follows.
                InvokeError::PayloadTooLarge(_) => FunctionError::Failed(error.to_string()),
                InvokeError::UnknownFunction(_) | InvokeError::Deadline | InvokeError::Stopped => {
                    FunctionError::NotCalled(error.to_string())
                }
            })
        }
        .boxed()
    }
}

/// The destination of failed records: what the bucket is in a deployment.
#[derive(Debug, Default)]
pub struct Discarded(Mutex<VecDeque<Json>>);

impl Discarded {
    /// Everything that was given up, oldest first, as Lambda writes it to a bucket.
    #[must_use]
    pub fn list(&self) -> Vec<Json> {
        let batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batches.iter().cloned().collect()
    }
}

impl Destination for Discarded {
    fn discard(&self, batch: DiscardedBatch) -> BoxFuture<'_, Result<(), DestinationError>> {
        let mut batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = if batches.len() < MAX_DISCARDED {
            batches.push_back(batch.to_json());
            Ok(())
        } else {
            Err(DestinationError(format!("{MAX_DISCARDED} batches are kept already")))
        };
        futures::future::ready(result).boxed()
    }
}
